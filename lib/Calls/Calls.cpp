//===- Calls.cpp - Plan, launch and describe calls ------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Conversions.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <utility>

using namespace gdn::calls;

/// Runs what may need memory of the host.
template <typename Body> static GdnRuntimeStatus guarded(Body body) {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    return gdnSetLastErrorMessage(GDN_ERROR_OUT_OF_MEMORY,
                                  "expected memory of the host, got none");
  }
}

static GdnRuntimeStatus checkPointers(const void *first, const void *second,
                                      const void *third) {
  if (first && second && third)
    return GDN_SUCCESS;
  return gdnSetLastErrorMessage(GDN_ERROR_INVALID_ARGUMENT,
                                "expected no null pointer, got one");
}

static GdnRuntimeStatus choose(const GdnCallTable &table, const Call &call,
                               Choice &chosen) {
  if (table.struct_size != sizeof(GdnCallTable))
    return fail(GDN_ERROR_VERSION,
                "expected a table of " + std::to_string(sizeof(GdnCallTable)) +
                    " bytes, got " + std::to_string(table.struct_size));
  if (GdnRuntimeStatus status = readChip(call.get().device, chosen.chip))
    return status;
  if (!table.num_entries)
    return fail(GDN_ERROR_UNSUPPORTED_DEVICE,
                "expected " + call.say("a table of functions") + ", got " +
                    call.say("an empty one"));
  if (call.isBackward())
    return chooseBackward(table, call, chosen);
  return call.savedTokens() ? chooseSavingForward(table, call, chosen)
                            : chooseForward(table, call, chosen);
}

GdnRuntimeStatus gdnCallPlan(const GdnCallTable *table, const GdnCall *given,
                             GdnCallPlan *plan) {
  if (GdnRuntimeStatus status = checkPointers(table, given, plan))
    return status;
  return guarded([&]() -> GdnRuntimeStatus {
    Call call(*given);
    if (GdnRuntimeStatus status = call.read())
      return status;
    Choice chosen;
    if (GdnRuntimeStatus status = choose(*table, call, chosen))
      return status;
    placeConversions(call, chosen.plan);
    *plan = chosen.plan;
    rememberPlan(*table, *given, *plan);
    return GDN_SUCCESS;
  });
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

namespace {
/// A call with what its plan makes of its arrays.
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

  GdnRuntimeStatus check() const {
    return gdnFunctionCheck(function, arguments.data(), arguments.size());
  }
  GdnRuntimeStatus countWorkspace(uint64_t &bytes) const;
  GdnRuntimeStatus prepare() const;
  GdnRuntimeStatus launch(void *workspace, size_t workspaceBytes, void *stream);
};
} // namespace

GdnRuntimeStatus PlannedCall::countWorkspace(uint64_t &bytes) const {
  bytes = 0;
  // What has no arrays of its own is checked when it is launched.
  if (function->num_temporaries)
    if (GdnRuntimeStatus status = gdnFunctionGetWorkspaceBytes(
            function, arguments.data(), arguments.size(), &bytes))
      return status;
  bytes += conversions.getBytes();
  return GDN_SUCCESS;
}

GdnRuntimeStatus PlannedCall::prepare() const {
  int32_t device = call.get().device;
  if (GdnRuntimeStatus status = conversions.prepare(*plan.table, device))
    return status;
  return gdnFunctionPrepare(function, device);
}

GdnRuntimeStatus PlannedCall::launch(void *workspace, size_t workspaceBytes,
                                     void *stream) {
  uint64_t taken = conversions.getBytes();
  if (taken > workspaceBytes)
    return fail(GDN_ERROR_WORKSPACE_TOO_SMALL,
                "expected a workspace of at least " + std::to_string(taken) +
                    " bytes, got " + std::to_string(workspaceBytes));
  if (taken) {
    conversions.place(workspace);
    // Nothing is converted for a call that is refused.
    if (GdnRuntimeStatus status = check())
      return status;
  }
  if (GdnRuntimeStatus status =
          conversions.launch(*plan.table, call, /*isBehind=*/false, stream))
    return status;
  char *own = static_cast<char *>(workspace);
  GdnRuntimeStatus status = gdnFunctionLaunchOn(
      function, call.get().device, arguments.data(), arguments.size(),
      own ? own + taken : nullptr, workspaceBytes - taken, stream);
  if (status)
    return status;
  return conversions.launch(*plan.table, call, /*isBehind=*/true, stream);
}

GdnRuntimeStatus gdnCallGetWorkspaceBytes(const GdnCallPlan *plan,
                                          const GdnCall *call,
                                          uint64_t *bytes) {
  if (GdnRuntimeStatus status = checkPointers(plan, call, bytes))
    return status;
  return guarded([&]() -> GdnRuntimeStatus {
    PlannedCall planned(*plan, *call);
    if (GdnRuntimeStatus status = planned.check())
      return status;
    return planned.countWorkspace(*bytes);
  });
}

