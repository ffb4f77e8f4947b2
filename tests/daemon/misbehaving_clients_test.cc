// Clients that speak the protocol and do not keep to it: every request out of order, out of range, repeated, truncated, and
// with replies that are never read. A daemon answers with an error, ignores a one-way message, or hangs up; it goes on
// serving others with the right bytes, and keeps nothing of the offender.
#include <algorithm>
#include <type_traits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client_misuses.h"
#include "cluster.h"
#include "protocol/test_messages.h"
#include "raw_client.h"

namespace hoplite::testing {
namespace {

// --- the suite

class MisbehavingClients : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kObjectBytes = kMiB;
  static constexpr std::uint64_t kMisuse = 100;  // request numbers of the offenders
  static constexpr std::uint64_t kProof = 101;

  MisbehavingClients() : bystander_(cluster_.start().connect()), writer_(daemon().socket()) {
    const auto id = bystander_.put(pattern(kObjectBytes, 1));
    EXPECT_TRUE(id.ok());
    situation_.complete = *id;
    situation_.unknown = ObjectId::named("nobody puts this");
    greet(writer_);
    writer_.ask(2, ipc::Create{.id = {}, .size = kObjectBytes, .meta = {}});
    const auto created = writer_.hear_a<ipc::Created>(2);
    EXPECT_TRUE(created);
    situation_.written_by_other = created->copy;
    half_written_ = created->id;
    before_ = *bystander_.status();
  }
  ~MisbehavingClients() override {
    // The other writer was never disturbed: what it writes is still its own to seal.
    writer_.ask(3, ipc::Seal{.copy = situation_.written_by_other});
    EXPECT_TRUE(writer_.hear_a<ipc::PutDone>(3));
    EXPECT_TRUE(bystander_.get(half_written_, {.timeout = 30s}).ok());
  }

  Daemon& daemon() { return cluster_[0]; }

  static void greet(RawClient& client) {
    ASSERT_TRUE(client.ask(1, ipc::Hello{}));
    ASSERT_TRUE(client.hear_a<ipc::Welcome>(1));
  }
  // An offender with a view and an object that it writes.
  Situation prepare(RawClient& client) {
    Situation s = situation_;
    greet(client);
    client.ask(2, ipc::Get{.id = s.complete});
    client.ask(3, ipc::Create{.id = {}, .size = kObjectBytes, .meta = {}});
    const auto view = client.hear_a<ipc::View>(2);
    const auto created = client.hear_a<ipc::Created>(3);
    EXPECT_TRUE(view && created);
    if (view) s.view = view->copy;
    if (created) s.writing = created->copy;
    s.ended = 2;
    return s;
  }

  void expect_fate(RawClient& client, const Misuse& misuse) {
    if (misuse.fate == Fate::kCutOff) {
      EXPECT_TRUE(eventually([&] { return client.closed(); })) << "it is still welcome";
      return;
    }
    if (misuse.fate == Fate::kWaits) client.ask(kMisuse + 2, ipc::Cancel{.target = kMisuse});
    client.ask(kProof, ipc::GetStatus{});
    EXPECT_TRUE(client.hear_a<ipc::Status>(kProof)) << "its connection is gone";
    if (misuse.fate == Fate::kIgnored) return;
    const auto reply = client.hear(kMisuse);
    ASSERT_TRUE(reply) << "no answer";
    const auto* failed = std::get_if<ipc::Failed>(&*reply);
    EXPECT_EQ(failed != nullptr, misuse.fate != Fate::kServed) << describe(*reply);
    if (failed == nullptr) return;
    EXPECT_EQ(failed->code, misuse.fate == Fate::kWaits ? Code::kCancelled : misuse.code) << failed->message;
    EXPECT_NE(failed->message, "");
  }

