// Who pulls what from whom: noted as the agents' commands pass, for invariants and reports.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "protocol/data_plane.h"
#include "sim/hosts.h"

namespace hoplite::sim {

struct Transfer {
  ProcessId child;
  CopyKey child_copy = 0;
  PullRequest request;
  // Once it is accepted:
  ProcessId parent;
  CopyKey parent_copy = 0;
  ServeId serve = 0;
};

class Transfers {
 public:
  void started(ProcessId child, const effect::StartPull& start) {
    by_number_[{child, start.pull.transfer}] = all_.size();
    all_.push_back({child, start.copy, start.pull, {}, 0, 0});
  }
  // `child` has a link to `parent`, which calls it by this number.
  void connected(ProcessId parent, ChannelId channel, ProcessId child) { channels_[{parent, channel}] = child; }
  // Null if it was never started.
  const Transfer* accepted(ProcessId parent, const effect::AcceptPull& accept) {
    const auto it = by_number_.find({channels_.at({parent, accept.channel}), accept.pull.transfer});
    if (it == by_number_.end()) return nullptr;
    Transfer& transfer = all_[it->second];
    transfer.parent = parent;
    transfer.parent_copy = accept.copy;
    transfer.serve = accept.serve;
    into_[{transfer.child, transfer.child_copy}].push_back(it->second);
    return &transfer;
  }

  // An accepted one that goes into this slice and is as asked for; null if there is none.
  template <typename Predicate>
  const Transfer* find(ProcessId child, CopyKey copy, std::uint32_t slice, Predicate wanted) const {
    const auto it = into_.find({child, copy});
    if (it == into_.end()) return nullptr;
    for (auto index = it->second.rbegin(); index != it->second.rend(); ++index)
      if (all_[*index].request.slice == slice && wanted(all_[*index])) return &all_[*index];
    return nullptr;
  }

  std::size_t size() const { return all_.size(); }
  const Transfer& operator[](std::size_t index) const { return all_[index]; }

 private:
  std::deque<Transfer> all_;  // in the order of asking
  std::map<std::pair<ProcessId, TransferId>, std::size_t> by_number_;
  std::map<std::pair<ProcessId, ChannelId>, ProcessId> channels_;
  std::map<std::pair<ProcessId, CopyKey>, std::vector<std::size_t>> into_;
};

}  // namespace hoplite::sim
