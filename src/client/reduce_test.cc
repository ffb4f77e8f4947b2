// Reduces and gathers against a daemon whose answers the tests choose.
#include "hoplite/reduce.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <numeric>

#include "client/test_daemon.h"
#include "protocol/metadata.h"

namespace hoplite::client {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

std::vector<ObjectId> names(std::size_t count) {
  std::vector<ObjectId> ids;
  for (std::size_t i = 0; i < count; ++i) ids.push_back(ObjectId::named("source " + std::to_string(i)));
  return ids;
}

// A daemon that takes every reduce.
class Reduces : public ::testing::Test {
 protected:
  Reduces() {
    daemon_.intercept([this](std::uint64_t request, const ipc::Request& message, ByteView) {
      if (const auto* reduce = std::get_if<ipc::Reduce>(&message))
        daemon_.reply(request, ipc::Reducing{reduce->spec.target});
      else if (const auto* add = std::get_if<ipc::AddSources>(&message))
        daemon_.reply(request, ipc::Reducing{add->target});
      else return false;
      return true;
    });
  }
  ReduceSpec asked() {
    const auto reduces = daemon_.await<ipc::Reduce>(1);
    return reduces.empty() ? ReduceSpec{} : reduces.back().second.spec;
  }

  FakeDaemon daemon_;
  hoplite::Client client_ = daemon_.connect();
};

TEST_F(Reduces, AreAskedForAsTheyWereMeant) {
  const auto sources = names(5);
  ReduceOptions options;
  options.target = ObjectId::named("sum");
  options.op = ReduceOp::kMax;
  options.type = DType::kI16;
  options.count = 3;
  options.on_lost = OnLost::kWait;
  options.timeout = 10s;
  options.priority = Priority::kHigh;
  options.part = 1;
  options.parts = 4;
  const auto target = client_.reduce(sources, options);
  ASSERT_TRUE(target.ok()) << target.error().to_string();
  EXPECT_EQ(*target, options.target);
  const ReduceSpec spec = asked();
  EXPECT_EQ(spec.target, options.target);
  EXPECT_EQ(spec.sources, sources);
  EXPECT_EQ(spec.op, ReduceOp::kMax);
  EXPECT_EQ(spec.type, DType::kI16);
  EXPECT_EQ(spec.count, 3U);
  EXPECT_TRUE(spec.wait_if_lost);
  EXPECT_EQ(spec.priority, Priority::kHigh);
  EXPECT_EQ(spec.spread, Spread::kNone);
  EXPECT_EQ(spec.part, 1U);
  EXPECT_EQ(spec.parts, 4U);
  EXPECT_GT(spec.timeout_ns, 0);
  EXPECT_LE(spec.timeout_ns, 10'000'000'000);
}

TEST_F(Reduces, AreOfAllSourcesIntoAFreshObjectByDefault) {
  const auto sources = names(4);
  const auto target = client_.reduce(sources);
  ASSERT_TRUE(target.ok()) << target.error().to_string();
  EXPECT_EQ(target->hi, client_.new_id().hi) << "its home is this node";
  const ReduceSpec spec = asked();
  EXPECT_EQ(spec.target, *target);
  EXPECT_EQ(spec.count, 4U);
  EXPECT_EQ(spec.op, ReduceOp::kSum);
  EXPECT_EQ(spec.type, DType::kF32);
  EXPECT_FALSE(spec.wait_if_lost);
  EXPECT_EQ(spec.parts, 1U);
  EXPECT_EQ(spec.timeout_ns, kNoTimeout);
}

TEST_F(Reduces, WhatMakesNoSenseIsRefusedWithoutADaemon) {
  const auto sources = names(3);
  const ObjectId target = ObjectId::named("target");
  const auto refused = [&](std::span<const ObjectId> ids, const ReduceOptions& options, const std::string& why) {
    const auto result = client_.reduce(ids, options);
    ASSERT_EQ(result.code(), Code::kInvalidArgument) << why;
    EXPECT_THAT(result.error().message, HasSubstr("reduce of " + target.to_string()));
    EXPECT_THAT(result.error().message, HasSubstr(why));
  };
  refused({}, {.target = target}, "no sources");
  refused(std::vector{sources[0], sources[0]}, {.target = target}, sources[0].to_string() + " was given twice");
  refused(std::vector{sources[0], target}, {.target = target}, "among its own sources");
  refused(sources, {.target = target, .type = DType::kBytes}, "plain bytes");
  refused(sources, {.target = target, .op = ReduceOp::kMedian, .type = DType::kU8}, "the median of u8");
  refused(sources, {.target = target, .count = 0}, "first 0");
  refused(sources, {.target = target, .count = 4}, "first 4 of 3");
  refused(sources, {.target = target, .count = (std::size_t{1} << 32) + 1}, "the limit is");
  refused(sources, {.target = target, .part = 2, .parts = 2}, "part 2 of 2");
  ASSERT_TRUE(client_.put(as_bytes("x")).ok());
  EXPECT_TRUE(daemon_.await<ipc::Put>(1).size() == 1 && daemon_.await<ipc::Reduce>(0).empty());
  EXPECT_TRUE(client_.reduce(sources, {.count = 4, .more_sources_follow = true}).ok());
}

TEST_F(Reduces, AnAllReduceSaysHowToSpreadTheResult) {
  const auto sources = names(2);
  ASSERT_TRUE(client_.allreduce(sources).ok());
  EXPECT_EQ(asked().spread, Spread::kByCost);
  ASSERT_TRUE(client_.allreduce(sources, {.type = DType::kF64, .spread = Spread::kWhole}).ok());
  ASSERT_TRUE(client_.allreduce(sources, {.spread = Spread::kSlices}).ok());
  const auto reduces = daemon_.await<ipc::Reduce>(3);
  ASSERT_EQ(reduces.size(), 3U);
  EXPECT_EQ(reduces[1].second.spec.spread, Spread::kWhole);
  EXPECT_EQ(reduces[1].second.spec.type, DType::kF64);
  EXPECT_EQ(reduces[2].second.spec.spread, Spread::kSlices);
}

TEST_F(Reduces, AReduceScatterIsOneReduceForEachPart) {
  const auto sources = names(3);
  for (const std::uint32_t parts : {0U, 5U}) {
    const std::size_t before = daemon_.await<ipc::Reduce>(0).size();
    const std::size_t expected = parts == 0 ? sources.size() : parts;
    const auto targets = client_.reduce_scatter(sources, {.type = DType::kI32, .parts = parts});
    ASSERT_TRUE(targets.ok()) << targets.error().to_string();
    ASSERT_EQ(targets->size(), expected);
    const auto reduces = daemon_.await<ipc::Reduce>(before + expected);
    ASSERT_EQ(reduces.size(), before + expected);
    for (std::size_t i = 0; i < expected; ++i) {
      const ReduceSpec& spec = reduces[before + i].second.spec;
      EXPECT_EQ(spec.target, (*targets)[i]);
      EXPECT_EQ(spec.part, i);
      EXPECT_EQ(spec.parts, expected);
      EXPECT_EQ(spec.count, 3U);
      EXPECT_EQ(spec.type, DType::kI32);
    }
  }
}

TEST_F(Reduces, AReduceScatterDoesNotChooseSourcesPartByPart) {
  const auto sources = names(3);
  EXPECT_EQ(client_.reduce_scatter(sources, {.count = 2}).code(), Code::kInvalidArgument);
  EXPECT_EQ(client_.reduce_scatter(sources, {.more_sources_follow = true}).code(), Code::kInvalidArgument);
  EXPECT_EQ(client_.reduce_scatter(sources, {.target = ObjectId::named("x")}).code(), Code::kInvalidArgument);
  EXPECT_EQ(client_.reduce_scatter({}).code(), Code::kInvalidArgument);
}

TEST_F(Reduces, AReduceScatterThatFailsHalfwayLeavesNothing) {
  std::size_t seen = 0;
  daemon_.intercept([&](std::uint64_t request, const ipc::Request& message, ByteView) {
    const auto* reduce = std::get_if<ipc::Reduce>(&message);
    if (reduce == nullptr) return false;
    if (++seen == 2) daemon_.reply(request, ipc::Failed{Code::kUnavailable, "no"});
    else daemon_.reply(request, ipc::Reducing{reduce->spec.target});
    return true;
  });
  EXPECT_EQ(client_.reduce_scatter(names(3)).code(), Code::kUnavailable);
  EXPECT_EQ(daemon_.await<ipc::Remove>(2).size(), 2U);
}

TEST_F(Reduces, SourcesCanBeAdded) {
  const ObjectId target = ObjectId::named("target");
  const auto sources = names(2);
  ASSERT_TRUE(client_.add_sources(target, sources).ok());
  const auto added = daemon_.await<ipc::AddSources>(1);
  ASSERT_EQ(added.size(), 1U);
  EXPECT_EQ(added[0].second.target, target);
  EXPECT_EQ(added[0].second.sources, sources);
  EXPECT_EQ(client_.add_sources(target, {}).code(), Code::kInvalidArgument);
  EXPECT_EQ(client_.add_sources(ObjectId(), sources).code(), Code::kInvalidArgument);
  EXPECT_EQ(client_.add_sources(sources[0], sources).code(), Code::kInvalidArgument);
}

TEST_F(Reduces, TheDaemonsRefusalNamesTheTarget) {
  daemon_.intercept([&](std::uint64_t request, const ipc::Request& message, ByteView) {
    if (!std::holds_alternative<ipc::Reduce>(message) && !std::holds_alternative<ipc::AddSources>(message))
      return false;
    daemon_.reply(request, ipc::Failed{Code::kExists, "somebody has put it"});
    return true;
  });
  const ObjectId target = ObjectId::named("taken");
  const auto refused = client_.reduce(names(2), {.target = target});
  EXPECT_EQ(refused.code(), Code::kExists);
  EXPECT_EQ(refused.error().message, "reduce of " + target.to_string() + ": somebody has put it");
  EXPECT_EQ(client_.add_sources(target, names(1)).code(), Code::kExists);
}

TEST_F(Reduces, TheStatusTellsWhatTheDaemonReports) {
  ReduceReport report;
  report.target = ObjectId::named("target");
  report.op = ReduceOp::kMin;
  report.type = DType::kU16;
  report.phase = ReducePhase::kRunning;
  report.coordinator = NodeId{0xc};
  report.count = 2;
  report.attempts = 1;
  report.size = 100;
  report.bytes = 40;
  report.sources = {{names(3)[0], SourceState::kUsed, NodeId{0xa}, 1},
                    {names(3)[1], SourceState::kAwaited, {}, 0},
                    {names(3)[2], SourceState::kDeleted, {}, 0},
                    {ObjectId::named("grad"), SourceState::kAwaited, {}, 0}};
  report.names = {"grad", "another"};
  report.slots = {{NodeId{0xa}, 0, 1, 1, true}, {NodeId{0xb}, 0, 1, 1, false}, {NodeId{0xb}, 1, 77, 1, false}};
  daemon_.intercept([&](std::uint64_t request, const ipc::Request& message, ByteView) {
    if (!std::holds_alternative<ipc::GetReduce>(message)) return false;
    daemon_.reply(request, ipc::Reported{report});
    return true;
  });
  auto status = client_.reduce_status(report.target);
  ASSERT_TRUE(status.ok()) << status.error().to_string();
  EXPECT_EQ(status->target, report.target);
  EXPECT_EQ(status->op, ReduceOp::kMin);
  EXPECT_EQ(status->type, DType::kU16);
  EXPECT_EQ(status->phase, ReducePhase::kRunning);
  EXPECT_FALSE(status->error.has_value());
  EXPECT_EQ(status->coordinator, "000000000000000c");
  EXPECT_EQ(status->count, 2U);
  EXPECT_EQ(status->awaited(), 1U);
  EXPECT_EQ(status->attempts, 1U);
  EXPECT_EQ(status->size, 100U);
  EXPECT_EQ(status->bytes, 40U);
  ASSERT_EQ(status->sources.size(), 4U);
  EXPECT_EQ(status->sources[3].name, "grad");
  EXPECT_EQ(status->sources[0].name, "");
  EXPECT_EQ(status->name, "") << "nobody has told it";
  EXPECT_EQ(status->sources[0].node, "000000000000000a");
  EXPECT_EQ(status->sources[0].order, 1U);
  EXPECT_EQ(status->sources[1].node, "");
  EXPECT_EQ(status->sources[2].state, SourceState::kDeleted);
  ASSERT_EQ(status->slots.size(), 3U);
  EXPECT_EQ(status->slots[0].parent, 1U);
  EXPECT_TRUE(status->slots[0].done);
  EXPECT_FALSE(status->slots[1].parent.has_value()) << "it is its own parent: the root";
  EXPECT_FALSE(status->slots[2].parent.has_value()) << "there is no such slot";

  report.phase = ReducePhase::kFailed;
  report.code = Code::kTypeMismatch;
  report.text = "a source is of type f64";
  status = client_.reduce_status(report.target);
  ASSERT_TRUE(status.ok() && status->error.has_value());
  EXPECT_EQ(status->error->code, Code::kTypeMismatch);
  EXPECT_EQ(status->error->message, "a source is of type f64");
  EXPECT_EQ(client_.reduce_status(ObjectId()).code(), Code::kInvalidArgument);
}

TEST_F(Reduces, AReplyOfTheWrongKindIsAnError) {
  daemon_.intercept([&](std::uint64_t request, const ipc::Request&, ByteView) {
    daemon_.reply(request, ipc::Removed{true});
    return true;
  });
  EXPECT_EQ(client_.reduce(names(2)).code(), Code::kInternal);
  EXPECT_EQ(client_.add_sources(ObjectId::named("x"), names(2)).code(), Code::kInternal);
  EXPECT_EQ(client_.reduce_status(ObjectId::named("x")).code(), Code::kInternal);
}

// --- gather

TEST(Gather, BringsAllInTheirOrder) {
  FakeDaemon daemon;
  auto client = daemon.connect();
  const auto ids = names(20);
  for (std::size_t i = 0; i < 10; ++i) daemon.store(ids[i], std::to_string(i));
  std::thread later([&] {
    daemon.await<ipc::Get>(20);  // all are asked for at once, not one after the other
    for (std::size_t i = 20; i-- > 10;) daemon.store(ids[i], std::to_string(i));
  });
  const auto views = client.gather(ids, {.timeout = 20s});
  later.join();
  ASSERT_TRUE(views.ok()) << views.error().to_string();
  ASSERT_EQ(views->size(), 20U);
  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(text_of((*views)[i].bytes()), std::to_string(i));
  EXPECT_TRUE(client.gather({})->empty());
  EXPECT_EQ(client.allgather(std::span(ids).first(2))->size(), 2U);
}

TEST(Gather, TheFirstFailureEndsItAndTheOthersAreCancelled) {
  FakeDaemon daemon;
  auto client = daemon.connect();
  const auto ids = names(4);  // 0 is there, 1 and 3 never come, 2 is deleted
  daemon.store(ids[0], "there");
  daemon.intercept([&daemon, deleted = ids[2]](std::uint64_t request, const ipc::Request& message, ByteView) {
    const auto* get = std::get_if<ipc::Get>(&message);
    if (get == nullptr || get->id != deleted) return false;
    daemon.reply(request, ipc::Failed{Code::kDeleted, "it was deleted"});
    return true;
  });
  const auto views = client.gather(ids);  // without a deadline: it must not wait for what never comes
  EXPECT_EQ(views.code(), Code::kDeleted);
  EXPECT_THAT(views.error().message, HasSubstr(ids[2].to_string()));
  const auto gets = daemon.await<ipc::Get>(4);
  ASSERT_EQ(gets.size(), 4U);
  std::vector<std::uint64_t> cancelled;
  for (const auto& [request, cancel] : daemon.await<ipc::Cancel>(2)) cancelled.push_back(cancel.target);
  EXPECT_THAT(cancelled, ::testing::IsSupersetOf({gets[1].first, gets[3].first}));
  EXPECT_EQ(daemon.await_releases(1).size(), 1U) << "the view that came is given back";
  EXPECT_EQ(client.gather(std::vector{ids[0], ObjectId()}).code(), Code::kInvalidArgument);
}

// --- what the bytes are

TEST(ArrayTypes, TravelWithTheObject) {
  FakeDaemon daemon({.arena_bytes = 16 * kMiB, .inline_bytes = 64});
  auto client = daemon.connect();
  const ArrayType array{DType::kF32, {2, 3}};
  for (const std::size_t rows : {2UL, 200UL}) {  // in the message, and in the arena
    const std::string bytes(rows * 12, 'x');
    const ArrayType type{DType::kF32, {rows, 3}};
    const auto id = client.put(as_bytes(bytes), {.metadata = "text", .array = type});
    ASSERT_TRUE(id.ok()) << id.error().to_string();
    const auto later = client.put_async(as_bytes(bytes), {.metadata = "text", .array = type}).get();
    ASSERT_TRUE(later.ok()) << later.error().to_string();
    for (const ObjectId each : {*id, *later}) {
      const auto view = client.get(each);
      ASSERT_TRUE(view.ok());
      EXPECT_EQ(view->array(), type);
      EXPECT_EQ(view->metadata(), "text");
    }
  }
  auto writer = client.create(24, {.array = array});
  ASSERT_TRUE(writer.ok()) << writer.error().to_string();
  ASSERT_TRUE(writer->seal().ok());
  EXPECT_EQ(client.get(writer->id())->array(), array);
  const auto named = client.put(as_bytes("x"), {.name = "weights"});
  ASSERT_TRUE(named.ok()) << named.error().to_string();
  EXPECT_EQ(*named, ObjectId::named("weights"));
  EXPECT_EQ(hoplite::View().array(), ArrayType{});
  EXPECT_EQ(client.get(*client.put(as_bytes("x")))->array(), ArrayType{});
}

TEST(ArrayTypes, NumbersArePutAndReadAsSuch) {
  FakeDaemon daemon({.arena_bytes = 16 * kMiB, .inline_bytes = 64});
  auto client = daemon.connect();
  for (const std::size_t count : {0UL, 6UL, 600UL}) {  // in the message, and in the arena
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), 0.5F);
    const auto view = client.get(*client.put(values, {.array = {.shape = {count}}}));
    ASSERT_TRUE(view.ok()) << view.error().to_string();
    EXPECT_EQ(view->array(), (ArrayType{DType::kF32, {count}}));
    const auto read = view->as<float>();
    ASSERT_TRUE(read.ok()) << read.error().to_string();
    EXPECT_TRUE(std::ranges::equal(*read, values));
    const auto wrong = view->as<std::int32_t>();
    EXPECT_EQ(wrong.code(), Code::kTypeMismatch);
    EXPECT_THAT(wrong.error().message, HasSubstr("its elements are f32, not i32"));
    EXPECT_THAT(wrong.error().message, HasSubstr(view->id().to_string()));
  }
  const std::array<long long, 2> longs = {1, -1};
  EXPECT_EQ(client.get(*client.put_async(std::span(longs)).get())->array().type, DType::kI64);
  EXPECT_EQ(client.get(*client.put(std::vector<std::uint8_t>{1}))->array().type, DType::kU8);
}

