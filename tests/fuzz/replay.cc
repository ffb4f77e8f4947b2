// Runs a fuzz target without libFuzzer: on its seeds, on the files of a corpus, and on mutations of both that are the same
// in every run.
//
//   x_fuzz_replay [--mutations N] [--write-seeds DIR] [FILE|DIR]...
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/random.h"
#include "fuzz_target.h"

namespace {

using hoplite::Random;
namespace fs = std::filesystem;

void run(const std::string& input) {
  // A copy of exactly this size on the heap, so that AddressSanitizer sees one byte too far.
  const std::vector<std::uint8_t> bytes(input.begin(), input.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

void overwrite_number(std::string& input, Random& random) {
  static constexpr std::uint64_t kTelling[] = {0,          1,          0x7f,       0x80,       0xff,
                                               0x7fffffff, 0x80000000, 0xffffffff, 1ULL << 63, ~0ULL};
  const std::uint64_t value = kTelling[random.below(std::size(kTelling))];
  const std::size_t width = std::size_t{1} << random.below(4);
  if (input.size() < width) return;
  std::memcpy(input.data() + random.below(input.size() - width + 1), &value, width);
}

void mutate(std::string& input, const std::string& other, Random& random) {
  const std::size_t at = random.below(input.size() + 1);
  switch (random.below(7)) {
    case 0: input.resize(at); break;
    case 1: input.insert(at, random.between(1, 8), static_cast<char>(random.next())); break;
    case 2: input.erase(at, random.between(1, 8)); break;
    case 3: input.insert(at, input, random.below(input.size() + 1), 64); break;
    case 4: input.replace(at, std::string::npos, other, random.below(other.size() + 1), std::string::npos); break;
    case 5: overwrite_number(input, random); break;
    default:
      if (at < input.size()) input[at] = static_cast<char>(input[at] ^ (1 << random.below(8)));
  }
}

void run_mutations(const std::vector<std::string>& inputs, std::uint64_t count) {
  Random random(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string input = inputs[random.below(inputs.size())];
    const std::string& other = inputs[random.below(inputs.size())];
    for (std::uint64_t steps = random.between(1, 4); steps > 0; --steps) mutate(input, other, random);
    run(input);
  }
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void add_corpus(const fs::path& path, std::vector<std::string>& inputs) {
  if (fs::is_regular_file(path)) inputs.push_back(read_file(path));
  if (!fs::is_directory(path)) return;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(path)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());  // the same order on every machine
  for (const fs::path& file : files) inputs.push_back(read_file(file));
}

void write_seeds(const fs::path& directory) {
  fs::create_directories(directory);
  int number = 0;
  for (const std::string& seed : fuzz_seeds())
    std::ofstream(directory / ("seed-" + std::to_string(number++)), std::ios::binary) << seed;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t mutations = 0;
  std::vector<std::string> inputs = fuzz_seeds();
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--mutations" && i + 1 < argc) {
      mutations = std::strtoull(argv[++i], nullptr, 10);
    } else if (argument == "--write-seeds" && i + 1 < argc) {
      write_seeds(argv[++i]);
    } else {
      add_corpus(argument, inputs);
    }
  }
  for (const std::string& input : inputs) run(input);
  run_mutations(inputs, mutations);
  std::printf("%zu inputs, %llu mutations\n", inputs.size(), static_cast<unsigned long long>(mutations));
}
