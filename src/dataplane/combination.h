// A slice of a buffer that is being filled with the combination of others, element by element.
//
// It is the slice's producer, and reads its inputs only as far as they are valid: that is as far as it can come. Lives on
// one lane.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/buffer.h"
#include "hoplite/dtype.h"

namespace hoplite::dataplane {

class Combination {
 public:
  struct Input {
    BufferPtr buffer;
    std::uint32_t slice = 0;  // whose valid bytes say how far it is, until the buffer is sealed
    std::uint64_t begin = 0;  // where its bytes begin, from the start of the object
  };
  // Checked by whoever orders it: an empty slice of whole elements, inputs that are as long, an operator for the type.
  struct Work {
    BufferPtr out;
    std::uint32_t slice = 0;
    ReduceOp op = ReduceOp::kSum;
    DType type = DType::kF32;
    std::uint64_t divide_by = 1;
    bool final = false;
    std::vector<Input> inputs;
  };

  explicit Combination(Work work);

  const Work& work() const { return work_; }
  bool complete() const { return done_ == length_; }
  // Something can be done now.
  bool ready() const { return available() > done_; }
  // Combines what is there now, at most `most_bytes` of output (a multiple of 8), and adds it to the slice's valid bytes. False if
  // there was nothing to do.
  bool step(std::uint64_t most_bytes);

 private:
  std::uint64_t available() const;
  void calculate(std::byte* out, std::uint64_t bytes);

  const Work work_;
  const std::uint64_t length_;
  std::uint64_t done_ = 0;                 // bytes, from the slice's front
  std::vector<const std::byte*> sources_;  // scratch of `calculate`
};

}  // namespace hoplite::dataplane
