// What a fuzz target provides, for libFuzzer and for replay.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

// Runs the parser on hostile bytes; CHECKs what must hold for whatever it accepts.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

// Valid inputs to start from: one or more of each kind.
std::vector<std::string> fuzz_seeds();
