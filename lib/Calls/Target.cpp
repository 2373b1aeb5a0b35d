//===- Target.cpp - The form that a call is brought to --------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Target.h"

#include "Conversions.h"
#include "Rules.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>
#include <utility>

using namespace gdn::calls;
using gdn::cost::Schedule;

bool gdn::calls::hasSegments(const GdnEntryDesc *chunks) {
  CutKind waiting = {.isCut = true};
  return findVariant(chunks, Schedule::CtaPerHead.name, waiting) &&
         findVariant(chunks, Schedule::CtaPerVTile.name, waiting);
}

//===----------------------------------------------------------------------===//
// Which conversions there are
//===----------------------------------------------------------------------===//

namespace {
/// Whether a table has what brings a call to a form.
class Reach {
public:
  Reach(const GdnCallTable &table, const Call &call)
      : table(table), call(call) {}

  bool has(const Target &target) const {
    const Signature &form = target.form;
    return hasData(form) && hasGate("gate", form, form.gateDomain, form.gate) &&
           hasGate("beta", form, form.betaDomain, form.beta) &&
           hasParameters(form) && hasStates(target);
  }

private:
  bool isPadded(const Signature &form) const {
    return form.keyChannels != call.keyChannels ||
           form.valueChannels != call.valueChannels;
  }
  bool casts(int32_t from, int32_t to) const {
    return findConversion(table, kCast, from, to);
  }
  bool casts(std::string_view array, int32_t to, bool always) const {
    int32_t from = call.typeOf(array);
    return !from || (from == to && !always) || casts(from, to);
  }
  bool fills(std::string_view array, std::string_view domain,
             int32_t to) const {
    return neutralOf(array, domain) && findConversion(table, kFill, 0, to);
  }

  bool hasData(const Signature &form) const {
    bool always = isPadded(form);
    double factor = factorOf(call, form.keyChannels);
    int32_t out = call.typeOf("o");
    return casts("q", form.element, always) &&
           casts("k", form.element, always) &&
           casts("v", form.element, always) && std::isfinite(factor) &&
           (!out || (out == form.element && !always && factor == 1) ||
            casts(form.element, out));
  }

  bool hasGate(std::string_view array, const Signature &form,
               std::string_view domain, int32_t type) const {
    int32_t given = call.typeOf(array);
    if (!given)
      return !type || fills(array, domain, type);
    std::string fact = std::string(array) + "_domain";
    std::string_view own = call.fact(fact);
    std::string kind = kindOf(own, domain);
    bool isWide = array == "gate" && call.hasChannelGates();
    // Conversions know the parameters of heads alone.
    if (isWide && kind != kCast && gdn::calls::hasParameters(own))
      return false;
    // Those of channels are padded where channels are.
    bool isKept = kind == kCast && given == type;
    return (isKept && !(isWide && isPadded(form))) ||
           findConversion(table, kind, given, type);
  }

  bool hasParameters(const Signature &form) const {
    std::string_view domain = call.fact("gate_domain");
    if (!gdn::calls::hasParameters(domain))
      return true;
    bool isKept = form.gateDomain == domain;
    return casts("a_log", GDN_DTYPE_F32, false) &&
           casts("dt_bias", GDN_DTYPE_F32, false) &&
           (call.find("dt_bias") || !isKept ||
            fills("dt_bias", {}, GDN_DTYPE_F32));
  }

  bool hasStates(const Target &target) const {
    const Signature &form = target.form;
    if (form.stateIndices || form.ends == Ends::None)
      return true;
    bool always = isPadded(form);
    int32_t last = call.typeOf("final_state");
    return casts("initial_state", form.state, always) &&
           (!last || (last == form.state && !always) ||
            casts(form.state, last)) &&
           (call.find("initial_state") || form.ends != Ends::Both ||
            fills("initial_state", {}, form.state));
  }

