// Objects as a program holds them: to read, to write, and to read while they arrive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "hoplite/array.h"
#include "hoplite/error.h"
#include "hoplite/future.h"
#include "hoplite/object_id.h"
#include "hoplite/waiting.h"

namespace hoplite {

namespace client {
struct Viewing;
struct Writing;
struct Reading;
// Whether the bytes of `id`, which were put as `put_as`, are whole and aligned elements of the type `wanted`.
Result<void> check_elements(ObjectId id, DType put_as, DType wanted, std::span<const std::byte> bytes);
}  // namespace client

// Read-only bytes in shared memory. They stay valid, and the object stays in this node's store, until the last copy of the
// View is gone: also after a delete, when the Client is destroyed, when the daemon has closed the connection, and when the
// daemon is gone. A child made by fork() may read the Views that it has inherited, and keeps the objects as its parent does.
// `hoplite status` shows which processes hold how much. Writing through a View faults.
class View {
 public:
  View() = default;
  ObjectId id() const;
  std::span<const std::byte> bytes() const;
  const std::byte* data() const { return bytes().data(); }
  std::size_t size() const { return bytes().size(); }
  // The bytes as numbers. kTypeMismatch if they were put as numbers of another type; plain bytes may be read as any type.
  // kInvalidArgument if they are no whole number of elements.
  template <Element T>
  Result<std::span<const T>> as() const {
    if (auto ok = client::check_elements(id(), array().type, dtype_of<T>(), bytes()); !ok) return ok.error();
    return std::span(reinterpret_cast<const T*>(data()), size() / sizeof(T));
  }
  const std::string& metadata() const;
  const ArrayType& array() const;
  bool is_failure() const;  // OnFailure::kView
  explicit operator bool() const { return state_ != nullptr; }

 private:
  friend struct client::Access;
  explicit View(std::shared_ptr<client::Viewing> state) : state_(std::move(state)) {}
  std::shared_ptr<client::Viewing> state_;
};

// An object that is being written. Readers anywhere may follow what was advanced. Destroyed without seal(): given up.
// It does not outlive its Client, nor its daemon: then the object is given up, and every call says kUnavailable. Its buffer
// stays writable, and what is written there reaches nobody: the memory is no other object's before the writer is gone.
// A child made by fork() cannot write: there the buffer is empty, and inaccessible.
// One thread at a time.
class ObjectWriter {
 public:
  ObjectWriter(ObjectWriter&&) noexcept;
  ObjectWriter& operator=(ObjectWriter&&) noexcept;
  ~ObjectWriter();

  ObjectId id() const;
  // The whole object, writable until seal().
  std::span<std::byte> buffer();
  // The same as numbers, with the conditions of View::as(). kInvalidArgument after seal().
  template <Element T>
  Result<std::span<T>> as() {
    if (auto ok = check_elements(dtype_of<T>()); !ok) return ok.error();
    return std::span(reinterpret_cast<T*>(buffer().data()), buffer().size() / sizeof(T));
  }
  // The first `bytes` are final: readers may have them. Never decreases. kUnavailable if the Client or its daemon is gone,
  // kInvalidArgument after seal() or abort().
  Result<void> advance(std::size_t bytes);
  // Everything is final; the result is there when the object is committed.
  Result<ObjectId> seal(Timeout timeout = {});
  Future<ObjectId> seal_async(Timeout timeout = {});
  // Gives the object up; nothing after seal().
  void abort();

 private:
  friend struct client::Access;
  explicit ObjectWriter(std::unique_ptr<client::Writing> state);
  Result<void> check_elements(DType wanted);
  std::unique_ptr<client::Writing> state_;
};

// A streaming read: bytes as they arrive, possibly before the object is committed. One thread at a time.
class Follower {
 public:
  Follower(Follower&&) noexcept;
  Follower& operator=(Follower&&) noexcept;
  ~Follower();

  enum class Event { kBytes, kReset, kComplete };
  struct Progress {
    Event event = Event::kBytes;
    std::span<const std::byte> bytes;  // the valid front of the object, growing from call to call
    std::uint64_t size = 0;            // of the whole object
  };
  // Waits for more bytes than the last call returned, for a reset (start over: other bytes will come; the bytes of earlier
  // calls stay readable until the next call), or for completion. `timeout` is for this call; when it passes, kTimedOut, and
  // the next call goes on. The deadline of follow() ends the read as a whole.
  Result<Progress> next(Timeout timeout = {});
  // After kComplete.
  View view() const;
  // The read is over: it is complete, or has failed for good.
  bool ended() const;

 private:
  friend struct client::Access;
  explicit Follower(std::unique_ptr<client::Reading> state);
  std::unique_ptr<client::Reading> state_;
};

}  // namespace hoplite
