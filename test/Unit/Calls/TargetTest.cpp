//===- TargetTest.cpp - The form that a call is brought to ----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Target.h"
#include "TestTable.h"

#include <cmath>
#include <set>
#include <string>
#include <utility>

namespace {
/// The table with a function token by token for the halves, and conversions.
struct Convertible : Table {
  TestEntry tokens;
  std::vector<GdnConversionDesc> conversions;

  Convertible() {
    tokens.facts[0].value = "gdn.recurrent_gated_delta_rule";
    tokens.add("by token", "token", GDN_DTYPE_BF16, /*isPacked=*/false);
    entries[1] = &tokens.desc;
    add("cast", GDN_DTYPE_BF16, GDN_DTYPE_F32);
    add("cast", GDN_DTYPE_F32, GDN_DTYPE_BF16);
  }

  void add(const char *kind, int32_t from, int32_t to) {
    conversions.push_back({kind, from, to, 1, &tokens.functions.back().desc});
    table.conversions = conversions.data();
    table.num_conversions = static_cast<int32_t>(conversions.size());
  }

  std::string chooseWhole(TestCall &call) {
    call.call.split = GDN_SPLIT_NEVER;
    return choose(call);
  }
};
} // namespace

TEST_F(Convertible, TypesOfGatesAreWidened) {
  TestCall call(512, 4);
  call.add("gate", GDN_DTYPE_BF16, {1, 512, 4});
  EXPECT_EQ(chooseWhole(call), "per_v_tile");
}

/// Only what the table converts counts.
TEST_F(Convertible, AConversionThatIsNotThereIsNoWay) {
  TestCall call(512, 4);
  call.facts[1].value = "linear";
  EXPECT_EQ(chooseWhole(call), "not served: gate_domain: expected log on a GPU "
                               "in this version, got linear");
  add("linear_to_log", GDN_DTYPE_F32, GDN_DTYPE_F32);
  EXPECT_EQ(chooseWhole(call), "per_v_tile");
  call.tensors.erase("beta");
  EXPECT_EQ(chooseWhole(call), "not served: gate_domain: expected log on a GPU "
                               "in this version, got linear");
  add("fill", 0, GDN_DTYPE_F32);
  EXPECT_EQ(chooseWhole(call), "per_v_tile");
}

TEST_F(Convertible, ChannelsAreThoseOfTheNextFunction) {
  TestCall call(512, 4);
  for (const char *name : {"q", "k", "v", "o"})
    call.add(name, GDN_DTYPE_BF16, {1, 512, 4, 100});
  EXPECT_EQ(chooseWhole(call).find("not served: q, v: expected K = V = 128"),
            0u);
  add("cast", GDN_DTYPE_BF16, GDN_DTYPE_BF16);
  EXPECT_EQ(chooseWhole(call), "per_v_tile");
  for (const char *name : {"q", "k", "v", "o"})
    call.add(name, GDN_DTYPE_BF16, {1, 512, 4, 200});
  EXPECT_EQ(chooseWhole(call), "q: expected K of 1 to 128, got K = 200");
}

/// Few tokens run token by token with states as they are, many in chunks with
/// states in float32.
TEST_F(Convertible, LongSequencesRunInChunks) {
  for (int64_t length : {64, 65}) {
    TestCall call(length, 4);
    for (const char *name : {"initial_state", "final_state"})
      call.add(name, GDN_DTYPE_BF16, {1, 4, 128, 128});
    EXPECT_EQ(chooseWhole(call), length == 64 ? "by token" : "per_v_tile");
  }
}

/// The function of tokens is computed token by token, if it can be.
TEST_F(Convertible, AFunctionOfTokensIsNearer) {
  TestCall call(512, 4);
  call.facts[0].value = "gdn.recurrent_gated_delta_rule";
  EXPECT_EQ(chooseWhole(call), "by token");
  add("linear_to_log", GDN_DTYPE_F32, GDN_DTYPE_F32);
  call.facts[1].value = "linear";
  EXPECT_EQ(chooseWhole(call), "by token");
}

/// One that no length may choose is computed so.
TEST_F(Convertible, FixedTokensHaveNoOtherFunctions) {
  TestCall call(32768, 4);
  for (const char *name : {"initial_state", "final_state"})
    call.add(name, GDN_DTYPE_BF16, {1, 4, 128, 128});
  call.facts[0].value = "gdn.recurrent_gated_delta_rule";
  call.call.split = GDN_SPLIT_LENGTH;
  EXPECT_EQ(choose(call), "by token");
  call.facts[1].value = "linear";
  EXPECT_EQ(choose(call), "not served: gate_domain: expected log on a GPU in "
                          "this version, got linear");
}

