#include "base/address.h"

#include <charconv>

namespace hoplite {

std::string Address::to_string() const {
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<Address> Address::parse(std::string_view text, std::uint16_t default_port) {
  const auto invalid = [&](std::string_view why) {
    return Error{Code::kInvalidArgument, "'" + std::string(text) + "' is not an address: " + std::string(why)};
  };
  Address address{{}, default_port};
  std::string_view rest = text;
  if (rest.starts_with('[')) {
    const auto close = rest.find(']');
    if (close == std::string_view::npos) return invalid("missing ]");
    address.host = rest.substr(1, close - 1);
    rest.remove_prefix(close + 1);
  } else {
    const auto colon = rest.find(':');
    address.host = rest.substr(0, colon);
    rest = colon == std::string_view::npos ? std::string_view{} : rest.substr(colon);
  }
  if (address.host.empty() || address.host.size() > 255) return invalid("no host");
  if (rest.empty()) return address;
  if (rest.front() != ':') return invalid("expected :port");
  rest.remove_prefix(1);
  unsigned port = 0;
  const auto [stop, error] = std::from_chars(rest.data(), rest.data() + rest.size(), port);
  if (error != std::errc() || stop != rest.data() + rest.size() || port > 65535) return invalid("bad port");
  address.port = static_cast<std::uint16_t>(port);
  return address;
}

}  // namespace hoplite
