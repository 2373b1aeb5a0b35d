//===- Target.cpp - The form that a call is brought to --------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Target.h"

#include "Check.h"
#include "Conversions.h"
#include "gdn/GateForms.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <utility>

using namespace gdn::calls;
using gdn::cost::Schedule;

bool gdn::calls::hasSegments(const Call &call, const GdnEntryDesc *chunks) {
  // Segments with their own starts leave those that wait nothing to do.
  CutKind waiting = {.isCut = true}, own = {.isCut = true, .hasParts = true};
  return findFaster(call, chunks, Schedule::CtaPerHead.name, own) ||
         (findVariant(chunks, Schedule::CtaPerHead.name, waiting) &&
          findVariant(chunks, Schedule::CtaPerVTile.name, waiting));
}

//===----------------------------------------------------------------------===//
// Which forms
//===----------------------------------------------------------------------===//

/// The function that serves a form, if the call can be brought to it.
static const GdnEntryDesc *findReachable(const GdnCallTable &table,
                                         const Call &call,
                                         const Signature &form) {
  const GdnEntryDesc *entry = findEntry(table, form);
  return entry && isReachable(table, call, *entry) ? entry : nullptr;
}

/// A form with as few of gates and beta widened as may lead to functions, gates
/// before beta.
static std::array<Signature, 5> withTypesOfGates(const Signature &given) {
  constexpr int32_t f32 = GDN_DTYPE_F32;
  auto orFloat = [](int32_t type) { return type ? type : f32; };
  const std::pair<int32_t, int32_t> types[] = {
      {given.gate, given.beta},
      {orFloat(given.gate), orFloat(given.beta)},
      {f32, orFloat(given.beta)},
      {orFloat(given.gate), f32},
      {f32, f32}};
  std::array<Signature, 5> forms;
  for (size_t i = 0; i < forms.size(); ++i) {
    forms[i] = given;
    forms[i].gate = types[i].first;
    forms[i].beta = types[i].second;
  }
  return forms;
}

namespace {
/// Which functions may serve a form.
enum class Of : uint8_t { Chunks, Tokens, Segments, All };

class Search {
public:
  Search(const GdnCallTable &table, const Call &call, Target &target)
      : table(table), call(call), target(target),
        given(signatureOf(call, kChunkOp)) {
    int32_t last = call.typeOf("final_state");
    // States of two types are brought to one that holds both.
    if (given.ends == Ends::Both && last && last != given.state)
      given.state = GDN_DTYPE_F32;
    // Functions with and without states may have other bits.
    if (call.isFixedByToken() && !given.stateIndices) {
      given.ends = Ends::Both;
      given.state = given.state ? given.state : GDN_DTYPE_F32;
    }
  }

  bool run() { return findWithGates() || findConverted(); }
  [[noreturn]] void refuse();

private:
  bool look(const Signature &form, Of functions);
  bool isTooLong() const;
  bool findWithGates();
  bool findConverted();
  bool findOf(Of functions, bool widens);
  bool tryStates(Signature form, Of functions);
  bool tryDomains(Signature form, Of functions);

  const GdnCallTable &table;
  const Call &call;
  Target &target;
  /// What the call asks for.
  Signature given;
};
} // namespace

/// Looks a form up that the call can be brought to, and says whether there are
/// such functions for it.
bool Search::look(const Signature &form, Of functions) {
  Signature step = form;
  step.op = kTokenOp;
  target = {form, findReachable(table, call, form),
            findReachable(table, call, step)};
  if (target.chunks && !hasPoolOfRows(call))
    target.tokens = nullptr;
  switch (functions) {
  case Of::Chunks:
    return target.chunks;
  case Of::Tokens:
    return target.tokens;
  case Of::Segments:
    return target.chunks && hasSegments(call, target.chunks);
  case Of::All:
    return target.chunks || target.tokens;
  }
  return false;
}

/// Whether functions of tokens alone serve long sequences, though ones of
/// chunks are near.
bool Search::isTooLong() const {
  bool ofStates = false;
  return !target.chunks && hasLongSequences(call) &&
         hasNearChunks(table, target.form, ofStates);
}

bool Search::findWithGates() {
  Of functions = call.asksForSegments()  ? Of::Segments
                 : call.isFixedByToken() ? Of::Tokens
                                         : Of::All;
  for (const Signature &form : withTypesOfGates(given))
    if (look(form, functions) && !isTooLong())
      return true;
  return false;
}

bool Search::tryDomains(Signature form, Of functions) {
  std::string_view gates[] = {given.gateDomain, "log"};
  std::string_view betas[] = {given.betaDomain, "value"};
  for (std::string_view gate : gates)
    for (std::string_view beta : betas) {
      form.gateDomain = gate;
      if (!gdn_gates::gateFormOf(gate).needsBound())
        form.lowerBound = {};
      form.betaDomain = beta;
      if (look(form, functions))
        return true;
    }
  return false;
}

