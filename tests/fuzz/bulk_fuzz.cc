// What a peer says on a bulk connection: frame headers, and the pull requests that follow some of them.
#include "base/check.h"
#include "base/limits.h"
#include "fuzz_target.h"
#include "protocol/bulk.h"
#include "protocol/test_messages.h"

using namespace hoplite;

namespace {

std::string encoded(PullRequest pull) {
  std::string out;
  Writer writer(out);
  pull.fields(writer);
  return out;
}

void read_pull(ByteView body) {
  Reader reader(body);
  PullRequest pull;
  pull.fields(reader);
  if (!reader.ok()) return;
  const std::string again = encoded(pull);
  CHECK(again.size() + reader.rest().size() == body.size(), again.size());
  CHECK(std::memcmp(again.data(), body.data(), again.size()) == 0);
  CHECK(again.size() <= PullRequest::kMaxEncoded, again.size());
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ByteView in = std::as_bytes(std::span(data, size));
  while (in.size() >= FrameHeader::kSize) {
    FrameHeader header;
    if (!FrameHeader::decode(in.data(), header)) return 0;
    CHECK(std::memcmp(header.encode().data(), in.data(), FrameHeader::kSize) == 0);
    in = in.subspan(FrameHeader::kSize);
    if (header.length > Limits{}.max_frame_bytes || header.length > in.size()) return 0;
    if (header.type == FrameType::kPull) read_pull(in.first(header.length));
    in = in.subspan(header.length);
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  Random random(1);
  const auto add = [](std::string& stream, FrameHeader header, const std::string& body) {
    header.length = static_cast<std::uint32_t>(body.size());
    const auto encoded_header = header.encode();
    stream.append(reinterpret_cast<const char*>(encoded_header.data()), encoded_header.size()).append(body);
  };
  for (int type = 0; type <= static_cast<int>(FrameType::kAbort); ++type) {
    std::string& stream = seeds.emplace_back();
    PullRequest pull;
    RandomFields fields(random);
    pull.fields(fields);
    add(stream, {.type = FrameType::kPull, .transfer = pull.transfer}, encoded(pull));
    add(stream, {.type = static_cast<FrameType>(type), .transfer = pull.transfer}, "");
    add(stream, {.type = FrameType::kData, .transfer = pull.transfer, .offset = pull.offset}, "bytes");
  }
  return seeds;
}
