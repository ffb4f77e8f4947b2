#include "protocol/metadata.h"

#include <gtest/gtest.h>

namespace hoplite {
namespace {

TEST(Metadata, WhatIsWrittenIsRead) {
  for (const Metadata& metadata :
       {Metadata{}, Metadata{DType::kBytes, {}, "", "text"}, Metadata{DType::kF32, {}, "", ""},
        Metadata{DType::kBytes, {}, "a name", ""}, Metadata{DType::kBF16, {3, 1ULL << 40, 0}, "a name", "text"},
        Metadata{DType::kU64, std::vector<std::uint64_t>(32, 7), std::string(kMaxNameBytes, 'n'),
                 std::string(4096, 't')},
        Metadata{DType::kBytes, {}, "", std::string("\0\0", 2)}, Metadata{DType::kBytes, {}, "", "", true},
        Metadata{DType::kI8, {7}, "a name", "a reason", true}}) {
    const std::string bytes = encode_metadata(metadata);
    EXPECT_EQ(decode_metadata(bytes), metadata);
    EXPECT_LE(bytes.size(), kMaxTypeBytes + metadata.text.size());
  }
}

TEST(Metadata, NothingCostsNothing) { EXPECT_EQ(encode_metadata({}), ""); }

TEST(Metadata, WhatWasNotEncodedIsText) {
  for (const std::string& bytes : {std::string("x"), std::string("\0\0", 2), std::string("\xff\0", 2),
                                   std::string("\1\3shorter than it says"), std::string("\0\0\5name", 7)}) {
    EXPECT_EQ(decode_metadata(bytes).text, bytes);
    EXPECT_EQ(decode_metadata(bytes).type, DType::kBytes);
  }
}

TEST(Metadata, ANameIsBelievedOnlyForItsOwnObject) {
  const std::string bytes = encode_metadata({DType::kBytes, {}, "weights", ""});
  EXPECT_EQ(name_in_metadata(ObjectId::named("weights"), bytes), "weights");
  EXPECT_EQ(name_in_metadata(ObjectId::named("grads"), bytes), "");
  EXPECT_EQ(name_in_metadata({1, 1}, bytes), "");
  EXPECT_EQ(name_in_metadata(ObjectId::named("weights"), ""), "");
}

}  // namespace
}  // namespace hoplite
