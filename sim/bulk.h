// The simulated data plane: copies, pulls, serves and combinations as events.h and protocol/bulk.h describe them.
//
// A child dials its parent (one bulk connection for each pair), asks, and gets frames back. Data moves in pieces: a node's
// uplink sends one piece at a time, taking turns among its serves (also those of one object, which the real one sends one
// after the other); the downlink takes what arrives in order; a window bounds what is under way in a stream, so a slow
// receiver slows its own stream only. Where the contract says that threads
// may still touch a copy, this one does: bytes are read at the end of a piece's time on the wire, and a pull scribbles behind
// its watermark until PullEnded, as a combination that was stopped does until CopyClosed. So an agent that frees or reuses
// memory too early is seen. The arithmetic itself takes no time.
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/limits.h"
#include "core/agent/events.h"
#include "sim/hosts.h"

namespace hoplite::sim {

struct BulkOptions {
  std::uint64_t piece_bytes = 64 * kKiB;  // what one turn on the uplink sends at most
  bool uneven_pieces = false;             // draw each piece's size, as TCP delivers
  std::uint64_t window_bytes = 512 * kKiB;
  Duration post_delay;  // an event reaches its agent up to this much later
  Duration dial_timeout = Duration::s(1);
  Duration retransmit = Duration::ms(300);
  Duration starved_every = Duration::ms(50);
};

using TransferIndex = std::uint32_t;
constexpr TransferIndex kNoTransfer = ~TransferIndex{0};

class BulkSink {
 public:
  virtual ~BulkSink() = default;
  virtual void bulk_event(NodeIndex at, Event event) = 0;
  // The node's memory; empty if this run carries no bytes.
  virtual ByteSpan arena(NodeIndex node) = 0;
  // The agent asked for something that the contract forbids.
  virtual void contract_broken(NodeIndex at, const std::string& what) = 0;
  // A transfer was accepted: the place to look for cycles.
  virtual void transfer_began(TransferIndex transfer) = 0;
};

class Bulk {
 public:
  struct CombineKey {  // what is made
    CopyKey out = 0;
    std::uint32_t slice = 0;
    auto operator<=>(const CombineKey&) const = default;
  };
  struct Copy {
    CopyKey key = 0;
    Extent extent;
    std::uint64_t size = 0;                 // of the object
    std::uint32_t only = kAllSlices;        // the one slice of it that is in the extent
    std::vector<std::uint64_t> watermarks;  // absolute, one for each slice
    std::vector<bool> final;                // that slice is complete and committed
    bool sealed = false;                    // all of them are
    bool following = false;
    bool grown_posted = false;
    bool closing = false;
    std::vector<TransferIndex> serves;
    std::vector<TransferIndex> pulls;
    std::vector<CombineKey> readers;  // combinations that it is an input of

    std::uint32_t slices() const { return static_cast<std::uint32_t>(watermarks.size()); }
    SliceRange range(std::uint32_t slice) const { return slice_range(size, slices(), slice); }
    bool has(std::uint32_t slice) const { return slice < slices() && (only == kAllSlices || slice == only); }
    // The part of the object that the extent is for.
    SliceRange room() const { return only == kAllSlices ? SliceRange{0, size} : range(only); }
    // Where the byte at `offset` of the object is in the arena.
    std::uint64_t place(std::uint64_t offset) const { return extent.offset + offset - room().begin; }
  };
  enum class ChildState : std::uint8_t { kAsking, kReceiving, kOver };
  enum class ParentState : std::uint8_t { kUnknown, kAsked, kServing, kStopping, kOver };
  struct Transfer {
    ProcessId child, parent;
    PullRequest request;
    std::uint32_t link = 0;
    SliceRange range;
    Duration patience;
    // --- the child's side
    ChildState child_state = ChildState::kAsking;
    Copy* child_copy = nullptr;
    Time last_frame;
    // --- the parent's side
    ParentState parent_state = ParentState::kUnknown;
    Copy* parent_copy = nullptr;
    ServeId serve = 0;
    Code stop_code = Code::kOk;
    std::uint64_t next_send = 0;
    std::uint64_t sending = 0;  // bytes of the piece that is on the uplink now
    bool queued = false;        // waits for its turn on the uplink
    Time last_sent;
    // --- under way to the child
    struct Frame {
      FrameType type = FrameType::kData;
      Code code = Code::kOk;
      std::uint64_t offset = 0;
      std::uint64_t length = 0;
      std::string bytes{};
    };
    std::deque<Frame> frames;
    std::size_t on_downlink = 0;  // of them, from the front: arrived, and waiting for the child's downlink
    std::uint64_t in_flight = 0;
    Time last_arrival;
    std::uint32_t held = 0;  // arrivals that found the path blocked
    Time last_post;          // events about one transfer keep their order
  };

  Bulk(EventQueue& queue, Hosts& hosts, Random& random, BulkSink& sink, const BulkOptions& options);
  void add_node() { planes_.emplace_back(); }  // once for each host, in the same order

  // --- effects of the agent on `node`
  void open_copy(NodeIndex node, const effect::OpenCopy& open);
  void grow_copy(NodeIndex node, const effect::GrowCopy& grow);
  void seal_copy(NodeIndex node, const effect::SealCopy& seal);
  void combine(NodeIndex node, const effect::Combine& order);
  void follow_copy(NodeIndex node, CopyKey copy);
  void close_copy(NodeIndex node, CopyKey copy);
  void start_pull(NodeIndex node, const effect::StartPull& start);
  void cancel_pull(NodeIndex node, TransferId transfer);
  void accept_pull(NodeIndex node, const effect::AcceptPull& accept);
  void refuse_pull(NodeIndex node, const effect::RefusePull& refuse);
  void disconnect(NodeIndex self, NodeId peer);
  void disconnect_all(NodeIndex self);
  ValidBytes valid(NodeIndex node, CopyKey copy, std::uint32_t slice) const;

