// A variant of messages on the wire: one byte of type, then the fields.
#pragma once

#include <utility>
#include <variant>

#include "protocol/codec.h"

namespace hoplite {

template <typename Variant>
void encode_variant(const Variant& message, std::string& out) {
  static_assert(std::variant_size_v<Variant> < 256);
  out.push_back(static_cast<char>(message.index()));
  Writer writer(out);
  // `fields` is one function for reading and writing, hence not const; writing does not change the message.
  std::visit([&](auto& m) { const_cast<std::remove_cvref_t<decltype(m)>&>(m).fields(writer); }, message);
}

namespace internal {
template <typename Variant, std::size_t... I>
bool decode_alternative(std::size_t type, Reader& reader, Variant& out, std::index_sequence<I...>) {
  return ((type == I && (out.template emplace<I>().fields(reader), reader.ok())) || ...);
}
}  // namespace internal

// Reads one message; what follows it stays in `in`. False for an unknown type or fields that do not fit.
template <typename Variant>
bool decode_variant(ByteView& in, Variant& out) {
  if (in.empty()) return false;
  Reader reader(in.subspan(1));
  const bool ok = internal::decode_alternative(std::to_integer<std::size_t>(in[0]), reader, out,
                                               std::make_index_sequence<std::variant_size_v<Variant>>());
  in = reader.rest();
  return ok;
}

}  // namespace hoplite
