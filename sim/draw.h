// Everything that a random run is made of, drawn from its seed: the cluster, its limits, the load and the faults.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/limits.h"
#include "base/random.h"
#include "sim/world.h"

namespace hoplite::sim {

// What may go wrong. Each includes the ones before it.
enum class Hazard : std::uint8_t {
  kNone,    // nothing: every promise must be kept to the letter
  kDeaths,  // crashes, restarts, broken connections, killed clients: no wrong verdicts are possible
  kAll,     // pauses, partitions and slow links, too
};

struct RunPlan : WorldOptions {
  std::uint32_t nodes = 1;
  Hazard hazard = Hazard::kNone;
  Duration beat;  // Limits::ping_every; the unit of all other times of this run
  LinkSpec link;
  std::uint64_t capacity = 0;
  bool tight = false;          // stores are small compared with what is put
  bool reduces = false;        // clients reduce, too
  bool hot = false;            // large objects on slow links, read by many at once: faults hit transfers
  std::uint64_t max_size = 0;  // of objects, but for a rare giant
  std::uint32_t names = 1;     // how many named ids the clients share
  std::uint32_t operations = 0;
  std::uint32_t faults = 0;
  Duration safety;         // how long the load and the faults last
  bool warm_up = false;    // wait until all know each other before that
  bool few_seeds = false;  // each joins through one other node only
  Duration patience;       // what "bounded time" is when faults have stopped

  std::string summary() const;
};

RunPlan draw_plan(std::uint64_t seed, std::optional<std::uint32_t> nodes);

}  // namespace hoplite::sim
