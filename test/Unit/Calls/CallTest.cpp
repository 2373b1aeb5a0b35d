//===- CallTest.cpp - Which function a call runs --------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arguments.h"
#include "TestTable.h"

#include <thread>

#include "gtest/gtest.h"

using gdn::calls::Arguments;
using gdn::calls::Call;

/// Few items have a CTA for each V tile, many one for each head.
TEST_F(Table, TheScheduleFollowsFromTheSizes) {
  TestCall few(512, 4), many(512, 64, 8);
  few.call.split = many.call.split = GDN_SPLIT_NEVER;
  EXPECT_EQ(choose(few), "per_v_tile");
  EXPECT_EQ(choose(many), "per_head");
  EXPECT_EQ(plan.segment_length, 0);
  EXPECT_GT(plan.seconds, 0);
}

TEST_F(Table, StatesChooseTheEntry) {
  TestCall none(512), single(512), half(512);
  for (const char *name : {"initial_state", "final_state"}) {
    single.add(name, GDN_DTYPE_F32, {1, 8, 128, 128});
    half.add(name, GDN_DTYPE_BF16, {1, 8, 128, 128});
  }
  for (auto [call, entry] : {std::pair(&none, &rows), std::pair(&single, &rows),
                             std::pair(&half, &halves)}) {
    choose(*call);
    EXPECT_EQ(plan.entry, &entry->desc);
  }
}

namespace {
/// A table with an entry for states in a pool, and a call of two rows that has
/// one.
struct Pools : Table {
  TestEntry pools;
  TestCall call{512, 8, 2};

  Pools() {
    pools.add("pool", "cta_per_head", GDN_DTYPE_F32, /*isPacked=*/false, {},
              "kv", /*isLate=*/false, TestStates::Pool);
    entries[2] = &pools.desc;
    GdnTensor &pool =
        call.add("initial_state", GDN_DTYPE_F32, {16, 8, 128, 128});
    call.tensors["final_state"] = pool;
    call.add("state_indices", GDN_DTYPE_I64, {2});
    call.call.first_state = 1;
  }
};
} // namespace

TEST_F(Pools, SequencesNameRows) {
  ASSERT_EQ(choose(call), "pool");
  Call read(call.get());
  Arguments arguments(read, plan);
  int32_t rows = arguments.find("state_indices"),
          first = arguments.find("first_state");
  EXPECT_EQ(arguments.get(rows)->dtype, GDN_DTYPE_I32);
  EXPECT_EQ(arguments.get(rows)->strides[0], 2);
  EXPECT_EQ(arguments.data()[first].value.i64, 1);
  EXPECT_EQ(arguments.get(arguments.find("initial_state")),
            &call.tensors["initial_state"]);
}

/// A call that does not say which sequences begin with zeros need not list it.
TEST_F(Pools, SequencesMayBeginWithZeros) {
  for (bool says : {false, true}) {
    if (says)
      call.add("has_initial_state", GDN_DTYPE_U8, {2});
    GdnCall given = call.get();
    if (!says)
      std::erase_if(call.arrays, [](const GdnCallArray &array) {
        return std::string_view(array.name) == "has_initial_state";
      });
    given.arrays = call.arrays.data();
    given.num_arrays = static_cast<int32_t>(call.arrays.size());
    ASSERT_EQ(gdnCallPlan(&table, &given, &plan), GDN_SUCCESS);
    Call read(given);
    Arguments arguments(read, plan);
    EXPECT_EQ(arguments.get(arguments.find("has_initial_state")),
              says ? &call.tensors["has_initial_state"] : nullptr);
  }
}

