// Sums arrays that several nodes put, in the order in which they come, and checks the result.
//
//   hoplite local 3                                  # prints three sockets
//   hoplite-example-reduce SOCKET_1 SOCKET_2 SOCKET_3
#include <hoplite/client.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

using namespace std::chrono_literals;

namespace {

constexpr std::size_t kElements = 1 << 20;

template <typename T>
T or_exit(hoplite::Result<T> result) {
  if (result.ok()) return *std::move(result);
  std::fprintf(stderr, "hoplite-example-reduce: %s\n", result.error().to_string().c_str());
  std::exit(1);
}

float element(std::size_t array, std::size_t i) { return static_cast<float>(array + i % 100); }

void put_array(hoplite::Client& client, hoplite::ObjectId id, std::size_t number) {
  std::vector<float> values(kElements);
  for (std::size_t i = 0; i < kElements; ++i) values[i] = element(number, i);
  or_exit(client.put(values, {.id = id, .array = {.shape = {1024, kElements / 1024}}, .timeout = 10s}));
}

// Small whole numbers: the sum is exact, whatever the order.
bool is_the_sum(const hoplite::View& view, std::size_t arrays) {
  const auto sum = or_exit(view.as<float>());  // in shared memory, without a copy
  if (sum.size() != kElements) return false;
  for (std::size_t i = 0; i < kElements; ++i) {
    float expected = 0;
    for (std::size_t number = 0; number < arrays; ++number) expected += element(number, i);
    if (sum[i] != expected) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || std::strcmp(argv[1], "--help") == 0) {
    std::printf("usage: hoplite-example-reduce SOCKET...\n");
    return argc == 2 ? 0 : 2;
  }
  std::vector<hoplite::Client> nodes;
  for (int i = 1; i < argc; ++i) nodes.push_back(or_exit(hoplite::Client::connect({.socket = argv[i]})));

  // The ids are futures: the sum is asked for before there is anything to add.
  std::vector<hoplite::ObjectId> sources;
  for (auto& node : nodes) sources.push_back(node.new_id());
  const hoplite::ObjectId sum =
      or_exit(nodes[0].allreduce(sources, {.op = hoplite::ReduceOp::kSum, .type = hoplite::DType::kF32}));
  for (std::size_t i = 0; i < nodes.size(); ++i) put_array(nodes[i], sources[i], i);

  for (auto& node : nodes) {
    const hoplite::View view = or_exit(node.get(sum, {.timeout = 60s}));
    if (!is_the_sum(view, nodes.size())) {
      std::fprintf(stderr, "hoplite-example-reduce: the sum is wrong\n");
      return 1;
    }
  }
  const hoplite::ReduceStatus status = or_exit(nodes[0].reduce_status(sum));
  std::printf("the sum of %zu arrays is on every node; they came in this order:", sources.size());
  for (const auto& source : status.sources) std::printf(" %u", source.order);
  std::printf("\n");
  for (const hoplite::ObjectId id : sources) or_exit(nodes[0].remove(id, 10s));
  or_exit(nodes[0].remove(sum, 10s));
  return 0;
}
