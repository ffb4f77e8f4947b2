// Nodes that know the token and do not keep to the protocol: every control message out of order, out of range, repeated,
// truncated, and never read. A daemon ignores or refuses what makes no sense and hangs up on what it cannot read; it goes on
// serving others with the right bytes, and keeps nothing of the offender.
// Bulk connections are in misbehaving_bulk_test.cc.
#include <type_traits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "base/type_name.h"
#include "peer_fixture.h"
#include "peer_misuses.h"
#include "protocol/test_messages.h"

namespace hoplite::testing {
namespace {

// --- the suite

class MisbehavingPeers : public PeerFixture {
 protected:
  // The peer is a member, and a client of the daemon has asked it for all that a home can be asked for.
  Situation prepare(RawPeer& peer, RawClient& client) {
    Situation s;
    s.self = peer.self();
    const auto members = peer.join(cluster_[0].address());
    EXPECT_TRUE(members);
    s.daemon = peer.control().daemon();
    for (const MemberNews& news : members ? members->members : std::vector<MemberNews>{})
      if (news.life == Life::kAlive && news.ref != s.daemon && news.ref != s.self) s.other = news.ref;
    s.held = held_;
    s.size = kHeldBytes;
    Want question;
    question.request = 1;
    question.id = held_;
    question.mode = WantMode::kNotify;
    peer.tell(question);
    if (const auto found = peer.hears<Found>()) s.version = found->version;
    EXPECT_NE(s.version, 0U);
    s.scratch = {s.daemon.id.value, (std::uint64_t{1} << 40) + ++scratch_};
    ask_as_home(peer, client, s);
    return s;
  }
  void ask_as_home(RawPeer& peer, RawClient& client, Situation& s) {
    const auto id = [&](std::uint64_t n) { return ObjectId{peer.self().id.value, n}; };
    ReduceSpec spec;
    spec.target = id(5);
    spec.sources = {id(6)};
    spec.count = 1;
    client.ask(1, ipc::Hello{});
    client.ask(2, ipc::Get{.id = id(1)});
    client.ask(3, ipc::Wait{.ids = {id(2)}});
    client.ask(4, ipc::Put{.id = id(3), .meta = {}}, "bytes");
    client.ask(5, ipc::Remove{.id = id(4)});
    client.ask(6, ipc::Reduce{spec});
    client.ask(7, ipc::GetReduce{.target = id(7)});
    const auto fetch = peer.hears<Want>([&](const Want& m) { return m.id == id(1); });
    const auto notify = peer.hears<Want>([&](const Want& m) { return m.id == id(2); });
    const auto put = peer.hears<PutRequest>();
    const auto remove = peer.hears<DeleteRequest>();
    const auto reduce = peer.hears<ReduceRequest>();
    const auto query = peer.hears<ReduceQuery>();
    ASSERT_TRUE(fetch && notify && put && remove && reduce && query);
    s.fetch = *fetch, s.notify = *notify, s.put = *put, s.remove = *remove, s.reduce = *reduce, s.query = *query;
  }

