// What must hold, each with a name and a sentence. `hoplite-sim --invariants` prints this table; judge.cc and the final
// phase of a run (random_run.cc) check it.
#pragma once

#include <array>
#include <string_view>

namespace hoplite::sim {

struct Invariant {
  std::string_view name;
  std::string_view sentence;
};

inline constexpr std::array kInvariants{
    Invariant{"bytes-of-one-put", "What a reader sees are the bytes of exactly one put of that id."},
    Invariant{"views-never-change", "Memory that a client holds does not change until it is released."},
    Invariant{"versions-never-mix", "One version names the bytes of one put, also while it is followed."},
    Invariant{
        "followers-are-reset",
        "Whoever follows a growing copy is reset before another is shown, and ends with the version it followed."},
    Invariant{"committed-only", "A get returns no put that was never sealed, was given up, or was refused."},
    Invariant{"no-cycles", "No copy is filled, directly or through others, from itself."},
    Invariant{"strictly-ahead",
              "A copy that has children is filled only by one that is ahead of it, or by the source."},
    Invariant{"true-reason", "A request that fails says why, and that is true."},
    Invariant{"deadlines-hold", "A request times out at its deadline: not before, and not much later."},
    Invariant{"deleted-stays-deleted",
              "What was there before a delete began is not read after the delete was confirmed, "
              "or soon after if it was on a node that nobody else knew."},
    Invariant{"names-are-free-again", "A put of a name is refused as deleted only beside a delete."},
    Invariant{"newest-put-stays",
              "Once it is quiet, nobody reads what a later confirmed put of the name has replaced."},
    Invariant{"one-committed-version", "A second put of an id succeeds only after the first was lost or deleted."},
    Invariant{"done-is-readable", "A put that was confirmed can be read until it is lost or deleted."},
    Invariant{"one-answer", "Every request gets exactly one final answer, of the kind that belongs to it."},
    Invariant{"reduce-exactly-once",
              "A reduce's result is made of exactly the sources that its report names, each once."},
    Invariant{"effects-make-sense", "The agent asks of others only what the contract of events.h allows."},
    Invariant{"checks-hold", "No CHECK fails: not in the agent, nor in the data plane that it commands."},
    Invariant{"memory-returns", "When everything is deleted and released, nothing is reserved and nothing is open."},
    Invariant{"directory-agrees", "Once it is quiet, homes list exactly the copies that there are."},
    Invariant{"repairs-have-reasons", "Without faults no full announcement tells a home anything new."},
    Invariant{"failovers-are-quick",
              "A reader whose parent died goes on, or is told, within the time of the limits that make it up "
              "(deaths only: pauses, partitions, slow links and full stores hold it up for as long as they last)."},
    Invariant{"readers-agree", "Once it is quiet, every node reads the same version of an id."},
    Invariant{"everything-finishes", "When faults have stopped, everything that can finish does so in bounded time."},
    Invariant{"members-converge", "When faults have stopped, every node knows exactly the live nodes."},
    Invariant{"no-wrong-verdict", "Without pauses and partitions nobody alive is given up."},
    Invariant{"time-moves-on", "A bounded run takes a bounded number of events."},
    Invariant{"deterministic", "A seed gives the same run every time."},
    Invariant{"expectations", "A scenario's expectations are met."},
};

}  // namespace hoplite::sim
