// An object that Python fills in place: shared memory that is writable until it is sealed.
#pragma once

#include <cstddef>
#include <optional>

#include "interop.h"
#include "session.h"

namespace hoplite::python {

// Arrays refer to the memory for as long as they like, so it has addresses of its own, a second mapping of the writer's
// pages, which outlives the writer's window: read-only when the object is sealed, and held by a view then; zeros when it is
// given up. The GIL guards it.
class Draft {
 public:
  explicit Draft(ObjectWriter writer);
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  ~Draft();

  ObjectId id() const { return id_; }
  bool writable() const { return writable_; }
  std::byte* data() const { return memory_; }
  std::size_t size() const { return size_; }

  void seal(Session& session, Timeout timeout);
  // Nothing after seal().
  void abort();

 private:
  std::size_t mapped_bytes() const;
  void protect();
  void forget();

  const unsigned generation_ = fork_generation();
  std::optional<ObjectWriter> writer_;
  ObjectId id_;
  std::byte* memory_ = nullptr;
  std::size_t size_ = 0;
  bool writable_ = true;
  View view_;
};

void bind_draft(nb::module_& module);
nb::object create(Session& session, std::size_t size, const PutOptions& options);

}  // namespace hoplite::python