GdnRuntimeStatus gdnCallPrepare(const GdnCallPlan *plan, const GdnCall *call) {
  if (GdnRuntimeStatus status = checkPointers(plan, call, plan))
    return status;
  return guarded([&] { return PlannedCall(*plan, *call).prepare(); });
}

GdnRuntimeStatus gdnCallLaunch(const GdnCallPlan *plan, const GdnCall *call,
                               void *workspace, size_t workspaceBytes,
                               void *stream) {
  if (GdnRuntimeStatus status = checkPointers(plan, call, plan))
    return status;
  return guarded([&] {
    return PlannedCall(*plan, *call).launch(workspace, workspaceBytes, stream);
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
static GdnRuntimeStatus allocateOwn(int32_t device, uint64_t bytes,
                                    void *stream,
                                    std::unique_lock<std::mutex> &hold,
                                    void **memory) {
  Piece &piece = pieceOf(device, stream);
  hold = std::unique_lock<std::mutex>(piece.inUse);
  if (piece.bytes < bytes) {
    // Twice as much as before, so that all pieces of a stream together stay
    // below twice the last one.
    uint64_t wanted = std::max(bytes, 2 * piece.bytes);
    void *data = nullptr;
    if (gdnMemoryAllocate(device, wanted, &data))
      return fail(GDN_ERROR_OUT_OF_MEMORY,
                  "expected " + std::to_string(wanted) +
                      " bytes of workspace on cuda:" + std::to_string(device) +
                      ", got: " + gdnGetLastErrorMessage());
    piece.data = data;
    piece.bytes = wanted;
  }
  *memory = piece.data;
  return GDN_SUCCESS;
}

GdnRuntimeStatus gdnCallRun(const GdnCallPlan *plan, const GdnCall *call,
                            GdnAllocate allocate, void *user, void *stream) {
  if (GdnRuntimeStatus status = checkPointers(plan, call, plan))
    return status;
  return guarded([&]() -> GdnRuntimeStatus {
    PlannedCall planned(*plan, *call);
    // Nothing is converted for a function that is not ready.
    if (!planned.conversions.isEmpty())
      if (GdnRuntimeStatus status = planned.prepare())
        return status;
    uint64_t bytes = 0;
    if (GdnRuntimeStatus status = planned.countWorkspace(bytes))
      return status;
    void *workspace = nullptr;
    std::unique_lock<std::mutex> hold;
    if (bytes)
      if (GdnRuntimeStatus status =
              allocate
                  ? allocate(user, call->device, bytes, stream, &workspace)
                  : allocateOwn(call->device, bytes, stream, hold, &workspace))
        return status;
    // Calls but the first ones find all functions ready.
    GdnRuntimeStatus status = planned.launch(workspace, bytes, stream);
    if (status != GDN_ERROR_NOT_PREPARED)
      return status;
    if (GdnRuntimeStatus error = planned.prepare())
      return error;
    return planned.launch(workspace, bytes, stream);
  });
}

//===----------------------------------------------------------------------===//
// Descriptions
//===----------------------------------------------------------------------===//

static GdnRuntimeStatus describe(const GdnCallTable &table, const Call &call,
                                 std::string &json) {
  Choice chosen;
  if (GdnRuntimeStatus status = choose(table, call, chosen))
    return status;
  placeConversions(call, chosen.plan);
  PlannedCall planned(chosen.plan, call.get());
  planned.arguments.inventAddresses();
  if (GdnRuntimeStatus status = planned.check())
    return status;
  uint64_t bytes = 0;
  if (GdnRuntimeStatus status = planned.countWorkspace(bytes))
    return status;
  json = describeChoice(call, chosen, planned.conversions, bytes);
  return GDN_SUCCESS;
}

GdnRuntimeStatus gdnCallDescribe(const GdnCallTable *table,
                                 const GdnCall *given, char *text, size_t size,
                                 size_t *needed) {
  if (GdnRuntimeStatus status = checkPointers(table, given, needed))
    return status;
  return guarded([&]() -> GdnRuntimeStatus {
    Call call(*given);
    std::string json;
    if (GdnRuntimeStatus status = call.read())
      return status;
    if (GdnRuntimeStatus status = describe(*table, call, json))
      return status;
    *needed = json.size() + 1;
    if (text && size) {
      size_t length = std::min(size - 1, json.size());
      std::memcpy(text, json.data(), length);
      text[length] = '\0';
    }
    return GDN_SUCCESS;
  });
}

GdnRuntimeStatus gdnCallSavingPays(const GdnCall *given, int32_t has_segments,
                                   int32_t *pays) {
  if (GdnRuntimeStatus status = checkPointers(given, pays, pays))
    return status;
  return guarded([&]() -> GdnRuntimeStatus {
    Call call(*given);
    if (GdnRuntimeStatus status = call.read())
      return status;
    gdn::cost::Chip chip;
    if (GdnRuntimeStatus status = readChip(given->device, chip))
      return status;
    *pays = chooseSaving(call, has_segments != 0, chip).pays();
    return GDN_SUCCESS;
  });
}
