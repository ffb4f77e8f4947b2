// Drawing for people: bars, tables, and pictures that are redrawn in place when there is a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hoplite {

bool is_terminal(int fd);
int terminal_columns(int fd);
int terminal_rows(int fd);

// "[########        ]": `share` from 0 to 1.
std::string bar(double share, int width);

// Columns that line up; the header is optional. Numbers may be aligned to the right.
class Table {
 public:
  enum class Align { kLeft, kRight };
  explicit Table(std::vector<std::pair<std::string, Align>> columns);
  void add(std::vector<std::string> cells);
  // The lines, without the spaces at their ends.
  std::string text() const;

 private:
  std::vector<Align> aligns_;
  std::vector<std::vector<std::string>> rows_;
};

// A block of lines that replaces the one drawn before. For terminals only.
class LiveBlock {
 public:
  explicit LiveBlock(int fd) : fd_(fd) {}
  void draw(const std::vector<std::string>& lines);
  // The next block goes below this one.
  void leave() { drawn_ = 0; }

 private:
  int fd_;
  std::size_t drawn_ = 0;
};

// One line with bar, rate and time left on standard error: shown on a terminal once it has taken a second.
class ProgressLine {
 public:
  explicit ProgressLine(std::string what);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // `note` is what else there is to say now.
  void update(std::uint64_t bytes, std::uint64_t size, const std::string& note = "");
  // Nothing of it stays on the screen.
  void clear();

 private:
  const std::string what_;
  const bool shown_to_people_;
  const std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point last_drawn_;
  bool drawn_ = false;
};
std::string progress_text(const std::string& what, std::uint64_t bytes, std::uint64_t size, double seconds, int columns,
                          const std::string& note = "");

// SIGINT and SIGTERM as a question instead of an end; SIGCHLD wakes the wait. One at a time.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  bool asked() const;
  // Sleeps for `time`, less if a signal or a key comes; the key, if one did and `keys` is on.
  std::optional<char> sleep(std::chrono::milliseconds time, bool keys = false);
};

// Keys are read one by one and not echoed while this lives.
class RawKeys {
 public:
  RawKeys();
  ~RawKeys();
  RawKeys(const RawKeys&) = delete;
  RawKeys& operator=(const RawKeys&) = delete;

 private:
  struct Saved;
  Saved* saved_ = nullptr;
};

}  // namespace hoplite
