#include "core/agent/copies.h"

#include <algorithm>

#include "base/check.h"

namespace hoplite {

void Copies::open(Copy& copy) {
  if (copy.in_data_plane() != InDataPlane::kNotOpen) return;
  table_.opened(copy);
  out_.emit(effect::OpenCopy{copy.key, copy.extent, copy.slice_count(), copy.is_final()});
  if (!copy.is_final() && copy.written.front() > 0) out_.emit(effect::GrowCopy{copy.key, copy.written.front()});
}

void Copies::follow(Copy& copy) {
  open(copy);
  if (!copy.followed) out_.emit(effect::FollowCopy{copy.key});
  copy.followed = true;
}

CopyUse Copies::view(Copy& copy) {
  CopyUse use = table_.use(copy, CopyUser::kView);
  table_.touch(copy);
  return use;
}

void Copies::write(Copy& copy, std::uint64_t bytes) {
  CHECK(copy.life() == CopyLife::kWriting && bytes <= copy.extent.size, copy.id, bytes, copy.extent.size);
  if (bytes <= copy.written.front()) return;
  copy.written.extend_to(bytes);
  if (copy.in_data_plane() == InDataPlane::kOpen) out_.emit(effect::GrowCopy{copy.key, bytes});
}

void Copies::complete(Copy& copy) {
  table_.become(copy, CopyLife::kComplete);
  if (copy.in_data_plane() == InDataPlane::kOpen) out_.emit(effect::SealCopy{copy.key});
}

std::uint64_t Copies::front_bytes(const Copy& copy) const {
  if (copy.is_complete()) return copy.extent.size;
  if (copy.life() == CopyLife::kWriting) return copy.written.front();
  std::uint64_t front = 0;
  for (std::uint32_t i = 0; i < copy.slices.size(); ++i) {
    const CopySlice& slice = copy.slices[i];
    const std::uint64_t end = slice.valid.slice().end;
    front = slice.is_done() ? end : std::max(valid(copy, i).front(), slice.valid.front());
    if (front < end) break;
  }
  return front;
}

}  // namespace hoplite
