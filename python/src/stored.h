// Bytes in the store as Python holds them: read-only memory (the buffer protocol) that stays valid for as long as anything
// refers to it, an array, a slice or a memoryview, also after the client is closed.
#pragma once

#include <utility>

#include "interop.h"

namespace hoplite::python {

class Stored {
 public:
  explicit Stored(View view) : view_(std::move(view)), generation_(fork_generation()) {}
  Stored(const Stored&) = delete;
  Stored& operator=(const Stored&) = delete;
  // In a forked child the lock of the connection may be held for ever, so nothing is given back there.
  ~Stored() {
    if (generation_ != fork_generation()) new View(std::move(view_));
  }

  const View& view() const { return view_; }

 private:
  View view_;
  unsigned generation_;
};

void bind_stored(nb::module_& module);

}  // namespace hoplite::python
