#include "protocol/messages.h"

#include <array>

#include "protocol/variant_codec.h"

namespace hoplite {

const char* message_name(const Message& message) {
  static constexpr std::array<const char*, std::variant_size_v<Message>> kNames{
      "Ping",        "Ack",          "PingRequest", "News",       "Sync",       "PutRequest",
      "PutReply",    "Want",         "Assign",      "Inline",     "Found",      "Waiting",
      "WantFailed",  "Unwant",       "Announce",    "Withdraw",   "Evict",      "EvictReply",
      "Delete",      "DeleteReply",  "Drop",        "Pin",        "Recover",    "RecoverReply",
      "NotHome",     "Relay",        "Resync",      "Reduce",     "AddSources", "ReduceReply",
      "ReduceQuery", "ReduceAnswer", "SlotOrder",   "SlotUpdate", "SlotEnd",    "PassOn"};
  return kNames[message.index()];
}

void encode_message(const Message& message, std::string& out) { encode_variant(message, out); }

Result<DecodedMessage> decode_message(ByteView in) {
  DecodedMessage decoded;
  if (!decode_variant(in, decoded.message)) return Error{Code::kInvalidArgument, "malformed message"};
  const bool may_carry_bytes =
      std::holds_alternative<PutRequest>(decoded.message) || std::holds_alternative<InlineObject>(decoded.message);
  if (!in.empty() && !may_carry_bytes)
    return Error{Code::kInvalidArgument, std::string("bytes after a ") + message_name(decoded.message)};
  decoded.payload = in;
  return decoded;
}

}  // namespace hoplite
