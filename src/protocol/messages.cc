#include "protocol/messages.h"

#include "base/type_name.h"
#include "protocol/variant_codec.h"

namespace hoplite {

void encode_message(const Message& message, std::string& out) { encode_variant(message, out); }

Result<DecodedMessage> decode_message(ByteView in) {
  DecodedMessage decoded;
  if (!decode_variant(in, decoded.message)) return Error{Code::kInvalidArgument, "malformed message"};
  const bool may_carry_bytes = std::holds_alternative<PutRequest>(decoded.message) ||
                               std::holds_alternative<InlineObject>(decoded.message) ||
                               std::holds_alternative<Relay>(decoded.message);
  if (!in.empty() && !may_carry_bytes)
    return Error{Code::kInvalidArgument, "bytes after a " + type_name(decoded.message)};
  decoded.payload = in;
  return decoded;
}

}  // namespace hoplite
