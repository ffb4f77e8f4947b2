// Bulk connections: dialling, asking, and ending.
#include <algorithm>

#include "sim/bulk.h"

namespace hoplite::sim {

Bulk::LinkIndex Bulk::link_to(NodeIndex child, NodeRef parent, const Address& address) {
  auto& links = planes_[child].links;
  if (const auto it = links.find(parent); it != links.end()) return it->second;
  const auto index = static_cast<LinkIndex>(links_.size());
  links[parent] = index;
  Link& link = links_.emplace_back();
  link.child = hosts_.process(child);
  link.child_ref = hosts_[child].ref;
  link.parent = {hosts_.find(address), 0};
  link.parent_ref = parent;
  if (link.parent.node != kNobody) queue_.after(hosts_.delay(child, link.parent.node), [this, index] { knock(index); });
  queue_.after(options_.dial_timeout, [this, index] { dial_failed(index); });
  return index;
}

void Bulk::knock(LinkIndex index) {
  Link& link = links_[index];
  const NodeIndex child = link.child.node;
  const NodeIndex parent = link.parent.node;
  if (link.state != LinkState::kDialling || !hosts_.path_open(child, parent) || !hosts_.path_open(parent, child))
    return;
  if (hosts_[parent].running && hosts_.defer(parent, [this, index] { knock(index); })) return;
  if (!hosts_[parent].running || hosts_[parent].ref != link.parent_ref) {
    queue_.after(hosts_.delay(parent, child), [this, index] { dial_failed(index); });
    return;
  }
  link.parent = hosts_.process(parent);
  link.parent_open = true;
  link.channel = next_channel_++;
  channels_[link.channel] = index;
  queue_.after(hosts_.delay(parent, child), [this, index] { opened(index); });
}

void Bulk::opened(LinkIndex index) {
  Link& link = links_[index];
  if (link.state != LinkState::kDialling || !hosts_.alive(link.child)) return;
  if (!hosts_.path_open(link.parent.node, link.child.node)) return;
  if (hosts_.defer(link.child.node, [this, index] { opened(index); })) return;
  link.state = LinkState::kOpen;
  for (std::size_t i = 0; i < link.up.size(); ++i) schedule_up(index);
  if (!link.parent_open) tell_child(index);
}

void Bulk::dial_failed(LinkIndex index) {
  Link& link = links_[index];
  if (link.state != LinkState::kDialling || !hosts_.alive(link.child)) return;
  if (hosts_.defer(link.child.node, [this, index] { dial_failed(index); })) return;
  close_at_child(index);
}

void Bulk::push_up(LinkIndex index, UpFrame frame) {
  Link& link = links_[index];
  if (!link.child_open) return;
  link.up.push_back(frame);
  if (link.state == LinkState::kOpen) schedule_up(index);
}

void Bulk::schedule_up(LinkIndex index) {
  Link& link = links_[index];
  link.last_arrival = std::max(link.last_arrival, queue_.now() + hosts_.delay(link.child.node, link.parent.node));
  queue_.at(link.last_arrival, [this, index] { up_arrived(index); });
}

void Bulk::up_arrived(LinkIndex index) {
  Link& link = links_[index];
  if (!link.parent_open || !hosts_.alive(link.parent) || link.up.empty()) return;
  if (!hosts_.path_open(link.child.node, link.parent.node)) {
    ++link.held;
    return;
  }
  if (hosts_.defer(link.parent.node, [this, index] { up_arrived(index); })) return;
  const UpFrame frame = link.up.front();
  link.up.pop_front();
  if (frame.cancel) return cancelled_by_child(frame.transfer);
  Transfer& transfer = transfers_[frame.transfer];
  transfer.parent = link.parent;
  transfer.parent_state = ParentState::kAsked;
  sink_.bulk_event(link.parent.node, event::PullAsked{link.child_ref, link.channel, transfer.request});
}

void Bulk::cancelled_by_child(TransferIndex index) {
  Transfer& transfer = transfers_[index];
  if (transfer.parent_state == ParentState::kAsked) {
    transfer.parent_state = ParentState::kOver;
    push_frame(index, {FrameType::kAbort, Code::kCancelled});
  } else if (transfer.parent_state == ParentState::kServing) {
    transfer.stop_code = Code::kCancelled;
    end_serve(index);
  }
}

// The child gives the connection up, or it could not be made.
void Bulk::close_at_child(LinkIndex index) {
  Link& link = links_[index];
  if (!link.child_open) return;
  link.child_open = false;
  link.state = LinkState::kClosed;
  auto& links = planes_[link.child.node].links;
  if (const auto it = links.find(link.parent_ref); it != links.end() && it->second == index) links.erase(it);
  for (const TransferIndex transfer : link.transfers)
    if (transfers_[transfer].child_state != ChildState::kOver) end_pull(transfer, PullEnd::kConnectionLost);
  if (link.parent_open)
    queue_.after(hosts_.delay(link.child.node, link.parent.node), [this, index] { tell_parent(index); });
}

void Bulk::close_at_parent(LinkIndex index) {
  Link& link = links_[index];
  if (!link.parent_open) return;
  link.parent_open = false;
  for (const TransferIndex transfer : link.transfers) {
    ParentState& state = transfers_[transfer].parent_state;
    if (state == ParentState::kAsked) state = ParentState::kOver;
    if (state == ParentState::kServing) end_serve(transfer);
  }
  queue_.after(hosts_.delay(link.parent.node, link.child.node), [this, index] { tell_child(index); });
}

void Bulk::tell_child(LinkIndex index) {
  Link& link = links_[index];
  if (!link.child_open || link.state != LinkState::kOpen || !hosts_.alive(link.child)) return;
  if (!hosts_.path_open(link.parent.node, link.child.node)) {
    link.news_for_child_held = true;
    return;
  }
  if (hosts_.defer(link.child.node, [this, index] { tell_child(index); })) return;
  close_at_child(index);
}

void Bulk::tell_parent(LinkIndex index) {
  Link& link = links_[index];
  if (!link.parent_open || !hosts_.alive(link.parent)) return;
  if (!hosts_.path_open(link.child.node, link.parent.node)) {
    link.news_for_parent_held = true;
    return;
  }
  if (hosts_.defer(link.parent.node, [this, index] { tell_parent(index); })) return;
  close_at_parent(index);
}

void Bulk::disconnect(NodeIndex self, NodeId peer) {
  const ProcessId process = hosts_.process(self);
  for (LinkIndex index = 0; index < links_.size(); ++index) {
    if (links_[index].child == process && links_[index].parent_ref.id == peer) close_at_child(index);
    if (links_[index].parent == process && links_[index].child_ref.id == peer) close_at_parent(index);
  }
}

void Bulk::disconnect_all(NodeIndex self) {
  const ProcessId process = hosts_.process(self);
  for (LinkIndex index = 0; index < links_.size(); ++index) {
    if (links_[index].child == process) close_at_child(index);
    if (links_[index].parent == process) close_at_parent(index);
  }
}

// The peers' kernels learn of it, or not; the process itself, its copies, pulls and serves are simply gone.
void Bulk::process_died(NodeIndex node, bool with_machine) {
  const ProcessId process = hosts_.process(node);
  for (LinkIndex index = 0; index < links_.size(); ++index) {
    Link& link = links_[index];
    const bool as_child = link.child == process && link.child_open;
    const bool as_parent = link.parent == process && link.parent_open;
    if (as_child) {
      link.child_open = false;
      link.state = LinkState::kClosed;
      if (link.parent_open) queue_.after(hosts_.delay(node, link.parent.node), [this, index] { tell_parent(index); });
    }
    if (as_parent) {
      link.parent_open = false;
      if (with_machine)
        for (const TransferIndex transfer : link.transfers) {
          transfers_[transfer].frames.clear();
          transfers_[transfer].on_downlink = 0;
        }
      queue_.after(hosts_.delay(node, link.child.node), [this, index] { tell_child(index); });
    }
  }
  planes_[node] = Plane{};
}

void Bulk::process_resumed(NodeIndex node) { take_turn(node); }

void Bulk::break_between(NodeIndex a, NodeIndex b) {
  for (LinkIndex index = 0; index < links_.size(); ++index) {
    Link& link = links_[index];
    const bool between =
        (link.child.node == a && link.parent.node == b) || (link.child.node == b && link.parent.node == a);
    if (!between || link.state != LinkState::kOpen) continue;
    queue_.after(hosts_.delay(a, b), [this, index] { tell_child(index); });
    queue_.after(hosts_.delay(b, a), [this, index] { tell_parent(index); });
  }
}

void Bulk::paths_changed() {
  for (LinkIndex index = 0; index < links_.size(); ++index) {
    Link& link = links_[index];
    if (link.parent.node == kNobody) continue;
    const bool up_open = hosts_.path_open(link.child.node, link.parent.node);
    const bool down_open = hosts_.path_open(link.parent.node, link.child.node);
    const Duration wait = retransmission();
    if (up_open)
      for (; link.held > 0; --link.held) queue_.after(wait, [this, index] { up_arrived(index); });
    if (up_open && link.news_for_parent_held) {
      link.news_for_parent_held = false;
      queue_.after(wait, [this, index] { tell_parent(index); });
    }
    if (down_open && link.news_for_child_held) {
      link.news_for_child_held = false;
      queue_.after(wait, [this, index] { tell_child(index); });
    }
    if (!down_open) continue;
    for (const TransferIndex transfer : link.transfers)
      for (; transfers_[transfer].held > 0; --transfers_[transfer].held)
        queue_.after(wait, [this, transfer] { frame_arrived(transfer); });
  }
}

}  // namespace hoplite::sim
