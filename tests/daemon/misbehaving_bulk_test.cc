// Bulk connections with nodes that know the token and do not keep to the protocol: children that pull, and parents that are
// pulled from. Every kind of frame out of order, out of range, repeated, truncated, and never read.
#include <limits>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peer_fixture.h"

namespace hoplite::testing {
namespace {

constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kTransfer = 5;

std::string frame(FrameType type, std::uint64_t transfer, std::string_view body = {}, std::uint64_t offset = 0) {
  FrameHeader header;
  header.type = type;
  header.transfer = transfer;
  header.length = static_cast<std::uint32_t>(body.size());
  header.offset = offset;
  const auto bytes = header.encode();
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()).append(body);
}
// Announces a body that does not follow.
std::string header_only(FrameType type, std::uint32_t length, std::uint64_t offset = 0) {
  FrameHeader header;
  header.type = type;
  header.transfer = kTransfer;
  header.length = length;
  header.offset = offset;
  const auto bytes = header.encode();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
std::string encoded(PullRequest pull) {
  std::string body;
  Writer writer(body);
  pull.fields(writer);
  return body;
}
std::string pull_frame(const PullRequest& pull) { return frame(FrameType::kPull, pull.transfer, encoded(pull)); }

enum class Fate {
  kCutOff,
  kAborted,  // that transfer ends; the connection stays
  kIgnored,
};
struct Misuse {
  std::string what;
  std::string bytes;
  Fate fate = Fate::kCutOff;
};
using Misuses = std::vector<Misuse>;

// --- as a child. `good` would be served.

Misuses pull_misuses(const PullRequest& good) {
  Misuses all;
  const auto spoilt = [&](const std::string& what, Fate fate, const std::function<void(PullRequest&)>& spoil) {
    PullRequest pull = good;
    spoil(pull);
    all.push_back({what, pull_frame(pull), fate});
  };
  spoilt("of no slices", Fate::kCutOff, [](PullRequest& p) { p.slices = 0; });
  spoilt("of a slice that is none", Fate::kCutOff, [](PullRequest& p) { p.slice = 1; });
  spoilt("of too many slices", Fate::kCutOff, [](PullRequest& p) { p.slices = 1'000'000; });
  spoilt("from beyond the end", Fate::kAborted, [](PullRequest& p) { p.offset = kHuge; });
  spoilt("from outside its slice", Fate::kAborted, [](PullRequest& p) { p.slices = 4, p.slice = 3; });
  spoilt("of another version", Fate::kAborted, [](PullRequest& p) { ++p.version; });
  spoilt("of no version", Fate::kAborted, [](PullRequest& p) { p.version = 0; });
  spoilt("of the nil id", Fate::kAborted, [](PullRequest& p) { p.id = {}; });
  spoilt("of a slot that is none", Fate::kIgnored, [](PullRequest& p) { p.slot = true, ++p.version; });
  const std::string body = encoded(good);
  all.push_back({"twice", pull_frame(good) + pull_frame(good)});
  all.push_back({"of another transfer than it says", frame(FrameType::kPull, good.transfer + 1, body)});
  all.push_back({"without a body", frame(FrameType::kPull, good.transfer)});
  all.push_back({"cut short", frame(FrameType::kPull, good.transfer, body.substr(0, body.size() - 1))});
  all.push_back({"with more behind it", frame(FrameType::kPull, good.transfer, body + "x")});
  all.push_back({"without end", header_only(FrameType::kPull, 1U << 31)});
  return all;
}

Misuses child_misuses(FrameType type, const PullRequest& good) {
  switch (type) {
    case FrameType::kPull: return pull_misuses(good);
    case FrameType::kCancel:
      return {{"of nothing", frame(type, kHuge), Fate::kIgnored},
              {"with a body", frame(type, good.transfer, "body")},
              {"of what it asked for, twice",
               pull_frame(good) + frame(type, good.transfer) + frame(type, good.transfer), Fate::kAborted}};
    case FrameType::kAccept: return {{"by the child", frame(type, good.transfer)}};
    case FrameType::kData: return {{"by the child", frame(type, good.transfer, "data")}};
    case FrameType::kStarved: return {{"by the child", frame(type, good.transfer)}};
    case FrameType::kEnd: return {{"by the child", frame(type, good.transfer)}};
    case FrameType::kAbort: return {{"by the child", frame(type, good.transfer)}};
    case FrameType::kLimit:
      return {
          {"of nothing", frame(type, kHuge), Fate::kIgnored},
          {"before the beginning, for a moment",
           pull_frame(good) + frame(type, good.transfer) + frame(type, good.transfer, {}, kNoLimit), Fate::kIgnored},
          {"with a body", frame(type, good.transfer, "body")}};
    case FrameType::kPrioritize:
      return {{"of nothing", frame(type, kHuge), Fate::kIgnored},
              {"that is none", frame(type, good.transfer, {}, 1000)},
              {"with a body", frame(type, good.transfer, "body")}};
  }
  return {};
}

constexpr std::uint32_t kPulledBytes = 300'000;

std::string pulled_bytes() {
  const auto bytes = pattern(kPulledBytes, 3);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// --- as a parent, after the daemon's kPull and our kAccept

Misuses parent_misuses(FrameType type) {
  const std::string text(100, 'x');
  const std::string start = pulled_bytes().substr(0, 100);
  switch (type) {
    case FrameType::kPull: return {{"by the parent", frame(type, kTransfer)}};
    case FrameType::kCancel: return {{"by the parent", frame(type, kTransfer)}};
    case FrameType::kAccept: return {{"twice", frame(type, kTransfer)}, {"with a body", frame(type, kTransfer, text)}};
    case FrameType::kData:
      return {{"from the middle", frame(type, kTransfer, text, 64)},
              {"of nothing", frame(type, kTransfer)},
              {"beyond the end", header_only(type, kPulledBytes + 1)},
              {"longer than any frame", header_only(type, 1U << 31)},
              {"twice", frame(type, kTransfer, start) + frame(type, kTransfer, start)}};
    case FrameType::kStarved: return {{"with a body", frame(type, kTransfer, text)}};
    case FrameType::kEnd: return {{"before the last byte", frame(type, kTransfer)}};
    case FrameType::kAbort:
      return {{"without a reason", frame(type, kTransfer), Fate::kAborted},
              {"of nothing", frame(type, kHuge), Fate::kIgnored}};
    case FrameType::kLimit: return {{"by the parent", frame(type, kTransfer)}};
    case FrameType::kPrioritize: return {{"by the parent", frame(type, kTransfer)}};
  }
  return {};
}

std::vector<FrameType> all_types() {
  std::vector<FrameType> types;
  for (int type = 0; type <= static_cast<int>(last_enumerator(FrameType{})); ++type)
    types.push_back(static_cast<FrameType>(type));
  return types;
}

// --- the suite

class MisbehavingBulk : public PeerFixture {
 protected:
  // What the daemon would serve: all of the object that it holds.
  PullRequest good_pull(RawPeer& peer) {
    Want question;
    question.request = 1;
    question.id = held_;
    question.mode = WantMode::kNotify;
    peer.tell(question);
    const auto found = peer.hears<Found>();
    PullRequest pull;
    pull.transfer = kTransfer;
    pull.id = pull.target = held_;
    pull.version = found ? found->version : 0;
    return pull;
  }
  // Of any transfer, or of this one. Frames stay where they are: the last one may have come in part.
  static bool hears_frame(RawLine& line, FrameType type, std::optional<std::uint64_t> transfer = {}) {
    return eventually([&] {
      line.step();
      FrameHeader header;
      std::size_t at = 0;
      while (line.input.size() - at >= FrameHeader::kSize) {
        if (!FrameHeader::decode(reinterpret_cast<const std::byte*>(line.input.data()) + at, header)) return false;
        if (header.type == type && transfer.value_or(header.transfer) == header.transfer) return true;
        if (line.input.size() - at - FrameHeader::kSize < header.length) return false;
        at += FrameHeader::kSize + header.length;
      }
      return false;
    });
  }
  void expect_child_fate(RawPeer& peer, RawLine& line, const Misuse& misuse, PullRequest good) {
    if (misuse.fate == Fate::kCutOff) {
      EXPECT_TRUE(line.is_cut_off());
      expect_listens(peer);
      return;
    }
    if (misuse.fate == Fate::kAborted) {
      EXPECT_TRUE(hears_frame(line, FrameType::kAbort));
    }
    // Whatever it was, the next pull is served as if nothing had been.
    good.transfer += 1000;
    ASSERT_TRUE(line.say(pull_frame(good)));
    EXPECT_TRUE(hears_frame(line, FrameType::kEnd, good.transfer));
  }

  // A get of an object that only the peer knows, up to the daemon's pull, which the peer has accepted.
  RawLine* start_get(RawPeer& peer, RawClient& client) {
    client.ask(1, ipc::Hello{});
    client.ask(2, ipc::Get{.id = {peer.self().id.value, 1}});
    return next_pull(peer, 0);
  }
  // Answers the want after `last_request` and takes the pull that follows.
  RawLine* next_pull(RawPeer& peer, std::uint64_t last_request) {
    const auto want = peer.hears<Want>([&](const Want& m) { return m.request > last_request; });
    if (!want) return nullptr;
    want_ = want->request;
    peer.tell(Assign{want->request, want->id, 99, kPulledBytes, {}, true, 1, {peer.self()}});
    RawLine* line = peer.pulled_from();
    if (line == nullptr || !hears_frame(*line, FrameType::kPull)) return nullptr;
    Reader reader(as_bytes(line->input).subspan(FrameHeader::kSize));
    asked_ = {};
    asked_.fields(reader);
    line->input.clear();
    return line;
  }
  // In `bytes`, kTransfer stands for the number that the daemon has chosen.
  std::string aimed(std::string bytes) const {
    for (std::size_t at = 0; at + FrameHeader::kSize <= bytes.size();) {
      FrameHeader header;
      if (!FrameHeader::decode(reinterpret_cast<const std::byte*>(bytes.data()) + at, header)) break;
      if (header.transfer == kTransfer) std::memcpy(bytes.data() + at + 8, &asked_.transfer, sizeof asked_.transfer);
      at += FrameHeader::kSize + header.length;
    }
    return bytes;
  }
  void expect_get_completes(RawLine& line, RawClient& client) {
    const std::string bytes = pulled_bytes();
    ASSERT_TRUE(line.say(aimed(frame(FrameType::kAccept, kTransfer) +
                               frame(FrameType::kData, kTransfer, bytes.substr(asked_.offset), asked_.offset) +
                               frame(FrameType::kEnd, kTransfer))));
    const auto view = client.hear_a<ipc::View>(2);
    ASSERT_TRUE(view);
    EXPECT_EQ(view->size, kPulledBytes);
    const auto same = a_.get({next_peer_ - 1, 1}, {.timeout = 30s});
    ASSERT_TRUE(same.ok());
    EXPECT_EQ(difference(same->bytes(), kPulledBytes, 3), "");
  }

  std::uint64_t want_ = 0;
  PullRequest asked_;
};

TEST_F(MisbehavingBulk, Children) {
  for (const FrameType type : all_types()) {
    const std::size_t count = child_misuses(type, {}).size();
    ASSERT_GT(count, 0U) << "frame " << static_cast<int>(type) << " has no entry";
    for (std::size_t i = 0; i < count; ++i) {
      std::string what;
      {
        RawPeer peer = make_peer();
        ASSERT_TRUE(peer.join(cluster_[0].address()));
        const PullRequest good = good_pull(peer);
        const Misuse misuse = child_misuses(type, good).at(i);
        what = "frame " + std::to_string(static_cast<int>(type)) + " " + misuse.what;
        SCOPED_TRACE(what);
        RawLine& line = peer.dial(cluster_[0].address(), tcp::Role::kBulk);
        ASSERT_TRUE(line.introduced());
        line.say(misuse.bytes);
        expect_child_fate(peer, line, misuse, good);
        expect_served();
      }
      SCOPED_TRACE(what);
      expect_well();
    }
  }
}

TEST_F(MisbehavingBulk, Parents) {
  for (const FrameType type : all_types()) {
    const std::size_t count = parent_misuses(type).size();
    ASSERT_GT(count, 0U) << "frame " << static_cast<int>(type) << " has no entry";
    for (std::size_t i = 0; i < count; ++i) {
      const Misuse misuse = parent_misuses(type).at(i);
      SCOPED_TRACE("frame " + std::to_string(static_cast<int>(type)) + " " + misuse.what);
      ObjectId id;
      {
        RawPeer peer = make_peer();
        RawClient client(cluster_[0].socket());
        ASSERT_TRUE(peer.join(cluster_[0].address()));
        id = {peer.self().id.value, 1};
        RawLine* line = start_get(peer, client);
        ASSERT_NE(line, nullptr);
        if (misuse.fate == Fate::kIgnored) {
          ASSERT_TRUE(line->say(misuse.bytes));
        } else {
          line->say(aimed(frame(FrameType::kAccept, kTransfer) + misuse.bytes));
          if (misuse.fate == Fate::kCutOff) {
            EXPECT_TRUE(line->is_cut_off());
          }
          line->input.clear();
          line = next_pull(peer, want_);  // the daemon asks the home for another parent
          ASSERT_NE(line, nullptr);
        }
        expect_get_completes(*line, client);
        expect_served();
      }
      (void)a_.remove(id);
      expect_well();
    }
  }
}

TEST_F(MisbehavingBulk, WhatIsNoFrameCutsOff) {
  RawPeer peer = make_peer();
  ASSERT_TRUE(peer.join(cluster_[0].address()));
  std::string other_type = frame(FrameType::kPull, kTransfer);
  other_type[2] = 100;
  std::string other_code = frame(FrameType::kCancel, kTransfer);
  other_code[3] = '\x7f';
  for (const std::string& bytes : {std::string(1000, '\0'), other_type, other_code}) {
    RawLine& line = peer.dial(cluster_[0].address(), tcp::Role::kBulk);
    ASSERT_TRUE(line.introduced());
    line.say(bytes);
    EXPECT_TRUE(line.is_cut_off());
  }
  expect_served();
}

// A child that asks without end and reads nothing.
TEST_F(MisbehavingBulk, NeverRead) {
  const std::uint64_t before_kib = anonymous_kib(cluster_[0].pid());
  {
    RawPeer peer = make_peer();
    ASSERT_TRUE(peer.join(cluster_[0].address()));
    PullRequest pull = good_pull(peer);
    ++pull.version;  // each is refused in a short frame
    RawLine& line = peer.dial(cluster_[0].address(), tcp::Role::kBulk);
    line.mute = true;
    std::string pulls;
    std::size_t sent = 0;
    EXPECT_TRUE(eventually([&] {
      for (std::size_t taken = 1; taken > 0; sent += taken) {
        if (sent == pulls.size()) {
          pulls.clear();
          sent = 0;
          while (pulls.size() < kMiB) pulls += (++pull.transfer, pull_frame(pull));
        }
        taken = line.say_some(std::string_view(pulls).substr(sent));
      }
      peer.step();
      return line.hung_up();
    })) << "replies without end";
    expect_listens(peer);
    expect_served();
    EXPECT_LT(anonymous_kib(cluster_[0].pid()), before_kib + 20'000 + kSlackKib);
  }
  expect_well();
}

}  // namespace
}  // namespace hoplite::testing
