#include "sim/reduced.h"

#include <algorithm>
#include <functional>
#include <set>

namespace hoplite::sim {
namespace {

std::uint64_t combine_words(const ReduceRecord& reduce, std::uint64_t a, std::uint64_t b) {
  if (reduce.type == DType::kU64) return reduce.op == ReduceOp::kMax ? std::max(a, b) : a + b;
  std::uint64_t result = 0;
  for (int i = 0; i < 8; ++i) {  // kU8
    const auto x = static_cast<std::uint8_t>(a >> (8 * i));
    const auto y = static_cast<std::uint8_t>(b >> (8 * i));
    const auto z = static_cast<std::uint8_t>(reduce.op == ReduceOp::kMax ? std::max(x, y) : x + y);
    result |= std::uint64_t{z} << (8 * i);
  }
  return result;
}

bool matches(const ReduceRecord& reduce, const std::vector<PutNumber>& puts, ByteView bytes) {
  for (std::size_t i = 0; i < bytes.size(); i += 8) {
    std::uint64_t word = content_word(puts.front(), i / 8);
    for (std::size_t p = 1; p < puts.size(); ++p) word = combine_words(reduce, word, content_word(puts[p], i / 8));
    if (std::memcmp(bytes.data() + i, &word, std::min<std::size_t>(8, bytes.size() - i)) != 0) return false;
  }
  return true;
}

class Choices {
 public:
  Choices(const Ledger& ledger, bool in_partition) : ledger_(ledger), in_partition_(in_partition) {}

  // Calls `done` for every way to choose `left` of the sources from `next` on; true as soon as it says so.
  bool any(const ReduceRecord& reduce, std::size_t next, std::size_t left, const std::function<bool()>& done) {
    if (left == 0) return done();
    if (next == reduce.sources.size()) return false;
    const auto go_on = [&] { return any(reduce, next + 1, left - 1, done); };
    for (const PutNumber put : ledger_.about(reduce.sources[next]).puts) {
      const PutRecord& record = ledger_.puts[put];
      if (!may_have_been_used(record)) continue;
      if (record.reduce) {
        if (inside_.contains(put)) continue;  // nothing is made of itself
        inside_.insert(put);
        const auto leave = [&] {
          inside_.erase(put);
          const bool found = go_on();
          inside_.insert(put);
          return found;
        };
        if (any(*record.reduce, 0, record.reduce->count, leave)) return true;
        inside_.erase(put);
        continue;
      }
      chosen.push_back(put);
      if (go_on()) return true;
      chosen.pop_back();
    }
    return any(reduce, next + 1, left, done);
  }

  std::vector<PutNumber> chosen;

 private:
  bool may_have_been_used(const PutRecord& put) const {
    // Told that a delete came first, it may have been used before that.
    const bool refused = put.refused && ledger_.about(put.id).removes.empty() && !in_partition_;
    return put.sealed != Time::never() && !refused;
  }

  const Ledger& ledger_;
  const bool in_partition_;
  std::set<PutNumber> inside_;  // reduces whose sources are being chosen
};

}  // namespace

std::optional<std::vector<PutNumber>> explain_reduced(const Ledger& ledger, const ReduceRecord& reduce, ByteView bytes,
                                                      bool in_partition) {
  Choices choices(ledger, in_partition);
  const auto fits = [&] { return matches(reduce, choices.chosen, bytes); };
  if (!choices.any(reduce, 0, reduce.count, fits)) return std::nullopt;
  return choices.chosen;
}

}  // namespace hoplite::sim
