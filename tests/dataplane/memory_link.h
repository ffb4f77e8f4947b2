// Links between data planes of one process: frames are handed over through queues. For tests, and for whoever wants a cluster
// without sockets.
//
// The two ends may live on different threads: each is called through its own executor only.
#pragma once

#include <functional>
#include <memory>

#include "dataplane/link.h"

namespace hoplite::dataplane {

// Runs work on an end's thread, later and in order. Thread-safe.
using Executor = std::function<void(std::function<void()>)>;

class MemoryLink final : public Link {
 public:
  // What may be under way to a peer that does not take it.
  static constexpr std::uint64_t kWindowBytes = 256 * kKiB;

  struct Pair;  // shared by the two ends

  // The end that dials. `connect` is given the pair, to make the other end with; false: nobody is there.
  static std::unique_ptr<Link> dial(LinkUser& user, Executor executor,
                                    const std::function<bool(std::shared_ptr<Pair>)>& connect);
  // The other end.
  static std::unique_ptr<Link> accept(std::shared_ptr<Pair> pair, LinkUser& user, Executor executor);

  ~MemoryLink() override;
  void send(const FrameHeader& frame, ByteView body) override;
  void flush() override {}
  std::uint64_t queued_bytes() const override;
  Sent send_data(const FrameHeader& frame, const std::byte* payload, bool more) override;
  void detach() override {}  // payload is copied when it is sent

 private:
  MemoryLink(std::shared_ptr<Pair> pair, int side) : pair_(std::move(pair)), side_(side) {}

  const std::shared_ptr<Pair> pair_;
  const int side_;
};

}  // namespace hoplite::dataplane
