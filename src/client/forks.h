// What fork() does to the connections of a process.
//
// The child has a copy of everything, and owns nothing but what it can see: views stay readable in it, calls fail, and
// writers have no memory any more. Whether it still sees anything is told by descriptors that it inherits: the lease tells
// the daemon, for when the parent has ended, and one end of a pipe tells the parent, which until then gives back no view that
// the child may hold.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "protocol/transfer.h"

namespace hoplite::client {

class Connection;

// From now on, and until it is destroyed, the connection is told of forks.
void tell_of_forks(Connection& connection);
void tell_no_more(Connection& connection);

// The children that a connection shares views with. Guarded by the mutex of the connection.
class Forks {
 public:
  // The number of forks so far: what is held now, later forks share.
  std::uint64_t count() const { return count_; }

  // --- around a fork while something is held, in this order
  void before();
  void after_in_parent();
  void after_in_child();

  // True if a child may see the view that is held since `born` forks: it is given back later.
  bool defer(CopyKey copy, std::uint64_t born);

  // In the child: it sees nothing any more.
  void child_is_done() { ours_.reset(); }

  // In the parent: descriptors that hang up when a child is done, and what to do then: these were deferred because of it.
  std::vector<int> descriptors() const;
  std::vector<std::pair<CopyKey, std::uint64_t>> child_done(int descriptor);

 private:
  struct Child {
    std::uint64_t number = 0;  // of the fork, from 1
    UniqueFd done;             // none: we do not hear when it is done
    std::vector<std::pair<CopyKey, std::uint64_t>> deferred;
  };
  std::uint64_t count_ = 0;
  std::vector<Child> children_;
  UniqueFd theirs_;  // while a fork is under way: what the child keeps
  UniqueFd ours_;    // in a child
};

}  // namespace hoplite::client