  // After the offender has gone: nothing of it is left, and others are served.
  void expect_well() {
    ASSERT_TRUE(daemon().running());
    EXPECT_TRUE(eventually([&] { return difference_to_before() == ""; })) << difference_to_before();
    const auto view = bystander_.get(situation_.complete, {.timeout = 30s});
    ASSERT_TRUE(view.ok());
    EXPECT_EQ(difference(view->bytes(), kObjectBytes, 1), "");
    const auto fresh = bystander_.put(pattern(1000, 7));
    ASSERT_TRUE(fresh.ok());
    EXPECT_EQ(difference(bystander_.get(*fresh, {.timeout = 30s})->bytes(), 1000, 7), "");
    EXPECT_TRUE(bystander_.remove(*fresh).ok());
  }
  void remove_what_was_made() {
    (void)bystander_.remove(ObjectId::named(kLeft));
    const auto objects = bystander_.objects();
    ASSERT_TRUE(objects.ok());
    for (const ObjectStatus& object : *objects)
      if (object.id != situation_.complete && object.id != half_written_) (void)bystander_.remove(object.id);
  }
  std::string difference_to_before() {
    const auto now = bystander_.status();
    if (!now) return now.error().to_string();
    std::string text;
    const auto compare = [&](const char* what, std::uint64_t is, std::uint64_t was) {
      if (is != was) text += std::string(what) + " " + std::to_string(is) + ", before " + std::to_string(was) + "; ";
    };
    compare("bytes", now->used_bytes, before_.used_bytes);
    compare("pinned bytes", now->pinned_bytes, before_.pinned_bytes);
    compare("objects", now->objects, before_.objects);
    compare("growing", now->growing, before_.growing);
    compare("clients", now->clients, before_.clients);
    compare("directory entries", now->directory_entries, before_.directory_entries);
    compare("waiting", now->waiting, before_.waiting);
    return text;
  }
  // All offenders are this process, which is named once at most.
  void expect_logged(std::size_t lines) {
    const std::string log = daemon().log();
    std::size_t named = 0;
    for (std::size_t at = log.find("client (pid"); at != std::string::npos; at = log.find("client (pid", at + 1))
      ++named;
    EXPECT_EQ(named, lines) << log;
  }

