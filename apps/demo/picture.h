// What the demo draws.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "broadcast.h"
#include "common/terminal.h"

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

}  // namespace hoplite
