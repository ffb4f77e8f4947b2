// Commands about very many small objects: put, read, deleted and looked for while something else happens.
//
// Objects of one kind have a name in this worker. The bytes of each follow from its number; everything that is read is compared.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "hoplite/client.h"
#include "worker/command.h"

namespace hoplite::bench {

class Crowd {
 public:
  explicit Crowd(Client& client) : client_(client) {}

  Json put(std::istream& words);    // NAME COUNT SIZE minted|named
  Json know(std::istream& words);   // NAME COUNT SIZE: the same names, put by another worker
  Json share(std::istream& words);  // NAME COUNT OBJECT: puts the ids of some of them as an object
  Json learn(std::istream& words);  // NAME SIZE OBJECT
  Json use(std::istream& words);    // NAME SECONDS PAUSE_MS: one get after another, and now and then a put and a delete
  Json get_all(std::istream& words);  // NAME: all at once
  Json remove(std::istream& words);   // NAME
  Json churn(std::istream& words);  // NAME SECONDS PER_SECOND SIZE: names that are put, and deleted half a second later
  Json came_back(std::istream& words);  // NAME FIRST COUNT: how many of these deleted names can be read

 private:
  struct Known {
    ObjectId id;
    std::uint64_t number = 0;
  };
  struct Kind {
    std::vector<Known> all;
    std::size_t size = 0;
  };
  Kind& kind(std::istream& words);
  static ObjectId named(const std::string& name, std::uint64_t number);

  Client& client_;
  std::map<std::string, Kind> kinds_;
};

}  // namespace hoplite::bench
