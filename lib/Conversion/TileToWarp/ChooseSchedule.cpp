//===- ChooseSchedule.cpp - Who does what, by the program and its grid ----===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Conversion/Passes.h"
#include "gdn/CostModel/CostModel.h"
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
namespace cost = ::gdn::cost;

namespace {
/// What a program brings through a CTA in one iteration, in bytes, and what it
/// does with it.
struct IterationBytes {
  /// Tiles of keys and queries, values (of one part), and output.
  int64_t keys = 0, values = 0, output = 0;
  /// Whether rows of keys and queries are measured.
  bool hasNorms = false;
  /// Whether a work item begins with a state that is loaded.
  bool hasStates = false;
  /// Columns of the state.
  int64_t stateColumns = 0;
};

/// Registers a thread of each warpgroup. Together they are at most what the CTA
/// has at launch (gdn-warp-verify-explicit-form): what one gives up another may
/// take.
struct Registers {
  int64_t scores, solve, state;
};

/// How a role does its steps (`#gdn_warp.role_spec`).
struct Manner {
  int64_t delay = 0, prefetchDistance = 0;
  bool roundRobin = false, warpgroupPerVTile = false, loopChunks = false,
       alternateCtas = false, interleaveChunks = false;
};

/// Builds the schedule of a program whose V tiles are folded or not.
class ScheduleBuilder {
public:
  ScheduleBuilder(MLIRContext *context, int64_t vTiles, int64_t cluster,
                  bool persistent, int64_t chunksPerIteration,
                  IterationBytes bytes)
      : b(context), vTiles(vTiles), cluster(cluster), persistent(persistent),
        chunksPerIteration(chunksPerIteration), bytes(bytes) {}

  /// Null after an error that `emitError` makes: an iteration may have any
  /// number of chunks here.
  ScheduleAttr build(function_ref<InFlightDiagnostic()> emitError);

private:
  ArrayAttr names(ArrayRef<StringRef> list) { return b.getStrArrayAttr(list); }
  /// Slots for so many chunks, in iterations.
  int64_t forChunks(int64_t chunks) const {
    return llvm::divideCeil(chunks, chunksPerIteration);
  }
  /// Chunks whose loads fit beside the rest.
  int64_t fitLoads() const;
  Registers getRegisters() const;
  RoleSpecAttr makeRole(StringRef name, int64_t warps, int64_t registers,
                        ArrayRef<StringRef> steps,
                        ArrayRef<StringRef> delayed = {}, Manner manner = {});
  RoleSpecAttr makeScores();
  RoleSpecAttr makeSolve();
  RoleSpecAttr makeMove(int64_t loads);
  RoleSpecAttr makeVectors();
  RoleSpecAttr makeState();
  SmallVector<ChannelSpecAttr> makeChannels(int64_t loads);

  OpBuilder b;
  int64_t vTiles;
  int64_t cluster;
  bool persistent;
  int64_t chunksPerIteration;
  IterationBytes bytes;
  /// Chunks of M and of the triangles that are on their way. The solve of a
  /// chunk takes as long as a chunk of the state or longer: it must be ahead.
  /// With norms M is f32, and there is no room for four.
  int64_t solveChunks() const { return bytes.hasNorms ? 3 : 4; }
  /// The warp that moves stores an output a chunk after the state made it. With
  /// norms, where it has more to do, it stores an iteration at a time.
  bool storesByChunk() const { return !bytes.hasNorms; }
  int64_t outputChunks() const {
    return storesByChunk() ? 3 : 2 * chunksPerIteration;
  }
  /// With norms and states about as many instructions run as the instruction
  /// cache holds; elsewhere the copy costs up to 4 % (docs/Performance.md).
  bool clonesLikelyPath() const { return bytes.hasNorms && bytes.hasStates; }
  /// A part on its own has room for more.
  int64_t triangleChunks() const { return vTiles == 1 ? 8 : 6; }
  /// Warps that solve; two others complete their warpgroup. Two keep up with
  /// the state, a third gains nothing.
  static constexpr int64_t kSolveWarps = 2;
};
} // namespace

