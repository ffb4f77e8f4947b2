#include "transport/tcp/combination.h"

#include <algorithm>
#include <utility>

#include "kernels/kernels.h"

namespace hoplite::tcp {
namespace {

std::uint64_t length_of(const SliceRange& range) { return range.end - range.begin; }

}  // namespace

Combination::Combination(Work work) : work_(std::move(work)), length_(length_of(work_.out->range(work_.slice))) {}

// How far all inputs are valid, in whole elements.
std::uint64_t Combination::available() const {
  std::uint64_t least = length_;
  for (const Input& input : work_.inputs) {
    if (input.copy->sealed()) continue;
    const std::uint64_t valid = input.copy->watermark(input.slice);
    least = std::min(least, valid - std::min(valid, input.begin));
  }
  return least - least % size_of(work_.type);
}

bool Combination::step(std::uint64_t most_bytes) {
  const std::uint64_t bytes = std::min(available() - done_, most_bytes);
  if (bytes == 0) return false;
  const std::uint64_t begin = work_.out->range(work_.slice).begin + done_;
  sources_.clear();
  for (const Input& input : work_.inputs) sources_.push_back(input.copy->at(input.begin + done_));
  std::byte* const out = work_.out->at(begin);
  combine(work_.op, work_.type, out, sources_, bytes);
  if (work_.divide_by > 1) divide(work_.type, out, bytes, work_.divide_by);
  done_ += bytes;
  work_.out->set_watermark(work_.slice, begin + bytes);
  return true;
}

}  // namespace hoplite::tcp
