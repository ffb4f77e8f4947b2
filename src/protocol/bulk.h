// The bulk connection: how large objects move.
//
// The receiver ("child") dials the holder ("parent"), sends kPull, and gets the bytes back on the same connection, so that
// everything about a transfer is in one order and dies with one connection. Frames of many transfers are interleaved.
//
//   child -> parent    kPull (body: PullRequest), kCancel, kLimit (not beyond this offset; kNoLimit: as far as it goes),
//                      kPrioritize (offset: the Priority)
//   parent -> child    kAccept, then kData at exactly the next offset, kStarved as a sign of life, and at last kEnd
//                      (all bytes were sent and the version is committed) or kAbort (code says why)
//
// A child that receives from several parents limits what is less urgent: no parent sees how full the child's link is.
//
// After kCancel the child still gets what was under way, up to and including the parent's kAbort(kCancelled) or kEnd; it
// discards those bytes. Transfer numbers are chosen by the child and never used twice in its life.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "hoplite/priority.h"
#include "protocol/codec.h"
#include "protocol/valid_bytes.h"

namespace hoplite {

enum class FrameType : std::uint8_t { kPull, kCancel, kAccept, kData, kStarved, kEnd, kAbort, kLimit, kPrioritize };
constexpr FrameType last_enumerator(FrameType) { return FrameType::kPrioritize; }

constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};

struct FrameHeader {
  static constexpr std::size_t kSize = 24;
  static constexpr std::uint16_t kMagic = 0x484f;  // a desynchronised stream is noticed at the next header

  FrameType type = FrameType::kData;
  Code code = Code::kOk;     // of kAbort
  std::uint32_t length = 0;  // bytes that follow: the payload of kData, the body of kPull
  std::uint64_t transfer = 0;
  std::uint64_t offset = 0;  // of kData, kLimit: from the start of the object; of kPrioritize: the priority

  std::array<std::byte, kSize> encode() const {
    std::array<std::byte, kSize> out;
    const std::uint16_t magic = kMagic;
    std::memcpy(out.data(), &magic, 2);
    out[2] = static_cast<std::byte>(type);
    out[3] = static_cast<std::byte>(code);
    std::memcpy(out.data() + 4, &length, 4);
    std::memcpy(out.data() + 8, &transfer, 8);
    std::memcpy(out.data() + 16, &offset, 8);
    return out;
  }

  // False if it cannot be a header; lengths are the caller's to check against its limits.
  static bool decode(const std::byte* in, FrameHeader& out) {
    std::uint16_t magic = 0;
    std::memcpy(&magic, in, 2);
    if (magic != kMagic || in[2] > static_cast<std::byte>(last_enumerator(FrameType{})) ||
        in[3] > static_cast<std::byte>(last_enumerator(Code{})))
      return false;
    out.type = static_cast<FrameType>(in[2]);
    out.code = static_cast<Code>(in[3]);
    std::memcpy(&out.length, in + 4, 4);
    std::memcpy(&out.transfer, in + 8, 8);
    std::memcpy(&out.offset, in + 16, 8);
    return true;
  }
};

struct PullRequest {
  static constexpr std::uint32_t kMaxEncoded = 256;

  std::uint64_t transfer = 0;
  ObjectId id;
  Version version = 0;
  std::uint32_t slice = 0;
  std::uint32_t slices = 1;
  std::uint64_t offset = 0;   // first byte wanted
  bool has_children = false;  // then the parent must be strictly ahead of `offset`
  Priority priority = Priority::kNormal;
  bool slot = false;  // the output of a reduce's slot, whose order may still be on its way to the parent
  ObjectId target;    // what it is for: the object itself, or what it is reduced into
  template <typename A> void fields(A& a) {
    a(transfer, id, version, slice, slices, offset, has_children, priority, slot, target);
  }
};

}  // namespace hoplite
