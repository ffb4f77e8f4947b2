#include "tests/dataplane/memory_link.h"

#include <array>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <utility>

namespace hoplite::dataplane {

struct MemoryLink::Pair : std::enable_shared_from_this<Pair> {
  struct Item {
    FrameHeader frame;
    std::string bytes;  // the body, or the payload
  };
  struct Side {
    Executor executor;         // set before anything is posted to it
    LinkUser* user = nullptr;  // on this side's thread only; null once it has closed, or heard that it is broken
    std::deque<Item> inbox;
    std::uint64_t data_bytes = 0;  // of payload in the inbox
    bool peer_waits = false;       // for room in it
    bool closed = false;           // by its own end
  };

  // These are called with the mutex unlocked.
  void post(int side, void (Pair::*what)(int)) {
    Executor executor;
    {
      const std::lock_guard lock(mutex);
      executor = sides[side].executor;
    }
    if (executor) executor([self = shared_from_this(), side, what] { (self.get()->*what)(side); });
  }
  void put(int to, Item item) {
    {
      const std::lock_guard lock(mutex);
      if (item.frame.type == FrameType::kData) sides[to].data_bytes += item.bytes.size();
      sides[to].inbox.push_back(std::move(item));
    }
    post(to, &Pair::take);
  }
  void take(int side);
  void tell_writable(int side) {
    if (sides[side].user != nullptr) sides[side].user->on_writable();
  }
  void tell_broken(int side) {
    if (LinkUser* user = std::exchange(sides[side].user, nullptr)) user->on_broken();
  }
  void close(int side) {
    sides[side].user = nullptr;
    {
      const std::lock_guard lock(mutex);
      if (std::exchange(sides[side].closed, true)) return;
    }
    post(1 - side, &Pair::tell_broken);
  }

  std::mutex mutex;
  std::array<Side, 2> sides;  // the dialling end, the other one
};

namespace {

// False if the user says that it makes no sense.
bool hand_over(LinkUser& user, const FrameHeader& frame, const std::string& bytes) {
  if (frame.type != FrameType::kData) return user.on_frame(frame, as_bytes(bytes));
  if (!user.on_data(frame)) return false;
  if (std::byte* const place = user.data_place(); place != nullptr && !bytes.empty())
    std::memcpy(place, bytes.data(), bytes.size());
  user.on_data_bytes(bytes.size());
  return true;
}

}  // namespace

void MemoryLink::Pair::take(int side) {
  Item item;
  bool room_again = false;
  {
    const std::lock_guard lock(mutex);
    item = std::move(sides[side].inbox.front());
    sides[side].inbox.pop_front();
    if (item.frame.type == FrameType::kData) sides[side].data_bytes -= item.bytes.size();
    room_again = sides[side].data_bytes < kWindowBytes && std::exchange(sides[side].peer_waits, false);
  }
  if (room_again) post(1 - side, &Pair::tell_writable);
  if (sides[side].user != nullptr && !hand_over(*sides[side].user, item.frame, item.bytes)) {
    tell_broken(side);
    post(1 - side, &Pair::tell_broken);
  }
}

std::unique_ptr<Link> MemoryLink::dial(LinkUser& user, Executor executor,
                                       const std::function<bool(std::shared_ptr<Pair>)>& connect) {
  auto pair = std::make_shared<Pair>();
  pair->sides[0].executor = std::move(executor);
  pair->sides[0].user = &user;
  if (!connect(pair)) pair->post(0, &Pair::tell_broken);
  return std::unique_ptr<Link>(new MemoryLink(pair, 0));
}

std::unique_ptr<Link> MemoryLink::accept(std::shared_ptr<Pair> pair, LinkUser& user, Executor executor) {
  std::size_t waiting = 0;
  bool gone = false;
  {
    const std::lock_guard lock(pair->mutex);
    pair->sides[1].executor = std::move(executor);
    pair->sides[1].user = &user;
    waiting = pair->sides[1].inbox.size();
    gone = pair->sides[0].closed;
  }
  for (; waiting > 0; --waiting) pair->post(1, &Pair::take);
  if (gone) pair->post(1, &Pair::tell_broken);
  return std::unique_ptr<Link>(new MemoryLink(std::move(pair), 1));
}

MemoryLink::~MemoryLink() { pair_->close(side_); }

void MemoryLink::send(const FrameHeader& frame, ByteView body) {
  pair_->put(1 - side_, {frame, std::string(reinterpret_cast<const char*>(body.data()), body.size())});
}

std::uint64_t MemoryLink::queued_bytes() const {
  const std::lock_guard lock(pair_->mutex);
  const auto& to = pair_->sides[1 - side_];
  return to.inbox.size() * FrameHeader::kSize;
}

Link::Sent MemoryLink::send_data(const FrameHeader& frame, const std::byte* payload, bool) {
  {
    const std::lock_guard lock(pair_->mutex);
    auto& to = pair_->sides[1 - side_];
    if (to.data_bytes >= kWindowBytes) {
      to.peer_waits = true;
      return Sent::kNothing;
    }
  }
  pair_->put(1 - side_, {frame, std::string(reinterpret_cast<const char*>(payload), payload ? frame.length : 0)});
  return Sent::kAll;
}

}  // namespace hoplite::dataplane
