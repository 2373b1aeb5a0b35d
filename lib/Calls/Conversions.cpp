//===- Conversions.cpp - Arrays that a function does not take -------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels of chunks access q, k, v and o by tensor maps: the last dimension has
// stride 1, the other strides are multiples of 16 bytes, and so is the address.
// Of other arrays, and in kernels token by token of all, they know only that
// the last dimension has stride 1. What is not so is copied. Views of one
// buffer, as a convolution's output is split into q, k and v, have one copy.
//
//===----------------------------------------------------------------------===//

#include "Conversions.h"

#include "Layout.h"
#include "Signature.h"
#include "gdn/GateForms.h"

#include <algorithm>
#include <iterator>
#include <utility>

using namespace gdn::calls;
namespace cost = gdn::cost;

//===----------------------------------------------------------------------===//
// Which arrays
//===----------------------------------------------------------------------===//

namespace {
/// An array that may be converted.
struct Role {
  std::string_view name;
  /// Whether functions of chunks have a tensor map of it, if it has rows of
  /// channels.
  bool isMapped;
  /// Its dimensions as batches, tokens, heads and channels; -1 is none.
  std::array<int, kMaxRank> dims;
  /// The fact that says its domain.
  std::string_view fact = {};
  /// Its dimensions where it has one more: of gates per channel.
  std::array<int, kMaxRank> channelDims = {};
  /// Arrays of which a function that has one has this one too, though each may
  /// be absent.
  std::array<std::string_view, 2> partners = {};

  const std::array<int, kMaxRank> &getDims(int32_t rank) const {
    auto missing = std::count(dims.begin(), dims.end(), -1);
    return missing == kMaxRank - rank ? dims : channelDims;
  }
};
} // namespace

static constexpr std::array<int, kMaxRank> kTokens = {0, 1, 2, 3},
                                           kGates = {0, 1, -1, 2},
                                           kVector = {-1, -1, -1, 0},
                                           kStates = {0, 2, 1, 3};
static constexpr Role roles[] = {
    {"q", true, kTokens},
    {"k", true, kTokens},
    {"v", true, kTokens},
    {"gate", true, kGates, "gate_domain", kTokens},
    {"beta", false, kGates, "beta_domain"},
    {"a_log", false, kVector},
    {"dt_bias", false, kVector, {}, {-1, -1, 0, 1}},
    {"initial_state", false, kStates, {}, {}, {"d_final_state"}},
    {"d_o", true, kTokens},
    {"d_final_state", false, kStates, {}, {}, {"initial_state"}},
    {"o", true, kTokens},
    {"final_state", false, kStates, {}, {}, {"initial_state"}},
    {"dq", true, kTokens},
    {"dk", true, kTokens},
    {"dv", true, kTokens},
    {"dgate", false, kGates, {}, kTokens},
    {"dbeta", false, kGates},
    {"da_log", false, kVector},
    {"ddt_bias", false, kVector, {}, {-1, -1, 0, 1}},
    {"dinitial_state",
     false,
     kStates,
     {},
     {},
     {"initial_state", "d_final_state"}}};
static_assert(std::size(roles) == GDN_CALL_MAX_CONVERTED);

/// Whether a function accesses an array where it lies.
static bool isAccessible(const GdnTensor &array, const Role &role,
                         const GdnArgDesc &arg, const GdnCallPlan &plan) {
  bool maps = plan.variant->schedule != cost::Schedule::Token.name &&
              array.rank == kMaxRank;
  return role.isMapped && maps ? isMapped(array)
                               : hasAnyLayout(arg) || hasLastStride1(array);
}

namespace {
/// The domain of an array in a call, and that of a function's argument.
struct Domains {
  std::string_view from, to;

  Domains(const Role &role, const Call &call, const GdnCallPlan &plan) {
    if (role.fact.empty())
      return;
    from = call.fact(role.fact);
    to = findFact(plan.entry->facts, plan.entry->num_facts, role.fact);
  }
};
} // namespace

/// The factor that is still to be multiplied into an output, or into the
/// gradient of one.
static double factorOf(const Role &role, const Call &call,
                       const GdnCallPlan &plan) {
  bool isScaled = role.name == "o" || role.name == "d_o";
  return isScaled ? factorOf(call, keyChannelsOf(*plan.variant->function)) : 1;
}

/// Whether a function takes an array of the call as it is.
static bool isTaken(const Role &role, const Arguments &arguments,
                    const Call &call, const GdnCallPlan &plan, int32_t place) {
  const GdnArgDesc &arg = arguments.describe(place);
  const GdnTensor *array = arguments.get(place);
  bool isOutput = place >= plan.variant->function->num_inputs;
  if (!array) {
    bool hasPartner = std::any_of(role.partners.begin(), role.partners.end(),
                                  [&](std::string_view name) {
                                    return !name.empty() && call.find(name);
                                  });
    return role.name == "o" ||
           (arg.flags & GDN_ARG_FLAG_OPTIONAL && !hasPartner);
  }
  if (!hasForm(*array, arg) || factorOf(role, call, plan) != 1)
    return false;
  if (isOutput)
    return isAccessible(*array, role, arg, plan);
  Domains domains(role, call, plan);
  if (domains.from != domains.to)
    return false;
  bool isKept = isAccessible(*array, role, arg, plan) &&
                !(isState(arg) && isReplacedEarly(call, plan));
  return isKept || !hasElements(*array);
}

