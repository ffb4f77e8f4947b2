// Arrays of numbers on real daemons, for tests of reduces.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "cluster.h"

namespace hoplite::testing {

// Follow from `seed`: integers of all sizes, so that sums wrap around; floating-point numbers between -1 and 1.
template <typename T> std::vector<T> numbers(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<T> values(count);
  for (T& value : values) {
    if constexpr (std::is_integral_v<T>) value = static_cast<T>(random.next());
    else value = static_cast<T>(random.next() >> 40) / static_cast<T>(1 << 23) - T{1};
  }
  return values;
}

// Sums as the machine's unsigned numbers do: exact, and wrapping around.
inline std::vector<std::int64_t> wrapping_sum(const std::vector<std::vector<std::int64_t>>& arrays) {
  std::vector<std::int64_t> sum(arrays.at(0).size(), 0);
  for (const auto& array : arrays)
    for (std::size_t i = 0; i < sum.size(); ++i)
      sum[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(sum[i]) + static_cast<std::uint64_t>(array[i]));
  return sum;
}

template <typename T> std::vector<T> values_of(const View& view) {
  std::vector<T> values(view.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), view.data(), values.size() * sizeof(T));
  return values;
}

class ReduceFixture : public ::testing::Test {
 protected:
  static constexpr auto kPatience = 90s;  // of gets; nothing waits for so long unless something is wrong

  void start(std::size_t count, const DaemonSetup& setup = {}) {
    cluster_.start_many(count, setup);
    for (std::size_t i = 0; i < count; ++i) clients_.push_back(cluster_[i].connect());
  }
  // So slow that the middle of a transfer lasts.
  void start_slow(std::size_t count, const std::string& rate) {
    DaemonSetup setup;
    setup.arguments = {"--max-rate", rate};
    start(count, setup);
  }

  std::vector<ObjectId> new_ids(std::size_t count) {
    std::vector<ObjectId> ids;
    for (std::size_t i = 0; i < count; ++i) ids.push_back(clients_[i % clients_.size()].new_id());
    return ids;
  }
  template <typename T> void put(std::size_t node, ObjectId id, const std::vector<T>& values) {
    const auto done = clients_[node].put(values, {.id = id, .array = {.shape = {values.size()}}, .timeout = kPatience});
    ASSERT_TRUE(done.ok()) << done.error().to_string();
  }
  // One array of i64 for each id, of seeds 0, 1, ..., on one node after the other.
  std::vector<std::vector<std::int64_t>> put_integers(std::span<const ObjectId> ids, std::size_t elements) {
    std::vector<std::vector<std::int64_t>> arrays;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      arrays.push_back(numbers<std::int64_t>(elements, i));
      put(i % clients_.size(), ids[i], arrays.back());
    }
    return arrays;
  }

  // Starts a reduce at node 0; nil if it was refused.
  ObjectId reduce(std::span<const ObjectId> sources, const ReduceOptions& options) {
    const auto target = clients_[0].reduce(sources, options);
    EXPECT_TRUE(target.ok()) << target.error().to_string();
    return target.ok() ? *target : ObjectId();
  }
  template <typename T> void expect_values(std::size_t node, ObjectId id, const std::vector<T>& expected) {
    const auto view = clients_[node].get(id, {.timeout = kPatience});
    ASSERT_TRUE(view.ok()) << "node " << node << ": " << view.error().to_string();
    EXPECT_EQ(view->array().type, dtype_of<T>());
    const std::vector<T> values = values_of<T>(*view);
    ASSERT_EQ(values.size(), expected.size());
    const auto differs = std::mismatch(values.begin(), values.end(), expected.begin());
    EXPECT_TRUE(differs.first == values.end()) << "node " << node << ", element " << (differs.first - values.begin())
                                               << ": " << +*differs.first << " instead of " << +*differs.second;
  }
  // The error that a get of it ends with.
  Error error_of(std::size_t node, ObjectId id) {
    const auto view = clients_[node].get(id, {.timeout = kPatience});
    EXPECT_FALSE(view.ok()) << "it succeeded";
    return view.ok() ? Error{Code::kOk, ""} : view.error();
  }
  ReduceStatus status_of(ObjectId target, std::size_t node = 0) {
    const auto status = clients_[node].reduce_status(target, 30s);
    EXPECT_TRUE(status.ok()) << status.error().to_string();
    return status.ok() ? *status : ReduceStatus{};
  }
  std::string node_name(std::size_t node) {
    const auto status = clients_[node].status();
    return status.ok() ? status->node : "";
  }

  Cluster cluster_;
  std::vector<Client> clients_;
};

}  // namespace hoplite::testing
