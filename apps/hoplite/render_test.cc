#include "render.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hoplite {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ReduceStatus running() {
  ReduceStatus status;
  status.target = ObjectId::named("total");
  status.name = "total";
  status.op = ReduceOp::kMax;
  status.type = DType::kI16;
  status.phase = ReducePhase::kRunning;
  status.coordinator = "cccccccccccccccc";
  status.count = 3;
  status.attempts = 2;
  status.size = 4 << 20;
  status.bytes = 1 << 20;
  status.sources = {{{1, 1}, SourceState::kAwaited, "", 0},
                    {{1, 2}, SourceState::kUsed, "bbbbbbbbbbbbbbbb", 2},
                    {{1, 3}, SourceState::kLost, "", 0},
                    {ObjectId::named("early"), SourceState::kUsed, "aaaaaaaaaaaaaaaa", 1},
                    {{1, 5}, SourceState::kSpare, "dddddddddddddddd", 3}};
  status.slots = {{"aaaaaaaaaaaaaaaa", 0, 2, 1, true},
                  {"dddddddddddddddd", 0, 0, 1, false},
                  {"bbbbbbbbbbbbbbbb", 0, std::nullopt, 1, false}};
  return status;
}

TEST(Render, AReduceInWords) {
  const ObjectId early = ObjectId::named("early");
  const std::string text = reduce_text(running(), {"early"});
  EXPECT_EQ(text, "target      " + ObjectId::named("total").to_string() + " total\n" +
                      "reduce      max of i16, of the first 3 of 5 sources\n"
                      "phase       running, waiting for 1 of 3 sources\n"
                      "coordinator cccccccccccccccc\n"
                      "reduced     1 MiB of 4 MiB (25 %)\n"
                      "mended      2 times\n"
                      "\n"
                      "ORDER  SOURCE                                  STATE    NODE\n"
                      "    1  " +
                      early.to_string() + " early  used     aaaaaaaaaaaaaaaa\n" +
                      "    2  00000000000000010000000000000002        used     bbbbbbbbbbbbbbbb\n"
                      "    3  00000000000000010000000000000005        spare    dddddddddddddddd\n"
                      "       00000000000000010000000000000001        awaited\n"
                      "       00000000000000010000000000000003        lost\n"
                      "\n"
                      "TREE                  SLICE  SOURCES  STATE\n"
                      "bbbbbbbbbbbbbbbb          0        1  working\n"
                      "  aaaaaaaaaaaaaaaa        0        1  done\n"
                      "    dddddddddddddddd      0        1  working\n");
}

TEST(Render, AReduceThatHasEnded) {
  ReduceStatus status = running();
  status.phase = ReducePhase::kFailed;
  status.error = Error{Code::kTypeMismatch, "source x is of type f64\n"};
  std::string text = reduce_text(status);
  EXPECT_THAT(text, HasSubstr("phase       failed\n")) << "nobody is awaited any more";
  EXPECT_THAT(text, HasSubstr("error       type mismatch: source x is of type f64\\n\n"));
  EXPECT_THAT(text, Not(HasSubstr("early")));

  status = {};
  status.phase = ReducePhase::kDone;
  status.count = 1;
  status.sources = {{{1, 1}, SourceState::kUsed, "aaaaaaaaaaaaaaaa", 1}};
  text = reduce_text(status);
  EXPECT_THAT(text, HasSubstr("sum of f32, of 1 source\n"));
  EXPECT_THAT(text, Not(HasSubstr("mended")));
  EXPECT_THAT(text, Not(HasSubstr("TREE")));
}

TEST(Render, EverySlotIsShownEvenIfTheTreeIsNone) {
  ReduceStatus status;
  status.slots = {{"aaaaaaaaaaaaaaaa", 0, 1, 1, false}, {"bbbbbbbbbbbbbbbb", 1, 0, 1, false}};
  const std::string text = reduce_text(status);
  EXPECT_THAT(text, HasSubstr("aaaaaaaaaaaaaaaa"));
  EXPECT_THAT(text, HasSubstr("bbbbbbbbbbbbbbbb"));
}

TEST(Render, AReduceAsJson) {
  ReduceStatus status = running();
  status.sources.resize(1);
  status.slots.erase(status.slots.begin(), status.slots.begin() + 1);
  EXPECT_EQ(
      reduce_json(status),
      R"({"id": ")" + status.target.to_string() +
          R"(", "name": "total", "op": "max", "type": "i16", "phase": "running", "coordinator": "cccccccccccccccc", "count": 3, )"
          R"("awaited": 3, "attempts": 2, "size": 4194304, "bytes": 1048576, "sources": )"
          R"([{"id": "00000000000000010000000000000001", "name": "", "state": "awaited", "node": "", "order": 0}], "slots": )"
          R"([{"node": "dddddddddddddddd", "slice": 0, "parent": 0, "sources": 1, "done": false}, )"
          R"({"node": "bbbbbbbbbbbbbbbb", "slice": 0, "parent": null, "sources": 1, "done": false}]})");
  status.error = Error{Code::kLost, "a source"};
  EXPECT_THAT(reduce_json(status), HasSubstr(R"("error": {"code": "lost", "message": "a source"})"));
}

