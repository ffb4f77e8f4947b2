// The ground that parts of an agent stand on in their tests: node 1 of a cluster of three, in the middle of a step.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/agent/clients.h"
#include "core/agent/copies.h"
#include "core/agent/outbox.h"
#include "core/agent/records.h"

namespace hoplite {

class PartsTest : public testing::Test, protected Progress {
 protected:
  static constexpr NodeRef kSelf{NodeId{1}, 0};
  static constexpr NodeRef kPeer{NodeId{2}, 0};
  static constexpr NodeRef kOther{NodeId{3}, 0};

  PartsTest() { step_at(Time{}); }
  ~PartsTest() override { out_.end_step(); }

  // Time has passed: what was given out before is forgotten.
  void step_at(Time now) {
    out_.end_step();
    effects_.clear();
    out_.begin_step(now, effects_);
  }
  void pass(Duration time) { step_at(out_.now() + time); }

  // There is no path to it.
  void block(NodeRef peer) {
    Membership::Output out;
    membership_.on_peer_lost(out_.now(), peer, Loss::kTimedOut, out);
  }

  // What was sent to `to` of this type.
  template <typename M> std::vector<M> sent(NodeRef to) const {
    std::vector<M> found;
    for (const effect::Send& send : all<effect::Send>())
      if (const M* message = std::get_if<M>(&send.message); message != nullptr && send.to == to)
        found.push_back(*message);
    return found;
  }
  template <typename E> std::vector<E> all() const {
    std::vector<E> found;
    for (const Effect& effect : effects_)
      if (const E* e = std::get_if<E>(&effect)) found.push_back(*e);
    return found;
  }
  template <typename R> std::vector<R> replies(const RequestKey& key) const {
    std::vector<R> found;
    for (const effect::Reply& reply : all<effect::Reply>())
      if (const R* r = std::get_if<R>(&reply.message); r != nullptr && RequestKey{reply.client, reply.request} == key)
        found.push_back(*r);
    return found;
  }

  // A record, whose home is the peer, and its current copy.
  static ObjectId peers(std::uint64_t n) { return {kPeer.id.value, n}; }
  Copy& add_copy(const ObjectId& id, CopyLife life, std::uint64_t size = 1000, Version version = 7) {
    Record& record = records_.add(id);
    Copy* copy = table_.add(id, version, size, Alignment::kCacheLine, life);
    record.copy = copy->key;
    if (life == CopyLife::kFetching) copy->cut_into(1);
    return *copy;
  }

  ValidBytes valid(CopyKey, std::uint32_t) const override { return valid_; }
  std::uint64_t backlog(NodeRef) const override { return backlog_; }

  static MembershipOptions three() {
    MembershipOptions options;
    options.self = kSelf;
    options.address = {"10.0.0.1", 7411};
    for (const NodeRef& node : {kPeer, kOther})
      options.initial_members.push_back({node, {"10.0.0." + std::to_string(node.id.value), 7411}, Life::kAlive});
    return options;
  }

  Limits limits_;
  Effects effects_;
  Membership membership_{three(), Time{}};
  Outbox out_{limits_, membership_, *this, {"10.0.0.1", 7411}};
  Timers timers_;
  ObjectTable table_{kMiB};
  Records records_{table_, membership_.alive()};
  Copies copies_{table_, *this, out_};
  Clients clients_{timers_, out_};
  ValidBytes valid_{};
  std::uint64_t backlog_ = 0;
};

}  // namespace hoplite