  Cluster cluster_;
  Client bystander_;
  RawClient writer_;
  Situation situation_;
  ObjectId half_written_;
  StoreStatus before_;
};

TEST_F(MisbehavingClients, OutOfOrderAndOutOfRange) {
  for_each_request([&]<typename T>(Of<T> type) {
    const std::size_t count = misuses(type, situation_).size();
    ASSERT_GT(count, 0U);
    for (std::size_t i = 0; i < count && !HasFatalFailure(); ++i) {
      RawClient client(daemon().socket());
      const Misuse misuse = misuses(type, prepare(client)).at(i);
      SCOPED_TRACE(describe(misuse.message) + misuse.what);
      ASSERT_TRUE(client.ask(kMisuse, misuse.message, misuse.payload));
      expect_fate(client, misuse);
      client.hang_up();
      expect_well();
    }
  });
  expect_logged(1);
}

TEST_F(MisbehavingClients, BeforeTheGreeting) {
  for_each_request([&]<typename T>(Of<T> type) {
    if constexpr (!std::is_same_v<T, ipc::Hello>) {
      RawClient client(daemon().socket());
      SCOPED_TRACE(describe(proper(type, situation_)));
      ASSERT_TRUE(client.ask(1, proper(type, situation_)));
      EXPECT_TRUE(eventually([&] { return client.closed(); }));
      expect_well();
    }
  });
  expect_logged(1);
}

TEST_F(MisbehavingClients, GreetingsOfOtherVersionsAreRefused) {
  for (const int version : {0, kClientProtocolVersion - 1, kClientProtocolVersion + 1, 65535}) {
    RawClient client(daemon().socket());
    ASSERT_TRUE(client.ask(1, ipc::Hello{.version = static_cast<std::uint16_t>(version), .proof = {}}));
    const auto failed = client.hear_a<ipc::Failed>(1);
    ASSERT_TRUE(failed) << version;
    EXPECT_EQ(failed->code, Code::kVersionMismatch);
    EXPECT_TRUE(eventually([&] { return client.closed(); }));
  }
  expect_well();
  expect_logged(1);
}

// A frame is complete and its message is not, at every length; and what is left over behind a message.
TEST_F(MisbehavingClients, TruncatedAndTrailing) {
  Random random(1);
  for_each_request([&]<typename T>(Of<T> type) {
    constexpr bool kHasPayload = std::is_same_v<T, ipc::Put>;
    const std::string whole = RawClient::frame(1, proper(type, situation_));
    for (std::size_t length = ipc::ClientFrameHeader::kSize; length <= whole.size() + 1; ++length) {
      if (length == whole.size() || (kHasPayload && length > whole.size())) continue;
      SCOPED_TRACE("type " + std::to_string(proper(type, situation_).index()) + " cut to " + std::to_string(length));
      std::string cut = whole;
      cut.resize(length, '\x7f');
      const auto body = static_cast<std::uint32_t>(length - ipc::ClientFrameHeader::kSize);
      std::memcpy(cut.data(), &body, sizeof body);
      RawClient client(daemon().socket());
      greet(client);
      ASSERT_TRUE(client.send(cut));
      EXPECT_TRUE(eventually([&] { return client.closed(); }));
    }
  });
  expect_well();
  expect_logged(1);
}

// The rest of a frame never comes. Whoever hangs up then leaves nothing.
TEST_F(MisbehavingClients, HalfAFrame) {
  for_each_request([&]<typename T>(Of<T> type) {
    RawClient client(daemon().socket());
    const std::string whole = RawClient::frame(kMisuse, proper(type, prepare(client)));
    ASSERT_TRUE(client.send(whole.substr(0, whole.size() - 1)));
    client.hang_up();
    expect_well();
  });
  expect_logged(0);
}

// Any request under the number of one that is still waiting: the first one is not disturbed.
TEST_F(MisbehavingClients, ANumberThatIsInUse) {
  for_each_request([&]<typename T>(Of<T> type) {
    if constexpr (!std::is_same_v<T, ipc::Hello>) {
      RawClient client(daemon().socket());
      const ipc::Request again = proper(type, prepare(client));
      SCOPED_TRACE(describe(again));
      client.ask(kMisuse, ipc::Get{.id = situation_.unknown});
      client.ask(kMisuse, again);
      if (!is_one_way(again)) {
        ASSERT_TRUE(client.hear(kMisuse));
      }
      client.ask(kProof, ipc::Cancel{.target = kMisuse});
      const auto ended = client.hear_a<ipc::Failed>(kMisuse);
      ASSERT_TRUE(ended) << "the first request is forgotten";
      EXPECT_EQ(ended->code, Code::kCancelled) << ended->message;
      client.hang_up();
      remove_what_was_made();
      expect_well();
    }
  });
  expect_logged(0);
}

// The same request a hundred times, each under its own number, and no word about what was given.
TEST_F(MisbehavingClients, Repeated) {
  for_each_request([&]<typename T>(Of<T> type) {
    if constexpr (!std::is_same_v<T, ipc::Hello>) {
      RawClient client(daemon().socket());
      const ipc::Request message = proper(type, prepare(client));
      SCOPED_TRACE(describe(message));
      for (std::uint64_t i = 0; i < 100; ++i) ASSERT_TRUE(client.ask(kMisuse + i, message));
      client.ask(kMisuse + 1000, ipc::GetStatus{});
      EXPECT_TRUE(client.hear_a<ipc::Status>(kMisuse + 1000));
      client.hang_up();
      remove_what_was_made();
      expect_well();
    }
  });
  expect_logged(0);
}

// Random fields in every message, some of them the numbers and ids that mean something here.
TEST_F(MisbehavingClients, RandomFields) {
  Random random(11);
  for_each_request([&]<typename T>(Of<T>) {
    const std::size_t type = ipc::Request(T{}).index();
    for (int round = 0; round < 5; ++round) {
      RawClient client(daemon().socket());
      prepare(client);
      for (std::uint64_t i = 0; i < 40; ++i) client.ask(kMisuse + i, random_message<ipc::Request>(type, random));
      client.ask(kMisuse + 1000, ipc::GetStatus{});
      EXPECT_TRUE(eventually([&] { return client.closed() || client.hear(kMisuse + 1000); }));
    }
    ASSERT_TRUE(daemon().running()) << "type " << type;
  });
  remove_what_was_made();
  expect_well();
}

// Requests without end, and no reply is ever read: in the end nobody reads the requests.
TEST_F(MisbehavingClients, NeverRead) {
  for_each_request([&]<typename T>(Of<T> type) {
    RawClient client(daemon().socket());
    const ipc::Request message = proper(type, prepare(client));
    if (is_one_way(message)) return;
    SCOPED_TRACE(describe(message));
    std::string batch;
    std::size_t sent = 0;
    std::uint64_t number = kMisuse;
    auto last_taken = std::chrono::steady_clock::now();
    EXPECT_TRUE(eventually([&] {
      for (int i = 0; i < 1000 && !client.hung_up(); ++i) {
        if (sent == batch.size()) {
          batch.clear();
          sent = 0;
          while (batch.size() < 64 * kKiB) batch += RawClient::frame(number++, message);
        }
        const std::size_t taken = client.send_some(std::string_view(batch).substr(sent));
        sent += taken;
        if (taken == 0) break;
        last_taken = std::chrono::steady_clock::now();
      }
      return client.hung_up() || std::chrono::steady_clock::now() - last_taken > 500ms;
    }));
    EXPECT_TRUE(bystander_.get(situation_.complete, {.timeout = 30s}).ok()) << "others are served meanwhile";
    client.hang_up();
    // What it has asked is still carried out.
    EXPECT_TRUE(eventually([&] {
      remove_what_was_made();
      return difference_to_before() == "";
    }));
    expect_well();
  });
}

}  // namespace
}  // namespace hoplite::testing
