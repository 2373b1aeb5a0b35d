//===- Copies.cpp - Inputs that no function reads in place ----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels of chunks read q, k and v by tensor maps: the last dimension has
// stride 1, the other strides are multiples of 16 bytes, and so is the address.
// Of other inputs, and in kernels token by token of all, they know only that
// the last dimension has stride 1. What is not so is copied first. Views of one
// buffer, as a convolution's output is split into q, k and v, have one copy.
//
//===----------------------------------------------------------------------===//

#include "Copies.h"

#include <algorithm>
#include <cstdio>
#include <iterator>

using namespace gdn::calls;
namespace cost = gdn::cost;

/// What the copy engine asks of addresses and strides, in bytes.
static constexpr int64_t kUnit = 16;

//===----------------------------------------------------------------------===//
// Which inputs
//===----------------------------------------------------------------------===//

static bool hasElements(const GdnTensor &array) {
  return std::find(array.shape, array.shape + array.rank, 0) ==
         array.shape + array.rank;
}

/// Nothing steps along an extent of 1, so its stride says nothing.
static bool hasLastStride1(const GdnTensor &array) {
  int last = array.rank - 1;
  return !array.strides || array.shape[last] == 1 || array.strides[last] == 1;
}

/// Whether a tensor map can be made of the array.
static bool isMapped(const GdnTensor &array) {
  if (reinterpret_cast<uintptr_t>(array.data) % kUnit || !hasLastStride1(array))
    return false;
  Strides strides = stridesOf(array);
  for (int i = 0; i + 1 < array.rank; ++i)
    if (array.shape[i] > 1 &&
        (strides[i] <= 0 || strides[i] * sizeOf(array.dtype) % kUnit))
      return false;
  return true;
}

//===----------------------------------------------------------------------===//
// The plan
//===----------------------------------------------------------------------===//

/// An input as [B, T, H, C]: these dimensions of it, where -1 is none.
static View viewAs(const View &array, const std::array<int, kMaxRank> &dims) {
  View view = array;
  view.tensor.rank = kMaxRank;
  for (int i = 0; i < kMaxRank; ++i) {
    view.shape[i] = dims[i] < 0 ? 1 : array.shape[dims[i]];
    view.strides[i] = dims[i] < 0 ? 0 : array.strides[dims[i]];
  }
  // Heads that follow one another are channels.
  int64_t channels = view.shape[3];
  if (view.shape[2] == 1 || channels == 1 ||
      view.strides[2] == channels * view.strides[3]) {
    if (channels == 1)
      view.strides[3] = view.strides[2];
    view.shape[3] *= view.shape[2];
    view.shape[2] = 1;
  }
  return view;
}

