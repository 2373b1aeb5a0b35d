//===- ItemsTest.cpp - Calls on a CPU -------------------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestEntries.h"

#include "gtest/gtest.h"

#include <cmath>
#include <functional>
#include <numeric>
#include <string>

//===----------------------------------------------------------------------===//
// Functions of items
//===----------------------------------------------------------------------===//

namespace {
/// An argument in the compiler's C interface: extents, then strides.
struct MemRef {
  float *allocated, *aligned;
  int64_t offset, dims[8];

  float &at(int64_t token, int64_t channel) const {
    return aligned[token * dims[5] + channel * dims[7]];
  }
};
} // namespace

/// o = v + beta + gate, and a state that counts up for each token. `more` tells
/// functions apart.
template <int channels, int more>
static void compute(MemRef *q, MemRef *, MemRef *v, MemRef *beta, MemRef *gate,
                    MemRef *from, MemRef *o, MemRef *to) {
  EXPECT_EQ(q->dims[3], channels);
  const int64_t tokens = v->dims[1];
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t i = 0; i < channels; ++i)
      o->at(t, i) = v->at(t, i) + beta->aligned[t * beta->dims[4]] +
                    gate->aligned[t * gate->dims[4]] + more;
  const int64_t row = from->dims[6], target = to->dims[6];
  for (int64_t k = 0; k < channels; ++k)
    for (int64_t i = 0; i < channels; ++i)
      to->aligned[k * target + i] =
          from->aligned[k * row + i] + static_cast<float>(tokens);
}

using Function = void (*)();
template <int channels, int more> static Function functionOf() {
  return reinterpret_cast<Function>(compute<channels, more>);
}
template <int channels>
static GdnItemDesc itemOf(const char *name, const char *op, int32_t level) {
  return {name,
          op,
          GDN_DTYPE_F32,
          channels,
          0,
          level,
          "a level",
          {functionOf<channels, 0>(), functionOf<channels, 100>(),
           functionOf<channels, 200>(), functionOf<channels, 300>()}};
}

static const GdnItemDesc items[] = {
    itemOf<4>("chunks of 4", "gdn.chunk_gated_delta_rule", -1),
    itemOf<8>("chunks of 8", "gdn.chunk_gated_delta_rule", -1),
    itemOf<4>("beyond this CPU", "gdn.chunk_gated_delta_rule", -100),
    itemOf<4>("tokens of 4", "gdn.recurrent_gated_delta_rule", -1),
    itemOf<8>("tokens of 8", "gdn.recurrent_gated_delta_rule", -1)};

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

namespace {
struct Items : ::testing::Test {
  void *room = nullptr;
  GdnCallTable table = {sizeof(table), 0,       0,     nullptr,
                        nullptr,       nullptr, items, std::size(items)};
  std::map<std::string, std::vector<float>> memory;
  TestCall given{1};
  GdnCallPlan plan = {};

  Items() {
    table.index = &room;
    given.tensors.clear();
    given.call.device = GDN_DEVICE_CPU;
    given.call.threads = 3;
  }

  void SetUp() override {
    GdnDeviceInfo cpu = {};
    cpu.struct_size = sizeof(cpu);
    ASSERT_EQ(gdnDeviceGetInfo(GDN_DEVICE_CPU, &cpu), GDN_SUCCESS);
    if (!cpu.compute_capability)
      GTEST_SKIP() << "this CPU runs no functions of items";
  }

  /// An array of floats that counts up from `first`.
  void add(const char *name, std::vector<int64_t> shape, float first = 0,
           std::vector<int64_t> strides = {}) {
    int64_t count = std::accumulate(shape.begin(), shape.end(), int64_t(1),
                                    std::multiplies<>());
    for (size_t i = 0; i < strides.size(); ++i)
      count = std::max(count, (shape[i] + 1) * strides[i]);
    std::vector<float> &data = memory[name];
    data.resize(count);
    std::iota(data.begin(), data.end(), first);
    given.add(name, GDN_DTYPE_F32, std::move(shape), std::move(strides)).data =
        data.data();
  }
  /// `tokens` tokens of 2 heads, of values that count up.
  void addTokens(int64_t tokens, int64_t channels = 4) {
    for (const char *name : {"q", "k", "v", "o"})
      add(name, {1, tokens, 2, channels});
    add("beta", {1, tokens, 2}, 1000);
    add("gate", {1, tokens, 2}, -1);
  }

