// Host names to addresses, on a thread of its own: the name service may take seconds, and the loop waits for nobody.
//
// Nothing is remembered: who asks again gets what is true then. The thread begins with the first name, and is left behind if
// the resolver goes while the name service keeps it waiting.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/address.h"
#include "transport/loop.h"

namespace hoplite {

// True for "10.0.0.1" and "::1", false for names.
bool is_numeric(const std::string& host);

class Resolver {
 public:
  struct Answer {
    std::vector<Address> addresses;  // numeric, IPv4 and IPv6, in the name service's order
    std::string why;                 // if there are none
  };

  // `loop` outlives it; the answers come on its thread.
  explicit Resolver(Loop& loop) : loop_(loop) {}
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  // Names are looked up one after the other. Nothing is answered after the resolver has gone.
  void resolve(const Address& name, std::function<void(Answer)> done);

 private:
  struct Shared;
  Loop& loop_;
  std::shared_ptr<Shared> shared_;  // with the thread; none before the first name
};

}  // namespace hoplite
