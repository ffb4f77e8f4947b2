#include "protocol/client_messages.h"

#include <cstring>

#include "protocol/variant_codec.h"

namespace hoplite::ipc {
namespace {

template <typename Variant>
void encode_frame(std::uint64_t request, const Variant& message, std::size_t payload_bytes, std::string& out) {
  const std::size_t start = out.size();
  out.resize(start + ClientFrameHeader::kSize);
  encode_variant(message, out);
  const auto length = static_cast<std::uint32_t>(out.size() - start - ClientFrameHeader::kSize + payload_bytes);
  std::memcpy(out.data() + start, &length, sizeof length);
  std::memcpy(out.data() + start + sizeof length, &request, sizeof request);
}

}  // namespace

void encode_request(std::uint64_t request, const Request& message, std::size_t payload_bytes, std::string& out) {
  encode_frame(request, message, payload_bytes, out);
}

void encode_reply(std::uint64_t request, const Reply& message, std::string& out) {
  encode_frame(request, message, 0, out);
}

Result<Frame> next_frame(ByteView& in, std::uint64_t max_bytes) {
  Frame frame;
  if (in.size() < ClientFrameHeader::kSize) return frame;
  std::uint32_t length = 0;
  std::memcpy(&length, in.data(), sizeof length);
  std::memcpy(&frame.request, in.data() + sizeof length, sizeof frame.request);
  if (length > max_bytes)
    return Error{Code::kInvalidArgument,
                 "a frame of " + std::to_string(length) + " bytes is over the limit of " + std::to_string(max_bytes)};
  if (in.size() - ClientFrameHeader::kSize < length) return frame;
  frame.complete = true;
  frame.body = in.subspan(ClientFrameHeader::kSize, length);
  in = in.subspan(ClientFrameHeader::kSize + length);
  return frame;
}

Result<DecodedRequest> decode_request(ByteView body) {
  DecodedRequest decoded;
  if (!decode_variant(body, decoded.message)) return Error{Code::kInvalidArgument, "malformed request"};
  if (!body.empty() && !std::holds_alternative<Put>(decoded.message))
    return Error{Code::kInvalidArgument, "bytes after a request that has none"};
  decoded.payload = body;
  return decoded;
}

Result<Reply> decode_reply(ByteView body) {
  Reply reply;
  if (!decode_variant(body, reply) || !body.empty()) return Error{Code::kInvalidArgument, "malformed reply"};
  return reply;
}

}  // namespace hoplite::ipc