/// A call that keeps the states after its tokens runs a function that does, and
/// others do not. Tables of 64 bits are their lower halves.
TEST_F(Pools, StatesAfterTokensAreKept) {
  TestEntry steps;
  steps.facts[0].value = "gdn.recurrent_gated_delta_rule";
  steps.add("steps", "token", GDN_DTYPE_F32, /*isPacked=*/false, {}, "kv",
            /*isLate=*/false, TestStates::Steps);
  entries[1] = &steps.desc;
  EXPECT_EQ(choose(call), "pool");
  GdnTensor pool = call.tensors["initial_state"];
  call.tensors.erase("final_state");
  call.tensors["step_states"] = pool;
  call.add("step_indices", GDN_DTYPE_I64, {2, 4});
  ASSERT_EQ(choose(call), "steps");
  Call read(call.get());
  Arguments arguments(read, plan);
  const GdnTensor *slots = arguments.get(arguments.find("step_indices"));
  EXPECT_EQ(slots->dtype, GDN_DTYPE_I32);
  EXPECT_EQ(slots->strides[0], 8);
  EXPECT_EQ(slots->strides[1], 2);
  EXPECT_EQ(arguments.get(arguments.find("num_accepted")), nullptr);
  // None for trees.
  call.add("parents", GDN_DTYPE_I32, {2, 4});
  GdnCall tree = call.get();
  EXPECT_EQ(gdnCallPlan(&this->table, &tree, &plan), GDN_ERROR_NOT_SERVED);
  EXPECT_NE(std::string_view(gdnGetLastErrorMessage()).find("parents"),
            std::string_view::npos);
}

/// So does one that keeps the states in between, in either layout. They have
/// the type of the function's.
TEST_F(Pools, StatesInBetweenAreKept) {
  TestEntry kept;
  kept.add("kept", "cta_per_head", GDN_DTYPE_F32, /*isPacked=*/false, {}, "kv",
           /*isLate=*/false, TestStates::Kept);
  entries[1] = &kept.desc;
  EXPECT_EQ(choose(call), "pool");
  call.add("step_states", GDN_DTYPE_F32, {5, 8, 128, 128});
  call.add("step_starts", GDN_DTYPE_I64, {3});
  call.add("step_intervals", GDN_DTYPE_I32, {2}, {0});
  call.call.state_layout = "vk";
  ASSERT_EQ(choose(call), "kept");
  Call read(call.get());
  Arguments arguments(read, plan);
  const GdnTensor *starts = arguments.get(arguments.find("step_starts"));
  EXPECT_EQ(starts->dtype, GDN_DTYPE_I32);
  EXPECT_EQ(starts->strides[0], 2);
  const GdnTensor *states = arguments.get(arguments.find("step_states"));
  EXPECT_EQ(states->strides[2], 1);
  EXPECT_EQ(states->strides[3], 128);
  EXPECT_EQ(arguments.get(arguments.find("step_indices")), nullptr);
  // In rows that sequences name, those of the pool, instead.
  TestCall named = call;
  named.tensors.erase("step_starts");
  named.tensors["step_states"] = named.tensors["initial_state"];
  named.add("step_indices", GDN_DTYPE_I64, {2, 3});
  ASSERT_EQ(choose(named), "kept");
  call.tensors["step_states"].dtype = GDN_DTYPE_BF16;
  GdnCall other = call.get();
  EXPECT_EQ(gdnCallPlan(&this->table, &other, &plan), GDN_ERROR_NOT_SERVED);
  EXPECT_NE(std::string_view(gdnGetLastErrorMessage())
                .find("step_states: expected float32"),
            std::string_view::npos);
}

/// Functions of tokens want rows of states side by side.
TEST_F(Pools, FewTokensOfAStridedPoolRunByChunks) {
  TestEntry tokens;
  tokens.facts[0].value = "gdn.recurrent_gated_delta_rule";
  tokens.add("by token", "token", GDN_DTYPE_F32, /*isPacked=*/false, {}, "kv",
             /*isLate=*/false, TestStates::Pool);
  entries[1] = &tokens.desc;
  TestCall few(1, 8, 2);
  few.add("state_indices", GDN_DTYPE_I32, {2});
  for (int64_t step : {1, 2}) {
    few.tensors["final_state"] =
        few.add("initial_state", GDN_DTYPE_F32, {16, 8, 128, 128},
                {8 * 128 * 128 * step, 128 * 128 * step, 128 * step, step});
    EXPECT_EQ(choose(few), step == 1 ? "by token" : "pool");
  }
}

