// The commands of hoplite-bench-worker about arrays of f32 and what several nodes make of them together.
#pragma once

#include <istream>
#include <vector>

#include "hoplite/client.h"
#include "worker/command.h"

namespace hoplite::bench {

class Collectives {
 public:
  // `views` are the worker's: what its last command brought.
  Collectives(Client& client, std::vector<View>& views) : client_(client), views_(views) {}

  Json mint(std::istream& words);        // a fresh id
  Json put_array(std::istream& words);   // SIZE SEED
  Json stage(std::istream& words);       // SIZE SEED: an array in this process's memory, and the id it will have
  Json put_staged(std::istream& words);  // AT_NS

  Json reduce(std::istream& words);     // TARGET AT_NS COUNT SOURCE...: the first COUNT of them, and gets the result
  Json allreduce(std::istream& words);  // TARGET AT_NS SOURCE...
  Json reduce_status(std::istream& words);  // TARGET
  Json gather(std::istream& words);         // AT_NS ID...
  Json check_sum(std::istream& words);      // SIZE SEED...: that the view is the sum of these arrays

 private:
  Json get_target(ObjectId target, std::int64_t start_ns);

  Client& client_;
  std::vector<View>& views_;
  ObjectId staged_id_;
  std::vector<std::byte> staged_;
};

}  // namespace hoplite::bench