/// No length chooses the functions of a call whose segments have one.
TEST_F(Convertible, AGivenLengthAsksForSegments) {
  TestCall call(4, 4);
  for (const char *name : {"initial_state", "final_state"})
    call.add(name, GDN_DTYPE_BF16, {1, 4, 128, 128});
  call.call.split = GDN_SPLIT_LENGTH;
  call.call.split_value = 64;
  EXPECT_EQ(choose(call), "waiting");
}

TEST_F(Convertible, AScaleNeedsACast) {
  TestCall call(512, 4);
  call.call.scale = 0.5;
  EXPECT_EQ(chooseWhole(call).find("not served: scale: expected K^(-1/2)"), 0u);
  add("cast", GDN_DTYPE_BF16, GDN_DTYPE_BF16);
  EXPECT_EQ(chooseWhole(call), "per_v_tile");
  call.call.scale = INFINITY;
  EXPECT_EQ(chooseWhole(call), "scale: expected a finite number, got inf");
}

/// Segments that a call asks for are nearer than the same form without.
TEST_F(Convertible, ACallThatAsksForSegmentsGetsThem) {
  TestCall call(4096, 4);
  for (const char *name : {"initial_state", "final_state"})
    call.add(name, GDN_DTYPE_BF16, {1, 4, 128, 128});
  call.call.split = GDN_SPLIT_SEGMENTS;
  call.call.split_value = 3;
  EXPECT_EQ(choose(call), "waiting");
  table.num_conversions = 0;
  EXPECT_EQ(choose(call).find("not served: split_into: expected a form of"),
            0u);
}

/// What is converted lies densely, so that its rows have no gaps.
TEST_F(Convertible, ConvertedRowsAreCut) {
  TestCall call(32768, 8, 2);
  call.add("gate", GDN_DTYPE_BF16, {2, 32768, 8}, {1 << 20, 8, 1});
  EXPECT_EQ(choose(call), "waiting");
  call.add("gate", GDN_DTYPE_F32, {2, 32768, 8}, {1 << 20, 8, 1});
  EXPECT_EQ(choose(call), "per_v_tile");
}

/// A gate a channel has as many bytes as a head has channels in the form.
TEST(DescribedForm, GatesOfChannelsCount) {
  TestCall given(512);
  gdn::calls::Call call(given.get());
  call.read();
  gdn::calls::Signature form =
      gdn::calls::signatureOf(call, gdn::calls::kChunkOp);
  EXPECT_EQ(gdn::calls::describe(call, form).gateBytes, 4 + 4);
  form.hasChannelGates = true;
  EXPECT_EQ(gdn::calls::describe(call, form).gateBytes, 4 * 128 + 4);
}

/// What starts on its own leaves functions of waiting segments nothing to do,
/// and segments of two lengths are never launched late: a wheel lacks both.
TEST_F(Table, SegmentsWithTheirOwnStartsNeedNoOtherFunctions) {
  TestEntry own;
  for (const char *schedule : {"cta_per_head", "cta_per_v_tile"})
    own.add("whole", schedule, GDN_DTYPE_F32, /*isPacked=*/false);
  std::vector<const char *> one = {"segment_length", "segment_parts"},
                            two = {"segment_length", "segment_parts",
                                   "longer_segment_length"};
  auto add = [&](const char *name, const auto &scalars, bool isLate) {
    own.add(name, "cta_per_head", GDN_DTYPE_F32, /*isPacked=*/false, scalars,
            "vk", isLate);
  };
  add("own", one, false);
  add("late", one, true);
  add("two_lengths", two, false);
  entries[0] = &own.desc;
  std::set<std::string> chosen;
  for (int64_t heads = 1; heads <= 64; heads *= 2)
    for (int64_t tokens = 512; tokens <= 1 << 18; tokens += tokens / 2)
      for (auto [split, value] : {std::pair(GDN_SPLIT_MODEL, 0),
                                  {GDN_SPLIT_SEGMENTS, 3},
                                  {GDN_SPLIT_SEGMENTS, 16},
                                  {GDN_SPLIT_LENGTH, 96}}) {
        TestCall call(tokens, heads);
        call.call.split = split;
        call.call.split_value = value;
        chosen.insert(choose(call));
      }
  EXPECT_EQ(chosen,
            (std::set<std::string>{"late", "own", "two_lengths", "whole"}));
}
