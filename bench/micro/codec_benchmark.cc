// What encoding and decoding of messages costs: short ones, those with the bytes of a small object, long announcements.
#include <benchmark/benchmark.h>

#include <string>

#include "base/bytes.h"
#include "protocol/messages.h"

namespace hoplite {
namespace {

const ObjectId kId{0x1234567890ABCDEF, 0x0FEDCBA987654321};

Message want() {
  Want message;
  message.request = 1;
  message.id = kId;
  return message;
}

Message assign() {
  return Assign{
      .request = 1, .id = kId, .version = 7, .size = kGiB, .meta = "", .committed = true, .parents = {NodeRef{}}};
}

Message announcement(std::size_t facts) {
  Announce announce;
  announce.facts.assign(facts, Fact{.id = kId, .version = 7, .size = kMiB, .meta = "", .state = CopyState::kComplete});
  return announce;
}

void encode(benchmark::State& state, const Message& message) {
  std::string out;
  for (auto _ : state) {
    out.clear();
    encode_message(message, out);
    benchmark::DoNotOptimize(out.data());
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(out.size()) * state.iterations());
}

void decode(benchmark::State& state, const Message& message, std::size_t payload) {
  std::string in;
  encode_message(message, in);
  in.append(payload, 'x');
  const ByteView bytes = as_bytes(in);
  for (auto _ : state) {
    auto decoded = decode_message(bytes);
    if (!decoded) state.SkipWithError(decoded.error().message.c_str());
    benchmark::DoNotOptimize(decoded);
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(in.size()) * state.iterations());
}

const Message kInline = InlineObject{.request = 1, .id = kId, .version = 7, .meta = ""};

BENCHMARK_CAPTURE(encode, want, want());
BENCHMARK_CAPTURE(decode, want, want(), 0);
BENCHMARK_CAPTURE(encode, assign, assign());
BENCHMARK_CAPTURE(decode, assign, assign(), 0);
BENCHMARK_CAPTURE(decode, inline_object_of_1_kib, kInline, kKiB);
BENCHMARK_CAPTURE(decode, inline_object_of_64_kib, kInline, 64 * kKiB);
BENCHMARK_CAPTURE(encode, announcement_of_512_facts, announcement(512));
BENCHMARK_CAPTURE(decode, announcement_of_512_facts, announcement(512), 0);

}  // namespace
}  // namespace hoplite

BENCHMARK_MAIN();