TEST(ArrayTypes, PlainBytesCanBeReadAsAnyWholeNumbers) {
  FakeDaemon daemon;
  auto client = daemon.connect();
  const auto view = client.get(*client.put(as_bytes("12345678abcd")));
  ASSERT_TRUE(view.ok());
  EXPECT_EQ(view->as<std::uint8_t>()->size(), 12U);
  EXPECT_EQ(view->as<std::int32_t>()->size(), 3U);
  EXPECT_EQ(view->as<double>().code(), Code::kInvalidArgument) << "one and a half";
  EXPECT_TRUE(hoplite::View().as<double>()->empty());
}

TEST(ArrayTypes, AWriterWritesNumbers) {
  FakeDaemon daemon;
  auto client = daemon.connect();
  auto writer = client.create(24, {.array = {DType::kF64, {3}}});
  ASSERT_TRUE(writer.ok()) << writer.error().to_string();
  EXPECT_EQ(writer->as<float>().code(), Code::kTypeMismatch);
  const auto numbers = writer->as<double>();
  ASSERT_TRUE(numbers.ok()) << numbers.error().to_string();
  std::ranges::fill(*numbers, 2.5);
  ASSERT_TRUE(writer->seal().ok());
  EXPECT_EQ(writer->as<double>().code(), Code::kInvalidArgument) << "it can be written no more";
  const auto view = client.get(writer->id());
  EXPECT_THAT(*view->as<double>(), ::testing::Each(2.5));
}

