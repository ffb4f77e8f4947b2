// What a step gives to the world: effects, in order, and messages, which find their way to other nodes here.
//
// The first message to a node introduces us. A node that is alive but that we have no path to is reached by way of others,
// also with the bytes of small objects. What this node tells itself waits until the handler is done. Messages that expect an answer have numbers; the
// oldest one without an answer tells a home up to where it has heard everything.
//
// Answers may carry bytes, so only so many questions to a node are open at a time: then all answers fit into what is queued
// for us there. Further questions wait here, in order. And whoever is about to answer with bytes looks whether the ones
// before have left.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/limits.h"
#include "core/agent/events.h"
#include "core/membership/membership.h"

namespace hoplite {

class Outbox {
 public:
  Outbox(const Limits& limits, Membership& membership, const Progress& progress, Address own)
      : limits_(limits), membership_(membership), progress_(progress), own_(std::move(own)) {}

  // --- steps
  void begin_step(Time now, Effects& effects);
  void end_step() { effects_ = nullptr; }
  Time now() const { return now_; }
  NodeRef self() const { return membership_.self(); }
  Effects& effects();
  template <typename E> void emit(E effect) { effects().emplace_back(std::move(effect)); }

  // --- messages
  void send(NodeRef to, Message message) { send(to, std::move(message), effect::Payload::kNone, {}); }
  void send_with_bytes(NodeRef to, Message message, Extent bytes) {
    send(to, std::move(message), effect::Payload::kExtent, bytes);
  }
  // So little is queued for this node that bytes may travel with an answer.
  bool takes_bytes(NodeRef to) const;
  // We are about to depend on this node. nullptr: nobody knows where it is.
  const Address* depend_on(NodeId node);
  bool has_local() const { return !local_.empty(); }
  // What this node told itself first. There is something.
  Message take_local();

  // --- questions
  std::uint64_t next_number() { return next_number_++; }
  // A number for a question that is open until it is closed.
  std::uint64_t open_question() { return *open_.insert(next_number()).first; }
  void close_question(std::uint64_t number) {
    open_.erase(number);
    answered(number);
  }
  bool is_open(std::uint64_t question) const { return open_.contains(question); }
  // Every question with a lower number has its answer.
  std::uint64_t oldest_open() const { return open_.empty() ? next_number_ : *open_.begin(); }

  // Sends a question, now or when it is its turn. `bytes` stay where they are until then, unless it is answered or taken
  // back before. Questions that go on with something, and so hold up others, go first.
  enum class Turn : std::uint8_t { kLast, kFirst };
  void ask(NodeRef to, std::uint64_t number, Message message, std::optional<Extent> bytes = {},
           Turn turn = Turn::kLast);
  // It is not its turn yet.
  bool is_held(std::uint64_t number) const;
  // It has an answer, even if a better one may come, or nobody cares any more.
  void answered(std::uint64_t number);
  // Those whose turn has come. Once, at the end of a step: of many that are answered or asked elsewhere in one step, none is
  // to be sent in between.
  void send_due();

  // --- peers
  // Connections to it are gone: it has to be told again who we are.
  void forget(NodeRef peer) { introduced_.erase(peer); }
  void forget_all() {
    introduced_.clear();
    while (!windows_.empty()) drop_questions(windows_.begin()->first);
  }
  // It is dead: others are going to be asked.
  void drop_questions(NodeRef peer);
  bool has_detours() const { return !membership_.paths().empty(); }
  bool is_detour(NodeId peer) const { return membership_.paths().is_blocked(peer); }
  // Whom we have no path to, for homes to know.
  std::vector<CutOff> cut_off() const;
  // Passes on what came in this step, with its bytes. False: we have no path either.
  bool pass_on(NodeRef to, const Relay& relay);

  void check_invariants() const;

 private:
  struct Held {
    std::uint64_t number = 0;
    Message message;
    std::optional<Extent> bytes;
  };
  struct Window {
    std::uint32_t open = 0;  // questions that were sent
    std::uint32_t held = 0;  // questions that wait; `queue` may have more, that were taken back
    std::deque<Held> queue;
  };
  struct Asked {
    NodeRef to;
    bool held = false;
  };
  void send_held(NodeRef to);
  void send(NodeRef to, Message message, effect::Payload payload, Extent bytes);
  bool send_by_way_of_another(NodeRef to, const Message& message, effect::Payload payload, Extent bytes);
  void send_directly(NodeRef to, Message message, effect::Payload payload, Extent bytes);

  const Limits& limits_;
  Membership& membership_;
  const Progress& progress_;
  Address own_;
  Time now_;
  Effects* effects_ = nullptr;  // during a step only
  std::deque<Message> local_;
  std::set<NodeRef> introduced_;  // know who we are
  std::set<std::uint64_t> open_;
  std::uint64_t next_number_ = 1;
  std::map<NodeRef, Window> windows_;
  std::set<NodeRef> due_;                                   // windows that may have room
  std::unordered_map<std::uint64_t, Asked> asked_;          // by number; never iterated
  std::unordered_map<NodeRef, std::uint64_t> given_bytes_;  // in this step, which the transport does not know of yet
};

}  // namespace hoplite
