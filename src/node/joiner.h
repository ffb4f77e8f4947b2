// How this node gets into a cluster: whose doors it knocks at, and why nobody has opened yet.
//
// The agent knocks at the places that it was told, for as long as nobody there is a member; names are resolved again each time,
// and every address of a name is tried. What goes wrong is logged when it changes.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/address.h"
#include "node/log.h"
#include "node/resolver.h"
#include "protocol/messages.h"

namespace hoplite {

class Joiner {
 public:
  // What it needs from the node it lives on.
  class Host {
   public:
    virtual ~Host() = default;
    virtual void knock_at(const Address& numeric, const Message& message) = 0;
    // This node itself, or a live member, listens there.
    virtual bool is_inside(const Address& numeric) const = 0;
    // The first place to join through is this node itself: if nobody else is there, it is the cluster.
    virtual void may_be_first() = 0;
  };

  Joiner(Loop& loop, Log& log, Host& host, std::vector<Address> doors)
      : log_(log), host_(host), doors_(std::move(doors)), resolver_(loop) {}

  // Finds out whether the first door is this node's own.
  void begin();
  // To a door, or to where a member has been.
  void knock(const Address& address, const Message& message);
  // A knock was not answered, and why: "refused the connection".
  void failed(const Address& numeric, const std::string& why);
  // Somebody has let us in.
  void joined(std::uint64_t members);

  bool is_joining() const { return joining_; }
  // "10.0.0.1:7411 refused the connection", one for each place that is known to be closed. Empty: none is, so far.
  std::string problems() const;

 private:
  void resolved(const Address& door, const Message& message, const Resolver::Answer& answer);
  void note(const Address& tried, const std::string& why);
  std::string in_words(const Address& tried) const;

  Log& log_;
  Host& host_;
  const std::vector<Address> doors_;
  Resolver resolver_;
  std::map<Address, Address> names_;         // the door that a numeric address was found behind
  std::map<Address, std::string> problems_;  // by what was tried, as they were logged
  bool joining_ = true;
};

}  // namespace hoplite
