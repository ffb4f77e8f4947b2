// The end of standard input as an event of a loop. A daemon whose standard input is a pipe from another process can so be
// told that this process is gone, however it went: the kernel closes the pipe.
#pragma once

#include <functional>

#include "hoplite/error.h"
#include "transport/loop.h"

namespace hoplite {

class EndOfInput {
 public:
  EndOfInput() = default;
  ~EndOfInput() { detach(); }
  EndOfInput(const EndOfInput&) = delete;
  EndOfInput& operator=(const EndOfInput&) = delete;

  // kInvalidArgument if standard input has no end that can be waited for: a file, /dev/null.
  static Result<void> check();

  // `on_end` is called once, on the loop thread; what is read before is thrown away. `loop` must outlive this object, or
  // `detach` must be called first. After a check().
  void attach(Loop& loop, std::function<void()> on_end);
  void detach();

 private:
  void read_on();

  Loop* loop_ = nullptr;
  std::function<void()> on_end_;
};

}  // namespace hoplite
