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

// Columns that line up. Numbers may be aligned to the right. Cells are made printable.
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

// A block of lines that replaces the one drawn before. For terminals only. Lines are made printable, and cut to fit.
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

// How fast bytes have come since the first of them; 0 while there is nothing to say.
class RateSinceFirstByte {
 public:
  double update(std::chrono::steady_clock::time_point now, std::uint64_t bytes);

 private:
  struct First {
    std::chrono::steady_clock::time_point at;
    std::uint64_t bytes = 0;
  };
  std::optional<First> first_;
  std::uint64_t last_ = 0;
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
  RateSinceFirstByte rate_;
  bool drawn_ = false;
};
struct Progressed {
  std::uint64_t bytes = 0;
  std::uint64_t size = 0;  // 0: not known yet
  double rate = 0;         // bytes per second; 0: not known yet
};
// Fits into the columns, whatever there is to say: what matters less is left out.
std::string progress_text(const std::string& what, const Progressed& done, int columns, const std::string& note = "");

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
