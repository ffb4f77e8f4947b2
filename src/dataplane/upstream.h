// This node's end of a link to a parent: asks for slices, and receives their bytes straight into place.
//
// Invariants: (1) bytes are written only behind the valid ones of a pull that is on, within its slice; (2) after a pull has
// ended, what still comes for it is discarded; (3) every pull ends with exactly one call of Host::pull_ended. Whatever breaks
// the protocol breaks the link, and its pulls end as lost. Lives on one lane.
#pragma once

#include <memory>
#include <unordered_map>

#include "base/limits.h"
#include "dataplane/buffer.h"
#include "dataplane/link.h"
#include "protocol/data_plane.h"

namespace hoplite::dataplane {

class Upstream final : private LinkUser {
 public:
  class Host {
   public:
    virtual Time now() const = 0;
    // A slice has more valid bytes, or is final now.
    virtual void buffer_advanced(Buffer& buffer) = 0;
    virtual void pull_received(TransferId transfer, std::uint64_t bytes) = 0;
    virtual void pull_accepted(TransferId transfer) = 0;
    virtual void pull_silent(TransferId transfer) = 0;
    // Nothing of this end touches the buffer for it any more.
    virtual void pull_ended(TransferId transfer, PullEnd how, const ValidBytes& valid) = 0;
    // The link is of no use any more, and all pulls have ended: it is to be destroyed soon, but not from here.
    virtual void link_broken() = 0;

   protected:
    ~Host() = default;
  };

  // `limits` outlives it.
  Upstream(Host& host, LinkDialler& dialler, NodeRef parent, const Address& address, const Limits& limits);

  NodeRef parent() const { return parent_; }
  bool broken() const { return link_ == nullptr; }
  bool has_pulls() const { return !pulls_.empty(); }
  Time idle_since() const { return idle_since_; }

  void start(const BufferPtr& buffer, const PullRequest& request, Duration patience);
  void cancel(TransferId transfer);
  void prioritize(TransferId transfer, Priority priority);
  // The parent may send no more than what is there, and so many bytes; no limit: let it go.
  void limit(TransferId transfer, std::uint64_t more_bytes);
  void let_go(TransferId transfer);
  // Reports pulls that have been silent for too long.
  void tick();
  // This lane did not run for so long: silence in that time says nothing about the parent.
  void forgive_silence(Duration lost);
  void break_off();

 private:
  struct Pull {
    BufferPtr buffer;
    std::uint32_t slice = 0;
    ValidBytes valid;
    Duration patience;
    std::uint64_t limit = kNoLimit;
    bool accepted = false;
    bool silent = false;
    Time heard_at{};
  };

  bool on_frame(const FrameHeader& frame, ByteView body) override;
  bool on_data(const FrameHeader& frame) override;
  std::byte* data_place() override;
  void on_data_bytes(std::uint64_t count) override;
  void on_writable() override {}
  void on_broken() override { break_off(); }

  void end(TransferId transfer, PullEnd how);
  void say(FrameType type, TransferId transfer, std::uint64_t offset = 0);

  Host& host_;
  const NodeRef parent_;
  const Limits& limits_;
  Time idle_since_;
  Time heard_at_;  // anything, of any pull
  std::unordered_map<TransferId, Pull> pulls_;
  TransferId arriving_ = 0;  // whose payload it is; 0 = it is discarded
  std::unique_ptr<Link> link_;
  std::unique_ptr<Link> dead_link_;  // it may be what calls us
};

}  // namespace hoplite::dataplane
