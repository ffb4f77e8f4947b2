// One random run: a cluster, load and faults (safety), then no more faults (liveness), all drawn from one seed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>

#include "sim/clients.h"
#include "sim/draw.h"
#include "sim/faults.h"
#include "sim/workload.h"

namespace hoplite::sim {

struct RunOptions {
  std::uint64_t seed = 0;
  std::optional<std::uint32_t> nodes;  // instead of a drawn number
  std::ostream* trace = nullptr;
};

struct RunResult {
  std::optional<Violation> violation;
  std::uint64_t digest = 0;  // of everything that happened: equal for equal seeds
  std::uint64_t events = 0;
};

class RandomRun {
 public:
  explicit RandomRun(const RunOptions& options);
  RunResult run();

 private:
  static WorldOptions world_options(const RunOptions& options, const RunPlan& plan);

  // The phases, in order. Each leaves early when there is a violation.
  void build();
  void warm_up();
  void load_and_faults();
  void stop_faults();
  void finish_requests();
  void finish_reduces();
  void put_sources(std::set<ObjectId>& ids);
  bool touched_by_deletes(const ObjectId& id, int depth) const;
  std::uint64_t size_of_source(const ObjectId& id) const;
  void put_lost_again();
  void retry_refused(std::vector<RequestNumber>& puts);
  void read_everything();
  void compare_directory();
  void expect_no_repairs();
  void delete_everything();
  void expect_nothing_left();

  bool failed() const { return world_.violation().has_value(); }
  // Runs until `done`, at most the plan's patience; false if that was not enough.
  bool run_until_true(const std::function<bool()>& done);
  NodeIndex some_running_node();
  ClientKey somebody() { return clients_.on(some_running_node()); }
  bool has_room_for(NodeIndex node, const ObjectId& id);
  void expect_ended(const std::vector<RequestNumber>& requests, const std::string& after_what);
  void judge_reads(const std::vector<RequestNumber>& reads);

  RunPlan plan_;
  Random random_;
  Ledger ledger_;
  World world_;
  Judge judge_;
  Clients clients_;
  Workload workload_;
  Faults faults_;
};

}  // namespace hoplite::sim