  // --- faults, as in Network
  void process_died(NodeIndex node, bool with_machine);
  void process_resumed(NodeIndex node);
  void break_between(NodeIndex a, NodeIndex b);
  void paths_changed();

  // --- for invariants and reports
  const Transfer& transfer(TransferIndex index) const { return transfers_[index]; }
  std::size_t transfers() const { return transfers_.size(); }
  // The accepted pull that fills `slice` of the copy, or kNoTransfer.
  TransferIndex filling(NodeIndex node, CopyKey copy, std::uint32_t slice) const;
  const std::unordered_map<CopyKey, Copy>& copies(NodeIndex node) const { return planes_[node].copies; }
  std::size_t active_pulls(NodeIndex node) const;
  std::size_t active_serves(NodeIndex node) const;
  std::uint64_t bytes_delivered() const { return bytes_delivered_; }

 private:
  enum class LinkState : std::uint8_t { kDialling, kOpen, kClosed };
  struct UpFrame {
    TransferIndex transfer = 0;
    bool cancel = false;
  };
  struct Link {  // one bulk connection
    ProcessId child, parent;
    NodeRef child_ref, parent_ref;
    LinkState state = LinkState::kDialling;
    bool child_open = true;
    bool parent_open = false;
    ChannelId channel = 0;
    std::vector<TransferIndex> transfers;
    std::deque<UpFrame> up;  // pulls and cancels: waiting for the dial, then under way
    Time last_arrival;
    Time last_heard;  // by the child, of any transfer
    std::uint32_t held = 0;
    bool news_for_child_held = false;
    bool news_for_parent_held = false;
  };
  using LinkIndex = std::uint32_t;
  struct Combine {
    effect::Combine order;
    SliceRange range;        // of what is made
    std::uint64_t done = 0;  // bytes
    bool complete = false;   // and its event is under way
  };
  struct Plane {  // what one process has
    std::unordered_map<CopyKey, Copy> copies;
    std::unordered_map<TransferId, TransferIndex> pulls;
    std::unordered_map<ServeId, TransferIndex> serves;  // not yet ended
    std::map<CombineKey, Combine> combines;             // until Combined, or until what they make is closed
    std::unordered_map<NodeRef, LinkIndex> links;       // dialled
    std::deque<TransferIndex> turns;                    // serves with something to send
    bool uplink_busy = false;
    Time downlink_free;
  };

  // bulk.cc
  Copy* find_copy(NodeIndex node, CopyKey copy, const char* for_what);
  void grown(NodeIndex node, Copy& copy);
  void post(TransferIndex transfer, void (Bulk::*deliver)(TransferIndex));
  void deliver_pull_ended(TransferIndex transfer);
  void deliver_serve_ended(TransferIndex transfer);
  void end_pull(TransferIndex transfer, PullEnd how);
  void end_serve(TransferIndex transfer);
  void close_if_idle(NodeIndex node, CopyKey copy);
  void scribble(const Transfer& transfer);
  void check_silence(TransferIndex transfer);
  TransferIndex find_asked(NodeIndex node, ChannelId channel, TransferId transfer) const;

  // bulk_combine.cc
  std::string fault_of(NodeIndex node, const effect::Combine& order) const;
  void go_on(NodeIndex node, CombineKey key);
  void do_arithmetic(NodeIndex node, const Combine& combine, std::uint64_t bytes);
  void deliver_combined(ProcessId process, CombineKey key);
  void forget_combine(NodeIndex node, CombineKey key);
  void forget_combines_into(NodeIndex node, CopyKey copy);

  // bulk_pump.cc
  static std::uint64_t valid_until(const Copy& copy, std::uint64_t offset);
  void pump(TransferIndex transfer);
  void take_turn(NodeIndex node);
  void piece_sent(ProcessId process, TransferIndex transfer);
  void check_starved(TransferIndex transfer);
  void push_frame(TransferIndex transfer, Transfer::Frame frame);
  void frame_arrived(TransferIndex transfer);
  void frame_delivered(TransferIndex transfer);
  void take_data(TransferIndex transfer, const Transfer::Frame& frame);

  // bulk_links.cc
  LinkIndex link_to(NodeIndex child, NodeRef parent, const Address& address);
  void knock(LinkIndex link);
  void opened(LinkIndex link);
  void dial_failed(LinkIndex link);
  void push_up(LinkIndex link, UpFrame frame);
  void schedule_up(LinkIndex link);
  void up_arrived(LinkIndex link);
  void cancelled_by_child(TransferIndex transfer);
  void close_at_child(LinkIndex link);
  void close_at_parent(LinkIndex link);
  void tell_child(LinkIndex link);
  void tell_parent(LinkIndex link);
  Duration retransmission() { return Duration{static_cast<std::int64_t>(random_.below(options_.retransmit.ns + 1))}; }

  EventQueue& queue_;
  Hosts& hosts_;
  Random& random_;
  BulkSink& sink_;
  BulkOptions options_;
  std::deque<Plane> planes_;  // by node
  std::deque<Link> links_;
  std::deque<Transfer> transfers_;
  std::vector<PullEnd> ends_;  // by transfer: how its pull ended
  std::unordered_map<ChannelId, LinkIndex> channels_;
  ChannelId next_channel_ = 1;
  std::uint64_t bytes_delivered_ = 0;
};

}  // namespace hoplite::sim
