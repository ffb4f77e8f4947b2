// Test fixture: a data plane between hosts, with toy agents on them.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "sim/bulk.h"
#include "sim/contents.h"

namespace hoplite::sim {

// Toy agents: every pull is accepted from the same copy unless a test says otherwise, and all events are written down.
class BulkTest : public ::testing::Test, public BulkSink {
 protected:
  static constexpr std::uint64_t kArena = 1 << 20;
  static constexpr Duration kPatience = Duration::ms(500);

  void make(NodeIndex count, double rate, BulkOptions options = {}) {
    bulk_.emplace(queue_, hosts_, random_, *this, options);
    for (NodeIndex node = 0; node < count; ++node) {
      LinkSpec link;
      link.latency = Duration::ms(1);
      link.up = link.down = rate;
      hosts_.add({"host" + std::to_string(node), 1}, link);
      hosts_[node].running = true;
      hosts_[node].start = 1;
      hosts_[node].ref = {NodeId{node + 1}, 0};
      bulk_->add_node();
      arenas_.emplace_back(kArena);
    }
  }
  void put(NodeIndex node, std::uint64_t size) {
    bulk_->open_copy(node, {1, {0, size}, 1, true});
    fill_contents(7, 0, ByteSpan(arenas_[node]).first(size));
  }
  TransferId pull(NodeIndex child, NodeIndex parent, std::uint64_t size, std::uint32_t slices = 1,
                  std::uint32_t slice = 0) {
    if (!bulk_->copies(child).contains(1)) bulk_->open_copy(child, {1, {0, size}, slices, false});
    return pull_into(child, 1, parent, slice, slices);
  }
  TransferId pull_into(NodeIndex child, CopyKey copy, NodeIndex parent, std::uint32_t slice = 0,
                       std::uint32_t slices = 1) {
    PullRequest request;
    request.transfer = next_++;
    request.id = request.target = {1, 1};
    request.version = 5;
    request.slice = slice;
    request.slices = slices;
    request.offset = bulk_->valid(child, copy, slice).front();
    bulk_->start_pull(child, {hosts_[parent].ref, hosts_[parent].address, copy, request, kPatience});
    return request.transfer;
  }
  void run(Duration time = Duration::s(100)) {
    const Time end = queue_.now() + time;
    while (queue_.next_time() <= end) queue_.run_next();
    queue_.advance_to(end);
  }
  double ended_at(NodeIndex node) const {
    for (const auto& [who, what, when] : log_)
      if (who == node && what.starts_with("ended complete")) return static_cast<double>(when.ns) * 1e-9;
    return -1;
  }
  std::vector<std::string> said(NodeIndex node) const {
    std::vector<std::string> texts;
    for (const auto& [who, what, when] : log_)
      if (who == node) texts.push_back(what);
    return texts;
  }

  void bulk_event(NodeIndex at, Event event) override {
    static constexpr const char* kEnds[] = {"complete", "refused", "aborted", "lost", "cancelled"};
    if (const auto* asked = std::get_if<event::PullAsked>(&event)) {
      if (park_) {
        parked_.push_back(*asked);
      } else if (refuse_) {
        bulk_->refuse_pull(at, {asked->channel, asked->pull.transfer, Code::kUnavailable});
      } else {
        bulk_->accept_pull(at, {asked->channel, next_serve_++, served_, asked->pull});
      }
    }
    std::string text;
    if (std::holds_alternative<event::PullAccepted>(event)) text = "accepted";
    if (std::holds_alternative<event::PullSilent>(event)) text = "silent";
    if (const auto* ended = std::get_if<event::PullEnded>(&event))
      text = std::string("ended ") + kEnds[static_cast<int>(ended->how)] + " " + std::to_string(ended->valid.front());
    if (std::holds_alternative<event::ServeEnded>(event)) text = "serve ended";
    if (std::holds_alternative<event::CopyClosed>(event)) text = "closed";
    if (const auto* combined = std::get_if<event::Combined>(&event))
      text = "combined " + std::to_string(combined->out) + "/" + std::to_string(combined->slice);
    if (!text.empty()) log_.push_back({at, text, queue_.now()});
    if (text.starts_with("ended complete") && bulk_->copies(at).contains(1)) {
      bool all = true;
      for (const std::uint64_t mark : bulk_->copies(at).at(1).watermarks) all = all && mark > 0;
      if (all && !bulk_->copies(at).at(1).sealed && bulk_->active_pulls(at) == 0) bulk_->seal_copy(at, {1});
    }
  }
  ByteSpan arena(NodeIndex node) override { return carries_bytes_ ? ByteSpan(arenas_[node]) : ByteSpan(); }
  void contract_broken(NodeIndex, const std::string& what) override { broken_.push_back(what); }
  void transfer_began(TransferIndex) override {}

  struct Line {
    NodeIndex node;
    std::string what;
    Time when;
  };
  EventQueue queue_;
  Random random_{3};
  Hosts hosts_{random_};
  std::optional<Bulk> bulk_;
  std::vector<std::vector<std::byte>> arenas_;
  std::vector<Line> log_;
  std::vector<std::string> broken_;
  std::vector<event::PullAsked> parked_;
  CopyKey served_ = 1;
  bool carries_bytes_ = true;
  bool park_ = false;
  bool refuse_ = false;
  TransferId next_ = 1;
  ServeId next_serve_ = 1;
};

inline BulkOptions pieces(std::uint64_t bytes) {
  BulkOptions options;
  options.piece_bytes = bytes;
  options.window_bytes = bytes * 8;
  return options;
}

}  // namespace hoplite::sim