/// The bytes of M (f16, or f32 with its norms; padded rows), of the two
/// triangles, of the norms that lie beside them, and of the vectors of a chunk
/// of 32, and of the barriers: what counts are the tiles.
static constexpr int64_t kSolveBytes = 2560, kNormedSolveBytes = 4992,
                         kTriangleBytes = 4096, kNormBytes = 640,
                         kVectorBytes = 1024, kBarrierBytes = 1024;
/// More loads in flight than this hide nothing more.
static constexpr int64_t kMaxLoadChunks = 8;

int64_t ScheduleBuilder::fitLoads() const {
  int64_t solve = bytes.hasNorms ? kNormedSolveBytes : kSolveBytes,
          triangles = kTriangleBytes + (bytes.hasNorms ? kNormBytes : 0);
  int64_t fixed = kBarrierBytes + solveChunks() * solve +
                  triangleChunks() * triangles +
                  outputChunks() * vTiles * bytes.output / chunksPerIteration;
  int64_t load =
      (bytes.keys + vTiles * bytes.values) / chunksPerIteration + kVectorBytes;
  return std::clamp<int64_t>((kSm90a.sharedBytes - fixed) / load,
                             2 * chunksPerIteration, kMaxLoadChunks);
}

/// A state warpgroup's thread holds 64 of the state, 32 of its bf16 copy and
/// two products of 16, which is 168 with vectors and addresses; "scores" and
/// "solve" live with what is left, the solve with more of it: its lanes hold
/// columns. With one state warpgroup there is more for all, and the solve keeps
/// more loads in flight; half a state leaves some for norms.
Registers ScheduleBuilder::getRegisters() const {
  if (vTiles == 1)
    return {120, 120, 240};
  if (bytes.hasNorms && bytes.stateColumns <= kSm90a.productRows)
    return {80, 112, 160};
  return {72, 104, 168};
}

RoleSpecAttr ScheduleBuilder::makeRole(StringRef name, int64_t warps,
                                       int64_t registers,
                                       ArrayRef<StringRef> steps,
                                       ArrayRef<StringRef> delayed,
                                       Manner manner) {
  return RoleSpecAttr::get(
      b.getContext(), name, warps, registers, names(steps),
      delayed.empty() ? ArrayAttr() : names(delayed), manner.delay,
      manner.prefetchDistance, manner.roundRobin, manner.warpgroupPerVTile,
      manner.loopChunks, manner.alternateCtas, manner.interleaveChunks);
}

// All but the state take the chunks of an iteration one after the other where
// they can: two copies of everything do not fit the instruction cache, and the
// state is what the others wait for.

/// The norms of keys are on the diagonal of what the scores make anyway.
RoleSpecAttr ScheduleBuilder::makeScores() {
  Manner manner;
  manner.loopChunks = true;
  manner.alternateCtas = cluster > 1;
  return makeRole("scores", kSm90a.warpgroupWarps, getRegisters().scores,
                  {"norms", "scores"}, {}, manner);
}

RoleSpecAttr ScheduleBuilder::makeSolve() {
  Manner manner;
  manner.roundRobin = manner.loopChunks = true;
  manner.alternateCtas = cluster > 1;
  return makeRole("solve", kSolveWarps, getRegisters().solve, {"solve"}, {},
                  manner);
}

/// Stores stand behind the loads that the state waits for. With norms the gates
/// are made here: the warp that has them otherwise sums squares.
RoleSpecAttr ScheduleBuilder::makeMove(int64_t loads) {
  Manner manner;
  manner.delay = forChunks(loads) - 1;
  if (!bytes.hasNorms) {
    manner.loopChunks = true;
    return makeRole("move", 1, getRegisters().solve, {"load"}, {"store"},
                    manner);
  }
  // Then nothing that it stores is waited for before it loads.
  ++manner.delay;
  manner.prefetchDistance = forChunks(2);
  manner.interleaveChunks = true;
  return makeRole("move", 1, getRegisters().solve, {"load", "gates"}, {"store"},
                  manner);
}