/// A function for pools serves no call without one.
TEST_F(Pools, OtherCallsHaveOtherFunctions) {
  TestCall other(512, 64, 8);
  other.call.split = GDN_SPLIT_NEVER;
  EXPECT_EQ(choose(other), "per_head");
}

TEST_F(Pools, StatesAreUpdatedInPlace) {
  call.tensors["final_state"].data = nullptr;
  EXPECT_EQ(choose(call), "final_state: expected initial_state, the pool, with "
                          "state_indices, got another tensor");
  call.tensors.erase("final_state");
  EXPECT_EQ(choose(call), "final_state: expected initial_state, the pool, with "
                          "state_indices, got None");
  call.tensors.erase("initial_state");
  EXPECT_EQ(choose(call), "initial_state: expected a pool of states with "
                          "state_indices, got None");
}

/// Without functions for pools the call hears so.
TEST_F(Pools, APoolThatNobodyReadsIsRefused) {
  table.num_entries = 2;
  EXPECT_EQ(choose(call), "not served: state_indices: expected None on a GPU "
                          "in this version, got int32");
}

/// Packed sequences have an entry with one schedule alone, which is taken.
TEST_F(Table, AnEntryMayLackASchedule) {
  TestCall call(512, 2);
  call.add("cu_seqlens", GDN_DTYPE_I32, {3});
  EXPECT_EQ(choose(call), "one");
}

TEST_F(Table, ALongSequenceIsCut) {
  TestCall call(32768, 8);
  EXPECT_EQ(choose(call), "waiting");
  EXPECT_GT(plan.segment_length, 0);
  EXPECT_EQ(plan.segment_length % 32, 0);
  EXPECT_EQ(plan.segment_parts, 0);
}

TEST_F(Table, ALengthIsTakenAsItIs) {
  TestCall call(4096, 64);
  call.call.split = GDN_SPLIT_LENGTH;
  call.call.split_value = 96;
  EXPECT_EQ(choose(call), "waiting");
  EXPECT_EQ(plan.segment_length, 96);
  EXPECT_STREQ(plan.variant->schedule, "cta_per_head");
}

/// A length of 0 is no cut, and neither do sizes choose the function.
TEST_F(Table, ALengthOfZeroKeepsSequencesWhole) {
  TestCall call(32768, 8);
  call.call.split = GDN_SPLIT_LENGTH;
  EXPECT_EQ(choose(call), "per_head");
  EXPECT_EQ(plan.segment_length, 0);
  call.facts[0].value = "gdn.recurrent_gated_delta_rule";
  EXPECT_EQ(choose(call), "not served: split_whole: expected a form that "
                          "functions token by token have on a GPU in this "
                          "version, got another");
}

TEST_F(Table, RowsWithGapsStayWhole) {
  TestCall call(32768, 8, 2);
  call.add("v", GDN_DTYPE_BF16, {2, 32768, 8, 128}, {1 << 27, 1024, 128, 1});
  EXPECT_EQ(choose(call), "per_v_tile");
  call.call.split = GDN_SPLIT_SEGMENTS;
  call.call.split_value = 4;
  EXPECT_EQ(choose(call),
            "not served: split_into: expected batch rows of v that lie one "
            "behind the other on a GPU in this version, got rows with gaps");
}

/// Functions of packed sequences have no variants of segments.
TEST_F(Table, ACutThatIsNotThereIsRefused) {
  TestCall call(512);
  call.add("cu_seqlens", GDN_DTYPE_I32, {3});
  call.call.split = GDN_SPLIT_LENGTH;
  call.call.split_value = 64;
  EXPECT_EQ(choose(call).find("not served: split_length: expected a form of"),
            0u);
}

TEST_F(Table, WhatIsMissingIsNamedInTheCallersWords) {
  TestCall call(512);
  call.add("gate", GDN_DTYPE_BF16, {1, 512, 8});
  EXPECT_EQ(choose(call), "not served: gate: expected float32 on a GPU in this "
                          "version, got bfloat16");
  const GdnFact words[] = {{"gate", "g"}, {"gate_domain=linear", "'linear'"}};
  call.call.words = words;
  call.call.num_words = 2;
  EXPECT_EQ(choose(call), "not served: g: expected float32 on a GPU in this "
                          "version, got bfloat16");
  call.facts[1].value = "linear";
  EXPECT_EQ(choose(call), "not served: gate_domain: expected log on a GPU in "
                          "this version, got 'linear'");
}

