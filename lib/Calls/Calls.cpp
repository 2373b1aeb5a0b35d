//===- Calls.cpp - Plan, launch and describe calls ------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Conversions.h"
#include "Items.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

using namespace gdn::calls;

static void checkPointers(const void *first, const void *second,
                          const void *third) {
  if (!first || !second || !third)
    refuse(GDN_ERROR_INVALID_ARGUMENT, "expected no null pointer, got one");
}

/// Reads a call that is to be planned.
static Call readCall(const GdnCallTable &table, const GdnCall &given) {
  Call call(given);
  call.read();
  if (table.struct_size != sizeof(GdnCallTable))
    refuse(GDN_ERROR_VERSION,
           "expected a table of " + std::to_string(sizeof(GdnCallTable)) +
               " bytes, got " + std::to_string(table.struct_size));
  return call;
}

/// Checks a call on a GPU and chooses for it.
static Choice choose(const GdnCallTable &table, const Call &call) {
  check(table, call, CallArrays(call));
  Choice chosen;
  chosen.chip = readChip(call.get().device);
  if (!table.num_entries)
    refuse(GDN_ERROR_UNSUPPORTED_DEVICE,
           "expected " + call.say("a table of functions") + ", got " +
               call.say("an empty one"));
  if (call.isBackward())
    chooseBackward(table, call, chosen);
  else if (call.savedTokens())
    chooseSavingForward(table, call, chosen);
  else
    chooseForward(table, call, chosen);
  placeConversions(call, chosen.plan);
  return chosen;
}

