// Scenarios: a story of a cluster in a text file, one thing in a line, with what is expected of it.
//
//     nodes 3 latency=1ms rate=1MB/s      # n1, n2, n3; they know each other before the story begins
//     limit inline_bytes 64               # any field of Limits; before `nodes`
//     n1 put a 1000 as p                  # a request, named p; `put` takes inline_bytes at most
//     n2 get a as g timeout=5s            # more options: wait_if_lost, follow, as client c2
//     n1 create b 5000 as w               # then: write w 2500, seal w as s, abort w
//     n3 wait a b as x count=2            # n3 remove a as r; cancel g; release g
//     n2 reduce s 1000 a b d as q count=2 # s becomes the sum (of u8) of the first 2 of a, b and d, of 1000 B each;
//                                         # more options: wait_if_lost, timeout, spread=by-cost or slices (an allreduce)
//     n2 report s as t                    # how far the reduce is; `expect t used a d` says which sources are in the result
//     n3 get n1:c as h                    # n1:c is an id that n1 mints when the story first names it; others are named ids
//     run 100ms                           # virtual time passes
//     crash n1 | unplug n1 | restart n1 | stop n1 | pause n2 | resume n2 | kill-client n2 [c2]
//     disconnect-client n2 [c2]                       its process keeps what it views and writes
//     wall n1 n2 (no packets, either way) | refuse n1 n2 (resets instead of connections, either way)
//     partition n1 n2 / n3 | cut n1 n2 (one way) | heal | break n1 n2 | rate n2 10KB/s | start n4 (see `nodes ... started=3`)
//     expect g ok of p within 2s          # or: timed_out, lost, deleted, exists, store_full, cancelled, pending, use_create
//     expect x ready a b                  # of a wait; `expect x gone c`: deleted or lost, as it was told
//     expect g deleted naming a           # a failure whose message names the object
//     expect g shown 2500 within 1s       # bytes that a follow has seen
//     expect n2 members 3 within 10s      # also: used 0 (bytes), objects 2, growing 0, incarnation 0
//
// At the end of every scenario views are released, everything is deleted, and all memory must come back.
#pragma once

#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "hoplite/error.h"
#include "sim/judge.h"

namespace hoplite::sim {

struct Command {
  int line = 0;
  std::vector<std::string> words;              // without options
  std::map<std::string, std::string> options;  // name=value; a flag has an empty value

  const std::string& verb() const { return words.front(); }
};

using Scenario = std::vector<Command>;

// kInvalidArgument with the number of the line, for anything that is not as above. Checks form, not sense: that `get` names
// a node that exists is seen when it runs.
Result<Scenario> parse_scenario(std::string_view text);

// What is wrong, with the line; "" if it passed.
std::string run_scenario(const Scenario& scenario, std::uint64_t seed, std::ostream* trace);

}  // namespace hoplite::sim