TEST(ArrayTypes, MustFitTheBytesAndTheLimits) {
  FakeDaemon daemon;
  auto client = daemon.connect();
  const auto refused = [&](std::size_t size, const PutOptions& options) -> std::string {
    const std::string bytes(size, 'x');
    const auto put = client.put(as_bytes(bytes), options);
    EXPECT_EQ(client.put_async(as_bytes(bytes), options).get().code(), put.code());
    EXPECT_EQ(client.create(size, options).code(), put.code());
    if (put.ok()) return "";
    EXPECT_EQ(put.code(), Code::kInvalidArgument);
    return put.error().message;
  };
  EXPECT_EQ(refused(24, {.array = {DType::kF32, {2, 3}}}), "");
  EXPECT_EQ(refused(24, {.array = {DType::kF32, {}}}), "");
  EXPECT_EQ(refused(0, {.array = {DType::kF32, {1ULL << 63, 1ULL << 63, 0}}}), "");
  EXPECT_EQ(refused(1, {.metadata = std::string(4096, 'm'), .array = {DType::kU8, std::vector<std::uint64_t>(32, 1)}}),
            "");
  EXPECT_THAT(refused(20, {.array = {DType::kF32, {2, 3}}}),
              HasSubstr("2 x 3 elements of type f32 has 24 bytes, but the object has 20"));
  EXPECT_THAT(refused(3, {.array = {DType::kI16, {}}}), HasSubstr("not a whole number of elements of type i16"));
  EXPECT_THAT(refused(8, {.array = {DType::kF64, {1ULL << 63, 2}}}), HasSubstr("more than 2^64"));
  EXPECT_THAT(refused(1, {.array = {DType::kU8, std::vector<std::uint64_t>(33, 1)}}), HasSubstr("33 dimensions"));
  EXPECT_THAT(refused(1, {.metadata = std::string(4097, 'm')}), HasSubstr("4097 bytes of metadata"));
  EXPECT_THAT(refused(1, {.id = {1, 1}, .name = "weights"}), HasSubstr("the id does not match the name"));
}

