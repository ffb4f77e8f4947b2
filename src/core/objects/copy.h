// What a node keeps of an object, and what becomes of it. ObjectTable makes the transitions and counts the users.
//
//   life         what it is                                                      becomes
//   kHidden      an input or an output of a reduce's slot, which nobody else sees  kCombining
//   kWriting     a client writes it                                              kComplete, kRetired
//   kFetching    bytes arrive from peers                                         kComplete, kRetired
//   kCombining   slots of reduces fill it, and pulls what other nodes combine    kComplete, kRetired
//   kComplete    all bytes, committed                                            kRetired
//   kRetired     this node does not answer for it any more
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "base/extent.h"
#include "base/time.h"
#include "hoplite/priority.h"
#include "protocol/messages.h"
#include "protocol/transfer.h"
#include "protocol/valid_bytes.h"

namespace hoplite {

enum class CopyLife : std::uint8_t { kHidden, kWriting, kFetching, kCombining, kComplete, kRetired };
enum class InDataPlane : std::uint8_t { kNotOpen, kOpen, kClosing };
enum class CopyUser : std::uint8_t { kView, kServe, kPull, kHold, kWriter };  // kHold: a slot of a reduce

enum class SliceState : std::uint8_t {
  kMissing,   // it needs a parent
  kAsked,     // a parent was asked
  kAttached,  // bytes come: children may follow
  kDone,      // all are there, and final
};

// One slice of a copy that grows by pulling or by combining.
struct CopySlice {
  ValidBytes valid;  // when no pull is under way
  SliceState state = SliceState::kMissing;
  bool combined = false;  // not pulled: a slot of a reduce on this node fills it
  Ticket ticket = {};     // the assignment that it is pulled by

  bool needs_parent() const { return state == SliceState::kMissing; }
  bool is_done() const { return state == SliceState::kDone; }
};

class Copy {
 public:
  CopyKey key = 0;
  ObjectId id;
  Version version = 0;
  Extent extent;
  std::string meta;
  bool committed = false;  // known to be the final version (always so when complete)
  bool primary = false;
  Priority least_priority = Priority::kLow;  // of what fills it, whoever reads it: a reduce's target has the reduce's
  bool followed = false;                     // the data plane tells when it grows
  ValidBytes written;                        // kWriting: by the client
  std::vector<CopySlice> slices;             // kFetching, kCombining
  std::optional<Time> timed_since;           // its fetch began then, when all of it was there to be fetched
  // Eviction: the home was asked; or it has denied it, and is asked again then.
  bool evict_asked = false;
  Time evict_not_before;

  CopyLife life() const { return life_; }
  bool is_current() const { return life_ != CopyLife::kHidden && life_ != CopyLife::kRetired; }
  bool is_complete() const { return life_ == CopyLife::kComplete; }
  // Every byte is there, also if it was retired since.
  bool is_final() const { return is_final_; }
  bool is_growing() const { return is_current() && !is_complete(); }
  // Parts of it come into being on other nodes.
  bool is_striped() const;
  InDataPlane in_data_plane() const { return in_data_plane_; }
  std::uint32_t users(CopyUser kind) const { return users_[static_cast<std::size_t>(kind)]; }
  bool is_idle() const { return users_ == decltype(users_){}; }
  std::uint32_t slice_count() const { return slices.empty() ? 1 : static_cast<std::uint32_t>(slices.size()); }
  void cut_into(std::uint32_t count);
  // What homes and displays call its state.
  CopyState state() const;

 private:
  friend class ObjectTable;
  friend class CopyUse;

  CopyLife life_ = CopyLife::kHidden;
  bool is_final_ = false;
  InDataPlane in_data_plane_ = InDataPlane::kNotOpen;
  std::array<std::uint32_t, 5> users_{};
  std::optional<std::list<CopyKey>::iterator> lru_;  // its place, if it can be evicted
};

}  // namespace hoplite