  GdnRuntimeStatus run() {
    GdnRuntimeStatus status = gdnCallPlan(&table, &given.get(), &plan);
    return status ? status
                  : gdnCallRun(&plan, &given.get(), nullptr, nullptr, nullptr);
  }
  std::string refusal() {
    return run() == GDN_SUCCESS ? "none" : gdnGetLastErrorMessage();
  }
};
} // namespace

TEST_F(Items, EachHeadIsComputed) {
  addTokens(3);
  add("initial_state", {1, 2, 4, 4});
  add("final_state", {1, 2, 4, 4});
  ASSERT_EQ(run(), GDN_SUCCESS) << gdnGetLastErrorMessage();
  EXPECT_EQ(plan.entry, nullptr);
  EXPECT_EQ(plan.items->channels, 4);
  EXPECT_EQ(plan.items->level, -1);
  // v, beta and the gate count up together.
  for (int64_t row = 0; row < 6; ++row)
    for (int64_t i = 0; i < 4; ++i)
      EXPECT_EQ(memory["o"][4 * row + i], 4 * row + i + 1000 + row - 1 + row);
  for (int64_t i = 0; i < 32; ++i)
    EXPECT_EQ(memory["final_state"][i], i + 3);
}

/// A call that is planned wants neither memory nor a stream.
TEST_F(Items, NothingIsAskedForAtALaunch) {
  addTokens(3);
  uint64_t bytes = 1;
  ASSERT_EQ(gdnCallPlan(&table, &given.get(), &plan), GDN_SUCCESS);
  EXPECT_EQ(gdnCallGetWorkspaceBytes(&plan, &given.get(), &bytes), GDN_SUCCESS);
  EXPECT_EQ(bytes, 0u);
  EXPECT_EQ(gdnCallPrepare(&plan, &given.get()), GDN_SUCCESS);
  EXPECT_EQ(gdnCallLaunch(&plan, &given.get(), nullptr, 0, nullptr),
            GDN_SUCCESS);
  EXPECT_EQ(memory["o"][0], 999);
}

/// Norms and layouts of states have functions of their own.
TEST_F(Items, FactsChooseTheFunction) {
  addTokens(1);
  given.call.state_layout = "vk";
  ASSERT_EQ(run(), GDN_SUCCESS) << gdnGetLastErrorMessage();
  EXPECT_EQ(memory["o"][0], 999 + 200);
  given.facts[2] = {"qk_l2norm", "true"};
  ASSERT_EQ(run(), GDN_SUCCESS) << gdnGetLastErrorMessage();
  EXPECT_EQ(memory["o"][0], 999 + 300);
}

/// Channels that no function has are filled with zeros, and gaps are left.
TEST_F(Items, OddHeadsAreCopied) {
  addTokens(2, 5);
  add("v", {1, 2, 2, 3}, 0, {28, 14, 7, 2});
  add("o", {1, 2, 2, 3}, 0, {28, 14, 7, 2});
  add("final_state", {1, 2, 5, 3});
  // The one that functions of 8 channels have.
  given.call.scale = std::sqrt(0.125);
  ASSERT_EQ(run(), GDN_SUCCESS) << gdnGetLastErrorMessage();
  EXPECT_EQ(plan.items->channels, 8);
  EXPECT_EQ(memory["o"][0], 999);
  EXPECT_EQ(memory["o"][1], 1);
  EXPECT_EQ(memory["o"][14 + 7 + 4], 25 + 1003 + 2);
  for (float entry : memory["final_state"])
    EXPECT_EQ(entry, 2);
}

/// Gates and beta have forms of their own, and so has the scale.
TEST_F(Items, DomainsAreConverted) {
  addTokens(1);
  memory["gate"] = {1, 1};
  memory["beta"] = {0, 0};
  given.tensors["gate"].data = memory["gate"].data();
  given.tensors["beta"].data = memory["beta"].data();
  given.facts[1].value = "linear";
  given.facts[2].value = "doubled_logit";
  given.call.scale = 1;
  ASSERT_EQ(run(), GDN_SUCCESS) << gdnGetLastErrorMessage();
  EXPECT_EQ(memory["o"][3], 2 * (3 + 0 + 1));
}

