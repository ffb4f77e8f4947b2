// What the demo draws.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "broadcast.h"
#include "common/terminal.h"
#include "reduce.h"

namespace hoplite {

// The receivers' progress: bars that move on a terminal, a line each second elsewhere.
class Picture {
 public:
  Picture();
  void draw(double seconds, const std::vector<Receiver>& receivers);
  // The final state stays on the screen.
  void leave(double seconds, const std::vector<Receiver>& receivers);

 private:
  const bool live_;
  LiveBlock block_;
  double last_line_s_ = 0;
};

// One line for each node, indented below the node it fetched from.
std::string tree_text(const std::vector<Receiver>& receivers);

// What becomes of the arrays, and of their sum: as above.
class SumPicture {
 public:
  SumPicture();
  void draw(const SumState& state);
  void leave(const SumState& state);

 private:
  const bool live_;
  LiveBlock block_;
  double last_line_s_ = 0;
};

// One line for each place, indented below the place that takes its output.
std::string sum_tree_text(const SumState& state);
// "nodes 1, 2 and 4".
std::string nodes_text(const std::vector<std::size_t>& nodes);

}  // namespace hoplite
