#include "sim/scenario.h"

#include <algorithm>
#include <array>

namespace hoplite::sim {
namespace {

constexpr std::size_t kMaxText = 1 << 20;
constexpr std::size_t kMaxWord = 200;

struct Form {
  std::string_view verb;
  std::size_t min_words;  // behind the verb
  std::size_t max_words;
};

// Requests follow a node's name: "n1 put a 100".
constexpr std::array kRequests{
    Form{"put", 2, 2},    Form{"create", 2, 2},  Form{"get", 1, 1},    Form{"wait", 1, 64},
    Form{"remove", 1, 1}, Form{"reduce", 3, 64}, Form{"report", 1, 1},
};
constexpr std::array kVerbs{
    Form{"nodes", 1, 1},
    Form{"limit", 2, 2},
    Form{"write", 2, 2},
    Form{"seal", 1, 1},
    Form{"abort", 1, 1},
    Form{"cancel", 1, 1},
    Form{"release", 1, 1},
    Form{"run", 1, 1},
    Form{"crash", 1, 1},
    Form{"unplug", 1, 1},
    Form{"restart", 1, 1},
    Form{"start", 1, 1},
    Form{"stop", 1, 1},
    Form{"pause", 1, 1},
    Form{"resume", 1, 1},
    Form{"kill-client", 1, 2},
    Form{"disconnect-client", 1, 2},
    Form{"partition", 3, 64},
    Form{"cut", 2, 2},
    Form{"wall", 2, 2},
    Form{"refuse", 2, 2},
    Form{"heal", 0, 0},
    Form{"break", 2, 2},
    Form{"rate", 2, 2},
    Form{"expect", 2, 64},
};
constexpr std::array<std::string_view, 4> kWithValue{"as", "of", "within", "naming"};  // "as p" is as=p
constexpr std::array<std::string_view, 2> kFlags{"wait_if_lost", "follow"};
constexpr std::array<std::string_view, 9> kOptions{"latency", "jitter", "rate",  "capacity", "started",
                                                   "timeout", "client", "count", "spread"};

template <typename List>
bool contains(const List& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

Error wrong(int line, const std::string& what) {
  return {Code::kInvalidArgument, "line " + std::to_string(line) + ": " + what};
}

bool is_node(std::string_view word) {
  return word.size() >= 2 && word.size() <= 6 && word[0] == 'n' && word[1] != '0' &&
         std::all_of(word.begin() + 1, word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::vector<std::string> split(std::string_view line) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t begin = line.find_first_not_of(" \t\r", at);
    if (begin == std::string_view::npos) break;
    const std::size_t end = std::min(line.find_first_of(" \t\r", begin), line.size());
    words.emplace_back(line.substr(begin, end - begin));
    at = end;
  }
  return words;
}

// Sorts the words of a line into words and options.
Result<Command> parse_words(int line, const std::vector<std::string>& all) {
  Command command{line, {}, {}};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string& word = all[i];
    if (word.size() > kMaxWord) return wrong(line, "a word is longer than " + std::to_string(kMaxWord) + " characters");
    const std::size_t equals = word.find('=');
    std::pair<std::string, std::string> option;
    if (contains(kWithValue, word)) {
      if (++i >= all.size()) return wrong(line, "'" + word + "' needs something behind it");
      option = {word, all[i]};
    } else if (contains(kFlags, word)) {
      option = {word, ""};
    } else if (equals != std::string::npos) {
      option = {word.substr(0, equals), word.substr(equals + 1)};
      if (!contains(kOptions, option.first)) return wrong(line, "there is no option '" + option.first + "'");
    } else {
      command.words.push_back(word);
      continue;
    }
    if (!command.options.insert(option).second) return wrong(line, "'" + option.first + "' is given twice");
  }
  return command;
}

template <typename Forms>
Result<void> check_form(const Forms& forms, int line, const std::string& verb, std::size_t words) {
  for (const Form& form : forms) {
    if (form.verb != verb) continue;
    if (words >= form.min_words && words <= form.max_words) return {};
    return wrong(line, "'" + verb + "' with " + std::to_string(words) + " words behind it");
  }
  return wrong(line, "'" + verb + "' is not known here");
}

}  // namespace

Result<Scenario> parse_scenario(std::string_view text) {
  if (text.size() > kMaxText) return Error{Code::kInvalidArgument, "a scenario of more than 1 MiB"};
  Scenario scenario;
  int line = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view content = text.substr(at, end - at);
    at = end + 1;
    ++line;
    content = content.substr(0, content.find('#'));
    const std::vector<std::string> words = split(content);
    if (words.empty()) continue;
    auto command = parse_words(line, words);
    if (!command) return command.error();
    if (command->words.empty()) return wrong(line, "only options");
    const bool request = is_node(command->verb()) && command->words.size() > 1;
    const auto form = request ? check_form(kRequests, line, command->words[1], command->words.size() - 2)
                              : check_form(kVerbs, line, command->verb(), command->words.size() - 1);
    if (!form) return form.error();
    scenario.push_back(std::move(*command));
  }
  return scenario;
}

}  // namespace hoplite::sim
