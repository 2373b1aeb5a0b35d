//===- Arguments.cpp - A call's arrays as a function takes them -----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arguments.h"

#include "Signature.h"

#include <algorithm>
#include <iterator>
#include <utility>

using namespace gdn::calls;

Strides gdn::calls::stridesOf(const GdnTensor &array) {
  Strides strides{};
  int64_t dense = 1;
  for (int i = std::min(array.rank, kMaxRank) - 1; i >= 0; --i) {
    strides[i] = array.strides ? array.strides[i] : dense;
    dense *= array.shape[i];
  }
  return strides;
}

View &View::operator=(const View &other) {
  shape = other.shape;
  strides = other.strides;
  tensor = other.tensor;
  tensor.shape = shape.data();
  tensor.strides = strides.data();
  return *this;
}

View::View(const GdnTensor &array)
    : tensor(array), shape(), strides(stridesOf(array)) {
  std::copy_n(array.shape, std::min(array.rank, kMaxRank), shape.begin());
  tensor.shape = shape.data();
  tensor.strides = strides.data();
}

int64_t View::integerAt(int64_t i, int64_t j) const {
  const char *entry = at(i * strides[0] + (j ? j * strides[1] : 0));
  return tensor.dtype == GDN_DTYPE_I32
             ? *reinterpret_cast<const int32_t *>(entry)
             : *reinterpret_cast<const int64_t *>(entry);
}

//===----------------------------------------------------------------------===//
// Scalars and places
//===----------------------------------------------------------------------===//

namespace {
/// A scalar of a plan, by the word of gdn.cut that its argument is called, or
/// of a call.
struct Scalar {
  std::string_view name;
  int64_t GdnCallPlan::*ofPlan = nullptr;
  int64_t GdnCall::*ofCall = nullptr;
};
} // namespace

/// In the order of their places, from -1 down.
static constexpr Scalar scalars[] = {
    {"segment_length", &GdnCallPlan::segment_length},
    {"segment_parts", &GdnCallPlan::segment_parts},
    {"longer_segment_length", &GdnCallPlan::longer_segment_length},
    {"first_state", nullptr, &GdnCall::first_state}};

/// The place of an argument: a scalar or an array of the call, or behind its
/// arrays for an optional one that it does not list; nothing if the call has
/// none of that name.
static bool findPlace(const Call &call, const GdnArgDesc &arg, int8_t &place) {
  for (size_t i = 0; i < std::size(scalars); ++i)
    if (arg.kind != GDN_ARG_TENSOR && scalars[i].name == arg.name) {
      place = static_cast<int8_t>(-1 - static_cast<int>(i));
      return true;
    }
  const GdnCall &given = call.get();
  for (int32_t i = 0; i < given.num_arrays; ++i)
    if (arg.kind == GDN_ARG_TENSOR &&
        std::string_view(given.arrays[i].name) == arg.name) {
      place = static_cast<int8_t>(i);
      return true;
    }
  place = static_cast<int8_t>(given.num_arrays);
  return arg.flags & GDN_ARG_FLAG_OPTIONAL;
}

const char *gdn::calls::findPlaces(const Call &call, GdnCallPlan &plan) {
  const GdnFunctionDesc &function = *plan.variant->function;
  if (function.num_args > GDN_CALL_MAX_ARGUMENTS)
    refuse(GDN_ERROR_INVALID_ARGUMENT,
           "expected a function of at most " +
               std::to_string(GDN_CALL_MAX_ARGUMENTS) + " arguments, got " +
               function.name);
  for (int32_t i = 0; i < function.num_args; ++i)
    if (!findPlace(call, function.args[i], plan.arguments[i]))
      return function.args[i].name;
  return nullptr;
}

