#include "sim/failovers.h"

#include <algorithm>

namespace hoplite::sim {

template <typename Predicate>
void Failovers::begin(Predicate hit) {
  last_fault_ = world_.now();
  // What is left to go on with may be gone now.
  for (Failover& failover : open_) failover.can_go_on = failover.can_go_on && can_go_on(failover);
  for (std::size_t i = 0; i < world_.transfers().size(); ++i) {
    const Transfer& transfer = world_.transfers()[i];
    if (!hit(transfer) || !world_.is_pulling(transfer)) continue;
    const PullRequest& pull = transfer.request;
    Failover failover{transfer.child, pull.slot ? pull.target : pull.id, pull.slice, pull.slot, world_.now()};
    failover.can_go_on = can_go_on(failover);
    open_.push_back(failover);
  }
}

void Failovers::node_died(NodeIndex node) {
  const ProcessId process = world_.process(node);
  std::erase_if(open_, [&](const Failover& failover) { return failover.child == process; });
  begin([&](const Transfer& transfer) { return transfer.parent == process; });
}

void Failovers::connections_break(NodeIndex a, NodeIndex b) {
  begin([&](const Transfer& transfer) {
    const NodeIndex child = transfer.child.node;
    const NodeIndex parent = transfer.parent.node;
    return (child == a && parent == b) || (child == b && parent == a);
  });
}

bool Failovers::is_complete_somewhere(const ObjectId& id) const {
  return std::ranges::any_of(world_.running_nodes(), [&](NodeIndex node) {
    return std::ranges::any_of(world_.agent(node).objects(), [&](const ipc::ObjectInfo& info) {
      return info.id == id && info.state == CopyState::kComplete;
    });
  });
}

bool Failovers::can_go_on(const Failover& failover) const {
  if (is_complete_somewhere(failover.object)) return true;
  return std::ranges::any_of(ledger_.about(failover.object).puts, [&](PutNumber put) {
    if (ledger_.puts[put].refused) return false;
    const auto& reduce = ledger_.puts[put].reduce;
    const auto there = [&](const ObjectId& source) { return is_complete_somewhere(source); };
    return reduce && std::ranges::count_if(reduce->sources, there) >= reduce->count;
  });
}

const RequestRecord* Failovers::reader(const Failover& failover) const {
  const RequestRecord* found = nullptr;
  for (const RequestRecord& request : ledger_.requests) {
    const bool same_node = failover.reduces || request.node == failover.child.node;
    if (request.kind != Ask::kGet || request.id != failover.object || !same_node) continue;
    if (found == nullptr || found->ended) found = &request;
  }
  return found;
}

void Failovers::end(Failover failover) {
  failover.took = world_.now() - failover.began;
  failover.undisturbed = world_.now() - std::max(failover.began, last_fault_);
  ended_.push_back(failover);
}

void Failovers::transfer_began(const Transfer& transfer) {
  const PullRequest& pull = transfer.request;
  const ObjectId& object = pull.slot ? pull.target : pull.id;
  std::erase_if(open_, [&](const Failover& failover) {
    const bool same_reader = failover.reduces ? pull.slot : transfer.child == failover.child;
    if (!same_reader || object != failover.object || pull.slice != failover.slice) return false;
    if (failover.can_go_on) end(failover);
    return true;
  });
}

void Failovers::look_at(NodeIndex node) {
  std::erase_if(open_, [&](const Failover& failover) {
    if (failover.child.node != node) return false;
    const RequestRecord* get = reader(failover);
    if (get != nullptr && !get->ended) return false;
    if (failover.can_go_on || (get != nullptr && get->code == Code::kLost)) end(failover);
    return true;
  });
}

}  // namespace hoplite::sim
