//===- ConversionsTest.cpp - Arrays that a function does not take ---------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestPlan.h"

#include <cmath>

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

TEST_F(Planned, NothingIsCopiedOfDenseArrays) {
  addStates();
  choose();
  auto [call, arguments, copies] = Converted(given.get(), plan);
  EXPECT_TRUE(copies.isEmpty());
}

/// What a tensor map cannot be made of is copied, rows on multiples of 16
/// bytes.
TEST_F(Planned, AMisalignedInputIsCopied) {
  GdnTensor &q = given.tensors["q"];
  q.data = static_cast<char *>(q.data) + 2;
  choose();
  auto [call, arguments, copies] = Converted(given.get(), plan);
  ASSERT_EQ(copies.get().size(), 1u);
  EXPECT_EQ(copies.getBytes(), uint64_t(512) * 8 * 128 * 2);
  EXPECT_NE(arguments.get(0)->data, q.data);
  EXPECT_EQ(arguments.get(0)->strides[1], 8 * 128);
  EXPECT_EQ(copies.get().front().kind, kCopy);
}

/// Token by token the same array is read in place.
TEST_F(Planned, FunctionsWithoutMapsReadMore) {
  GdnTensor &q = given.tensors["q"];
  q.data = static_cast<char *>(q.data) + 2;
  choose({}, /*isPacked=*/false, "token");
  auto [call, arguments, copies] = Converted(given.get(), plan);
  EXPECT_TRUE(copies.isEmpty());
}

/// q, k and v of a convolution, [channels, tokens], have one copy.
TEST_F(Planned, ViewsOfOneBufferHaveOneCopy) {
  auto *base = reinterpret_cast<char *>(uintptr_t(1) << 40);
  int64_t offset = 0;
  for (const char *name : {"q", "k", "v"}) {
    given
        .add(name, GDN_DTYPE_BF16, {1, 512, 8, 128},
             {3 * 8 * 128 * 512, 1, 128 * 512, 512})
        .data = base + offset;
    offset += 8 * 128 * 512 * 2;
  }
  choose();
  auto [call, arguments, copies] = Converted(given.get(), plan);
  ASSERT_EQ(copies.get().size(), 1u);
  EXPECT_EQ(copies.get().front().kind, kTranspose);
  EXPECT_EQ(copies.get().front().names.size(), 3u);
  EXPECT_EQ(arguments.get(1)->strides[1], 3 * 8 * 128);
  EXPECT_EQ(static_cast<const char *>(arguments.get(1)->data) -
                static_cast<const char *>(arguments.get(0)->data),
            8 * 128 * 2);
}

/// A function writes its pool, so that no copy of it would do.
TEST_F(Planned, APoolIsNotCopied) {
  for (const char *name : {"initial_state", "final_state"})
    given.add(name, GDN_DTYPE_F32, {16, 8, 128, 128},
              {1 << 20, 1 << 15, 256, 2});
  given.tensors["final_state"].data = given.tensors["initial_state"].data;
  given.add("state_indices", GDN_DTYPE_I32, {1});
  entry.add("layer", "token", GDN_DTYPE_F32, /*isPacked=*/false, {}, "kv",
            /*isLate=*/false, TestStates::Pool);
  entry.functions.back().args[5].flags = 0;
  plan.variant = &entry.variants.back();
  plan.entry = &entry.desc;
  Call read(given.get());
  ASSERT_EQ(findPlaces(read, plan), nullptr);
  placeConversions(read, plan);
  auto [call, arguments, copies] = Converted(given.get(), plan);
  EXPECT_TRUE(copies.isEmpty());
  int32_t pool = arguments.find("initial_state");
  EXPECT_EQ(pool, 5);
  EXPECT_EQ(arguments.get(pool), &given.tensors["initial_state"]);
}

/// In place, segments that do not wait read the initial state from a copy.
TEST_F(Planned, StatesThatAreReplacedEarlyAreCopied) {
  addStates();
  given.tensors["final_state"].data = given.tensors["initial_state"].data;
  choose({"segment_length", "segment_parts"});
  for (int64_t parts : {0, 1}) {
    plan.segment_parts = parts;
    placeConversions(Call(given.get()), plan);
    auto [call, arguments, copies] = Converted(given.get(), plan);
    EXPECT_EQ(copies.get().size(), static_cast<size_t>(parts));
  }
}

//===----------------------------------------------------------------------===//
// Types, extents, domains
//===----------------------------------------------------------------------===//

/// Each array has memory of its own, dense and on multiples of 16 bytes.
TEST_F(Planned, OtherTypesAreCast) {
  given.add("gate", GDN_DTYPE_BF16, {1, 512, 8});
  given.add("beta", GDN_DTYPE_F16, {1, 512, 8}, {4096, 1, 512});
  choose();
  auto [call, arguments, found] = Converted(given.get(), plan);
  ASSERT_EQ(found.get().size(), 2u);
  for (const Conversion &one : found.get()) {
    EXPECT_EQ(one.kind, kCast);
    EXPECT_FALSE(one.isBehind);
    EXPECT_EQ(one.target.tensor.dtype, GDN_DTYPE_F32);
    EXPECT_EQ(one.getBytes(), 512 * 8 * (2 + 4));
  }
  EXPECT_EQ(found.getBytes(), uint64_t(2) * 512 * 8 * 4);
  const GdnTensor *beta = arguments.get(3);
  EXPECT_EQ(beta->dtype, GDN_DTYPE_F32);
  EXPECT_EQ(beta->strides[1], 8);
  EXPECT_EQ(beta->strides[2], 1);
  EXPECT_NE(arguments.get(4)->data, beta->data);
}