/// The last warp beside those that solve: it makes the gates, or where rows are
/// normed the norms of queries, which only the output takes.
RoleSpecAttr ScheduleBuilder::makeVectors() {
  int64_t warps = kSm90a.warpgroupWarps - kSolveWarps - 1;
  Manner manner;
  if (bytes.hasNorms) {
    manner.loopChunks = true;
    return makeRole("queries", warps, getRegisters().solve, {"query_norms"}, {},
                    manner);
  }
  // A gather of gates takes longer than the chunk that it is for.
  manner.prefetchDistance = forChunks(2);
  return makeRole("gates", warps, getRegisters().solve, {"gates"}, {}, manner);
}

RoleSpecAttr ScheduleBuilder::makeState() {
  Manner manner;
  manner.warpgroupPerVTile = vTiles != 1;
  return makeRole("state", kSm90a.warpgroupWarps * vTiles, getRegisters().state,
                  {"state"}, {}, manner);
}

SmallVector<ChannelSpecAttr> ScheduleBuilder::makeChannels(int64_t loads) {
  auto channel = [&](StringRef name, int64_t depth, ArrayRef<StringRef> from,
                     ArrayRef<StringRef> to, bool slotPerChunk = false) {
    return ChannelSpecAttr::get(b.getContext(), name, depth, names(from),
                                names(to), slotPerChunk);
  };
  // A slot for one chunk lets the state begin earlier, one for an iteration
  // costs it a wait less: that counts where it is alone and always what is
  // waited for.
  bool slotPerChunk = vTiles != 1;
  auto forSlots = [&](int64_t chunks) {
    return slotPerChunk ? chunks : forChunks(chunks);
  };
  // Roles that take rows and vectors as they are.
  SmallVector<StringRef> readers = {"scores", "state"};
  if (bytes.hasNorms)
    readers.insert(readers.begin() + 1, "queries");
  return {channel("tokens", loads, {"load"}, readers, /*slotPerChunk=*/true),
          // Gates run ahead of the tokens.
          channel("vectors", forChunks(loads) + 1, {"gates"}, readers),
          channel("m", forSlots(solveChunks()), {"scores", "norms"}, {"solve"},
                  slotPerChunk),
          channel("triangles", forSlots(triangleChunks()),
                  {"scores", "solve", "norms", "query_norms"}, {"state"},
                  slotPerChunk),
          channel("output",
                  storesByChunk() ? outputChunks() : forChunks(outputChunks()),
                  {"state"}, {"move"}, storesByChunk())};
}

ScheduleAttr
ScheduleBuilder::build(function_ref<InFlightDiagnostic()> emitError) {
  int64_t loads = fitLoads();
  // The order decides who shares a scheduler with whom: warps 0 and 1 of the
  // scores, which hold keys, have the most to do and are kept from those that
  // solve by the warp that makes the gates.
  RoleSpecAttr move = makeMove(loads), vectors = makeVectors();
  RoleSpecAttr gates = bytes.hasNorms ? move : vectors,
               other = bytes.hasNorms ? vectors : move;
  return ScheduleAttr::getChecked(
      emitError, b.getContext(), chunksPerIteration, vTiles, cluster,
      persistent, clonesLikelyPath(),
      {makeScores(), gates, makeSolve(), other, makeState()},
      makeChannels(loads));
}

/// Bytes of a tile.
static int64_t getBytes(Type type) {
  auto tile = cast<RankedTensorType>(type);
  return tile.getNumElements() * tile.getElementTypeBitWidth() / 8;
}

/// Chunks of one iteration of the loop (gdn-tile-unroll-chunks).
static int64_t countChunks(tile::ProgramOp program) {
  // More than any schedule has, and few enough to compute with.
  constexpr int64_t kTooMany = 1 << 16;
  int64_t chunks = 1;
  program.walk([&](Operation *op) {
    if (auto chunk = op->getAttrOfType<IntegerAttr>(
            tile::TileDialect::getChunkAttrName()))
      chunks = std::max(chunks, std::min(chunk.getInt(), kTooMany) + 1);
  });
  return chunks;
}