  std::uint64_t scratch_ = 0;
};

TEST_F(MisbehavingPeers, OutOfOrderAndOutOfRange) {
  for_each_message([&]<typename T>(Of<T> type) {
    const std::size_t count = misuses(type, Situation{}).size();
    ASSERT_GT(count, 0U);
    for (std::size_t i = 0; i < count && !HasFatalFailure(); ++i) {
      Situation s;
      std::string what;
      {
        RawPeer peer = make_peer();
        RawClient client(cluster_[0].socket());
        s = prepare(peer, client);
        ASSERT_FALSE(HasFatalFailure());
        const Misuse misuse = misuses(type, s).at(i);
        what = type_name(misuse.message) + " " + misuse.what;
        SCOPED_TRACE(what);
        ASSERT_TRUE(peer.tell(misuse.message, misuse.payload));
        peer.tell(misuse.message, misuse.payload);  // and once more
        expect_listens(peer);
        // What the peer's word may have broken, while it is still there.
        expect_served();
      }
      SCOPED_TRACE(what);
      // What was put and begun under ids of the peer goes on without it.
      // So does what it announced of another's ids, if that one was just taken for dead.
      const ObjectId anothers{s.other.id.value, kHuge};
      for (const ObjectId& id : {s.scratch, s.fetch.id, s.notify.id, s.put.id, s.reduce.spec.target, anothers})
        (void)a_.remove(id);
      expect_well();
    }
  });
  EXPECT_EQ(lines_about_strangers(), 0U) << cluster_[0].log();
}

TEST_F(MisbehavingPeers, TruncatedAndTrailing) {
  RawPeer known = make_peer();
  RawClient client(cluster_[0].socket());
  const Situation s = prepare(known, client);
  for_each_message([&]<typename T>(Of<T> type) {
    constexpr bool kHasPayload =
        std::is_same_v<T, PutRequest> || std::is_same_v<T, InlineObject> || std::is_same_v<T, Relay>;
    const Message message = misuses(type, s).front().message;
    const std::string whole = RawPeer::encoded(message);
    const std::size_t header = sizeof(std::uint32_t);
    const std::size_t half = header + (whole.size() - header) / 2;
    for (const std::size_t length : {header, half, whole.size() - 1, whole.size() + 1}) {
      if (length == whole.size() || (kHasPayload && length > whole.size())) continue;
      SCOPED_TRACE(type_name(message) + " cut to " + std::to_string(length));
      std::string cut = whole;
      cut.resize(length, '\x7f');
      const auto body = static_cast<std::uint32_t>(length - header);
      std::memcpy(cut.data(), &body, sizeof body);
      RawPeer peer = make_peer();
      RawLine& line = peer.dial(cluster_[0].address(), tcp::Role::kControl);
      ASSERT_TRUE(line.introduced());
      line.say(cut);
      EXPECT_TRUE(line.is_cut_off());
    }
  });
  EXPECT_EQ(lines_about_strangers(), 1U) << "one line for a host: " << cluster_[0].log();
  expect_served();
}

// Questions without end, and the answers are never read: the daemon lets go of the connection, not of its memory.
TEST_F(MisbehavingPeers, NeverRead) {
  RawPeer peer = make_peer();
  RawClient client(cluster_[0].socket());
  const Situation s = prepare(peer, client);
  const std::string sync = RawPeer::encoded(Sync{true, {}});
  std::string batch;
  while (batch.size() < 64 * kKiB) batch += sync;
  const std::uint64_t before_kib = anonymous_kib(cluster_[0].pid());
  for (int i = 0; i < 2'000 && !peer.control().hung_up(); ++i) {
    // Whole batches only: what the socket does not take is sent again from where it stopped.
    ASSERT_TRUE(peer.control().say(batch) || peer.control().closed());
  }
  EXPECT_LT(anonymous_kib(cluster_[0].pid()), before_kib + 150'000 + kSlackKib);
  expect_served();
}

// Fills ids, nodes and versions that mean something into random messages.
class Aim {
 public:
  Aim(Random& random, const Situation& s) : random_(random), s_(s) {}
  template <typename... Fields>
  void operator()(Fields&... fields) {
    (aim(fields), ...);
  }

 private:
  template <typename T>
  void aim(T& field) {
    if constexpr (requires { field.fields(*this); }) field.fields(*this);
  }
  template <typename T>
  void aim(std::vector<T>& items) {
    for (T& item : items) aim(item);
  }
  void aim(ObjectId& id) {
    const ObjectId choices[] = {s_.held, s_.scratch, s_.fetch.id, s_.put.id, s_.reduce.spec.target, {}, id};
    id = choices[random_.below(std::size(choices))];
  }
  void aim(NodeRef& ref) {
    const NodeRef choices[] = {s_.self, s_.daemon, s_.other, {}, ref};
    ref = choices[random_.below(std::size(choices))];
  }
  void aim(std::uint64_t& number) {
    const std::uint64_t choices[] = {s_.version, s_.fetch.request, s_.put.request, 0, 1, number, number};
    number = choices[random_.below(std::size(choices))];
  }
  void aim(std::uint32_t& number) {
    if (random_.chance(0.5)) number = static_cast<std::uint32_t>(random_.below(3));
  }
  void aim(Address& address) { address = s_.nowhere; }

  Random& random_;
  const Situation& s_;
};

// Objects may be deleted by such messages and nodes be called dead, which members have the right to do; the daemons live, and
// what is put afterwards reaches everybody.
// But for what is said of members: whoever has the token and lies about addresses and deaths can part others for a while.
TEST_F(MisbehavingPeers, RandomFieldsThatMeanSomething) {
  constexpr std::size_t kAboutMembers = 5;  // Ping, Ack, PingRequest, News, Sync
  static_assert(std::is_same_v<std::variant_alternative_t<kAboutMembers - 1, Message>, Sync>);
  Random random(5);
  for (int round = 0; round < 20; ++round) {
    RawPeer peer = make_peer();
    RawClient client(cluster_[0].socket());
    const auto found = a_.put(pattern(kHeldBytes, 1));
    ASSERT_TRUE(found.ok());
    held_ = *found;
    const Situation s = prepare(peer, client);
    ASSERT_FALSE(HasFatalFailure());
    for (int i = 0; i < 300; ++i) {
      const std::size_t kind = kAboutMembers + random.below(std::variant_size_v<Message> - kAboutMembers);
      Message message = random_message<Message>(kind, random);
      Aim aim(random, s);
      std::visit([&](auto& m) { m.fields(aim); }, message);
      peer.tell(message);
    }
    for (std::size_t i = 0; i < cluster_.size(); ++i) ASSERT_TRUE(cluster_[i].running()) << cluster_[i].log();
  }
  expect_travels();
}

}  // namespace
}  // namespace hoplite::testing
