#include "picture.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/bytes.h"

namespace hoplite {
namespace {

std::string name(std::size_t node) { return "node " + std::to_string(node + 1); }

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f s", seconds);
  return text;
}

std::string percent_text(double share) {
  char text[16];
  std::snprintf(text, sizeof text, "%3.0f %%", share * 100);
  return text;
}

std::string state_text(const Receiver& receiver) {
  if (receiver.killed) return "killed";
  if (receiver.failed) return "failed";
  if (receiver.seconds) return "done after " + seconds_text(*receiver.seconds);
  if (receiver.parents.empty()) return "";
  return "from " + name(static_cast<std::size_t>(receiver.parents.back()));
}

std::string bar_line(const Receiver& receiver) {
  return "  " + name(receiver.node) + "  " + bar(receiver.share, 42) + " " + percent_text(receiver.share) + "  " +
         state_text(receiver);
}

void add_subtree(const std::vector<Receiver>& receivers, int node, const std::string& indent, std::vector<bool>& placed,
                 std::string& text) {
  for (std::size_t i = 0; i < receivers.size(); ++i) {
    if (placed[i] || receivers[i].parents.empty() || receivers[i].parents.back() != node) continue;
    placed[i] = true;
    text += indent + "`- " + name(receivers[i].node);
    if (receivers[i].killed) text += " (killed)";
    for (std::size_t p = 0; p + 1 < receivers[i].parents.size(); ++p)
      text += std::string(p == 0 ? " (before: " : ", ") + name(static_cast<std::size_t>(receivers[i].parents[p])) +
              (p + 2 == receivers[i].parents.size() ? ")" : "");
    text += "\n";
    add_subtree(receivers, static_cast<int>(receivers[i].node), indent + "   ", placed, text);
  }
}

// --- sums

constexpr int kPartBar = 28;  // the longest line fits 80 columns

double share_of(std::uint64_t bytes, std::uint64_t all) {
  return all == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(all);
}

const Place* place_of(const SumState& state, std::size_t node) {
  for (const Place& place : state.places)
    if (place.node == node) return &place;
  return nullptr;
}

// awaited, put, used, spare, lost or killed.
std::string part_word(const Part& part) {
  if (part.killed) return "killed";
  if (part.state == SourceState::kAwaited && part.put_s) return "put";
  return std::string(to_string(part.state));
}

std::string part_text(const SumState& state, const Part& part) {
  std::string text = part_word(part);
  const Place* place = place_of(state, part.node);
  if (part.killed || place == nullptr) return text;
  if (place->parent) return text + ", to " + name(state.places[*place->parent].node);
  return text + ", on top";
}

std::string part_line(const SumState& state, const Part& part) {
  const double share = std::min(share_of(part.sent, state.array_bytes), 1.0);
  return "  " + name(part.node) + "  " + bar(share, kPartBar) + "  sent " + percent_text(share) + "  " +
         part_text(state, part);
}

std::string finished_text(const SumState& state) {
  const bool late =
      std::any_of(state.parts.begin(), state.parts.end(), [](const Part& part) { return part.put_s.value_or(0) > 0; });
  const std::string seconds = seconds_text(state.finished.value_or(0));
  return late ? "done " + seconds + " after the last" : "done after " + seconds;
}

std::string sum_line(const SumState& state) {
  const double share = share_of(state.reduced, state.array_bytes);
  return "  the sum " + bar(share, kPartBar) + "       " + percent_text(share) + "  " +
         (state.finished ? finished_text(state) : format_size(state.reduced));
}

void add_places_below(const SumState& state, std::size_t at, const std::string& indent, std::string& text) {
  for (std::size_t i = 0; i < state.places.size(); ++i) {
    if (state.places[i].parent != at) continue;
    const Part& part = state.parts[state.places[i].node];
    text += indent + "`- " + name(part.node);
    if (part.put_s.value_or(0) > 0) text += ", put after " + seconds_text(*part.put_s);
    text += "\n";
    add_places_below(state, i, indent + "   ", text);
  }
}

}  // namespace

Picture::Picture() : live_(is_terminal(STDOUT_FILENO)), block_(STDOUT_FILENO) {}

void Picture::draw(double seconds, const std::vector<Receiver>& receivers) {
  if (live_) {
    std::vector<std::string> lines;
    for (const Receiver& receiver : receivers) lines.push_back(bar_line(receiver));
    return block_.draw(lines);
  }
  if (seconds - last_line_s_ < 1) return;
  last_line_s_ = seconds;
  std::string line = "  after " + seconds_text(seconds) + ":";
  for (const Receiver& receiver : receivers)
    line += "  " + name(receiver.node) + " " + (receiver.killed ? "killed" : percent_text(receiver.share));
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

void Picture::leave(double seconds, const std::vector<Receiver>& receivers) {
  if (live_) {
    draw(seconds, receivers);
  } else {
    for (const Receiver& receiver : receivers)
      std::printf("  %s  %s\n", name(receiver.node).c_str(), state_text(receiver).c_str());
    std::fflush(stdout);
  }
  last_line_s_ = 0;
  block_.leave();
}

std::string tree_text(const std::vector<Receiver>& receivers) {
  std::string text = "  " + name(0) + " has the object\n";
  std::vector<bool> placed(receivers.size(), false);
  add_subtree(receivers, 0, "  ", placed, text);
  for (std::size_t i = 0; i < receivers.size(); ++i)
    if (!placed[i]) text += "  " + name(receivers[i].node) + (receivers[i].killed ? " (killed)" : "") + "\n";
  return text;
}

SumPicture::SumPicture() : live_(is_terminal(STDOUT_FILENO)), block_(STDOUT_FILENO) {}

void SumPicture::draw(const SumState& state) {
  if (live_) {
    std::vector<std::string> lines;
    for (const Part& part : state.parts) lines.push_back(part_line(state, part));
    lines.push_back(sum_line(state));
    return block_.draw(lines);
  }
  if (state.finished || state.seconds - last_line_s_ < 1) return;
  last_line_s_ = state.seconds;
  std::string line =
      "  after " + seconds_text(state.seconds) + ":  sum " + percent_text(share_of(state.reduced, state.array_bytes));
  for (const Part& part : state.parts) line += "  " + name(part.node) + " " + part_word(part);
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

void SumPicture::leave(const SumState& state) {
  if (live_) {
    draw(state);
  } else {
    for (const Part& part : state.parts)
      std::printf("  %s  sent %s, %s\n", name(part.node).c_str(), format_size(part.sent).c_str(),
                  part_text(state, part).c_str());
    std::printf("  the sum  %s\n", finished_text(state).c_str());
    std::fflush(stdout);
  }
  block_.leave();
}

std::string sum_tree_text(const SumState& state) {
  std::string text;
  for (std::size_t i = 0; i < state.places.size(); ++i) {
    if (state.places[i].parent) continue;
    const Part& part = state.parts[state.places[i].node];
    text += "  " + name(part.node) + " makes the sum";
    if (part.put_s.value_or(0) > 0) text += ", put after " + seconds_text(*part.put_s);
    text += "\n";
    add_places_below(state, i, "  ", text);
  }
  return text;
}

std::string nodes_text(const std::vector<std::size_t>& nodes) {
  std::string text = nodes.size() == 1 ? "node " : "nodes ";
  for (std::size_t i = 0; i < nodes.size(); ++i)
    text += (i == 0 ? "" : i + 1 == nodes.size() ? " and " : ", ") + std::to_string(nodes[i] + 1);
  return text;
}

}  // namespace hoplite
