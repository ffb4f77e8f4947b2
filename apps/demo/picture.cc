#include "picture.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

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

}  // namespace hoplite
