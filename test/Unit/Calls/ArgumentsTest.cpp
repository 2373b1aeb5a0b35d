//===- ArgumentsTest.cpp - A call's arrays as a function takes them -------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestPlan.h"

#include "gtest/gtest.h"

#include <algorithm>

using namespace gdn::calls;

/// Gives the function, and the call with an array of `shape`, one more argument
/// of `extents`.
static void addArgument(Planned &planned, const char *name, int32_t dtype,
                        std::vector<int64_t> extents,
                        std::vector<int64_t> shape) {
  TestFunction &last = planned.entry.functions.back();
  last.add(name, dtype, std::move(extents));
  last.desc.args = last.args.data();
  ++last.desc.num_args;
  planned.given.get();
  GdnTensor &array = planned.given.add(name, dtype, std::move(shape));
  planned.given.arrays.push_back({name, &array});
  planned.given.call.arrays = planned.given.arrays.data();
  ++planned.given.call.num_arrays;
}

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
  plan.variant = &entry.variants.back();
  addArgument(*this, "states", GDN_DTYPE_BF16, {-1, -1, 128, 128},
              {9, 8, 128, 128});
  Call call(given.call);
  ASSERT_EQ(findPlaces(call, plan), nullptr);
  for (int64_t count : {5, 12}) {
    plan.saved_states = count;
    Arguments arguments(call, plan);
    EXPECT_EQ(arguments.get(8)->shape[0], std::min<int64_t>(count, 9));
  }
}

/// A function may have more channels than the call, whose biases lie in a row.
TEST_F(Planned, BiasesInARowAreThoseOfTheCallsChannels) {
  given.add("gate", GDN_DTYPE_F32, {1, 512, 8, 64});
  entry.add("layer", "cta_per_head", GDN_DTYPE_F32, /*isPacked=*/false);
  plan.variant = &entry.variants.back();
  addArgument(*this, "dt_bias", GDN_DTYPE_F32, {-1, 128}, {8 * 64});
  Call call(given.call);
  ASSERT_EQ(findPlaces(call, plan), nullptr);
  Arguments arguments(call, plan);
  const GdnTensor *bias = arguments.get(8);
  ASSERT_EQ(bias->rank, 2);
  EXPECT_EQ(bias->shape[0], 8);
  EXPECT_EQ(bias->shape[1], 64);
  EXPECT_EQ(bias->strides[0], 64);
}

TEST_F(Planned, AnArrayThatIsNotListedIsNamed) {
  entry.add("layer", "cta_per_head", GDN_DTYPE_F32, /*isPacked=*/false);
  entry.functions.back().add("more", GDN_DTYPE_F32, {1});
  GdnFunctionDesc &function = entry.functions.back().desc;
  function.args = entry.functions.back().args.data();
  ++function.num_args;
  plan.variant = &entry.variants.back();
  Call call(given.get());
  EXPECT_EQ(guarded([&] { placeArguments(call, plan); }),
            GDN_ERROR_INVALID_ARGUMENT);
  EXPECT_STREQ(gdnGetLastErrorMessage(),
               "expected an array called more, which layer takes, got none");
}