void gdn::calls::placeArguments(const Call &call, GdnCallPlan &plan) {
  if (const char *missing = findPlaces(call, plan))
    refuse(GDN_ERROR_INVALID_ARGUMENT,
           std::string("expected an array called ") + missing + ", which " +
               plan.variant->function->name + " takes, got none");
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

/// A state [K, V] of each sequence and head as one [V, K], and the other way
/// round.
static void transpose(View &state) {
  std::swap(state.shape[2], state.shape[3]);
  std::swap(state.strides[2], state.strides[3]);
}

/// Whether an argument is the states that a forward saves for a backward.
static bool isSavedStates(const GdnArgDesc &arg) {
  return std::string_view(arg.name) == "states";
}

Arguments::Arguments(const Call &call, const GdnCallPlan &plan)
    : function(*plan.variant->function), count(function.num_args) {
  const GdnCallArray *arrays = call.get().arrays;
  bool isTurned = call.stateLayout() != plan.variant->state_layout;
  for (int32_t i = 0; i < count; ++i) {
    int place = plan.arguments[i];
    if (place < 0) {
      args[i].kind = GDN_ARG_I64;
      const Scalar &scalar = scalars[-1 - place];
      args[i].value.i64 =
          scalar.ofPlan ? plan.*scalar.ofPlan : call.get().*scalar.ofCall;
      continue;
    }
    const GdnTensor *array =
        place < call.get().num_arrays ? arrays[place].tensor : nullptr;
    args[i].kind = GDN_ARG_TENSOR;
    args[i].value.tensor = array;
    if (!array)
      continue;
    if (isTurned && hasAnyLayout(function.args[i]))
      transpose(change(i));
    // With fewer than that the function refuses the array.
    if (array->shape[0] > plan.saved_states && plan.saved_states &&
        isSavedStates(function.args[i]))
      change(i).shape[0] = plan.saved_states;
    // Parameters of channels in a row are those of one head after the other.
    // The call's gates say how many channels a head has: a function may have
    // more.
    const GdnTensor *gate = call.find("gate");
    int64_t channels = gate && gate->rank == kMaxRank ? gate->shape[3] : 0;
    if (array->rank == 1 && function.args[i].rank == 2 && channels > 0) {
      View &view = change(i);
      view.tensor.rank = 2;
      view.shape = {array->shape[0] / channels, channels};
      view.strides = {view.strides[0] * channels, view.strides[0]};
    }
    // Boundaries and rows of 64 bits are their lower halves, with strides that
    // are doubled.
    if (array->dtype == GDN_DTYPE_I64 &&
        function.args[i].dtype == GDN_DTYPE_I32) {
      View &view = change(i);
      view.tensor.dtype = GDN_DTYPE_I32;
      for (int64_t &stride : view.strides)
        stride *= 2;
    }
  }
}

View &Arguments::change(int32_t index) {
  if (args[index].value.tensor != &views[index].tensor) {
    views[index] = View(*args[index].value.tensor);
    args[index].value.tensor = &views[index].tensor;
  }
  return views[index];
}

View &Arguments::make(int32_t index, const Call &call) {
  constexpr int32_t kTokenRank = 3;
  // A call that is launched has not been read.
  Call sized(call.get());
  sized.read();
  const GdnArgDesc &arg = function.args[index];
  View &view = views[index];
  view.tensor = {nullptr, arg.dtype, arg.rank, view.shape.data(),
                 view.strides.data()};
  view.shape =
      arg.rank == kTokenRank ? Strides{sized.batches, sized.tokens, sized.heads}
      : arg.rank <= 2        ? Strides{sized.heads}
      : isState(arg) ? Strides{sized.sequences, sized.heads}
                     : Strides{sized.batches, sized.tokens, sized.heads};
  for (int i = 0; i < arg.rank; ++i)
    if (arg.shape[i] >= 0)
      view.shape[i] = arg.shape[i];
  args[index].value.tensor = &view.tensor;
  return view;
}

void Arguments::inventAddresses() {
  for (int32_t i = 0; i < count; ++i)
    if (const GdnTensor *array = get(i); array && !array->data)
      change(i).tensor.data = reinterpret_cast<void *>(GDN_WORKSPACE_ALIGNMENT);
}

int32_t Arguments::find(std::string_view name) const {
  for (int32_t i = 0; i < count; ++i)
    if (function.args[i].name == name)
      return i;
  return -1;
}