bool Search::tryStates(Signature form, Of functions) {
  std::pair<Ends, int32_t> states[] = {{given.ends, given.state},
                                       {given.ends, GDN_DTYPE_F32},
                                       {Ends::Both, GDN_DTYPE_F32}};
  // A pool is the caller's, to be updated in place.
  int count = given.stateIndices ? 1 : std::size(states);
  for (auto [ends, state] : std::span(states, count)) {
    form.ends = ends;
    form.state = state;
    if (tryDomains(form, functions))
      return true;
  }
  return false;
}

/// The forms that a call can be brought to, what costs least first.
bool Search::findOf(Of functions, bool widens) {
  bool isShort =
      given.element == GDN_DTYPE_BF16 || given.element == GDN_DTYPE_F16;
  int32_t elements[] = {given.element, GDN_DTYPE_F32};
  for (auto [key, value] : channelsOf(table)) {
    bool isEqual = key == call.keyChannels && value == call.valueChannels;
    if (key < call.keyChannels || value < call.valueChannels ||
        ((given.stateIndices || given.steps) && !isEqual))
      continue;
    Signature form = given;
    form.keyChannels = key;
    form.valueChannels = value;
    form.gate = form.beta = GDN_DTYPE_F32;
    for (int32_t element : std::span(elements, widens && isShort ? 2 : 1)) {
      form.element = element;
      if (tryStates(form, functions))
        return true;
    }
  }
  return false;
}

bool Search::findConverted() {
  if (!call.keyChannels || !call.valueChannels || !table.num_conversions)
    return false;
  if (call.asksForSegments() && findOf(Of::Segments, false))
    return true;
  if (call.isFixed())
    return call.isByToken() && findOf(Of::Tokens, true);
  // The function of tokens gets their float32 arithmetic. Others get functions
  // of 16 bits as long as there are any.
  if (call.isByToken() ? findOf(Of::Tokens, true)
                       : hasLongSequences(call) && findOf(Of::Chunks, false))
    return true;
  return findOf(Of::All, false) || findOf(Of::All, true);
}

/// Says why there is no form, in the order in which a call is looked at.
void Search::refuse() {
  Signature form = given;
  if (table.num_conversions)
    form.gate = form.beta = GDN_DTYPE_F32;
  Signature step = form;
  step.op = kTokenOp;
  const GdnEntryDesc *chunks = findEntry(table, form);
  if (!chunks && !findEntry(table, step))
    explainMissing(table, call, form);
  if (call.asksForSegments() && !hasSegments(call, chunks))
    explainNoSegments(call);
  if (call.isFixedByToken())
    call.refuse("split_whole",
                "a form that functions token by token have on a GPU in this "
                "version",
                "another", GDN_ERROR_NOT_SERVED);
  // What stands in the way is not a matter of the form.
  checkTypes(call);
  bool ofStates = false;
  hasNearChunks(table, form, ofStates);
  explainLength(call, form, ofStates);
}

Target gdn::calls::findTarget(const GdnCallTable &table, const Call &call) {
  checkSizes(call);
  checkPool(call);
  Target target;
  Search search(table, call, target);
  if (!search.run())
    search.refuse();
  return target;
}

const GdnEntryDesc *gdn::calls::findNear(const GdnCallTable &table,
                                         const Call &call, Signature &form,
                                         bool isWidened) {
  const Signature given = form;
  for (auto [key, value] : channelsOf(table)) {
    bool isEqual = key == call.keyChannels && value == call.valueChannels;
    if (!isEqual &&
        (!isWidened || key < call.keyChannels || value < call.valueChannels))
      continue;
    Signature wide = given;
    wide.keyChannels = key;
    wide.valueChannels = value;
    for (const Signature &one : withTypesOfGates(wide)) {
      form = one;
      if (const GdnEntryDesc *entry = findReachable(table, call, one))
        return entry;
    }
  }
  form = given;
  return nullptr;
}

gdn::cost::Workload gdn::calls::describe(const Call &call,
                                         const Signature &form) {
  cost::Workload workload;
  workload.sequences = call.sequences;
  workload.tokens = call.tokens;
  workload.packed = call.isPacked();
  if (call.get().longest > 0)
    workload.longest = call.get().longest;
  workload.keyHeads = call.keyHeads;
  workload.heads = call.heads;
  workload.keyChannels = form.keyChannels;
  workload.valueChannels = form.valueChannels;
  workload.vTiles =
      std::max<int64_t>(1, form.valueChannels / cost::kVTileChannels);
  workload.dataBytes = sizeOf(form.element);
  workload.gateBytes =
      sizeOf(form.gate) * (form.hasChannelGates ? form.keyChannels : 1) +
      sizeOf(form.beta);
  workload.gatesChannels = call.hasChannelGates();
  int states = form.ends == Ends::None ? 0 : form.ends == Ends::Both ? 2 : 1;
  if (const GdnTensor *kept = call.find("step_indices");
      kept && call.keepsTokens())
    states = 1 + std::min<int64_t>(kept->shape[1],
                                   call.batches * call.tokens /
                                       std::max<int64_t>(call.sequences, 1));
  workload.stateBytes = states * sizeOf(form.state);
  workload.stateVFirst = workload.stateBytes && call.stateLayout() == "vk";
  return workload;
}