/// The tiles that one iteration loads and stores.
static IterationBytes measureIteration(tile::ProgramOp program) {
  IterationBytes bytes;
  program.walk([&](Operation *op) {
    auto load = dyn_cast<tile::LoadOp>(op);
    bool loadsTile = load && load.getType().getRank() == 2;
    if (!op->getParentOfType<scf::ForOp>()) {
      bytes.hasStates |= loadsTile;
      return;
    }
    auto step =
        op->getAttrOfType<StringAttr>(tile::TileDialect::getStepAttrName());
    bytes.hasNorms |= step && step == "norms";
    if (step && step == "state" && op->getNumResults() == 1)
      if (auto tile = dyn_cast<RankedTensorType>(op->getResult(0).getType());
          tile && tile.getRank() == 2)
        bytes.stateColumns = std::max(bytes.stateColumns, tile.getDimSize(1));
    bool isStacked = llvm::all_of(op->getUsers(), [](Operation *user) {
      return isa<tensor::ConcatOp>(user);
    });
    if (loadsTile && !isStacked)
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
struct ChooseSchedule
    : mlir::gdn::impl::ChooseSchedulePassBase<ChooseSchedule> {
  using ChooseSchedulePassBase::ChooseSchedulePassBase;

  void runOnOperation() override {
    if (schedule != "auto" && schedule != "cta_per_head" &&
        schedule != "cta_per_v_tile") {
      getOperation().emitError(
          "expected schedule auto, cta_per_head or cta_per_v_tile, got ")
          << schedule;
      return signalPassFailure();
    }
    if (sequences < 0 || tokens < 0 || longest < 0) {
      getOperation().emitError("expected sequences, tokens and longest of at "
                               "least 0, got a negative number");
      return signalPassFailure();
    }
    WalkResult walked = getOperation().walk([&](tile::LaunchOp launch) {
      auto program =
          getOperation().lookupSymbol<tile::ProgramOp>(launch.getProgram());
      bool isOpen = program && !program->hasAttr(ScheduleAttr::kName);
      return isOpen && failed(choose(program, launch)) ? WalkResult::interrupt()
                                                       : WalkResult::advance();
    });
    if (walked.wasInterrupted())
      return signalPassFailure();
    // What nobody launches has no grid to choose by, and needs no kernel.
    for (auto program :
         llvm::make_early_inc_range(getOperation().getOps<tile::ProgramOp>()))
      if (!program->hasAttr(ScheduleAttr::kName))
        program.erase();
  }

  /// What the cost model may know of a launch: what is constant, or else what
  /// the options say.
  cost::Problem describe(tile::LaunchOp launch, int64_t vTiles) {
    auto know = [](Value value, int64_t option) -> std::optional<int64_t> {
      std::optional<int64_t> constant = getConstantIntValue(value);
      if (constant && *constant >= 0)
        return constant;
      return option > 0 ? std::optional(option) : std::nullopt;
    };
    cost::Problem problem;
    problem.packed = static_cast<bool>(launch.getCuSeqlens());
    problem.sequences = know(launch.getGrid()[0], sequences);
    problem.tokens = know(launch.getTokens(), tokens);
    if (longest > 0)
      problem.longest = longest;
    problem.heads = problem.keyHeads =
        know(launch.getGrid()[1], 0).value_or(kSm90a.multiprocessors);
    problem.vTiles = vTiles;
    problem.valueChannels = vTiles * cost::kVTileChannels;
    return problem;
  }

  LogicalResult choose(tile::ProgramOp program, tile::LaunchOp launch) {
    int64_t vTiles = getConstantIntValue(launch.getGrid()[2]).value_or(1);
    cost::Choice choice =
        cost::choose(describe(launch, vTiles), cost::getHopper(),
                     cost::findSchedule(schedule.getValue()));
    bool isCtaPerHead = choice.schedule == cost::Schedule::CtaPerHead;
    IterationBytes bytes = measureIteration(program);
    int64_t chunksPerIteration = countChunks(program);
    // The parts of a head share what does not depend on the part, in roles
    // whose chunks are a loop. With norms that was slower
    // (docs/Performance.md).
    bool shares = !isCtaPerHead && vTiles == 2 && chunksPerIteration > 1 &&
                  !bytes.hasNorms;
    ScheduleBuilder builder(&getContext(), isCtaPerHead ? vTiles : 1,
                            shares ? vTiles : 1, choice.chosen().inTurn,
                            chunksPerIteration, bytes);
    ScheduleAttr built = builder.build([&] { return program.emitOpError(); });
    if (!built)
      return failure();
    program->setAttr(ScheduleAttr::kName, built);
    return success();
  }
};
} // namespace
