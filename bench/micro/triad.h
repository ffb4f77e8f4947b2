// STREAM's triad: what plain code gets out of the memory. Compiled for this very machine (CMakeLists.txt), so that the bound
// which the kernels are measured against is not a weak one.
#pragma once

#include <cstddef>

namespace hoplite {

// a[i] = b[i] + scale * c[i]
void triad(float* a, const float* b, const float* c, float scale, std::size_t elements);
// a[i] = a[i] + scale * b[i]
void triad_in_place(float* a, const float* b, float scale, std::size_t elements);

}  // namespace hoplite