void gdn::calls::placeConversions(const Call &call, GdnCallPlan &plan) {
  const Arguments arguments(call, plan);
  // A pool is written, too: a copy would take what is for the caller. The
  // function refuses one that it cannot read.
  bool hasPool = arguments.find("state_indices") >= 0;
  for (size_t k = 0; k < std::size(roles); ++k) {
    int32_t place = arguments.find(roles[k].name);
    bool isPool = hasPool && roles[k].name.ends_with("_state");
    bool isLeft =
        place < 0 || isPool || isTaken(roles[k], arguments, call, plan, place);
    plan.converted[k] = isLeft ? int8_t(-1) : static_cast<int8_t>(place);
  }
}

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

/// An array as [B, T, H, C].
static View viewAs(const View &array, const Role &role) {
  View view = array;
  view.tensor.rank = kMaxRank;
  for (int i = 0; i < kMaxRank; ++i) {
    int dim = role.getDims(array.tensor.rank)[i];
    view.shape[i] = dim < 0 ? 1 : array.shape[dim];
    view.strides[i] = dim < 0 ? 0 : array.strides[dim];
  }
  return view;
}

/// Gives an array the strides of its part of rows, in its own dimensions.
static void setStrides(View &view, const View &rows, const Role &role) {
  const int64_t ofPlace[] = {rows.strides[0], rows.strides[1],
                             view.shape[view.tensor.rank - 1], 1};
  Strides strides = {1};
  const auto &dims = role.getDims(view.tensor.rank);
  for (int place = 0; place < kMaxRank; ++place)
    if (dims[place] >= 0)
      strides[dims[place]] = ofPlace[place];
  view.strides = strides;
}

size_t Conversions::allocate(uint64_t size) {
  memories.push_back({bytes, size});
  bytes += roundUp(size, GDN_WORKSPACE_ALIGNMENT);
  return memories.size() - 1;
}

size_t Conversions::layOut(View &rows) {
  uint64_t size = setRows(rows);
  size_t memory = allocate(size);
  uses.push_back({&rows, memory, 0});
  return memory;
}

//===----------------------------------------------------------------------===//
// The plan
//===----------------------------------------------------------------------===//

Conversion &Conversions::add(std::string kind, size_t number) {
  Conversion &made = conversions.emplace_back();
  made.kind = std::move(kind);
  made.names = {roles[number].name.data()};
  return made;
}

/// Makes the array a part of the last copy if it follows what that reads.
bool Conversions::append(const View &source, size_t number, Part &part) {
  if (parts.empty() || !follows(parts.back().copy->source, source))
    return false;
  Conversion &last = *parts.back().copy;
  int64_t first = last.source.shape[3] * sizeOf(source.tensor.dtype);
  // Kernels read the array at its place in the rows.
  if (first % kUnit)
    return false;
  last.source.shape[3] += source.shape[3];
  last.names.push_back(roles[number].name.data());
  part.copy = &last;
  part.offset = first;
  return true;
}

void Conversions::copy(View &view, size_t number) {
  View source = viewAs(view, roles[number]);
  mergeHeads(source);
  Part part = {&view, number, nullptr, 0};
  if (!append(source, number, part)) {
    bool isTransposed = source.shape[1] > 1 && source.strides[1] == 1;
    part.copy = &add(std::string(isTransposed ? kTranspose : kCopy), number);
    part.copy->source = source;
  }
  parts.push_back(part);
}

void Conversions::layOutCopies() {
  const Conversion *last = nullptr;
  for (const Part &part : parts) {
    if (part.copy != last) {
      part.copy->target = part.copy->source;
      layOut(part.copy->target);
    }
    last = part.copy;
    setStrides(*part.argument, last->target, roles[part.number]);
    uses.push_back({part.argument, memories.size() - 1, part.offset});
  }
}

void Conversions::fill(Arguments &arguments, const Call &call,
                       const GdnCallPlan &plan, size_t number, int32_t place) {
  const Role &role = roles[number];
  const GdnArgDesc &arg = arguments.describe(place);
  std::optional<double> neutral =
      neutralOf(role.name, role.fact.empty()
                               ? std::string_view()
                               : findFact(plan.entry->facts,
                                          plan.entry->num_facts, role.fact));
  if (!neutral)
    return;
  View &view = arguments.make(place, call);
  Conversion &made = add(std::string(kFill), number);
  made.factor = *neutral;
  made.target = viewAs(view, role);
  // Every row is the same one, but of what is read by a tensor map.
  bool isOneRow = !role.isMapped || arg.rank < kMaxRank;
  if (isOneRow)
    made.target.shape = {1, 1, 1, view.shape[arg.rank - 1]};
  size_t memory = layOut(made.target);
  setStrides(view, made.target, role);
  if (isOneRow) {
    view.strides = {};
    view.strides[arg.rank - 1] = 1;
  }
  uses.push_back({&view, memory, 0});
}