TEST(ArrayTypes, AreShownInTheListOfObjects) {
  FakeDaemon daemon;
  auto client = daemon.connect();
  daemon.intercept([&](std::uint64_t request, const ipc::Request& message, ByteView) {
    if (!std::holds_alternative<ipc::GetObjects>(message)) return false;
    ipc::Objects objects;
    objects.objects.resize(3);
    objects.objects[0].id = ObjectId::named("a");
    objects.objects[2].id = ObjectId::named("b");
    objects.objects[0].meta = encode_metadata({DType::kBF16, {7}, "a", "more"});
    objects.objects[2].meta = objects.objects[0].meta;
    objects.objects[1].meta = encode_metadata({DType::kBytes, {}, "", "only text"});
    daemon.reply(request, objects);
    return true;
  });
  const auto objects = client.objects();
  ASSERT_TRUE(objects.ok());
  ASSERT_EQ(objects->size(), 3U);
  EXPECT_EQ(objects->objects[0].name, "a");
  EXPECT_EQ(objects->objects[2].name, "") << "the name of another object";
  EXPECT_EQ(objects->objects[0].array, (ArrayType{DType::kBF16, {7}}));
  EXPECT_EQ(objects->objects[0].metadata, "more");
  EXPECT_EQ(objects->objects[1].array, ArrayType{});
  EXPECT_EQ(objects->objects[1].metadata, "only text");
}

}  // namespace
}  // namespace hoplite::client
