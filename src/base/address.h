// Where a node listens: a numeric IP address (or "[v6]") and a port.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "hoplite/error.h"

namespace hoplite {

struct Address {
  std::string host;
  std::uint16_t port = 0;

  auto operator<=>(const Address&) const = default;
  bool empty() const { return host.empty(); }
  std::string to_string() const;

  // "10.0.0.1:7411", "[::1]:7411". A missing port is `default_port`.
  static Result<Address> parse(std::string_view text, std::uint16_t default_port);
};

}  // namespace hoplite
