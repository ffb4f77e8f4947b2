// The copies that this node keeps, and the memory they take.
//
// A copy is an extent with a version. It is *current* while the node answers for it; after a delete or a reset it lingers
// only until its users have let go: client views, serves to peers, the data plane, a writing client. `collect` then frees
// the extent. So memory that anybody can see is never given to another object.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/time.h"
#include "core/objects/extent_allocator.h"
#include "protocol/client_messages.h"
#include "protocol/transfer.h"

namespace hoplite {

// One slice of a copy that is being pulled.
struct SliceFetch {
  TransferId transfer = 0;  // the pull under way, 0 = none
  NodeRef parent{};         // whom it is, or was last, pulled from
  bool attached = false;    // the parent has accepted: children may follow
  bool done = false;
  std::uint64_t begin = 0;
  std::uint64_t watermark = 0;  // when no pull is under way: how far it is, absolute
  std::uint64_t end = 0;
  std::uint32_t children = 0;  // accepted pulls of peers
  std::uint32_t silences = 0;  // pulls that were given up for silence since the last byte
  bool combined = false;       // not pulled: a slot of a reduce fills it
  Ticket ticket = {};          // the assignment that it is pulled by
};

struct Copy {
  CopyKey key = 0;
  ObjectId id;
  Version version = 0;
  Extent extent;
  std::string meta;
  CopyState state = CopyState::kGrowing;
  bool committed = false;  // known to be the final version (always so when complete)
  bool current = true;
  bool primary = false;
  bool open = false;     // in the data plane
  bool closing = false;  // CloseCopy is under way
  bool followed = false;
  bool evict_asked = false;
  Time evict_not_before;           // the home has denied it: ask again then
  std::uint32_t views = 0;         // of clients
  std::uint32_t serves = 0;        // accepted pulls of peers
  std::uint32_t pulls = 0;         // our own pulls into it
  std::uint32_t holds = 0;         // slots of reduces that read it or fill it
  bool combined = false;           // kWriting: filled by slots and pulls, not by a client
  bool kept = false;               // until it is complete, though nobody here may read it
  ClientKey writer = 0;            // the client that writes it
  std::uint64_t written = 0;       // by that client, from the front
  std::vector<SliceFetch> slices;  // while it grows by pulling
  Time fetch_started;
  bool complete_at_start = false;    // it was committed when the fetch began
  std::list<CopyKey>::iterator lru;  // valid if listed
  bool listed = false;

  bool idle() const { return views == 0 && serves == 0 && pulls == 0 && holds == 0; }
  std::uint32_t slice_count() const { return slices.empty() ? 1 : static_cast<std::uint32_t>(slices.size()); }
};

class ObjectTable {
 public:
  explicit ObjectTable(std::uint64_t capacity) : allocator_(capacity) {}

  // nullptr: there is no room now.
  Copy* add(const ObjectId& id, Version version, std::uint64_t size, Alignment alignment);
  Copy* find(CopyKey key);
  const Copy* find(CopyKey key) const;
  // Frees the copy if it is not current and nobody uses it. True if it is gone (the reference is then dangling).
  bool collect(Copy& copy);

  // Complete copies that are not primary can be evicted, the least recently used first.
  void touch(Copy& copy);  // used now; lists or unlists it as its state demands
  void unlist(Copy& copy);
  // Copies that nobody uses and whose eviction has not been asked for or denied lately, until `bytes` are reached (or there
  // are no more).
  std::vector<CopyKey> eviction_candidates(Time now, std::uint64_t bytes) const;

  const ExtentAllocator& allocator() const { return allocator_; }
  // Bytes that cannot be evicted: primary, growing or in use.
  std::uint64_t pinned_bytes() const;
  // By key.
  std::vector<const Copy*> all() const;

 private:
  ExtentAllocator allocator_;
  std::unordered_map<CopyKey, Copy> copies_;
  std::list<CopyKey> lru_;  // front = the next to go
  CopyKey next_key_ = 1;
};

}  // namespace hoplite
