// Just enough JSON to print facts: objects and lists that are built in order and printed on one line.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace hoplite {

// A quoted string. Bytes that are not UTF-8 are shown as U+FFFD, so that the output is always valid; control characters are
// escaped, also those that JSON would allow.
std::string json_string(std::string_view text);

class JsonObject {
 public:
  JsonObject& add(std::string_view key, std::string_view value) { return raw(key, json_string(value)); }
  JsonObject& add(std::string_view key, const char* value) { return raw(key, json_string(value)); }
  JsonObject& add(std::string_view key, bool value) { return raw(key, value ? "true" : "false"); }
  JsonObject& add(std::string_view key, std::integral auto value) { return raw(key, std::to_string(value)); }
  JsonObject& add(std::string_view key, double value);
  // `json` is JSON already.
  JsonObject& raw(std::string_view key, std::string_view json);

  std::string text() const { return "{" + fields_ + "}"; }

 private:
  std::string fields_;
};

class JsonList {
 public:
  JsonList& raw(std::string_view json) {
    if (!items_.empty()) items_ += ", ";
    items_ += json;
    return *this;
  }
  std::string text() const { return "[" + items_ + "]"; }

 private:
  std::string items_;
};

}  // namespace hoplite
