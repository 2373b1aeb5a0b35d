//===- ChooseSchedule.cpp - Who does what, by the program and its grid ----===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Conversion/Passes.h"
#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Dialect/Warp/IR/Arch.h"
#include "gdn/Dialect/Warp/IR/Warp.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::gdn {
#define GEN_PASS_DEF_CHOOSESCHEDULEPASS
#include "gdn/Conversion/Passes.h.inc"
} // namespace mlir::gdn

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

namespace {
/// What a program brings through a CTA in one trip, in bytes.
struct TripBytes {
  /// Tiles of keys and queries, values (of one part), and output.
  int64_t keys = 0, values = 0, output = 0;
};

/// Registers a thread of each warpgroup. Together they are at most what the CTA
/// has at launch (gdn-warp-verify-explicit-form): what one gives up another may
/// take.
struct Registers {
  int64_t scores, solve, state;
};

/// Builds the schedule of a program whose V parts are folded or not.
class ScheduleBuilder {
public:
  ScheduleBuilder(MLIRContext *context, int64_t parts, int64_t trip,
                  TripBytes bytes)
      : b(context), parts(parts), trip(trip), bytes(bytes) {}

  ScheduleAttr build();

private:
  ArrayAttr names(ArrayRef<StringRef> list) { return b.getStrArrayAttr(list); }
  /// Slots of the loads that fit beside the rest.
  int64_t fitLoads() const;

  OpBuilder b;
  int64_t parts, trip;
  TripBytes bytes;
  /// Slots of M, of the chunks' triangles and of the output. The solve of a
  /// chunk takes as long as several chunks of the state: it must be ahead.
  static constexpr int64_t kSolveSlots = 4, kTriangleSlots = 8,
                           kOutputSlots = 4;
};
} // namespace

/// The bytes of M (f16, padded rows), the two triangles and the vectors of a
/// chunk of 32: generous, what counts are the tiles.
static constexpr int64_t kSolveBytes = 2560, kTriangleBytes = 4096,
                         kVectorBytes = 1024, kBarrierBytes = 1024;
/// More loads in flight than this hide nothing more.
static constexpr int64_t kMaxLoadSlots = 8;
/// Trips that gates are loaded ahead: under load a gather of a row of gates
/// takes longer than a trip.
static constexpr int64_t kGatesAhead = 4;

int64_t ScheduleBuilder::fitLoads() const {
  int64_t fixed =
      kBarrierBytes +
      trip * (kSolveSlots * kSolveBytes + kTriangleSlots * kTriangleBytes) +
      kOutputSlots * parts * bytes.output;
  int64_t load = bytes.keys + parts * bytes.values + trip * kVectorBytes;
  return std::clamp<int64_t>((kSm90a.sharedBytes - fixed) / load, 2,
                             kMaxLoadSlots);
}

ScheduleAttr ScheduleBuilder::build() {
  MLIRContext *context = b.getContext();
  // A state warpgroup's thread holds 64 of the state, 32 of its bf16 copy and
  // two products of 16, which is 168 with vectors and addresses; "scores" and
  // "solve" live with what is left. With one state warpgroup there is more for
  // all, and the solve keeps more loads in flight.
  Registers registers =
      parts == 1 ? Registers{120, 120, 240} : Registers{80, 96, 168};
  int64_t loads = fitLoads();
  auto role = [&](StringRef name, int64_t warps, int64_t count,
                  ArrayRef<StringRef> steps, ArrayRef<StringRef> delayed = {},
                  int64_t delay = 0, int64_t ahead = 0, bool rotate = false,
                  bool split = false, bool roll = false) {
    return RolePlanAttr::get(context, name, warps, count, names(steps),
                             delayed.empty() ? ArrayAttr() : names(delayed),
                             delay, ahead, rotate, split, roll);
  };
  int64_t group = kSm90a.warpgroupWarps;
  SmallVector<RolePlanAttr> roles = {
      role("scores", group, registers.scores, {"scores"}),
      role("solve", group - 1, registers.solve, {"solve"}, {}, 0, 0,
           /*rotate=*/true),
      role("move", 1, registers.solve, {"load", "gates"}, {"store"},
           /*delay=*/loads - 1, kGatesAhead),
      role("state", group * parts, registers.state, {"state"}, {}, 0, 0,
           /*rotate=*/false, /*split=*/parts != 1)};
  auto channel = [&](StringRef name, int64_t depth, ArrayRef<StringRef> from,
                     ArrayRef<StringRef> to) {
    return ChannelPlanAttr::get(context, name, depth, names(from), names(to));
  };
  SmallVector<ChannelPlanAttr> channels = {
      channel("tokens", loads, {"load"}, {"scores", "state"}),
      channel("vectors", loads, {"gates"}, {"scores", "solve", "state"}),
      channel("m", kSolveSlots, {"scores"}, {"solve"}),
      channel("triangles", kTriangleSlots, {"scores", "solve"}, {"state"}),
      channel("output", kOutputSlots, {"state"}, {"move"})};
  return ScheduleAttr::get(context, trip, parts, roles, channels);
}

