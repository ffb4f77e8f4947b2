// Tells in the log, at level debug, what a daemon is doing: peers, transfers with their rates, evictions, reduces. It reads
// the events and effects that pass between the agent and the world, and changes nothing; without it nothing is spent.
#pragma once

#include <map>
#include <set>
#include <string>

#include "core/agent/events.h"
#include "node/log.h"
#include "protocol/names.h"

namespace hoplite {

class Narrator {
 public:
  explicit Narrator(Log& log) : log_(log) {}

  // Before the agent gets the event, and when it has decided.
  void tell(Time now, const Event& event);
  void tell(Time now, const Effects& effects);

 private:
  struct Pull {
    effect::StartPull start;
    Time at;
  };
  struct Serve {
    ObjectId id;
    NodeId peer;
    Time at;
  };

  void on(Time now, const event::Received& e);
  void on(Time now, const event::PeerLost& e);
  void on(Time now, const event::PullAsked& e);
  void on(Time now, const event::PullAccepted& e);
  void on(Time now, const event::PullSilent& e);
  void on(Time now, const event::PullEnded& e);
  void on(Time now, const event::ServeEnded& e);
  void on(Time now, const event::ClientAsked& e);
  void on(Time now, const event::ClientGone& e);
  template <typename E> void on(Time, const E&) {}

  void on(Time now, const effect::StartPull& e);
  void on(Time now, const effect::AcceptPull& e);
  void on(Time now, const effect::RefusePull& e);
  void on(Time now, const effect::Happened& e);

  void learn(const ObjectId& id, const std::string& metadata);
  void learn(const std::vector<std::string>& names);
  std::string object(const ObjectId& id) const { return described(id, names_.find(id)); }

  Log& log_;
  std::set<NodeRef> peers_;  // that we have heard of since they were connected
  std::map<TransferId, Pull> pulls_;
  std::map<std::pair<ChannelId, TransferId>, NodeId> asked_;  // pulls of peers that are not answered
  std::map<ServeId, Serve> serves_;
  Names names_{256 * kKiB};  // as far as messages have told them
};

}  // namespace hoplite
