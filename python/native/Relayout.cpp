//===- Relayout.cpp - Inputs that no kernel reads in place ----------------===//
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

#include "Relayout.h"

#include "ReadyDevices.h"

#include <cstdio>

using namespace gdn::hopper;
using gdn::cpu::Array;
using gdn::cpu::sizeOf;
namespace cost = gdn::cost;
namespace cpu = gdn::cpu;

namespace {
/// How the tokens of an input lie that a kernel copies.
enum class Source { Tokens, Any };

struct RelayoutKernel {
  Source source;
  int64_t bits;
  const GdnFunctionDesc *function;
};
} // namespace

#define GDN_HOPPER_KERNEL(...)
#define GDN_HOPPER_SPLIT(...)
#define GDN_HOPPER_RELAYOUT(name, ...)                                         \
  extern "C" const GdnFunctionDesc name##_function;
#if GDN_PYTHON_HOPPER
#include "HopperKernels.inc"
#endif
#undef GDN_HOPPER_RELAYOUT
#define GDN_HOPPER_RELAYOUT(name, source, bits)                                \
  {Source::source, bits, &name##_function},
// The last entry keeps the table from being empty.
static const RelayoutKernel table[] = {
#if GDN_PYTHON_HOPPER
#include "HopperKernels.inc"
#endif
    {}};

/// What the copy engine asks of addresses and strides, in bytes.
static constexpr int64_t kUnit = 16;

//===----------------------------------------------------------------------===//
// Which inputs
//===----------------------------------------------------------------------===//

static bool hasElements(const Array &array) {
  for (int i = 0; i < array.rank; ++i)
    if (array.sizes[i] == 0)
      return false;
  return array.isPresent();
}

/// Nothing steps along an extent of 1, so its stride says nothing.
static bool hasLastStride1(const Array &array) {
  int last = array.rank - 1;
  return array.sizes[last] == 1 || array.strides[last] == 1;
}

/// Whether a tensor map can be made of the array.
static bool isMapped(const Array &array) {
  if (reinterpret_cast<uintptr_t>(array.data) % kUnit || !hasLastStride1(array))
    return false;
  for (int i = 0; i + 1 < array.rank; ++i)
    if (array.sizes[i] > 1 &&
        (array.strides[i] <= 0 ||
         array.strides[i] * sizeOf(array.element) % kUnit))
      return false;
  return true;
}

//===----------------------------------------------------------------------===//
// The plan
//===----------------------------------------------------------------------===//

/// An input as [B, T, H, C]: these dimensions of it, where -1 is none.
static Array viewAs(const Array &array, std::array<int, cpu::kMaxRank> dims) {
  Array view = array;
  view.rank = cpu::kMaxRank;
  for (int i = 0; i < cpu::kMaxRank; ++i) {
    view.sizes[i] = dims[i] < 0 ? 1 : array.sizes[dims[i]];
    view.strides[i] = dims[i] < 0 ? 0 : array.strides[dims[i]];
  }
  // Heads that follow one another are channels.
  int64_t channels = view.sizes[3];
  if (view.sizes[2] == 1 || channels == 1 ||
      view.strides[2] == channels * view.strides[3]) {
    if (channels == 1)
      view.strides[3] = view.strides[2];
    view.sizes[3] *= view.sizes[2];
    view.sizes[2] = 1;
  }
  return view;
}

static uint64_t roundUp(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

/// The strides of a copy: rows of all heads' channels, each on a multiple of 16
/// bytes. Returns its bytes.
static uint64_t layOut(Relayout &copy) {
  const auto &sizes = copy.source.sizes;
  int64_t unit = kUnit / sizeOf(copy.source.element);
  int64_t row = roundUp(sizes[2] * sizes[3], unit);
  copy.strides = {sizes[1] * row, row, sizes[3], 1};
  return sizes[0] * sizes[1] * row * sizeOf(copy.source.element);
}

/// Whether `next` has the channels that follow those of `first`.
static bool follows(const Array &first, const Array &next) {
  bool alike = sizeOf(first.element) == sizeOf(next.element) &&
               first.sizes[0] == next.sizes[0] &&
               first.sizes[1] == next.sizes[1] && first.sizes[2] == 1 &&
               next.sizes[2] == 1 && first.strides[0] == next.strides[0] &&
               first.strides[1] == next.strides[1] &&
               first.strides[3] == next.strides[3];
  int64_t reach = first.sizes[3] * first.strides[3] * sizeOf(first.element);
  return alike && reinterpret_cast<uintptr_t>(first.data) + reach ==
                      reinterpret_cast<uintptr_t>(next.data);
}

/// Makes the array a part of the last copy if it follows what that reads.
bool Relayouts::append(Array &array, const char *name, const Array &view) {
  if (copies.empty() || !follows(copies.back().source, view))
    return false;
  Relayout &copy = copies.back();
  int64_t first = copy.source.sizes[3], bytes = sizeOf(view.element);
  // Kernels read the array at its place in the rows.
  if (first * bytes % kUnit)
    return false;
  copy.source.sizes[3] += view.sizes[3];
  copy.inputs.push_back(name);
  uses.push_back(
      {&array, copies.size() - 1, static_cast<uint64_t>(first * bytes)});
  return true;
}

void Relayouts::add(Array &array, const char *name, const Array &view) {
  if (append(array, name, view))
    return;
  Relayout copy;
  copy.source = view;
  copy.inputs = {name};
  copy.isTransposed = view.sizes[1] > 1 && view.strides[1] == 1;
  copies.push_back(copy);
  uses.push_back({&array, copies.size() - 1, 0});
}

/// Whether final states replace the initial ones early: of segments that do not
/// wait for others, the last of a sequence may be done before the first has
/// read its state.
static bool isReplacedEarly(const Problem &p, const Plan &plan) {
  return plan.cut.parts && p.initialState.data &&
         p.initialState.data == p.finalState.data;
}

void Relayouts::plan(Problem &p, const Plan &plan) {
  const bool maps = plan.kernel->schedule != Schedule::Token,
             isReplaced = isReplacedEarly(p, plan);
  struct Input {
    const char *name;
    Array *array;
    bool isMapped;
    /// Its dimensions as batches, tokens, heads and channels.
    std::array<int, cpu::kMaxRank> dims;
  };
  const Input inputs[] = {
      {"q", &p.q, maps, {0, 1, 2, 3}},
      {"k", &p.k, maps, {0, 1, 2, 3}},
      {"v", &p.v, maps, {0, 1, 2, 3}},
      {"g", &p.gate, false, {0, 1, -1, 2}},
      {"beta", &p.beta, false, {0, 1, -1, 2}},
      {"A_log", &p.aLog, false, {-1, -1, -1, 0}},
      {"dt_bias", &p.dtBias, false, {-1, -1, -1, 0}},
      {"initial_state", &p.initialState, false, {0, 2, 1, 3}}};
  for (const Input &input : inputs) {
    Array &array = *input.array;
    bool isReadable = input.isMapped ? isMapped(array) : hasLastStride1(array);
    if (&array == &p.initialState && isReplaced)
      isReadable = false;
    if (!hasElements(array) || isReadable)
      continue;
    add(array, input.name, viewAs(array, input.dims));
  }
  for (Relayout &copy : copies) {
    copy.offset = bytes;
    copy.bytes = layOut(copy);
    bytes += roundUp(copy.bytes, GDN_WORKSPACE_ALIGNMENT);
  }
  for (const Use &use : uses) {
    const Relayout &copy = copies[use.copy];
    Array &array = *use.array;
    if (array.rank == 1)
      array.strides[0] = 1;
    else if (array.rank == 3)
      array.strides = {copy.strides[0], copy.strides[1], 1};
    else if (&array == &p.initialState)
      array.strides = {copy.strides[0], array.sizes[3], copy.strides[1], 1};
    else
      array.strides = {copy.strides[0], copy.strides[1], array.sizes[3], 1};
  }
  place(nullptr);
}

void Relayouts::place(void *workspace) {
  base = static_cast<char *>(workspace);
  for (const Use &use : uses)
    use.array->data =
        reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(base) +
                                 copies[use.copy].offset + use.offset);
}

//===----------------------------------------------------------------------===//
// Cost
//===----------------------------------------------------------------------===//

double Relayouts::predictSeconds(const Relayout &copy, const cost::Chip &chip) {
  return cost::predictCopy(2.0 * copy.bytes, chip);
}

/// The names of a copy's inputs, each between quotes.
static std::string listInputs(const Relayout &copy, const char *quote) {
  std::string names;
  for (const char *name : copy.inputs)
    names += (names.empty() ? "" : ", ") + (quote + std::string(name)) + quote;
  return names;
}

std::string Relayouts::toJson(const cost::Chip &chip) const {
  std::string text;
  for (const Relayout &copy : copies) {
    std::string names = listInputs(copy, "\"");
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

/// The kernel of a copy, ready on the device.
static Error prepare(const Relayout &copy, int32_t device,
                     const GdnFunctionDesc *&function) {
  Source source = copy.isTransposed ? Source::Tokens : Source::Any;
  int64_t bits = 8 * sizeOf(copy.source.element);
  size_t index = 0;
  while (table[index].function &&
         (table[index].source != source || table[index].bits != bits))
    ++index;
  function = table[index].function;
  if (!function)
    return {"RuntimeError", "gdn: expected a kernel that copies an input, got "
                            "a build without"};
  static ReadyDevices ready[std::size(table)];
  return ready[index].prepare(function, device);
}

/// Elements are copied as bits, in the names of these types.
static int32_t dtypeOf(const Array &array) {
  return sizeOf(array.element) == 2 ? GDN_DTYPE_BF16 : GDN_DTYPE_F32;
}

static Error launch(const Relayout &copy, char *base, int32_t device,
                    void *stream) {
  const GdnFunctionDesc *function = nullptr;
  if (Error error = prepare(copy, device, function))
    return error;
  const Array &source = copy.source;
  std::array<int64_t, cpu::kMaxRank> sizes = source.sizes,
                                     strides = source.strides;
  if (copy.isTransposed) {
    sizes = {sizes[0], sizes[2], sizes[3], sizes[1]};
    strides = {strides[0], strides[2], strides[3], strides[1]};
  }
  int32_t dtype = dtypeOf(source);
  GdnTensor from = {source.data, dtype, source.rank, sizes.data(),
                    strides.data()};
  GdnTensor to = {base + copy.offset, dtype, source.rank, source.sizes.data(),
                  copy.strides.data()};
  GdnArg args[2] = {};
  args[0].kind = args[1].kind = GDN_ARG_TENSOR;
  args[0].value.tensor = &from;
  args[1].value.tensor = &to;
  return errorOf(gdnFunctionLaunchOn(function, device, args, std::size(args),
                                     nullptr, 0, stream));
}

Error Relayouts::run(int32_t device, void *stream) const {
  for (const Relayout &copy : copies)
    if (Error error = launch(copy, base, device, stream))
      // The kernel of a copy does not know whose input it copies.
      return {error.kind, listInputs(copy, "") +
                              ": expected a copy on the GPU that succeeds, "
                              "got: " +
                              error.message};
  return {};
}
