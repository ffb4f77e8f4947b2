#include "triad.h"

namespace hoplite {

void triad(float* __restrict a, const float* __restrict b, const float* __restrict c, float scale,
           std::size_t elements) {
  for (std::size_t i = 0; i < elements; ++i) a[i] = b[i] + scale * c[i];
}

void triad_in_place(float* __restrict a, const float* __restrict b, float scale, std::size_t elements) {
  for (std::size_t i = 0; i < elements; ++i) a[i] = a[i] + scale * b[i];
}

}  // namespace hoplite
