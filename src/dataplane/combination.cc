#include "dataplane/combination.h"

#include <algorithm>
#include <utility>

#include "kernels/kernels.h"

namespace hoplite::dataplane {

Combination::Combination(Work work) : work_(std::move(work)), length_(work_.out->range(work_.slice).size()) {}

// How far all inputs are valid, in whole elements.
std::uint64_t Combination::available() const {
  std::uint64_t least = length_;
  for (const Input& input : work_.inputs) {
    if (input.buffer->sealed()) continue;
    const std::uint64_t front = input.buffer->valid(input.slice).front();
    least = std::min(least, front - std::min(front, input.begin));
  }
  return least - least % size_of(work_.type);
}

bool Combination::step(std::uint64_t most_bytes) {
  const std::uint64_t bytes = std::min(available() - done_, most_bytes);
  if (bytes == 0) return false;
  ValidBytes made = work_.out->valid(work_.slice);
  if (std::byte* const out = work_.out->at(made.front()); out != nullptr) calculate(out, bytes);
  done_ += bytes;
  made.extend_to(made.front() + bytes);
  work_.out->set_valid(work_.slice, made);
  return true;
}

void Combination::calculate(std::byte* out, std::uint64_t bytes) {
  sources_.clear();
  for (const Input& input : work_.inputs) sources_.push_back(input.buffer->at(input.begin + done_));
  combine(work_.op, work_.type, out, sources_, bytes);
  if (work_.divide_by > 1) divide(work_.type, out, bytes, work_.divide_by);
}

}  // namespace hoplite::dataplane