  const GdnCallTable &table;
  const Call &call;
};

//===----------------------------------------------------------------------===//
// Which forms
//===----------------------------------------------------------------------===//

/// Which functions may serve a form.
enum class Of : uint8_t { Chunks, Tokens, Segments, All };

class Search {
public:
  Search(const GdnCallTable &table, const Call &call, Target &target)
      : table(table), call(call), target(target), reach(table, call),
        given(signatureOf(call, kChunkOp)) {
    int32_t last = call.typeOf("final_state");
    // States of two types are brought to one that holds both.
    if (given.ends == Ends::Both && last && last != given.state)
      given.state = GDN_DTYPE_F32;
  }

  bool run() { return findWithGates() || findConverted(); }
  GdnRuntimeStatus refuse();

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
  Reach reach;
  /// What the call asks for.
  Signature given;
};
} // namespace

/// Looks a form up, and says whether there are such functions for it, and what
/// brings the call to it.
bool Search::look(const Signature &form, Of functions) {
  Signature step = form;
  step.op = kTokenOp;
  target = {form, findEntry(table, form), findEntry(table, step)};
  if (target.chunks && !hasPoolOfRows(call))
    target.tokens = nullptr;
  bool isThere = target.chunks || target.tokens;
  switch (functions) {
  case Of::Chunks:
    isThere = target.chunks;
    break;
  case Of::Tokens:
    isThere = target.tokens;
    break;
  case Of::Segments:
    isThere = target.chunks && hasSegments(target.chunks);
    break;
  case Of::All:
    break;
  }
  return isThere && reach.has(target);
}

/// Whether functions of tokens alone serve long sequences, though ones of
/// chunks are near.
bool Search::isTooLong() const {
  bool ofStates = false;
  return !target.chunks && hasLongSequences(call) &&
         hasNearChunks(table, target.form, ofStates);
}

/// Widens as few of gates and beta as lead to functions, gates before beta.
bool Search::findWithGates() {
  Of functions = call.isFixed() ? Of::Segments : Of::All;
  const int32_t f32 = GDN_DTYPE_F32;
  auto orFloat = [&](int32_t type) { return type ? type : f32; };
  std::pair<int32_t, int32_t> types[] = {
      {given.gate, given.beta},
      {orFloat(given.gate), orFloat(given.beta)},
      {f32, orFloat(given.beta)},
      {orFloat(given.gate), f32},
      {f32, f32}};
  for (auto [gate, beta] : types) {
    Signature form = given;
    form.gate = gate;
    form.beta = beta;
    if (look(form, functions) && !isTooLong())
      return true;
  }
  return false;
}

bool Search::tryDomains(Signature form, Of functions) {
  std::string_view gates[] = {given.gateDomain, "log"};
  std::string_view betas[] = {given.betaDomain, "value"};
  for (std::string_view gate : gates)
    for (std::string_view beta : betas) {
      form.gateDomain = gate;
      if (gate != "bounded")
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
        (given.stateIndices && !isEqual))
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
  if (call.isFixed())
    return findOf(Of::Segments, false);
  // The function of tokens gets their float32 arithmetic. Others get functions
  // of 16 bits as long as there are any.
  if (call.isByToken() ? findOf(Of::Tokens, true)
                       : hasLongSequences(call) && findOf(Of::Chunks, false))
    return true;
  return findOf(Of::All, false) || findOf(Of::All, true);
}

/// Says why there is no form, in the order in which a call is looked at.
GdnRuntimeStatus Search::refuse() {
  Signature form = given;
  if (table.num_conversions)
    form.gate = form.beta = GDN_DTYPE_F32;
  if (!hasChannels(table, form))
    return explainMissing(table, call, form);
  if (GdnRuntimeStatus status = checkTypes(call))
    return status;
  look(form, Of::All);
  if (!target.chunks && !target.tokens)
    return explainMissing(table, call, form);
  if (call.isFixed())
    return explainNoSegments(call);
  bool ofStates = false;
  hasNearChunks(table, form, ofStates);
  return explainLength(call, form, ofStates);
}

GdnRuntimeStatus gdn::calls::findTarget(const GdnCallTable &table,
                                        const Call &call, Target &target) {
  if (GdnRuntimeStatus status = checkSizes(call))
    return status;
  if (GdnRuntimeStatus status = checkPool(call))
    return status;
  Search search(table, call, target);
  return search.run() ? GDN_SUCCESS : search.refuse();
}
