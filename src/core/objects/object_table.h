// The copies that this node keeps, and the memory they take.
//
// A copy is *current* while the node answers for it; after a delete or a reset it lingers only until its users have let go:
// client views, serves to peers, pulls, slots of reduces, a writing client, and the data plane. Then `collect` frees its
// extent. So memory that anybody can see is never given to another object.
//
// Users are counted by CopyUse, which lets go by itself. The table notes what may have become free or evictable; whoever
// drives it calls `collect` when the step is over.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/objects/copy.h"
#include "core/objects/extent_allocator.h"

namespace hoplite {

class ObjectTable;

// Somebody uses a copy, for as long as this lives. The table must outlive it.
class CopyUse {
 public:
  CopyUse() = default;  // nobody uses nothing
  CopyUse(CopyUse&& other) noexcept { swap(other); }
  CopyUse& operator=(CopyUse&& other) noexcept {
    CopyUse(std::move(other)).swap(*this);
    return *this;
  }
  ~CopyUse();

  explicit operator bool() const { return table_ != nullptr; }
  CopyKey key() const { return key_; }  // 0 if there is none
  Copy& copy() const;
  // One more of the same kind.
  CopyUse again() const;

 private:
  friend class ObjectTable;
  CopyUse(ObjectTable& table, CopyKey key, CopyUser kind) : table_(&table), key_(key), kind_(kind) {}
  void swap(CopyUse& other) noexcept {
    std::swap(table_, other.table_);
    std::swap(key_, other.key_);
    std::swap(kind_, other.kind_);
  }

  ObjectTable* table_ = nullptr;
  CopyKey key_ = 0;
  CopyUser kind_ = CopyUser::kView;
};

class ObjectTable {
 public:
  explicit ObjectTable(std::uint64_t capacity) : allocator_(capacity) {}

  // nullptr: there is no room now.
  Copy* add(const ObjectId& id, Version version, std::uint64_t size, Alignment alignment, CopyLife life);
  // nullptr if it is gone.
  Copy* find(CopyKey key);
  const Copy* find(CopyKey key) const;
  Copy& at(CopyKey key);
  const Copy& at(CopyKey key) const;

  [[nodiscard]] CopyUse use(Copy& copy, CopyUser kind);
  // Only as the table in copy.h allows.
  void become(Copy& copy, CopyLife life);
  // It was added in vain: nobody has seen it, and its memory is free at once.
  void take_back(Copy& copy);
  void opened(Copy& copy);
  void closed(Copy& copy);

  // Frees what nobody uses any more. What only the data plane still knows is to be closed there first: `close`. True if
  // there may be more room than before, or more that can be evicted.
  bool collect(const std::function<void(CopyKey)>& close);
  bool has_noted() const { return !noted_.empty(); }

  // Complete copies that are not primary can be evicted, the least recently used first.
  void touch(Copy& copy);  // used now; lists or unlists it as its state demands
  // Copies that nobody uses and whose eviction has not been asked for or denied lately, until `bytes` are reached (or there
  // are no more).
  std::vector<CopyKey> eviction_candidates(Time now, std::uint64_t bytes) const;

  const ExtentAllocator& allocator() const { return allocator_; }
  // Bytes that cannot be evicted: primary, growing or in use.
  std::uint64_t pinned_bytes() const;
  // In words: so much is needed, and so much is there.
  std::string room_numbers(std::uint64_t needed) const;
  // By key: in the order of their making. Until `visit` says no.
  void visit(const std::function<bool(const Copy&)>& visit) const;
  // Current copies, by whether they are complete.
  std::uint64_t complete() const { return complete_; }
  std::uint64_t growing() const { return growing_; }

  // After `collect`.
  void check_invariants() const;

 private:
  friend class CopyUse;
  static bool is_unneeded(const Copy& copy);
  void release(CopyKey key, CopyUser kind);
  void unlist(Copy& copy);
  // So that counts follow: call both around a change of what a copy is, or of who uses it.
  void uncount(const Copy& copy);
  void count(const Copy& copy);
  void check(const Copy& copy) const;

  ExtentAllocator allocator_;
  std::map<CopyKey, Copy> copies_;  // grows a copy at a time: a table of a million that is hashed anew stops everything
  std::list<CopyKey> lru_;          // front = the next to go
  std::set<CopyKey> noted_;         // lost a user, or retired, since the last collect
  CopyKey next_key_ = 1;
  std::uint64_t complete_ = 0;
  std::uint64_t growing_ = 0;
  std::uint64_t evictable_bytes_ = 0;  // listed, and nobody uses them
};

}  // namespace hoplite
