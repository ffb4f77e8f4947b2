// What every command of hoplite-bench-worker needs: its words, the lab's clock, and a line of JSON for the answer.
//
// A command that cannot be done throws std::runtime_error; its text becomes the answer.
#pragma once

#include <time.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <istream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "hoplite/client.h"

namespace hoplite::bench {

inline constexpr std::chrono::seconds kPatience{120};  // for one transfer; 1 GiB takes 18 s on a link of 500 Mbit/s

template <typename T>
T value_of(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().to_string());
  return *std::move(result);
}

// --- words

template <typename T>
T next(std::istream& words) {
  T value{};
  if (!(words >> value)) throw std::runtime_error("an argument is missing or malformed");
  return value;
}

inline ObjectId next_id(std::istream& words) { return ObjectId::from_text(next<std::string>(words)); }

// All that are left: at least one.
inline std::vector<ObjectId> next_ids(std::istream& words) {
  std::vector<ObjectId> ids = {next_id(words)};
  for (std::string text; words >> text;) ids.push_back(ObjectId::from_text(text));
  return ids;
}

inline std::vector<std::uint64_t> next_seeds(std::istream& words) {
  std::vector<std::uint64_t> seeds = {next<std::uint64_t>(words)};
  for (std::uint64_t seed = 0; words >> seed;) seeds.push_back(seed);
  return seeds;
}

// --- CLOCK_MONOTONIC, which all hosts of the lab share

inline constexpr std::int64_t kNsPerSecond = 1'000'000'000;
inline constexpr std::int64_t kNsPerMs = 1'000'000;

inline std::int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kNsPerSecond + now.tv_nsec;
}

inline void sleep_until(std::int64_t at_ns) {
  const timespec at{at_ns / kNsPerSecond, at_ns % kNsPerSecond};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) == EINTR) {}
}

inline double seconds_since(std::int64_t start_ns) { return static_cast<double>(now_ns() - start_ns) / kNsPerSecond; }

// --- one line of JSON

class Json {
 public:
  Json& add(const char* name, const std::string& text) { return field(name, quoted(text)); }
  Json& add(const char* name, std::uint64_t number) { return field(name, std::to_string(number)); }
  Json& add(const char* name, double seconds) { return field(name, fixed(seconds)); }
  Json& add(const char* name, const std::vector<double>& seconds) {
    std::string list;
    for (const double s : seconds) list += (list.empty() ? "" : ", ") + fixed(s);
    return field(name, "[" + list + "]");
  }
  Json& add(const char* name, const std::vector<Json>& objects) {
    std::string list;
    for (const Json& object : objects) list += (list.empty() ? "" : ", ") + object.line();
    return field(name, "[" + list + "]");
  }
  std::string line() const { return "{" + fields_ + "}"; }

 private:
  static std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
      if (c == '"' || c == '\\') out += '\\';
      out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
    return out + '"';
  }
  static std::string fixed(double seconds) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9f", seconds);
    return text;
  }
  Json& field(const char* name, const std::string& value) {
    fields_ += (fields_.empty() ? "" : ", ") + quoted(name) + ": " + value;
    return *this;
  }

  std::string fields_;
};

// When something began, and when it was there.
inline Json& add_times(Json& answer, std::int64_t start_ns, std::int64_t end_ns) {
  return answer.add("start_ns", static_cast<std::uint64_t>(start_ns)).add("end_ns", static_cast<std::uint64_t>(end_ns));
}

}  // namespace hoplite::bench
