// Coverage marks: proof that a rarely taken path was taken.
//
//     if (parent_is_behind) {
//       COVERAGE_MARK(pull_refused_parent_behind);
//       ...
//
// Every mark that is compiled into a program is registered before main(), reached or not, so the simulator can list those
// that no seed reached. A mark has no behaviour: it counts, and nobody in `src` reads the count. Counting is one relaxed
// load and store (a lost count between two threads does not matter: zero or not is the question).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hoplite {

class CoverageMark {
 public:
  explicit CoverageMark(const char* mark_name) : name_(mark_name), next_(head()) { head() = this; }
  CoverageMark(const CoverageMark&) = delete;
  CoverageMark& operator=(const CoverageMark&) = delete;

  void hit() { hits_.store(hits_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
  void add(std::uint64_t hits) { hits_.fetch_add(hits, std::memory_order_relaxed); }
  void clear() { hits_.store(0, std::memory_order_relaxed); }

  const char* name() const { return name_; }
  std::uint64_t hits() const { return hits_.load(std::memory_order_relaxed); }

  // The registry: a list of all marks, in no particular order.
  static CoverageMark* first() { return head(); }
  CoverageMark* next() const { return next_; }

 private:
  static CoverageMark*& head() {
    static CoverageMark* list = nullptr;
    return list;
  }

  const char* name_;
  CoverageMark* next_;
  std::atomic<std::uint64_t> hits_{0};
};

namespace internal {

// A string that can be a template argument, so that one name is one mark however often it is used.
template <std::size_t N>
struct MarkName {
  // NOLINTNEXTLINE(google-explicit-constructor): a literal is a name
  constexpr MarkName(const char (&literal)[N]) { std::copy_n(literal, N, text); }
  char text[N];
};

template <MarkName Name>
struct MarkOf {
  static inline CoverageMark mark{Name.text};
};

}  // namespace internal
}  // namespace hoplite

#define COVERAGE_MARK(name) ::hoplite::internal::MarkOf<#name>::mark.hit()
