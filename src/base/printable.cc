#include "base/printable.h"

#include <algorithm>
#include <cstdio>
#include <iterator>

namespace hoplite {
namespace {

struct Range {
  char32_t first;
  char32_t last;
};

bool is_in(const auto& ranges, char32_t c) {
  return std::any_of(std::begin(ranges), std::end(ranges), [c](Range r) { return c >= r.first && c <= r.last; });
}

// C0, DEL and C1; marks, overrides and isolates of direction; line and paragraph separator; what has no width.
constexpr Range kControls[] = {{0, 0x1f},        {0x7f, 0x9f},     {0xad, 0xad},      {0x61c, 0x61c},
                               {0x180e, 0x180e}, {0x200b, 0x200f}, {0x2028, 0x202e},  {0x2060, 0x206f},
                               {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe0fff}};
// East Asian wide characters and emoji. Others count as one column: too many for a combining mark, which does no harm.
constexpr Range kWide[] = {{0x1100, 0x115f},   {0x2e80, 0xa4cf},   {0xa960, 0xa97c}, {0xac00, 0xd7a3},
                           {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60}, {0xffe0, 0xffe6},
                           {0x1f000, 0x1faff}, {0x20000, 0x3fffd}, {0x2600, 0x27bf}, {0x2b00, 0x2bff}};

std::string escaped(std::string_view text, std::size_t length) {
  if (text.front() == '\n') return "\\n";
  if (text.front() == '\t') return "\\t";
  if (text.front() == '\r') return "\\r";
  char escape[16];
  if (length > 1)
    std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(code_point(text.substr(0, length))));
  else std::snprintf(escape, sizeof escape, "\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(text.front())));
  return escape;
}

std::size_t width_of(std::string_view character) { return is_in(kWide, code_point(character)) ? 2 : 1; }

}  // namespace

std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (text.empty()) return 0;
  if (byte(0) < 0x80) return 1;
  const std::size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : byte(0) >= 0xc2 ? 2 : 0;
  if (length == 0 || byte(0) >= 0xf5 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const bool overlong = (byte(0) == 0xe0 && byte(1) < 0xa0) || (byte(0) == 0xf0 && byte(1) < 0x90);
  const bool no_character = (byte(0) == 0xed && byte(1) >= 0xa0) || (byte(0) == 0xf4 && byte(1) >= 0x90);
  return overlong || no_character ? 0 : length;
}

char32_t code_point(std::string_view character) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 1) return byte(0);
  char32_t point = byte(0) & (0x7fU >> character.size());
  for (std::size_t i = 1; i < character.size(); ++i) point = point << 6 | (byte(i) & 0x3f);
  return point;
}

bool is_control(std::string_view character) { return is_in(kControls, code_point(character)); }

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0 || is_control(text.substr(0, length))) out += escaped(text, length);
    else out += text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

std::string printable_lines(std::string_view text) {
  std::string out;
  while (true) {
    const std::size_t end = text.find('\n');
    out += printable(text.substr(0, end));
    if (end == std::string_view::npos) return out;
    out += '\n';
    text.remove_prefix(end + 1);
  }
}

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    const std::size_t length = std::max<std::size_t>(utf8_length(text), 1);
    columns += width_of(text.substr(0, length));
    text.remove_prefix(length);
  }
  return columns;
}

std::string cut_to_columns(std::string_view text, std::size_t columns) {
  std::size_t taken = 0;
  for (std::size_t used = 0; taken < text.size();) {
    const std::size_t length = std::max<std::size_t>(utf8_length(text.substr(taken)), 1);
    used += width_of(text.substr(taken, length));
    if (used > columns) break;
    taken += length;
  }
  return std::string(text.substr(0, taken));
}

std::string shorten_to_columns(std::string_view text, std::size_t columns) {
  if (columns_of(text) <= columns) return std::string(text);
  const std::size_t dots = std::min<std::size_t>(columns, 3);
  return cut_to_columns(text, columns - dots) + std::string(dots, '.');
}

}  // namespace hoplite
