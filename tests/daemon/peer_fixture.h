// Two daemons with a token, an object that both hold, and peers made by hand that disturb them.
#pragma once

#include <algorithm>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "cluster.h"
#include "raw_client.h"
#include "raw_peer.h"

namespace hoplite::testing {

class PeerFixture : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kHeldBytes = kMiB;

  PeerFixture() : a_(start().connect()), b_(start().connect()) {
    cluster_.wait_for_members(2);
    held_ = a_.put(pattern(kHeldBytes, 1)).value();
    EXPECT_TRUE(b_.get(held_, {.timeout = 30s}).ok());
    before_[0] = a_.status().value();
    before_[1] = b_.status().value();
  }

  RawPeer make_peer() { return RawPeer({NodeId{next_peer_++}, 1}, kToken); }

  // It still has the daemon's ear, or again: a daemon that was called dead comes back and closes all connections.
  void expect_listens(RawPeer& peer) {
    constexpr std::uint64_t kSeq = 777;
    const auto answered = [&] { return peer.heard<Ack>([](const Ack& ack) { return ack.seq == kSeq; }).has_value(); };
    EXPECT_TRUE(eventually([&] {
      if (peer.control().closed()) peer.join(cluster_[0].address());
      peer.tell(Ping{kSeq, {peer.news()}});
      return answered();
    })) << "it is not listened to";
  }
  // What was there is there, and what is new reaches the other daemon.
  void expect_served() {
    for (std::size_t i = 0; i < cluster_.size(); ++i) ASSERT_TRUE(cluster_[i].running()) << cluster_[i].log();
    for (Client* client : {&a_, &b_}) {
      const auto view = client->get(held_, {.timeout = 30s});
      ASSERT_TRUE(view.ok()) << view.error().to_string();
      EXPECT_EQ(difference(view->bytes(), kHeldBytes, 1), "");
    }
    expect_travels();
  }
  void expect_travels() {
    for (const std::size_t size : {std::size_t{1000}, std::size_t{300'000}}) {
      const auto id = a_.put(pattern(size, 7));
      ASSERT_TRUE(id.ok()) << id.error().to_string();
      const auto view = b_.get(*id, {.timeout = 30s});
      ASSERT_TRUE(view.ok()) << view.error().to_string();
      EXPECT_EQ(difference(view->bytes(), size, 7), "");
      EXPECT_TRUE(a_.remove(*id).ok());
    }
  }
  // After the peer has gone: as before, and as if it had never been.
  void expect_well() {
    expect_served();
    const auto differences = [&] {
      return difference_to_before(a_, before_[0]) + difference_to_before(b_, before_[1]);
    };
    EXPECT_TRUE(eventually([&] { return differences().empty(); })) << differences();
    EXPECT_TRUE(eventually([&] { return is_primary_at(a_) != is_primary_at(b_); })) << "one copy stays until delete";
  }
  bool is_primary_at(Client& client) const {
    const auto objects = client.objects();
    const auto is_primary = [&](const ObjectStatus& object) { return object.id == held_ && object.primary; };
    return objects.ok() && std::any_of(objects->begin(), objects->end(), is_primary);
  }
  static std::string difference_to_before(Client& client, const StoreStatus& before) {
    const auto now = client.status();
    if (!now) return now.error().to_string();
    std::string text;
    const auto compare = [&](const char* what, std::uint64_t is, std::uint64_t was) {
      if (is != was) text += std::string(what) + " " + std::to_string(is) + ", before " + std::to_string(was) + "; ";
    };
    compare("members", now->members, before.members);
    compare("bytes", now->used_bytes, before.used_bytes);
    compare("objects", now->objects, before.objects);
    compare("growing", now->growing, before.growing);
    compare("clients", now->clients, before.clients);
    compare("directory entries", now->directory_entries, before.directory_entries);
    compare("waiting", now->waiting, before.waiting);
    return text;
  }
  std::size_t lines_about_strangers() {
    const std::string log = cluster_[0].log();
    std::size_t lines = 0;
    for (std::size_t at = log.find("refused a conn"); at != std::string::npos; at = log.find("refused a conn", at + 1))
      ++lines;
    return lines;
  }

  // For bounds on anonymous_kib. With a sanitizer what was freed stays for a while: then they say nothing.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static constexpr std::uint64_t kSlackKib = 1 << 20;
#else
  static constexpr std::uint64_t kSlackKib = 0;
#endif

  Daemon& start() { return cluster_.start({.environment = {{"HOPLITE_TOKEN", kToken}}}); }

  static constexpr const char* kToken = "secret";
  Cluster cluster_;
  Client a_;
  Client b_;
  ObjectId held_;
  StoreStatus before_[2];
  std::uint64_t next_peer_ = 1000;
};

}  // namespace hoplite::testing
