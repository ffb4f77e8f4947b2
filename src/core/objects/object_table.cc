#include "core/objects/object_table.h"

#include <algorithm>

#include "base/check.h"

namespace hoplite {
namespace {

bool may_become(CopyLife from, CopyLife to) {
  switch (from) {
    case CopyLife::kHidden: return to == CopyLife::kCombining;
    case CopyLife::kWriting:
    case CopyLife::kFetching:
    case CopyLife::kCombining: return to == CopyLife::kComplete || to == CopyLife::kRetired;
    case CopyLife::kComplete: return to == CopyLife::kRetired;
    case CopyLife::kRetired: return false;
  }
  return false;
}

}  // namespace

// --- a copy --------------------------------------------------------------------------------------------------------------

bool Copy::is_striped() const {
  return life_ == CopyLife::kCombining && !std::ranges::all_of(slices, &CopySlice::combined);
}

void Copy::cut_into(std::uint32_t count) {
  CHECK(slices.empty() && count >= 1, key, slices.size(), count);
  for (std::uint32_t i = 0; i < count; ++i)
    slices.push_back({ValidBytes(slice_range(extent.size, count, i)), SliceState::kMissing, false});
}

CopyState Copy::state() const {
  if (is_complete()) return CopyState::kComplete;
  return life_ == CopyLife::kFetching ? CopyState::kGrowing : CopyState::kWriting;
}

CopyUse::~CopyUse() {
  if (table_ != nullptr) table_->release(key_, kind_);
}
Copy& CopyUse::copy() const {
  CHECK(table_ != nullptr);
  return table_->at(key_);
}
CopyUse CopyUse::again() const { return table_ == nullptr ? CopyUse{} : table_->use(copy(), kind_); }

// --- the table -----------------------------------------------------------------------------------------------------------

Copy* ObjectTable::add(const ObjectId& id, Version version, std::uint64_t size, Alignment alignment, CopyLife life) {
  CHECK(life != CopyLife::kRetired && life != CopyLife::kCombining, id);
  const auto extent = allocator_.allocate(size, alignment);
  if (!extent) return nullptr;
  Copy& copy = copies_[next_key_];
  copy.key = next_key_++;
  copy.id = id;
  copy.version = version;
  copy.extent = *extent;
  copy.written = ValidBytes({0, size});
  copy.life_ = life;
  copy.committed = copy.is_final_ = life == CopyLife::kComplete;
  count(copy);
  return &copy;
}

Copy* ObjectTable::find(CopyKey key) {
  const auto it = copies_.find(key);
  return it == copies_.end() ? nullptr : &it->second;
}

const Copy* ObjectTable::find(CopyKey key) const {
  const auto it = copies_.find(key);
  return it == copies_.end() ? nullptr : &it->second;
}

Copy& ObjectTable::at(CopyKey key) {
  Copy* copy = find(key);
  CHECK(copy != nullptr, key);
  return *copy;
}

const Copy& ObjectTable::at(CopyKey key) const {
  const Copy* copy = find(key);
  CHECK(copy != nullptr, key);
  return *copy;
}

CopyUse ObjectTable::use(Copy& copy, CopyUser kind) {
  uncount(copy);
  ++copy.users_[static_cast<std::size_t>(kind)];
  count(copy);
  return {*this, copy.key, kind};
}

void ObjectTable::release(CopyKey key, CopyUser kind) {
  Copy& copy = at(key);
  CHECK(copy.users(kind) > 0, key, kind);
  uncount(copy);
  --copy.users_[static_cast<std::size_t>(kind)];
  count(copy);
  noted_.insert(key);
}

void ObjectTable::become(Copy& copy, CopyLife life) {
  CHECK(may_become(copy.life_, life), copy.key, copy.id, copy.life_, life);
  uncount(copy);
  copy.life_ = life;
  count(copy);
  if (life == CopyLife::kComplete) {
    copy.committed = copy.is_final_ = true;
    touch(copy);
  }
  if (life != CopyLife::kRetired) return;
  unlist(copy);
  noted_.insert(copy.key);
}

void ObjectTable::take_back(Copy& copy) {
  CHECK(copy.is_idle() && copy.in_data_plane_ == InDataPlane::kNotOpen && !copy.lru_, copy.key);
  noted_.erase(copy.key);
  uncount(copy);
  allocator_.free(copy.extent);
  copies_.erase(copy.key);
}

void ObjectTable::opened(Copy& copy) {
  CHECK(copy.in_data_plane_ == InDataPlane::kNotOpen, copy.key, copy.in_data_plane_);
  copy.in_data_plane_ = InDataPlane::kOpen;
}

void ObjectTable::closed(Copy& copy) {
  CHECK(copy.in_data_plane_ == InDataPlane::kClosing, copy.key, copy.in_data_plane_);
  copy.in_data_plane_ = InDataPlane::kNotOpen;
  noted_.insert(copy.key);
}

bool ObjectTable::is_unneeded(const Copy& copy) { return !copy.is_current() && copy.users(CopyUser::kHold) == 0; }

bool ObjectTable::collect(const std::function<void(CopyKey)>& close) {
  const std::set<CopyKey> noted = std::exchange(noted_, {});
  for (const CopyKey key : noted) {
    Copy& copy = at(key);
    // What a reduce uses stays open.
    if (is_unneeded(copy) && copy.in_data_plane_ == InDataPlane::kOpen) {
      copy.in_data_plane_ = InDataPlane::kClosing;
      close(key);
    }
    if (copy.is_current() || copy.in_data_plane_ != InDataPlane::kNotOpen || !copy.is_idle()) continue;
    CHECK(!copy.lru_, key);
    allocator_.free(copy.extent);
    copies_.erase(key);
  }
  return !noted.empty();
}

// --- eviction ------------------------------------------------------------------------------------------------------------

void ObjectTable::touch(Copy& copy) {
  unlist(copy);
  if (!copy.is_complete() || copy.primary) return;
  uncount(copy);
  copy.lru_ = lru_.insert(lru_.end(), copy.key);
  count(copy);
}

void ObjectTable::unlist(Copy& copy) {
  if (!copy.lru_) return;
  uncount(copy);
  lru_.erase(*copy.lru_);
  copy.lru_.reset();
  count(copy);
}

void ObjectTable::uncount(const Copy& copy) {
  if (copy.is_complete()) --complete_;
  if (copy.is_growing()) --growing_;
  if (copy.lru_ && copy.is_idle()) evictable_bytes_ -= copy.extent.size;
}

void ObjectTable::count(const Copy& copy) {
  if (copy.is_complete()) ++complete_;
  if (copy.is_growing()) ++growing_;
  if (copy.lru_ && copy.is_idle()) evictable_bytes_ += copy.extent.size;
}

std::vector<CopyKey> ObjectTable::eviction_candidates(Time now, std::uint64_t bytes) const {
  std::vector<CopyKey> keys;
  std::uint64_t found = 0;
  for (auto it = lru_.begin(); it != lru_.end() && found < bytes; ++it) {
    const Copy& copy = copies_.at(*it);
    if (!copy.is_idle() || copy.evict_not_before > now) continue;
    // What was asked for already counts: its room is on the way.
    found += std::max<std::uint64_t>(copy.extent.size, 1);
    if (!copy.evict_asked) keys.push_back(*it);
  }
  return keys;
}

std::uint64_t ObjectTable::pinned_bytes() const {
  return allocator_.used() - std::min(evictable_bytes_, allocator_.used());
}

std::string ObjectTable::room_numbers(std::uint64_t needed) const {
  return format_size(needed) + " needed; " + format_size(allocator_.used()) + " of the store's " +
         format_size(allocator_.capacity()) + " are in use, of which " + format_size(pinned_bytes()) +
         " cannot be evicted";
}

void ObjectTable::visit(const std::function<bool(const Copy&)>& visit) const {
  for (const auto& [key, copy] : copies_)
    if (!visit(copy)) return;
}

// --- invariants ----------------------------------------------------------------------------------------------------------

void ObjectTable::check_invariants() const {
  CHECK(noted_.empty(), noted_.size());
  std::size_t listed = 0;
  std::uint64_t complete = 0;
  std::uint64_t growing = 0;
  std::uint64_t evictable = 0;
  for (const auto& [key, copy] : copies_) {
    check(copy);
    listed += copy.lru_ ? 1 : 0;
    complete += copy.is_complete() ? 1 : 0;
    growing += copy.is_growing() ? 1 : 0;
    evictable += copy.lru_ && copy.is_idle() ? copy.extent.size : 0;
  }
  CHECK(listed == lru_.size(), listed, lru_.size());
  CHECK(complete == complete_ && growing == growing_, complete, complete_, growing, growing_);
  CHECK(evictable == evictable_bytes_, evictable, evictable_bytes_);
}

void ObjectTable::check(const Copy& copy) const {
  CHECK(copy.is_current() || !copy.is_idle() || copy.in_data_plane_ == InDataPlane::kClosing, copy.key);
  CHECK(copy.lru_.has_value() == (copy.is_complete() && !copy.primary), copy.key, copy.life_);
  CHECK(!copy.is_complete() || copy.committed, copy.key, copy.id);
  CHECK(copy.life_ != CopyLife::kComplete || copy.slices.empty() || copy.written.count() == 0, copy.key);
  CHECK(copy.users(CopyUser::kWriter) <= 1, copy.key, copy.users(CopyUser::kWriter));
  for (const CopySlice& slice : copy.slices)
    CHECK(!slice.is_done() || slice.valid.complete() || slice.combined, copy.key, slice.valid.front());
}

}  // namespace hoplite
