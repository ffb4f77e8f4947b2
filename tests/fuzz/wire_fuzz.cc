// What a peer says on its control connection.
#include "base/check.h"
#include "base/type_name.h"
#include "fuzz_target.h"
#include "protocol/messages.h"
#include "protocol/test_messages.h"

using namespace hoplite;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto first = decode_message(std::as_bytes(std::span(data, size)));
  if (!first) return 0;
  // There is one encoding of a message: what is accepted is what encode_message writes.
  std::string wire;
  encode_message(first->message, wire);
  CHECK(wire.size() + first->payload.size() == size, type_name(first->message), wire.size(), size);
  CHECK(std::memcmp(wire.data(), data, wire.size()) == 0, type_name(first->message));
  const auto second = decode_message(as_bytes(wire));
  CHECK(second.ok() && describe(second->message) == describe(first->message), type_name(first->message));
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  Random random(1);
  for (std::size_t type = 0; type < std::variant_size_v<Message>; ++type)
    for (int copies = 0; copies < 4; ++copies)
      encode_message(random_message<Message>(type, random), seeds.emplace_back());
  return seeds;
}
