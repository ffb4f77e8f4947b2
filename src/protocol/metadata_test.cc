#include "protocol/metadata.h"

#include <gtest/gtest.h>

namespace hoplite {
namespace {

TEST(Metadata, WhatIsWrittenIsRead) {
  for (const Metadata& metadata :
       {Metadata{}, Metadata{DType::kBytes, {}, "a name"}, Metadata{DType::kF32, {}, ""},
        Metadata{DType::kBF16, {3, 1ULL << 40, 0}, "text"},
        Metadata{DType::kU64, std::vector<std::uint64_t>(32, 7), ""},
        Metadata{DType::kBytes, {}, std::string("\0\0", 2)}, Metadata{DType::kBytes, {}, "", true},
        Metadata{DType::kI8, {7}, "a reason", true}}) {
    EXPECT_EQ(decode_metadata(encode_metadata(metadata)), metadata);
  }
}

TEST(Metadata, NothingCostsNothing) { EXPECT_EQ(encode_metadata({}), ""); }

TEST(Metadata, WhatWasNotEncodedIsText) {
  for (const std::string& bytes : {std::string("x"), std::string("\xff\0", 2), std::string("\0\xff", 2),
                                   std::string("\1\3shorter than it says")}) {
    EXPECT_EQ(decode_metadata(bytes).text, bytes);
    EXPECT_EQ(decode_metadata(bytes).type, DType::kBytes);
  }
}

}  // namespace
}  // namespace hoplite
