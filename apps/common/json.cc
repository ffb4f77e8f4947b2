#include "common/json.h"

#include <cmath>
#include <cstdint>
#include <cstdio>

#include "base/printable.h"

namespace hoplite {
std::string json_string(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const char c = text.front();
    if (length == 0) {
      out += "\xEF\xBF\xBD";
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (is_control(text.substr(0, length))) {
      // More than JSON asks for: JSON is shown on terminals as well.
      const auto point = static_cast<unsigned>(code_point(text.substr(0, length)));
      char escaped[16];
      // Beyond 16 bits JSON takes two halves.
      if (point < 0x10000) std::snprintf(escaped, sizeof escaped, "\\u%04x", point);
      else
        std::snprintf(escaped, sizeof escaped, "\\u%04x\\u%04x", 0xd800 + ((point - 0x10000) >> 10),
                      0xdc00 + ((point - 0x10000) & 0x3ff));
      out += escaped;
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out + '"';
}

JsonObject& JsonObject::add(std::string_view key, double value) {
  if (!std::isfinite(value)) return raw(key, "null");
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return raw(key, text);
}

JsonObject& JsonObject::raw(std::string_view key, std::string_view json) {
  if (!fields_.empty()) fields_ += ", ";
  fields_ += json_string(key);
  fields_ += ": ";
  fields_ += json;
  return *this;
}

}  // namespace hoplite