static uint64_t roundUp(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

/// The strides of a copy: rows of all heads' channels, each on a multiple of 16
/// bytes. Returns its bytes.
static uint64_t layOut(Copy &copy) {
  const auto &sizes = copy.source.shape;
  int64_t bytes = sizeOf(copy.source.tensor.dtype);
  int64_t row = roundUp(sizes[2] * sizes[3], kUnit / bytes);
  copy.strides = {sizes[1] * row, row, sizes[3], 1};
  return sizes[0] * sizes[1] * row * bytes;
}

/// Whether `next` has the channels that follow those of `first`.
static bool follows(const View &first, const View &next) {
  int64_t bytes = sizeOf(first.tensor.dtype);
  bool alike = bytes == sizeOf(next.tensor.dtype) &&
               first.shape[0] == next.shape[0] &&
               first.shape[1] == next.shape[1] && first.shape[2] == 1 &&
               next.shape[2] == 1 && first.strides[0] == next.strides[0] &&
               first.strides[1] == next.strides[1] &&
               first.strides[3] == next.strides[3];
  int64_t reach = first.shape[3] * first.strides[3] * bytes;
  return alike && reinterpret_cast<uintptr_t>(first.tensor.data) + reach ==
                      reinterpret_cast<uintptr_t>(next.tensor.data);
}

namespace {
/// An input that may be copied.
struct Input {
  std::string_view name;
  bool isMapped;
  /// Its dimensions as batches, tokens, heads and channels.
  std::array<int, kMaxRank> dims;
};
} // namespace

static constexpr Input inputs[] = {{"q", true, {0, 1, 2, 3}},
                                   {"k", true, {0, 1, 2, 3}},
                                   {"v", true, {0, 1, 2, 3}},
                                   {"gate", false, {0, 1, -1, 2}},
                                   {"beta", false, {0, 1, -1, 2}},
                                   {"a_log", false, {-1, -1, -1, 0}},
                                   {"dt_bias", false, {-1, -1, -1, 0}},
                                   {"initial_state", false, {0, 2, 1, 3}}};

/// Makes the array a part of the last copy if it follows what that reads.
bool Copies::append(View &view, size_t input, const View &source) {
  if (copies.empty() || !follows(copies.back().source, source))
    return false;
  Copy &copy = copies.back();
  int64_t first = copy.source.shape[3] * sizeOf(source.tensor.dtype);
  // Kernels read the array at its place in the rows.
  if (first % kUnit)
    return false;
  copy.source.shape[3] += source.shape[3];
  copy.inputs.push_back(inputs[input].name.data());
  uses.push_back(
      {&view, copies.size() - 1, input, static_cast<uint64_t>(first)});
  return true;
}

void Copies::add(View &view, size_t input) {
  View source = viewAs(view, inputs[input].dims);
  if (append(view, input, source))
    return;
  Copy copy;
  copy.source = source;
  copy.inputs = {inputs[input].name.data()};
  copy.isTransposed = source.shape[1] > 1 && source.strides[1] == 1;
  copies.push_back(copy);
  uses.push_back({&view, copies.size() - 1, input, 0});
}

/// Whether final states replace the initial ones early: of segments that do not
/// wait for others, the last of a sequence may be done before the first has
/// read its state.
static bool isReplacedEarly(const Arguments &arguments,
                            const GdnCallPlan &plan) {
  if (!plan.segment_parts)
    return false;
  int32_t first = arguments.find("initial_state"),
          last = arguments.find("final_state");
  const GdnTensor *before = first < 0 ? nullptr : arguments.get(first),
                  *after = last < 0 ? nullptr : arguments.get(last);
  return before && after && before->data && before->data == after->data;
}

/// Gives an array the strides of its part of a copy, in its own dimensions.
static void setStrides(View &view, const Copy &copy, const Input &input) {
  const int64_t ofPlace[] = {copy.strides[0], copy.strides[1],
                             view.shape[view.tensor.rank - 1], 1};
  Strides strides = {1};
  for (int place = 0; place < kMaxRank; ++place)
    if (input.dims[place] >= 0)
      strides[input.dims[place]] = ofPlace[place];
  view.strides = strides;
}

void gdn::calls::placeInputs(GdnCallPlan &plan) {
  const GdnFunctionDesc &function = *plan.variant->function;
  auto find = [&](std::string_view name) {
    const GdnArgDesc *end = function.args + function.num_inputs;
    const GdnArgDesc *found =
        std::find_if(function.args, end,
                     [&](const GdnArgDesc &arg) { return name == arg.name; });
    return static_cast<int8_t>(found == end ? -1 : found - function.args);
  };
  // A pool is written, too: a copy would take what is for the caller. The
  // function refuses one that it cannot read.
  bool hasPool = find("state_indices") >= 0;
  for (size_t k = 0; k < std::size(inputs); ++k) {
    bool isPool = hasPool && inputs[k].name == "initial_state";
    plan.inputs[k] = isPool ? int8_t(-1) : find(inputs[k].name);
  }
}

void Copies::plan(Arguments &arguments, const GdnCallPlan &plan) {
  const bool maps = plan.variant->schedule != cost::Schedule::Token.name;
  const bool isReplaced = isReplacedEarly(arguments, plan);
  for (size_t k = 0; k < std::size(inputs); ++k) {
    int32_t i = plan.inputs[k];
    const GdnTensor *array = i < 0 ? nullptr : arguments.get(i);
    if (!array)
      continue;
    const Input &input = inputs[k];
    const GdnArgDesc &arg = arguments.describe(i);
    bool isReadable = input.isMapped && maps
                          ? isMapped(*array)
                          : hasAnyLayout(arg) || hasLastStride1(*array);
    isReadable &= !(isReplaced && isState(arg));
    if (!isReadable && hasElements(*array))
      add(arguments.change(i), k);
  }
  if (!copies.empty())
    layOutAll();
}

void Copies::layOutAll() {
  for (Copy &copy : copies) {
    copy.offset = bytes;
    copy.bytes = layOut(copy);
    bytes += roundUp(copy.bytes, GDN_WORKSPACE_ALIGNMENT);
  }
  for (const Use &use : uses)
    setStrides(*use.view, copies[use.copy], inputs[use.input]);
  // What checks arrays takes null for none.
  place(reinterpret_cast<void *>(GDN_WORKSPACE_ALIGNMENT));
}

void Copies::place(void *workspace) {
  base = static_cast<char *>(workspace);
  for (const Use &use : uses)
    use.view->tensor.data =
        reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(base) +
                                 copies[use.copy].offset + use.offset);
}