/// Bytes of a tile.
static int64_t getBytes(Type type) {
  auto tile = cast<RankedTensorType>(type);
  return tile.getNumElements() * tile.getElementTypeBitWidth() / 8;
}

/// The tiles that one chunk loads and stores.
static TripBytes measureTrip(tile::ProgramOp program) {
  TripBytes bytes;
  program.walk([&](Operation *op) {
    if (!op->getParentOfType<scf::ForOp>())
      return;
    auto load = dyn_cast<tile::LoadOp>(op);
    bool isStacked = llvm::all_of(op->getUsers(), [](Operation *user) {
      return isa<tensor::ConcatOp>(user);
    });
    if (load && load.getType().getRank() == 2 && !isStacked)
      (load.getAxes()[0] < load.getAxes()[1] ? bytes.keys : bytes.values) +=
          getBytes(load.getType());
    if (auto stack = dyn_cast<tensor::ConcatOp>(op))
      bytes.keys += getBytes(stack.getType());
    auto store = dyn_cast<tile::StoreOp>(op);
    if (store && store.getTile().getType().getRank() == 2)
      bytes.output += getBytes(store.getTile().getType());
  });
  return bytes;
}

namespace {
struct ChooseSchedule : gdn::impl::ChooseSchedulePassBase<ChooseSchedule> {
  using ChooseSchedulePassBase::ChooseSchedulePassBase;

  void runOnOperation() override {
    if (schedule != "auto" && schedule != "whole" && schedule != "split") {
      getOperation().emitError("expected schedule auto, whole or split, got ")
          << schedule;
      return signalPassFailure();
    }
    getOperation().walk([&](tile::LaunchOp launch) {
      auto program =
          getOperation().lookupSymbol<tile::ProgramOp>(launch.getProgram());
      if (program && !program->hasAttr(ScheduleAttr::kName))
        choose(program, launch);
    });
  }

  /// Few items leave multiprocessors idle unless the parts of a head are on
  /// their own, each with a preparation of its own.
  bool isWhole(tile::LaunchOp launch) {
    if (schedule != "auto")
      return schedule == "whole";
    std::optional<int64_t> sequences = getConstantIntValue(launch.getGrid()[0]),
                           heads = getConstantIntValue(launch.getGrid()[1]);
    int64_t known = sequences && *sequences >= 0 ? *sequences : this->sequences;
    return !heads || known == 0 || known * *heads * 2 > kSm90a.multiprocessors;
  }

  void choose(tile::ProgramOp program, tile::LaunchOp launch) {
    std::optional<int64_t> parts = getConstantIntValue(launch.getGrid()[2]);
    int64_t folded = parts && isWhole(launch) ? *parts : 1;
    ScheduleBuilder builder(&getContext(), folded, /*trip=*/1,
                            measureTrip(program));
    program->setAttr(ScheduleAttr::kName, builder.build());
  }
};
} // namespace
