//===- ArgumentsTest.cpp - A call's arrays as a function takes them -------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Copies.h"
#include "TestEntries.h"

#include "gtest/gtest.h"

#include <algorithm>

using namespace gdn::calls;

namespace {
/// A call with a plan for one variant.
struct Planned : ::testing::Test {
  TestCall given{512};
  TestEntry entry;
  GdnCallPlan plan = {};

  void choose(std::vector<const char *> scalars = {}, bool isPacked = false,
              const char *schedule = "cta_per_head") {
    entry.add("layer", schedule, GDN_DTYPE_F32, isPacked, std::move(scalars));
    plan.variant = &entry.variants.back();
    Call call(given.get());
    ASSERT_EQ(placeArguments(call, plan), GDN_SUCCESS)
        << gdnGetLastErrorMessage();
    placeInputs(plan);
  }

  void addStates() {
    for (const char *name : {"initial_state", "final_state"})
      given.add(name, GDN_DTYPE_F32, {1, 8, 128, 128});
  }
};

/// What a plan's functions take, once its copies are planned.
struct Copied {
  Call call;
  Arguments arguments;
  Copies copies;

  Copied(const GdnCall &given, GdnCallPlan &plan)
      : call(given), arguments(call, plan) {
    copies.plan(arguments, plan);
  }
};
} // namespace

TEST_F(Planned, ArraysAreTakenByName) {
  choose();
  Call call(given.get());
  Arguments arguments(call, plan);
  ASSERT_EQ(arguments.size(), 8);
  EXPECT_EQ(arguments.get(3), &given.tensors["beta"]);
  EXPECT_EQ(arguments.get(4), &given.tensors["gate"]);
  EXPECT_EQ(arguments.get(5), nullptr);
  EXPECT_EQ(arguments.get(6), &given.tensors["o"]);
}

TEST_F(Planned, ScalarsAreThoseOfThePlan) {
  choose({"segment_length", "segment_parts", "longer_segment_length"});
  plan.segment_length = 512;
  plan.segment_parts = 2;
  plan.longer_segment_length = 1024;
  Call call(given.get());
  Arguments arguments(call, plan);
  for (auto [place, value] : {std::pair(6, 512), {7, 2}, {8, 1024}}) {
    EXPECT_EQ(arguments.data()[place].kind, GDN_ARG_I64);
    EXPECT_EQ(arguments.data()[place].value.i64, value);
  }
}

/// States [V, K] are those [K, V] with other strides.
TEST_F(Planned, StatesAreTurned) {
  addStates();
  given.call.state_layout = "vk";
  choose();
  Call call(given.get());
  Arguments arguments(call, plan);
  const GdnTensor *state = arguments.get(5);
  ASSERT_NE(state, nullptr);
  EXPECT_EQ(state->strides[2], 1);
  EXPECT_EQ(state->strides[3], 128);
  EXPECT_EQ(state->data, given.tensors["initial_state"].data);
}

/// Boundaries of 64 bits are their lower halves.
TEST_F(Planned, BoundariesOf64BitsAreReadAs32) {
  given.add("cu_seqlens", GDN_DTYPE_I64, {3});
  choose({}, /*isPacked=*/true);
  Call call(given.get());
  Arguments arguments(call, plan);
  EXPECT_EQ(arguments.get(6)->dtype, GDN_DTYPE_I32);
  EXPECT_EQ(arguments.get(6)->strides[0], 2);
}

/// There may be memory for more states than a forward saves.
TEST_F(Planned, SavedStatesHaveTheExtentOfThePlan) {
  entry.add("layer", "cta_per_head", GDN_DTYPE_F32, /*isPacked=*/false);
  entry.functions.back().add("states", GDN_DTYPE_BF16, {-1, -1, 128, 128});
  GdnFunctionDesc &function = entry.functions.back().desc;
  function.args = entry.functions.back().args.data();
  ++function.num_args;
  plan.variant = &entry.variants.back();
  given.get();
  GdnTensor &states = given.add("states", GDN_DTYPE_BF16, {9, 8, 128, 128});
  given.arrays.push_back({"states", &states});
  given.call.arrays = given.arrays.data();
  ++given.call.num_arrays;
  Call call(given.call);
  ASSERT_EQ(placeArguments(call, plan), GDN_SUCCESS);
  for (int64_t count : {5, 12}) {
    plan.saved_states = count;
    Arguments arguments(call, plan);
    EXPECT_EQ(arguments.get(8)->shape[0], std::min<int64_t>(count, 9));
  }
}

TEST_F(Planned, AnArrayThatIsNotListedIsNamed) {
  entry.add("layer", "cta_per_head", GDN_DTYPE_F32, /*isPacked=*/false);
  entry.functions.back().add("more", GDN_DTYPE_F32, {1});
  GdnFunctionDesc &function = entry.functions.back().desc;
  function.args = entry.functions.back().args.data();
  ++function.num_args;
  plan.variant = &entry.variants.back();
  Call call(given.get());
  EXPECT_EQ(placeArguments(call, plan), GDN_ERROR_INVALID_ARGUMENT);
  EXPECT_STREQ(gdnGetLastErrorMessage(),
               "expected an array called more, which layer takes, got none");
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

TEST_F(Planned, NothingIsCopiedOfDenseArrays) {
  addStates();
  choose();
  auto [call, arguments, copies] = Copied(given.get(), plan);
  EXPECT_TRUE(copies.isEmpty());
}

/// What a tensor map cannot be made of is copied, rows on multiples of 16
/// bytes.
TEST_F(Planned, AMisalignedInputIsCopied) {
  GdnTensor &q = given.tensors["q"];
  q.data = static_cast<char *>(q.data) + 2;
  choose();
  auto [call, arguments, copies] = Copied(given.get(), plan);
  ASSERT_EQ(copies.get().size(), 1u);
  EXPECT_EQ(copies.getBytes(), uint64_t(512) * 8 * 128 * 2);
  EXPECT_NE(arguments.get(0)->data, q.data);
  EXPECT_EQ(arguments.get(0)->strides[1], 8 * 128);
  EXPECT_FALSE(copies.get().front().isTransposed);
}

/// Token by token the same array is read in place.
TEST_F(Planned, FunctionsWithoutMapsReadMore) {
  GdnTensor &q = given.tensors["q"];
  q.data = static_cast<char *>(q.data) + 2;
  choose({}, /*isPacked=*/false, "token");
  auto [call, arguments, copies] = Copied(given.get(), plan);
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
  auto [call, arguments, copies] = Copied(given.get(), plan);
  ASSERT_EQ(copies.get().size(), 1u);
  EXPECT_TRUE(copies.get().front().isTransposed);
  EXPECT_EQ(copies.get().front().inputs.size(), 3u);
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
  Call read(given.get());
  ASSERT_EQ(placeArguments(read, plan), GDN_SUCCESS);
  placeInputs(plan);
  auto [call, arguments, copies] = Copied(given.get(), plan);
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
    auto [call, arguments, copies] = Copied(given.get(), plan);
    EXPECT_EQ(copies.get().size(), static_cast<size_t>(parts));
  }
}