/// Heads of 100 channels are zeros from there on, in states to both sides.
TEST_F(Planned, HeadsGetMoreChannels) {
  for (const char *name : {"q", "k", "v", "o"})
    given.add(name, GDN_DTYPE_BF16, {1, 512, 8, 100});
  for (const char *name : {"initial_state", "final_state"})
    given.add(name, GDN_DTYPE_F32, {1, 8, 100, 100});
  choose();
  auto [call, arguments, found] = Converted(given.get(), plan);
  ASSERT_EQ(found.get().size(), 6u);
  for (const Conversion &one : found.get()) {
    const View &wide = one.isBehind ? one.source : one.target,
               &narrow = one.isBehind ? one.target : one.source;
    EXPECT_EQ(one.kind, kCast);
    EXPECT_EQ(wide.shape[3], 128);
    EXPECT_EQ(narrow.shape[3], 100);
    EXPECT_EQ(wide.shape[2], 8);
  }
  const Conversion &o = *std::next(found.get().begin(), 4);
  EXPECT_STREQ(o.names.front(), "o");
  EXPECT_NEAR(o.factor, std::sqrt(1.28), 1e-12);
  const Conversion &state = found.get().back();
  EXPECT_EQ(state.source.shape[1], 128);
  EXPECT_EQ(state.target.shape[1], 100);
  EXPECT_EQ(state.target.tensor.data, given.tensors["final_state"].data);
  EXPECT_EQ(state.factor, 1);
  EXPECT_EQ(arguments.get(arguments.find("final_state"))->data,
            state.source.tensor.data);
}

/// One row of numbers stands for all of an array.
TEST_F(Planned, AbsentGatesAreFilled) {
  given.tensors.erase("gate");
  given.tensors.erase("beta");
  choose();
  auto [call, arguments, found] = Converted(given.get(), plan);
  ASSERT_EQ(found.get().size(), 2u);
  EXPECT_EQ(found.get().front().kind, kFill);
  EXPECT_EQ(found.get().front().factor, 0);
  EXPECT_EQ(found.get().back().factor, 1);
  for (int place : {3, 4}) {
    const GdnTensor *array = arguments.get(place);
    ASSERT_NE(array, nullptr);
    EXPECT_EQ(array->shape[1], 512);
    EXPECT_EQ(array->strides[1], 0);
    EXPECT_EQ(array->strides[2], 1);
  }
}

TEST_F(Planned, DomainsNameTheConversion) {
  given.facts[1].value = "softplus";
  given.facts[2].value = "doubled_logit";
  choose();
  given.get();
  GdnTensor &parameter = given.add("a_log", GDN_DTYPE_BF16, {8});
  given.arrays.push_back({"a_log", &parameter});
  given.call.arrays = given.arrays.data();
  ++given.call.num_arrays;
  auto [call, arguments, found] = Converted(given.call, plan);
  std::vector<std::string> kinds;
  for (const Conversion &one : found.get())
    kinds.push_back(one.kind);
  EXPECT_EQ(kinds, (std::vector<std::string>{"cast", "softplus_to_log",
                                             "doubled_logit_to_value"}));
  const Conversion &gate = *std::next(found.get().begin());
  EXPECT_EQ(gate.aLog.tensor.data, found.get().front().target.tensor.data);
  EXPECT_EQ(gate.aLog.tensor.dtype, GDN_DTYPE_F32);
  EXPECT_EQ(gate.dtBias.tensor.rank, 0);
}

/// Where nothing else is to be done, an output is multiplied where it lies.
TEST_F(Planned, AScaleIsAFactorBehind) {
  given.call.scale = 1;
  choose();
  auto [call, arguments, found] = Converted(given.get(), plan);
  ASSERT_EQ(found.get().size(), 1u);
  const Conversion &one = found.get().front();
  EXPECT_TRUE(one.isBehind);
  EXPECT_NEAR(one.factor, std::sqrt(128.0), 1e-12);
  EXPECT_EQ(one.source.tensor.data, given.tensors["o"].data);
  EXPECT_EQ(one.target.tensor.data, given.tensors["o"].data);
  EXPECT_EQ(found.getBytes(), 0u);
}

/// A state that nobody asked for has memory, and is not brought back.
TEST_F(Planned, AFunctionWithAStateGivesOne) {
  given.add("initial_state", GDN_DTYPE_F32, {1, 8, 128, 128});
  choose();
  auto [call, arguments, found] = Converted(given.get(), plan);
  EXPECT_TRUE(found.get().empty());
  EXPECT_FALSE(found.isEmpty());
  EXPECT_EQ(found.getBytes(), uint64_t(8) * 128 * 128 * 4);
  EXPECT_NE(arguments.get(arguments.find("final_state")), nullptr);
}

/// Outputs of any strides.
TEST_F(Planned, AnOutputThatIsNotWrittenInPlaceIsBroughtBack) {
  given.add("o", GDN_DTYPE_BF16, {1, 512, 8, 128}, {1 << 19, 1, 512, 4096});
  choose();
  auto [call, arguments, found] = Converted(given.get(), plan);
  ASSERT_EQ(found.get().size(), 1u);
  EXPECT_TRUE(found.get().front().isBehind);
  EXPECT_EQ(found.get().front().target.strides[1], 1);
  EXPECT_EQ(arguments.get(6)->strides[1], 8 * 128);
}
