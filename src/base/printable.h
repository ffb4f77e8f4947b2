// Text from outside, made safe to show. Names, metadata and addresses are chosen by other nodes and clients: whatever is
// written to a terminal or a log passes through here, so that none of them can move the cursor, change a title, hide text
// or break a line.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hoplite {

// The length in bytes of the UTF-8 character at the front of `text`; 0 if there is none.
std::size_t utf8_length(std::string_view text);
// A character that a terminal obeys instead of showing it: a control character (also those above ASCII), a line separator,
// or one that changes the direction of the text around it. `character` is one UTF-8 character, as utf8_length() says.
bool is_control(std::string_view character);
// The code point of one UTF-8 character.
char32_t code_point(std::string_view character);

// Valid UTF-8 on one line. Control characters and bytes that are not UTF-8 are shown as escapes: \n, \x1b, \u202e.
std::string printable(std::string_view text);

// The same for text of several lines that are ours: line breaks stay.
std::string printable_lines(std::string_view text);

// How many columns of a terminal printable text takes.
std::size_t columns_of(std::string_view text);
// As much from the front of printable text as fits.
std::string cut_to_columns(std::string_view text, std::size_t columns);
// The same; "..." at the end says that something is missing.
std::string shorten_to_columns(std::string_view text, std::size_t columns);

}  // namespace hoplite
