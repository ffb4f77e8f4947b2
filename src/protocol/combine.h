// What is to be combined into what: the same words for those who decide and those who do it.
#pragma once

#include <cstdint>
#include <vector>

#include "hoplite/dtype.h"
#include "protocol/client_messages.h"

namespace hoplite {

// A slice of `out` is to become the combination of the inputs, element by element, as far as all of them are valid.
struct CombineOrder {
  struct Input {
    CopyKey copy = 0;
    std::uint32_t slice = 0;  // how far it is: this slice's watermark
    std::uint64_t begin = 0;  // where the bytes begin, from the start of the object
  };
  CopyKey out = 0;
  std::uint32_t slice = 0;
  ReduceOp op = ReduceOp::kSum;
  DType type = DType::kF32;
  std::uint64_t divide_by = 1;
  bool final = false;  // the slice's serves may end with kEnd once it is complete; otherwise sealing says so
  std::vector<Input> inputs;
};

}  // namespace hoplite