/// The parameters of a raw gate whose logarithms a conversion makes.
void Conversions::addParameters(const Call &call, Conversion &conversion) {
  auto read = [&](std::string_view name, View &view) {
    const GdnTensor *given = call.find(name);
    if (given)
      view = View(*given);
    if (!given || given->dtype == GDN_DTYPE_F32)
      return;
    size_t number =
        std::find_if(std::begin(roles), std::end(roles),
                     [&](const Role &role) { return role.name == name; }) -
        std::begin(roles);
    // The cast is launched before the conversion.
    conversions.emplace_front();
    Conversion &cast = conversions.front();
    cast.kind = kCast;
    cast.names = {roles[number].name.data()};
    cast.source = viewAs(view, roles[number]);
    cast.target = cast.source;
    cast.target.tensor.dtype = view.tensor.dtype = GDN_DTYPE_F32;
    size_t memory = layOut(cast.target);
    view.strides = {1};
    uses.push_back({&view, memory, 0});
  };
  read("a_log", conversion.aLog);
  read("dt_bias", conversion.dtBias);
}

void Conversions::planInput(Arguments &arguments, const Call &call,
                            const GdnCallPlan &plan, size_t number,
                            int32_t place) {
  const Role &role = roles[number];
  const GdnArgDesc &arg = arguments.describe(place);
  const GdnTensor *array = arguments.get(place);
  if (!array)
    return fill(arguments, call, plan, number, place);
  Domains domains(role, call, plan);
  double factor = factorOf(role, call, plan);
  if (domains.from == domains.to && hasForm(*array, arg) && factor == 1)
    return copy(arguments.change(place), number);
  View &view = arguments.change(place);
  // What makes logarithms of raw gates knows the parameters of heads alone.
  std::string kind = kindOf(domains.from, domains.to);
  bool isWide = role.name == "gate" && call.hasChannelGates();
  if (isWide && kind != kCast &&
      gdn_gates::gateFormOf(domains.from).hasParameters())
    kind = "channels_" + kind;
  Conversion &made = add(std::move(kind), number);
  made.factor = factor;
  made.source = viewAs(view, role);
  setForm(view, arg);
  made.target = viewAs(view, role);
  size_t memory = layOut(made.target);
  setStrides(view, made.target, role);
  uses.push_back({&view, memory, 0});
  if (role.name == "gate")
    addParameters(call, made);
  if (made.source.shape == made.target.shape) {
    mergeHeads(made.source);
    if (made.source.shape[2] == 1)
      mergeHeads(made.target);
  }
}

void Conversions::planOutput(Arguments &arguments, const Call &call,
                             const GdnCallPlan &plan, size_t number,
                             int32_t place) {
  const Role &role = roles[number];
  const GdnArgDesc &arg = arguments.describe(place);
  const GdnTensor *array = arguments.get(place);
  bool isFitting =
      array && hasForm(*array, arg) && isAccessible(*array, role, arg, plan);
  Conversion *made = nullptr;
  if (array) {
    made = &add(std::string(kCast), number);
    made->isBehind = true;
    made->factor = factorOf(role, call, plan);
    made->target = viewAs(View(*array), role);
    made->source = made->target;
  }
  if (isFitting)
    return;
  View &view = array ? arguments.change(place) : arguments.make(place, call);
  setForm(view, arg);
  View rows = viewAs(view, role);
  View &source = made ? made->source : view;
  size_t memory = allocate(setRows(rows));
  setStrides(view, rows, role);
  uses.push_back({&view, memory, 0});
  if (!made)
    return;
  source = rows;
  uses.push_back({&source, memory, 0});
}

void Conversions::plan(Arguments &arguments, const Call &call,
                       const GdnCallPlan &plan) {
  const int32_t inputs = plan.variant->function->num_inputs;
  for (size_t k = 0; k < std::size(roles); ++k) {
    int32_t place = plan.converted[k];
    if (place >= 0 && place < inputs)
      planInput(arguments, call, plan, k, place);
    else if (place >= inputs)
      planOutput(arguments, call, plan, k, place);
  }
  layOutCopies();
  // What checks arrays takes null for none.
  if (!memories.empty())
    place(reinterpret_cast<void *>(GDN_WORKSPACE_ALIGNMENT));
}

void Conversions::place(void *workspace) {
  for (const Use &use : uses)
    use.view->tensor.data =
        reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(workspace) +
                                 memories[use.memory].offset + use.offset);
}