TEST(Render, WhoIsAwaited) {
  ReduceStatus status;
  status.count = 4;
  EXPECT_EQ(awaited_text(status), "waiting for 4 of 4 sources");
  status.sources.assign(4, {{1, 1}, SourceState::kUsed, "", 1});
  EXPECT_EQ(awaited_text(status), "");
}

TEST(Render, WhatTheBytesAre) {
  EXPECT_EQ(array_text({}), "");
  EXPECT_EQ(array_text({DType::kF32, {}}), "f32");
  EXPECT_EQ(array_text({DType::kBF16, {2, 3, 4}}), "bf16 2x3x4");
  EXPECT_EQ(array_text({DType::kBytes, {9}}), "bytes 9");
}

TEST(Render, ObjectsWithTheirTypes) {
  ObjectList list;
  ObjectStatus object;
  object.id = {1, 1};
  object.size = 24;
  object.state = CopyState::kComplete;
  object.primary = true;
  object.name = "w";
  object.array = {DType::kF32, {2, 3}};
  list.objects = {object};
  EXPECT_EQ(objects_text(list),
            "ID                                NAME  SIZE  TYPE     STATE     HELD AS  VIEWS  SENDING TO\n"
            "00000000000000010000000000000001  w     24 B  f32 2x3  complete  primary      0           0\n");
  EXPECT_THAT(objects_json(list), HasSubstr(R"("type": "f32", "shape": [2, 3])"));
}

TEST(Render, NamesThatTryToEscape) {
  ObjectStatus object;
  object.id = {1, 1};
  object.name = "\x1b[2J\n\xff";
  object.metadata = "\x9b";
  object.state = CopyState::kComplete;
  ObjectList list;
  list.objects = {object};
  EXPECT_THAT(objects_text(list), HasSubstr("\\x1b[2J\\n\\xff"));
  EXPECT_THAT(objects_json(list), HasSubstr("\"name\": \"\\u001b[2J\\u000a\xEF\xBF\xBD\""));
  EXPECT_THAT(objects_json(list), HasSubstr("\"metadata\": \"\xEF\xBF\xBD\""));

  ReduceStatus status = running();
  status.name = "total\x1b]0;\x07";
  status.sources[3].name = "\xe2\x80\xae";
  EXPECT_THAT(reduce_text(status), HasSubstr(" total\\x1b]0;\\x07\n"));
  EXPECT_THAT(reduce_text(status), HasSubstr(status.sources[3].id.to_string() + " \\u202e"));
  EXPECT_EQ(fact_line("address", "\x1b[2J"), "address     \\x1b[2J\n");
}

TEST(Render, WhoHasTheRoom) {
  StoreStatus status;
  status.capacity_bytes = 100 * 1024;
  status.used_bytes = 90 * 1024;
  status.pinned_bytes = 80 * 1024;
  const auto object = [](std::uint64_t size, CopyState state, bool primary, std::uint32_t views, std::string name) {
    ObjectStatus one;
    one.id = ObjectId::named(name);
    one.size = size * 1024;
    one.state = state;
    one.primary = primary;
    one.views = views;
    one.name = std::move(name);
    return one;
  };
  ObjectList list;
  list.objects = {
      object(10, CopyState::kComplete, true, 0, "a"),       object(20, CopyState::kComplete, true, 3, "b\n"),
      object(15, CopyState::kGrowing, false, 0, "c"),       object(5, CopyState::kComplete, false, 1, "d"),
      object(10, CopyState::kComplete, false, 0, "cached"), object(0, CopyState::kKnows, false, 0, "e")};
  EXPECT_EQ(
      room_text(40 * 1024, status, list),
      "waiting for 40 KiB of space: 10 KiB of the store's 100 KiB are free, and 10 KiB more can be evicted. 30 KiB are "
      "in "
      "use by 2 objects that must be deleted to free them (`hoplite rm`), 15 KiB by 1 object being written or "
      "fetched, 5 KiB by 1 object being read or sent, and 30 KiB by deleted objects that are still being read and by "
      "running reduces; the largest is b\\n with 20 KiB");
  list.truncated = true;
  EXPECT_EQ(
      room_text(40 * 1024, status, list),
      "waiting for 40 KiB of space: 10 KiB of the store's 100 KiB are free, and 10 KiB more can be evicted. 80 KiB "
      "are in use; `hoplite ls` shows by what");
}

}  // namespace
}  // namespace hoplite
