#include "core/agent/room.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace hoplite {

void Room::wait(Owner owner, std::uint64_t bytes) {
  CHECK(find(owner) == nullptr, bytes);
  queue_.push_back({std::move(owner), bytes, false});
  changed_ = true;
}

void Room::leave(const Owner& owner) {
  if (find(owner) == nullptr) return;
  changed_ = true;
  std::erase_if(queue_, [&](const Waiter& waiter) { return waiter.owner == owner; });
  for (Waiter& waiter : offered_) waiter.left = waiter.left || waiter.owner == owner;
}

const Room::Waiter* Room::find(const Owner& owner) const {
  const auto is_it = [&](const Waiter& waiter) { return !waiter.left && waiter.owner == owner; };
  for (const std::deque<Waiter>* waiters : {&offered_, &queue_})
    if (const auto it = std::ranges::find_if(*waiters, is_it); it != waiters->end()) return &*it;
  return nullptr;
}

std::uint64_t Room::asked_by(const Owner& owner) const {
  const Waiter* waiter = find(owner);
  return waiter == nullptr ? 0 : waiter->bytes;
}

std::uint64_t Room::hand_out(const std::function<bool(const Waiter&)>& take) {
  CHECK(offered_.empty(), offered_.size());
  offered_ = std::exchange(queue_, {});
  std::uint64_t needed = 0;
  for (Waiter& waiter : offered_) {
    if (waiter.left) continue;
    if ((needed == 0 || waiter.bytes <= small_bytes_) && take(waiter)) waiter.left = true;
    else if (needed == 0) needed = std::max<std::uint64_t>(waiter.bytes, 1);
  }
  std::deque<Waiter> still = std::exchange(offered_, {});
  std::erase_if(still, [](const Waiter& waiter) { return waiter.left; });
  std::ranges::move(queue_, std::back_inserter(still));
  queue_ = std::move(still);
  return needed;
}

void Room::check_invariants() const {
  CHECK(offered_.empty(), offered_.size());
  for (const Waiter& waiter : queue_) {
    CHECK(!waiter.left, waiter.bytes);
    CHECK(std::ranges::count(queue_, waiter.owner, &Waiter::owner) == 1, waiter.bytes);
  }
}

}  // namespace hoplite
