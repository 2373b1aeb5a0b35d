//===- TestEntries.h - Entries as a compiler makes them ---------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Functions without launches: what the library of calls reads of them, and
// nothing that a runtime would run.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_TEST_UNIT_CALLS_TESTENTRIES_H
#define GDN_TEST_UNIT_CALLS_TESTENTRIES_H

#include "gdn-c/Calls.h"

#include <array>
#include <deque>
#include <map>
#include <string>
#include <vector>

/// How the states of a function are given: as two arrays, or as a pool, whose
/// rows sequences name, and beside that states after tokens, or in between.
enum class TestStates { Apart, Pool, Steps, Kept };

/// A function with the arrays of a forward of K = V = 128, and scalars.
struct TestFunction {
  std::deque<std::vector<int64_t>> shapes;
  std::vector<GdnArgDesc> args;
  GdnFunctionDesc desc = {};

  void add(const char *name, int32_t dtype, std::vector<int64_t> shape,
           uint32_t flags = 0) {
    shapes.push_back(std::move(shape));
    args.push_back({name, GDN_ARG_TENSOR, dtype,
                    static_cast<int32_t>(shapes.back().size()), flags,
                    shapes.back().data(), 0});
  }

  TestFunction(const char *name, int32_t state, bool isPacked,
               std::vector<const char *> scalars = {},
               TestStates states = TestStates::Apart) {
    constexpr int64_t any = GDN_SYMBOL(0);
    bool hasSteps = states == TestStates::Steps,
         hasPool = states != TestStates::Apart;
    uint32_t flags =
        GDN_ARG_FLAG_STRIDED | (hasPool ? 0u : GDN_ARG_FLAG_OPTIONAL);
    for (const char *array : {"q", "k", "v"})
      add(array, GDN_DTYPE_BF16, {any, any, any, 128});
    add("beta", GDN_DTYPE_F32, {any, any, any});
    add("gate", GDN_DTYPE_F32, {any, any, any});
    add("initial_state", state, {any, any, 128, 128}, flags);
    if (isPacked)
      add("cu_seqlens", GDN_DTYPE_I32, {any});
    if (hasPool) {
      add("state_indices", GDN_DTYPE_I32, {any});
      add("has_initial_state", GDN_DTYPE_U8, {any}, GDN_ARG_FLAG_OPTIONAL);
      scalars.push_back("first_state");
    }
    if (hasSteps) {
      add("step_states", state, {any, any, 128, 128});
      add("step_indices", GDN_DTYPE_I32, {any, any});
      add("num_accepted", GDN_DTYPE_I32, {any}, GDN_ARG_FLAG_OPTIONAL);
    }
    if (states == TestStates::Kept) {
      add("step_states", state, {any, any, 128, 128}, flags);
      add("step_indices", GDN_DTYPE_I32, {any, any}, GDN_ARG_FLAG_OPTIONAL);
      add("step_starts", GDN_DTYPE_I32, {any}, GDN_ARG_FLAG_OPTIONAL);
      add("step_intervals", GDN_DTYPE_I32, {any});
    }
    for (const char *scalar : scalars)
      args.push_back({scalar, GDN_ARG_I64, 0, 0, 0, nullptr, 0});
    desc.num_inputs = static_cast<int32_t>(args.size());
    add("o", GDN_DTYPE_BF16, {any, any, any, 128});
    if (!hasPool)
      add("final_state", state, {any, any, 128, 128}, flags);
    desc.struct_size = sizeof(desc);
    desc.version = GDN_RUNTIME_VERSION;
    desc.name = name;
    desc.num_args = static_cast<int32_t>(args.size());
    desc.args = args.data();
  }
};

/// An entry of a layer with log gates.
struct TestEntry {
  std::array<GdnFact, 3> facts = {{{"op", "gdn.chunk_gated_delta_rule"},
                                   {"gate_domain", "log"},
                                   {"beta_domain", "value"}}};
  std::deque<TestFunction> functions;
  std::vector<GdnVariantDesc> variants;
  GdnEntryDesc desc = {};

  void add(const char *name, const char *schedule, int32_t state, bool isPacked,
           std::vector<const char *> scalars = {}, const char *layout = "kv",
           bool isLate = false, TestStates states = TestStates::Apart) {
    functions.emplace_back(name, state, isPacked, std::move(scalars), states);
    variants.push_back({&functions.back().desc, schedule, layout, isLate,
                        /*looks_at_gates=*/false});
    desc = {sizeof(desc),
            GDN_RUNTIME_VERSION,
            "layer",
            static_cast<int32_t>(facts.size()),
            static_cast<int32_t>(variants.size()),
            facts.data(),
            variants.data()};
  }
};

/// A call of one sequence, or of packed ones.
struct TestCall {
  std::array<GdnFact, 3> facts = {{{"op", "gdn.chunk_gated_delta_rule"},
                                   {"gate_domain", "log"},
                                   {"beta_domain", "value"}}};
  std::deque<std::vector<int64_t>> shapes;
  std::map<std::string, GdnTensor> tensors;
  std::vector<GdnCallArray> arrays;
  GdnCall call = {};

  GdnTensor &add(const char *name, int32_t dtype, std::vector<int64_t> shape,
                 std::vector<int64_t> strides = {}) {
    shapes.push_back(std::move(shape));
    const int64_t *extents = shapes.back().data();
    auto rank = static_cast<int32_t>(shapes.back().size());
    shapes.push_back(std::move(strides));
    auto *data = reinterpret_cast<void *>((tensors.size() + 1) << 32);
    GdnTensor &tensor = tensors[name];
    tensor = {data, dtype, rank, extents,
              shapes.back().empty() ? nullptr : shapes.back().data()};
    return tensor;
  }

  explicit TestCall(int64_t tokens, int64_t heads = 8, int64_t batch = 1) {
    for (const char *name : {"q", "k", "v", "o"})
      add(name, GDN_DTYPE_BF16, {batch, tokens, heads, 128});
    add("beta", GDN_DTYPE_F32, {batch, tokens, heads});
    add("gate", GDN_DTYPE_F32, {batch, tokens, heads});
  }

  /// The call with the arrays that were added so far.
  const GdnCall &get() {
    arrays.clear();
    for (const char *name :
         {"q", "k", "v", "beta", "gate", "initial_state", "cu_seqlens",
          "state_indices", "has_initial_state", "step_states", "step_indices",
          "num_accepted", "parents", "step_starts", "step_intervals", "o",
          "final_state"}) {
      auto found = tensors.find(name);
      arrays.push_back(
          {name, found == tensors.end() ? nullptr : &found->second});
    }
    call.struct_size = sizeof(call);
    call.num_facts = static_cast<int32_t>(facts.size());
    call.num_arrays = static_cast<int32_t>(arrays.size());
    call.facts = facts.data();
    call.arrays = arrays.data();
    return call;
  }
};

#endif // GDN_TEST_UNIT_CALLS_TESTENTRIES_H
