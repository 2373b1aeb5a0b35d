//===- ScheduleTemplates.h - Which schedules a program may have -*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_CONVERSION_SCHEDULETEMPLATES_H
#define GDN_CONVERSION_SCHEDULETEMPLATES_H

#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Dialect/Warp/IR/Warp.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::gdn {

/// What schedule templates ask of a program and its launch.
struct ProgramFacts {
  /// The stage op that the program comes from; empty if nobody says.
  StringRef stage;
  llvm::SetVector<StringRef> steps;
  /// V tiles of the launch, 1 where it does not say.
  int64_t vTiles = 1;
  /// Columns of the widest tile that a loop carries, entries of the largest.
  int64_t stateColumns = 0, stateEntries = 0;
  /// Vectors of more than one element that loops load.
  int64_t vectors = 0;
  /// Bits of the widest elements of tiles that are loaded outside of the loops;
  /// 0 if none is.
  int64_t stateBits = 0;
  /// Whether each key channel has a gate of its own.
  bool gatesChannels = false;
  /// Bytes of the largest tile that loops load.
  int64_t tileBytes = 0;
  /// Tokens of a chunk of the loops, the fewest; 0 where nobody says.
  int64_t chunkTokens = 0;
  /// Chunks of an iteration of a program that is unrolled already, or 0.
  int64_t chunks = 0;
  /// Work items that add up tiles, so that they are a cluster.
  int64_t cluster = 1;
};

ProgramFacts measureProgram(tile::ProgramOp program, tile::LaunchOp launch);

/// A template, and why it is not for a program, as a phrase; empty if it is.
struct ConsideredTemplate {
  warp::ScheduleTemplateOp form;
  std::string reason;
  /// Whether it is for the program's stage.
  bool isOfStage = true;
};

/// The templates that there are, in the order in which they are tried.
class ScheduleTemplates {
public:
  /// Those of `file`, if it is not empty, before the project's own. Fails after
  /// a diagnostic, which `emitError` makes where none has a place in a file.
  static FailureOr<ScheduleTemplates>
  load(MLIRContext *context, StringRef file,
       function_ref<InFlightDiagnostic()> emitError);

  /// All of them, or those that are called `wanted` if it is not "auto".
  SmallVector<ConsideredTemplate> consider(const ProgramFacts &facts,
                                           StringRef wanted) const;
  /// Whether `name` is a template or the schedule of one.
  bool knows(StringRef name) const;
  /// The names of schedules, then those of templates.
  std::string listNames() const;

private:
  LogicalResult add(OwningOpRef<ModuleOp> module);

  SmallVector<OwningOpRef<ModuleOp>> modules;
  SmallVector<warp::ScheduleTemplateOp> templates;
};

/// The first that is for the program and of the schedule that is predicted to
/// be the fastest, or else of any; null if none is for the program.
warp::ScheduleTemplateOp pickTemplate(ArrayRef<ConsideredTemplate> considered,
                                      StringRef schedule);

/// Fits depths and registers of a template to a program. Fails after a
/// diagnostic.
FailureOr<warp::ScheduleAttr>
fitSchedule(warp::ScheduleTemplateOp form, tile::ProgramOp program,
            tile::LaunchOp launch, const ProgramFacts &facts, bool persistent);

} // namespace mlir::gdn

#endif // GDN_CONVERSION_SCHEDULETEMPLATES_H