GdnRuntimeStatus gdnCallPlan(const GdnCallTable *table, const GdnCall *given,
                             GdnCallPlan *plan) {
  return guarded([&] {
    checkPointers(table, given, plan);
    const Call call = readCall(*table, *given);
    if (call.isOnCPU()) {
      const ItemCall items(call);
      check(*table, call, items);
      return planItems(*table, call, items, *plan);
    }
    *plan = choose(*table, call).plan;
    rememberPlan(*table, *given, *plan);
  });
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

namespace {
/// A call on a GPU with what its plan makes of its arrays.
struct PlannedCall {
  const GdnCallPlan &plan;
  Call call;
  Arguments arguments;
  Conversions conversions;
  const GdnFunctionDesc *function;

  PlannedCall(const GdnCallPlan &plan, const GdnCall &given)
      : plan(plan), call(given), arguments(call, plan),
        function(plan.variant->function) {
    conversions.plan(arguments, call, plan);
  }

  void check() const {
    require(gdnFunctionCheck(function, arguments.data(), arguments.size()));
  }
  void checkPlaces() const {
    checkMemory(call);
    checkAddresses(call);
  }
  uint64_t countWorkspace() const;
  void prepare() const;
  GdnRuntimeStatus launch(void *workspace, size_t workspaceBytes, void *stream);
};
} // namespace

uint64_t PlannedCall::countWorkspace() const {
  uint64_t bytes = 0;
  // What has no arrays of its own is checked when it is launched.
  if (function->num_temporaries)
    require(gdnFunctionGetWorkspaceBytes(function, arguments.data(),
                                         arguments.size(), &bytes));
  return bytes + conversions.getBytes();
}

void PlannedCall::prepare() const {
  int32_t device = call.get().device;
  conversions.prepare(*plan.table, device);
  require(gdnFunctionPrepare(function, device));
}

GdnRuntimeStatus PlannedCall::launch(void *workspace, size_t workspaceBytes,
                                     void *stream) {
  uint64_t taken = conversions.getBytes();
  if (taken > workspaceBytes)
    refuse(GDN_ERROR_WORKSPACE_TOO_SMALL,
           "expected a workspace of at least " + std::to_string(taken) +
               " bytes, got " + std::to_string(workspaceBytes));
  if (taken) {
    conversions.place(workspace);
    // Nothing is converted for a call that is refused.
    check();
  }
  conversions.launch(*plan.table, call, /*isBehind=*/false, stream);
  char *own = static_cast<char *>(workspace);
  GdnRuntimeStatus status = gdnFunctionLaunchOn(
      function, call.get().device, arguments.data(), arguments.size(),
      own ? own + taken : nullptr, workspaceBytes - taken, stream);
  if (!status)
    conversions.launch(*plan.table, call, /*isBehind=*/true, stream);
  return status;
}

/// Runs a planned call on a CPU.
static void runOnCPU(const GdnCallPlan &plan, const GdnCall &given) {
  Call call(given);
  call.read();
  checkMemory(call);
  checkAddresses(call);
  runItems(plan, call, ItemCall(call));
}

GdnRuntimeStatus gdnCallGetWorkspaceBytes(const GdnCallPlan *plan,
                                          const GdnCall *call,
                                          uint64_t *bytes) {
  return guarded([&] {
    checkPointers(plan, call, bytes);
    *bytes = 0;
    // Threads of a CPU bring their own.
    if (plan->items)
      return;
    PlannedCall planned(*plan, *call);
    planned.check();
    *bytes = planned.countWorkspace();
  });
}

GdnRuntimeStatus gdnCallPrepare(const GdnCallPlan *plan, const GdnCall *call) {
  return guarded([&] {
    checkPointers(plan, call, plan);
    if (!plan->items)
      PlannedCall(*plan, *call).prepare();
  });
}

GdnRuntimeStatus gdnCallLaunch(const GdnCallPlan *plan, const GdnCall *call,
                               void *workspace, size_t workspaceBytes,
                               void *stream) {
  return guarded([&] {
    checkPointers(plan, call, plan);
    if (plan->items)
      return runOnCPU(*plan, *call);
    PlannedCall planned(*plan, *call);
    planned.checkPlaces();
    require(planned.launch(workspace, workspaceBytes, stream));
  });
}

//===----------------------------------------------------------------------===//
// Launches with a workspace
//===----------------------------------------------------------------------===//

namespace {
/// The library's memory of a device's stream, as far as it was ever asked for.
struct Piece {
  std::mutex inUse;
  void *data = nullptr;
  uint64_t bytes = 0;
};
} // namespace

static Piece &pieceOf(int32_t device, void *stream) {
  static std::mutex guard;
  // Pieces keep their place. They are never given back: when a process ends,
  // the driver may be gone before this.
  static auto &pieces = *new std::map<std::pair<int32_t, void *>, Piece>;
  std::lock_guard<std::mutex> lock(guard);
  return pieces[{device, stream}];
}

/// Gives the library's own memory, which no other call has while `hold` is
/// locked. Launches made until then may use it later, too: what comes next in
/// their stream comes behind them.
static void *allocateOwn(int32_t device, uint64_t bytes, void *stream,
                         std::unique_lock<std::mutex> &hold) {
  Piece &piece = pieceOf(device, stream);
  hold = std::unique_lock<std::mutex>(piece.inUse);
  if (piece.bytes < bytes) {
    // Twice as much as before, so that all pieces of a stream together stay
    // below twice the last one.
    uint64_t wanted = std::max(bytes, 2 * piece.bytes);
    void *data = nullptr;
    if (gdnMemoryAllocate(device, wanted, &data))
      refuse(GDN_ERROR_OUT_OF_MEMORY,
             "expected " + std::to_string(wanted) +
                 " bytes of workspace on cuda:" + std::to_string(device) +
                 ", got: " + gdnGetLastErrorMessage());
    piece.data = data;
    piece.bytes = wanted;
  }
  return piece.data;
}

GdnRuntimeStatus gdnCallRun(const GdnCallPlan *plan, const GdnCall *call,
                            GdnAllocate allocate, void *user, void *stream) {
  return guarded([&] {
    checkPointers(plan, call, plan);
    if (plan->items)
      return runOnCPU(*plan, *call);
    PlannedCall planned(*plan, *call);
    planned.checkPlaces();
    // Nothing is converted for a function that is not ready.
    if (!planned.conversions.isEmpty())
      planned.prepare();
    uint64_t bytes = planned.countWorkspace();
    void *workspace = nullptr;
    std::unique_lock<std::mutex> hold;
    if (bytes && allocate)
      require(allocate(user, call->device, bytes, stream, &workspace));
    else if (bytes)
      workspace = allocateOwn(call->device, bytes, stream, hold);
    // Calls but the first ones find all functions ready.
    GdnRuntimeStatus status = planned.launch(workspace, bytes, stream);
    if (status == GDN_ERROR_NOT_PREPARED) {
      planned.prepare();
      status = planned.launch(workspace, bytes, stream);
    }
    require(status);
  });
}

GdnRuntimeStatus gdnCallExecute(const GdnCallTable *table, const GdnCall *given,
                                GdnAllocate allocate, void *user,
                                void *stream) {
  return guarded([&] {
    checkPointers(table, given, given);
    GdnCallPlan plan;
    if (given->device == GDN_DEVICE_CPU) {
      const Call call = readCall(*table, *given);
      const ItemCall items(call);
      check(*table, call, items);
      checkMemory(call);
      checkAddresses(call);
      planItems(*table, call, items, plan);
      return runItems(plan, call, items);
    }
    const GdnCallPlan *known = gdnCallRecall(table, given);
    if (!known)
      require(gdnCallPlan(table, given, &plan));
    require(gdnCallRun(known ? known : &plan, given, allocate, user, stream));
  });
}

//===----------------------------------------------------------------------===//
// Descriptions
//===----------------------------------------------------------------------===//

static std::string describe(const GdnCallTable &table, const Call &call) {
  if (call.isOnCPU()) {
    const ItemCall items(call);
    check(table, call, items);
    checkAddresses(call);
    return describeItems(table, call, items);
  }
  const Choice chosen = choose(table, call);
  checkAddresses(call);
  PlannedCall planned(chosen.plan, call.get());
  planned.arguments.inventAddresses();
  planned.check();
  return describeChoice(call, chosen, planned.conversions,
                        planned.countWorkspace());
}

GdnRuntimeStatus gdnCallDescribe(const GdnCallTable *table,
                                 const GdnCall *given, char *text, size_t size,
                                 size_t *needed) {
  return guarded([&] {
    checkPointers(table, given, needed);
    const std::string json = describe(*table, readCall(*table, *given));
    *needed = json.size() + 1;
    if (text && size) {
      size_t length = std::min(size - 1, json.size());
      std::memcpy(text, json.data(), length);
      text[length] = '\0';
    }
  });
}

GdnRuntimeStatus gdnCallSavingPays(const GdnCall *given, int32_t has_segments,
                                   int32_t *pays) {
  return guarded([&] {
    checkPointers(given, pays, pays);
    Call call(*given);
    call.read();
    *pays =
        chooseSaving(call, has_segments != 0, readChip(given->device)).pays();
  });
}
