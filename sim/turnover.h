// Turnover: a large cluster in which every node has small objects, and nodes die and join all the time. What it costs on the
// control connections when nobody asks for anything.
#pragma once

#include "sim/scale_lab.h"

namespace hoplite::sim {

struct TurnoverOptions {
  Cluster cluster;
  std::uint32_t objects = 1000;   // of every node; every other one has a name, and so its home anywhere
  double minutes = 2;             // of turnover
  double percent_per_minute = 1;  // of the nodes die, each starts again elsewhere in its life, and puts its objects
};

struct TurnoverResult : ScaleOutcome {
  std::uint32_t deaths = 0;
  std::uint32_t given_up = 0;  // nodes that nobody killed
  std::uint64_t puts_failed = 0;
  double mean = 0;        // bytes per second that a node sends, of all that lived all the time
  double worst = 0;       // of them the one that sent most
  double first_half = 0;  // the mean of each half of the time: growth would show
  double second_half = 0;
  double worst_second = 0;  // bytes that one node sent in one second
};

TurnoverResult run_turnover(const TurnoverOptions& options);
void print_turnover(const TurnoverOptions& options, const TurnoverResult& result, std::ostream& out);

}  // namespace hoplite::sim
