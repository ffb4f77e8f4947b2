#include "core/objects/object_table.h"

#include <algorithm>

namespace hoplite {

Copy* ObjectTable::add(const ObjectId& id, Version version, std::uint64_t size, Alignment alignment) {
  const auto extent = allocator_.allocate(size, alignment);
  if (!extent) return nullptr;
  Copy& copy = copies_[next_key_];
  copy.key = next_key_++;
  copy.id = id;
  copy.version = version;
  copy.extent = *extent;
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

bool ObjectTable::collect(Copy& copy) {
  if (copy.current || copy.open || copy.writer != 0 || !copy.idle()) return false;
  unlist(copy);
  allocator_.free(copy.extent);
  copies_.erase(copy.key);
  return true;
}

void ObjectTable::touch(Copy& copy) {
  unlist(copy);
  if (!copy.current || copy.primary || copy.state != CopyState::kComplete) return;
  copy.lru = lru_.insert(lru_.end(), copy.key);
  copy.listed = true;
}

void ObjectTable::unlist(Copy& copy) {
  if (!copy.listed) return;
  lru_.erase(copy.lru);
  copy.listed = false;
}

std::vector<CopyKey> ObjectTable::eviction_candidates(Time now, std::uint64_t bytes) const {
  std::vector<CopyKey> keys;
  std::uint64_t found = 0;
  for (auto it = lru_.begin(); it != lru_.end() && found < bytes; ++it) {
    const Copy& copy = copies_.at(*it);
    if (!copy.idle() || copy.evict_not_before > now) continue;
    // What was asked for already counts: its room is on the way.
    found += std::max<std::uint64_t>(copy.extent.size, 1);
    if (!copy.evict_asked) keys.push_back(*it);
  }
  return keys;
}

std::uint64_t ObjectTable::pinned_bytes() const {
  std::uint64_t evictable = 0;
  for (CopyKey key : lru_) {
    const Copy& copy = copies_.at(key);
    if (copy.idle()) evictable += copy.extent.size;
  }
  return allocator_.used() - std::min(evictable, allocator_.used());
}

std::vector<const Copy*> ObjectTable::all() const {
  std::vector<const Copy*> copies;
  for (const auto& [key, copy] : copies_) copies.push_back(&copy);
  std::ranges::sort(copies, {}, &Copy::key);
  return copies;
}

}  // namespace hoplite
