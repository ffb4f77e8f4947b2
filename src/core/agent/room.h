// Who waits for memory. It is handed out in the order of asking; a small request may pass large ones that do not fit: it
// takes little from them, and does not wait for what may take minutes.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "core/agent/slot_key.h"
#include "hoplite/object_id.h"
#include "protocol/transfer.h"

namespace hoplite {

class Room {
 public:
  struct Create {  // by a client
    ClientKey client = 0;
    std::uint64_t request = 0;
    ObjectId id;
    std::string meta;
    bool operator==(const Create& other) const { return client == other.client && request == other.request; }
  };
  struct Fetch {
    ObjectId id;
    bool operator==(const Fetch&) const = default;
  };
  struct Slot {
    SlotKey key;
    bool operator==(const Slot&) const = default;
  };
  using Owner = std::variant<Create, Fetch, Slot>;
  struct Waiter {
    Owner owner;
    std::uint64_t bytes = 0;
    bool left = false;  // while room was handed out
  };

  // Requests up to this size may pass others.
  explicit Room(std::uint64_t small_bytes) : small_bytes_(small_bytes) {}

  // Whether one that asks now need not wait for others.
  bool is_free_for(std::uint64_t bytes) const { return queue_.empty() || bytes <= small_bytes_; }
  bool empty() const { return queue_.empty(); }
  std::size_t size() const { return queue_.size(); }

  void wait(Owner owner, std::uint64_t bytes);
  void leave(const Owner& owner);
  bool is_waiting(const Owner& owner) const { return find(owner) != nullptr; }
  // 0 if it does not wait.
  std::uint64_t asked_by(const Owner& owner) const;

  // Offers room to those who wait; `take` says whether one has what it needs, or does not need it any more. Returns how
  // much the first of the others needs; 0: nobody waits. What `take` adds to the queue is not offered anything yet.
  std::uint64_t hand_out(const std::function<bool(const Waiter&)>& take);

  // Somebody joined or left the queue, or `reconsider` was called, since the last time.
  bool has_changed() const { return changed_; }
  bool take_changed() { return std::exchange(changed_, false); }
  void reconsider() { changed_ = !queue_.empty(); }

  void check_invariants() const;

 private:
  const Waiter* find(const Owner& owner) const;

  std::uint64_t small_bytes_;
  std::deque<Waiter> queue_;
  std::deque<Waiter> offered_;  // while room is handed out: those who are or were asked
  bool changed_ = false;
};

}  // namespace hoplite
