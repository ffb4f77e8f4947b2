// A lane with a clock, links and neighbours that the test plays itself, call by call: what happens between two threads in the
// daemon happens here at the one moment that matters. How lanes move bytes is tested in tests/dataplane.
#include "dataplane/lane.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hoplite::dataplane {
namespace {

constexpr NodeRef kPeer{NodeId{2}, 0};
constexpr ChannelId kChannel = 1;
constexpr std::uint64_t kSize = 1000;
constexpr Duration kPatience = Duration::ms(500);

// Takes everything at once.
class OpenLink final : public Link {
 public:
  explicit OpenLink(std::function<void()>& during_send) : during_send_(during_send) {}
  void send(const FrameHeader&, ByteView) override {}
  void flush() override {}
  std::uint64_t queued_bytes() const override { return 0; }
  Sent send_data(const FrameHeader&, const std::byte*, bool) override {
    if (during_send_) std::exchange(during_send_, nullptr)();
    return Sent::kAll;
  }
  void detach() override {}

 private:
  std::function<void()>& during_send_;
};

class LaneTest : public testing::Test, private Lane::Host, private LinkDialler {
 protected:
  LaneTest() : lane_({0, limits_, kSize}, *this, *this) {}

  static BufferPtr make_buffer() {
    return std::make_shared<Buffer>(effect::OpenCopy{.copy = 1, .extent = {0, kSize}}, nullptr);
  }
  static PullRequest request() {
    PullRequest pull;
    pull.transfer = 7;
    pull.id = pull.target = ObjectId{1, 1};
    return pull;
  }
  static void grow(Buffer& buffer, std::uint64_t to) {
    ValidBytes valid = buffer.valid(0);
    valid.extend_to(to);
    buffer.set_valid(0, valid);
  }

  // A child has dialled, and what it asked for is accepted.
  void serve(const BufferPtr& buffer) {
    lane_.adopt(kPeer, kChannel, [this](LinkUser& user) { return make_link(user); });
    std::string body;
    Writer writer(body);
    PullRequest pull = request();
    pull.fields(writer);
    ASSERT_TRUE(user_->on_frame({.type = FrameType::kPull, .transfer = pull.transfer}, as_bytes(body)));
    lane_.accept_pull({kChannel, 1, buffer->key(), pull}, buffer);
  }
  // A pull is on, and its parent has accepted it.
  void pull(const BufferPtr& buffer) {
    lane_.start_pull({kPeer, {"10.0.0.2", 1}, buffer->key(), request(), kPatience}, buffer);
    ASSERT_TRUE(user_->on_frame({.type = FrameType::kAccept, .transfer = request().transfer}, {}));
    lane_.settle();
  }
  void run_at(Time when) {
    now_ = when;
    lane_.on_time();
    lane_.settle();
  }
  bool silence_reported() const {
    return std::ranges::any_of(events_,
                               [](const LaneEvent& event) { return std::holds_alternative<event::PullSilent>(event); });
  }

  const Limits limits_;
  Time now_{Duration::s(1000).ns};
  LaneEvents events_;
  LinkUser* user_ = nullptr;  // of the last link
  std::function<void()> during_send_;
  Lane lane_;

 private:
  Time now() const override { return now_; }
  void deliver(LaneEvents events) override { events_.insert(events_.end(), events.begin(), events.end()); }
  void wake(std::uint32_t, BufferPtr) override {}
  std::unique_ptr<Link> dial(NodeRef, const Address&, LinkUser& user) override { return make_link(user); }
  std::unique_ptr<Link> make_link(LinkUser& user) {
    user_ = &user;
    return std::make_unique<OpenLink>(during_send_);
  }
};

TEST_F(LaneTest, IsWokenAgainForWhatComesWhileItGoesOn) {
  const BufferPtr buffer = make_buffer();
  serve(buffer);
  grow(*buffer, 100);
  ASSERT_TRUE(buffer->begin_wake(0)) << "what a neighbour does that has added bytes";
  bool woken_again = false;
  during_send_ = [&] {  // the lane has looked already how far it can send
    grow(*buffer, 200);
    woken_again = buffer->begin_wake(0);
  };
  lane_.wake(*buffer);
  EXPECT_TRUE(woken_again) << "bytes that nobody would ever send";
}

TEST_F(LaneTest, ReportsAParentThatIsSilentForLongerThanItsPatience) {
  pull(make_buffer());
  const Time silent = now_ + kPatience;
  while (lane_.next_wakeup() < silent) run_at(lane_.next_wakeup());
  EXPECT_FALSE(silence_reported());
  run_at(lane_.next_wakeup());
  EXPECT_TRUE(silence_reported());
}

TEST_F(LaneTest, DoesNotBlameAParentForItsOwnSleep) {
  pull(make_buffer());
  run_at(now_ + kPatience * 10);
  EXPECT_FALSE(silence_reported());
}

}  // namespace
}  // namespace hoplite::dataplane
