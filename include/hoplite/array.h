// What an object's bytes are: numbers of one type, in a shape. It is given with a put, travels with the object, and is what a
// reduce compares.
#pragma once

#include <cstdint>
#include <vector>

#include "hoplite/dtype.h"

namespace hoplite {

struct ArrayType {
  DType type = DType::kBytes;
  std::vector<std::uint64_t> shape = {};  // the outermost dimension first, at most 32; empty: not said

  bool operator==(const ArrayType&) const = default;
};

}  // namespace hoplite
