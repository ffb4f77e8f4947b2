// What a client says to its daemon on the unix socket, and a daemon to its client.
#include "base/check.h"
#include "fuzz_target.h"
#include "protocol/client_messages.h"
#include "protocol/test_messages.h"

using namespace hoplite;

namespace {

constexpr std::uint64_t kMaxFrameBytes = 64 * kKiB;

void expect_prefix(const std::string& frame, ByteView body) {
  const ByteView again = as_bytes(frame).subspan(ipc::ClientFrameHeader::kSize);
  CHECK(again.size() <= body.size(), again.size(), body.size());
  CHECK(std::memcmp(again.data(), body.data(), again.size()) == 0);
}

void read_body(const ipc::Frame& frame) {
  if (const auto request = ipc::decode_request(frame.body)) {
    std::string wire;
    ipc::encode_request(frame.request, request->message, request->payload.size(), wire);
    CHECK(wire.size() + request->payload.size() == ipc::ClientFrameHeader::kSize + frame.body.size());
    expect_prefix(wire, frame.body);
  }
  if (const auto reply = ipc::decode_reply(frame.body)) {
    std::string wire;
    ipc::encode_reply(frame.request, *reply, wire);
    CHECK(wire.size() == ipc::ClientFrameHeader::kSize + frame.body.size());
    expect_prefix(wire, frame.body);
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ByteView in = std::as_bytes(std::span(data, size));
  for (;;) {
    const std::size_t before = in.size();
    const auto frame = ipc::next_frame(in, kMaxFrameBytes);
    if (!frame || !frame->complete) {
      CHECK(in.size() == before, in.size(), before);
      return 0;
    }
    CHECK(in.size() + ipc::ClientFrameHeader::kSize + frame->body.size() == before);
    CHECK(frame->body.size() <= kMaxFrameBytes);
    read_body(*frame);
  }
}

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  Random random(1);
  for (std::size_t type = 0; type < std::variant_size_v<ipc::Request>; ++type)
    ipc::encode_request(random.next(), random_message<ipc::Request>(type, random), 0, seeds.emplace_back());
  for (std::size_t type = 0; type < std::variant_size_v<ipc::Reply>; ++type)
    ipc::encode_reply(random.next(), random_message<ipc::Reply>(type, random), seeds.emplace_back());
  std::string& put = seeds.emplace_back();
  ipc::encode_request(1, ipc::Put{}, 5, put);
  put += "bytes";
  return seeds;
}