/// Tokens behind the last boundary are of no sequence.
TEST_F(Items, PackedSequencesHaveStates) {
  addTokens(6);
  add("final_state", {2, 2, 4, 4});
  std::vector<int32_t> boundaries = {0, 1, 4};
  given.add("cu_seqlens", GDN_DTYPE_I32, {3}).data = boundaries.data();
  ASSERT_EQ(run(), GDN_SUCCESS) << gdnGetLastErrorMessage();
  EXPECT_EQ(memory["final_state"][0], 1);
  EXPECT_EQ(memory["final_state"][63], 3);
  EXPECT_EQ(memory["o"][4 * 8], 0);
  EXPECT_EQ(memory["o"][3 * 8], 24 + 1006 + 5);
  boundaries = {0, 5, 4};
  EXPECT_EQ(refusal(), "cu_seqlens: expected boundaries that ascend, got "
                       "cu_seqlens[2] = 4 after 5");
}

TEST_F(Items, RowsOfAPoolAreUpdated) {
  addTokens(2);
  add("initial_state", {3, 2, 4, 4});
  given.tensors["final_state"] = given.tensors["initial_state"];
  std::vector<int64_t> rows = {2}, before = rows;
  given.add("state_indices", GDN_DTYPE_I64, {1}).data = rows.data();
  ASSERT_EQ(run(), GDN_SUCCESS) << gdnGetLastErrorMessage();
  EXPECT_EQ(memory["initial_state"][0], 0);
  EXPECT_EQ(memory["initial_state"][64], 64 + 2);
  rows = {-1};
  ASSERT_EQ(run(), GDN_SUCCESS) << gdnGetLastErrorMessage();
  EXPECT_EQ(memory["o"][0], 0);
}

TEST_F(Items, WrongCallsAreRefused) {
  addTokens(3);
  given.tensors["beta"].dtype = GDN_DTYPE_FOREIGN(0, 16);
  EXPECT_EQ(run(), GDN_ERROR_INVALID_TYPE);
  EXPECT_STREQ(gdnGetLastErrorMessage(),
               "beta: expected a tensor of float32, bfloat16 or float16, got "
               "int16");
  addTokens(3);
  given.tensors["o"].data = memory["q"].data() + 1;
  EXPECT_EQ(refusal(),
            "o: expected memory apart from q, got tensors that overlap");
  given.tensors["o"].data = nullptr;
  EXPECT_EQ(refusal(), "o: expected a tensor whose elements have memory, got a "
                       "null address");
  addTokens(3, 9);
  EXPECT_EQ(refusal(), "q: expected K of 1 to 8, got K = 9");
  addTokens(3);
  for (const char *name : {"q", "k", "v", "o"})
    given.tensors[name].dtype = GDN_DTYPE_BF16;
  EXPECT_EQ(run(), GDN_ERROR_UNSUPPORTED_DEVICE);
  EXPECT_STREQ(
      gdnGetLastErrorMessage(),
      "expected kernels for bfloat16 and 4 channels in this build, got "
      "none");
}

TEST_F(Items, AMissingGPUIsSaid) {
  addTokens(3);
  given.facts[2] = {"state_interval", "128"};
  EXPECT_EQ(run(), GDN_ERROR_NOT_SERVED);
  EXPECT_STREQ(gdnGetLastErrorMessage(),
               "state_interval: expected a GPU for a call that saves states or "
               "reads them, got the CPU");
}

TEST_F(Items, TheChoiceIsDescribed) {
  addTokens(3);
  char text[2048] = "";
  size_t needed = 0;
  ASSERT_EQ(gdnCallDescribe(&table, &given.get(), text, sizeof(text), &needed),
            GDN_SUCCESS)
      << gdnGetLastErrorMessage();
  std::string json = text;
  EXPECT_NE(json.find("\"device\": \"cpu\""), std::string::npos) << json;
  EXPECT_NE(json.find("\"isa\": \"a level\""), std::string::npos) << json;
  EXPECT_NE(json.find("\"items\": 2,"), std::string::npos) << json;
}
