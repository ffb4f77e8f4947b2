// Facts about a daemon, its cluster and its objects, as `hoplite status`, `nodes` and `ls` show them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hoplite/array.h"
#include "hoplite/object_id.h"

namespace hoplite {

// A process that holds views, or memory that it writes.
struct HolderStatus {
  std::uint64_t pid = 0;    // of the process that connected; children that it has forked count as it
  std::uint64_t bytes = 0;  // of the objects that it views or writes; none of this can be evicted or used again
  std::uint64_t views = 0;
  bool attached = false;  // it has a connection; views outlive it
};

// The daemon that the client is attached to.
struct StoreStatus {
  std::string node;  // its identity, random per start: 16 hexadecimal digits
  std::uint32_t incarnation = 0;
  std::string address;   // where other nodes reach it
  std::string software;  // the daemon's version, "0.1.0"
  std::uint64_t pid = 0;
  std::chrono::milliseconds uptime{};

  std::uint64_t capacity_bytes = 0;
  std::uint64_t used_bytes = 0;
  std::uint64_t pinned_bytes = 0;  // of the used: primary copies and what is in use; the rest can be evicted

  std::uint64_t objects = 0;  // complete copies here
  std::uint64_t growing = 0;  // copies that are being written or fetched
  std::uint64_t clients = 0;
  std::uint64_t members = 0;            // live nodes, this one included
  std::uint64_t directory_entries = 0;  // objects whose home is here
  std::uint64_t waiting = 0;            // requests that wait for something

  std::uint64_t bytes_in = 0;  // from other nodes, since the start
  std::uint64_t bytes_out = 0;
  std::uint64_t max_rate = 0;  // egress limit in bytes per second; 0 = none

  bool joining = false;               // it was told to join a cluster, and has not yet: puts of names wait
  std::string join_problems;          // why not, if that is known: "10.0.0.1:7411 refused the connection"
  std::vector<HolderStatus> holders;  // those that hold most, in that order; at most 16
};

// A node of the cluster, as the daemon sees it.
struct NodeStatus {
  std::string node;
  std::uint32_t incarnation = 0;
  std::string address;
  bool alive = false;
  bool self = false;
  std::uint64_t rate = 0;           // measured from that node to ours, bytes per second; 0 = not measured
  std::chrono::microseconds rtt{};  // of the last ping; 0 = not measured
  bool joining = false;             // of the node itself: it was told to join a cluster, and has not yet
};

// Travels between nodes: values keep their meaning.
enum class CopyState : std::uint8_t {
  kKnows,     // no bytes here, but the object exists or existed
  kGrowing,   // bytes are arriving from another node
  kWriting,   // bytes are being written by a client here
  kComplete,  // all bytes, committed
};
constexpr CopyState last_enumerator(CopyState) { return CopyState::kComplete; }
// "known", "fetching", "writing", "complete".
std::string_view to_string(CopyState state);

// One object as the daemon holds it.
struct ObjectStatus {
  ObjectId id;
  std::uint64_t size = 0;
  std::uint64_t bytes = 0;  // valid so far
  CopyState state = CopyState::kKnows;
  bool primary = false;         // kept until the object is deleted
  std::uint32_t views = 0;      // held by clients
  std::uint32_t receivers = 0;  // nodes that are fetching it from here now
  std::string parent;           // the node it is being fetched from, or empty
  std::string home;             // the node that keeps its directory entry, or empty
  std::string metadata;         // the text given with the put
  ArrayType array;              // what the bytes are
  std::string name;             // the name given with the put, or empty. Anybody's choice: not safe to print as it is
  bool failure = false;         // committed in place of the object; the metadata is the reason
};

struct ObjectList {
  std::vector<ObjectStatus> objects;
  bool truncated = false;  // there are more than fit in one answer

  auto begin() const { return objects.begin(); }
  auto end() const { return objects.end(); }
  std::size_t size() const { return objects.size(); }
};

}  // namespace hoplite