TEST_F(Table, BadCallsAreRefused) {
  TestCall call(512);
  call.call.scale = 0.5;
  EXPECT_EQ(choose(call).find("not served: scale: expected K^(-1/2)"), 0u);
  call.call.scale = 0;
  call.tensors.erase("k");
  EXPECT_EQ(choose(call), "k: expected a tensor, got None");
  TestCall later(512);
  later.get();
  later.call.struct_size += 8;
  EXPECT_EQ(gdnCallPlan(&table, &later.call, &plan), GDN_ERROR_VERSION);
  EXPECT_EQ(gdnCallPlan(nullptr, &later.call, &plan),
            GDN_ERROR_INVALID_ARGUMENT);
}

/// Whatever the form of a call: another device may have none.
TEST_F(Table, TheDeviceIsLookedAtFirst) {
  TestCall call(512);
  call.add("gate", GDN_DTYPE_BF16, {1, 512, 8});
  call.call.device = 99;
  EXPECT_EQ(choose(call).find("expected cuda:99 to be a GPU of compute "
                              "capability 9.0 (Hopper), got "),
            0u);
  call.call.device = 0;
  table.num_entries = 0;
  EXPECT_EQ(choose(call), "expected a table of functions, got an empty one");
}

//===----------------------------------------------------------------------===//
// Known calls
//===----------------------------------------------------------------------===//

/// A plan is known of calls that differ in addresses alone.
TEST_F(Table, CallsAlikeHaveAPlan) {
  TestCall call(512, 4);
  EXPECT_EQ(gdnCallRecall(&table, &call.get()), nullptr);
  choose(call);
  const GdnCallPlan *known = gdnCallRecall(&table, &call.get());
  ASSERT_NE(known, nullptr);
  EXPECT_EQ(known->variant, plan.variant);
  GdnTensor &q = call.tensors["q"];
  auto *data = static_cast<char *>(q.data);
  q.data = data + 4096;
  EXPECT_EQ(gdnCallRecall(&table, &call.get()), known);
  q.data = data + 4;
  EXPECT_EQ(gdnCallRecall(&table, &call.get()), nullptr);
  q.data = call.tensors["k"].data;
  EXPECT_EQ(gdnCallRecall(&table, &call.get()), nullptr);
  q.data = data;
  EXPECT_EQ(gdnCallRecall(&table, &call.get()), known);
}

TEST_F(Table, WhatAPlanFollowsFromIsKnown) {
  TestCall call(512, 4);
  choose(call);
  call.facts[1].value = "linear";
  EXPECT_EQ(gdnCallRecall(&table, &call.get()), nullptr);
  call.facts[1].value = "log";
  call.call.scale = 2;
  EXPECT_EQ(gdnCallRecall(&table, &call.get()), nullptr);
  call.call.scale = 0;
  call.call.longest = 12;
  EXPECT_EQ(gdnCallRecall(&table, &call.get()), nullptr);
  call.call.longest = 0;
  GdnCallTable other = table;
  EXPECT_EQ(gdnCallRecall(&other, &call.get()), nullptr);
  std::thread([&] {
    EXPECT_EQ(gdnCallRecall(&table, &call.get()), nullptr);
  }).join();
  TestCall longer(513, 4);
  EXPECT_EQ(gdnCallRecall(&table, &longer.get()), nullptr);
}

/// The last eight are kept.
TEST_F(Table, OldCallsAreForgotten) {
  TestCall first(512, 4);
  choose(first);
  for (int tokens = 1; tokens <= 8; ++tokens) {
    EXPECT_NE(gdnCallRecall(&table, &first.get()), nullptr);
    TestCall next(tokens, 4);
    choose(next);
  }
  EXPECT_EQ(gdnCallRecall(&table, &first.get()), nullptr);
}