//===----------------------------------------------------------------------===//
// Cost
//===----------------------------------------------------------------------===//

double Copies::predictSeconds(const Copy &copy, const cost::Chip &chip) {
  return cost::predictCopy(2.0 * copy.bytes, chip);
}

/// The names of a copy's inputs, each between quotes.
static std::string listInputs(const Call &call, const Copy &copy,
                              const char *quote) {
  std::string names;
  for (const char *name : copy.inputs)
    names += (names.empty() ? "" : ", ") + (quote + call.say(name)) + quote;
  return names;
}

std::string Copies::toJson(const Call &call, const cost::Chip &chip) const {
  std::string text;
  for (const Copy &copy : copies) {
    std::string names = listInputs(call, copy, "\"");
    char numbers[128];
    std::snprintf(numbers, sizeof(numbers),
                  "\"transposed\": %s, \"bytes\": %.0f, \"seconds\": %.9g}",
                  copy.isTransposed ? "true" : "false", 2.0 * copy.bytes,
                  predictSeconds(copy, chip));
    text += (text.empty() ? "{\"inputs\": [" : ", {\"inputs\": [") + names +
            "], " + numbers;
  }
  return "[" + text + "]";
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// The function of a copy; null if the table has none.
static const GdnFunctionDesc *findFunction(const GdnCallTable &table,
                                           const Copy &copy) {
  int64_t bits = 8 * sizeOf(copy.source.tensor.dtype);
  for (int32_t i = 0; i < table.num_copies; ++i)
    if (static_cast<bool>(table.copies[i].is_transposed) == copy.isTransposed &&
        table.copies[i].bits == bits)
      return table.copies[i].function;
  return nullptr;
}

GdnRuntimeStatus Copies::prepare(const GdnCallTable &table,
                                 int32_t device) const {
  for (const Copy &copy : copies) {
    const GdnFunctionDesc *function = findFunction(table, copy);
    if (!function)
      return fail(GDN_ERROR_NOT_SERVED,
                  "expected a function that copies an input, got a table "
                  "without");
    if (GdnRuntimeStatus status = gdnFunctionPrepare(function, device))
      return status;
  }
  return GDN_SUCCESS;
}

static GdnRuntimeStatus launchCopy(const GdnFunctionDesc &function,
                                   const Copy &copy, char *base, int32_t device,
                                   void *stream) {
  Strides shape = copy.source.shape, strides = copy.source.strides;
  if (copy.isTransposed) {
    shape = {shape[0], shape[2], shape[3], shape[1]};
    strides = {strides[0], strides[2], strides[3], strides[1]};
  }
  // Elements are copied as bits, in the names of these types.
  int32_t dtype =
      sizeOf(copy.source.tensor.dtype) == 2 ? GDN_DTYPE_BF16 : GDN_DTYPE_F32;
  GdnTensor from = {copy.source.tensor.data, dtype, kMaxRank, shape.data(),
                    strides.data()};
  GdnTensor to = {base + copy.offset, dtype, kMaxRank, copy.source.shape.data(),
                  copy.strides.data()};
  GdnArg args[2] = {};
  args[0].kind = args[1].kind = GDN_ARG_TENSOR;
  args[0].value.tensor = &from;
  args[1].value.tensor = &to;
  return gdnFunctionLaunchOn(&function, device, args, std::size(args), nullptr,
                             0, stream);
}

GdnRuntimeStatus Copies::launch(const GdnCallTable &table, const Call &call,
                                void *stream) const {
  for (const Copy &copy : copies) {
    const GdnFunctionDesc *function = findFunction(table, copy);
    GdnRuntimeStatus status =
        function ? launchCopy(*function, copy, base, call.get().device, stream)
                 : GDN_ERROR_NOT_SERVED;
    // The kernel of a copy does not know whose input it copies.
    if (status)
      return fail(status, listInputs(call, copy, "") +
                              ": expected a copy on the GPU that succeeds, "
                              "got: " +
                              gdnGetLastErrorMessage());
  }
  return GDN_SUCCESS;
}
