//===- SplitSequences.h - What splits of stages have in common --*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_DIALECT_GDN_TRANSFORMS_SPLITSEQUENCES_H
#define GDN_LIB_DIALECT_GDN_TRANSFORMS_SPLITSEQUENCES_H

#include "PackBatch.h"

#include "gdn/Dialect/GDN/IR/GDN.h"
#include "gdn/Dialect/GDN/IR/RuleDims.h"

namespace mlir::gdn {

/// How to cut: one of the three is there.
struct Cut {
  IntegerAttr segments, length;
  /// The tokens of a segment, which a call chooses, and, where segments run
  /// what is before them, their parts and another length.
  Value lengthOfCall, partsOfCall, longerOfCall;
  /// How many segments there are of a sequence whose gates do not call for
  /// `segments`; null for as many.
  IntegerAttr fewerSegments;
  /// What a segment may make of the state before it and be taken for zero; null
  /// to take nothing for it.
  FloatAttr tolerance;
  /// Whether B, the maps and a backward's dB are made at the same time, and so
  /// are a backward's two scans.
  UnitAttr sideBySide;
  /// Whether a forward's segments behind one that forgets run its last tokens.
  bool ownStarts = false;
  /// Whether that forward is launched when the maps are done.
  bool lateForward = false;
};

/// Whether segments behind one that forgets may run its last tokens.
bool mayRunBefore(DeltaRuleOpInterface op, const Cut &cut);

/// Whether the gates of a layer may choose between two lengths: a sample tells
/// which heads keep their states by logarithms, and of a gate a channel the
/// stage that finds where segments begin does.
bool mayHaveTwoLengths(DeltaRuleOpInterface op);

/// What the forward and the backward of a split have in common: the states
/// before all segments.
template <typename Op> class Splitter {
public:
  Splitter(Op op, const Cut &cut)
      : op(op), cut(cut), b(op.getLoc(), op), dims(getRuleDims(op)),
        sequences(op.getCuSeqlens()) {
    isPacked = sequences || dims.B == 1;
  }

  void packOperands();
  /// Into whole chunks of `chunkSize` tokens. Where segments may forget what is
  /// before them, they run it themselves if `runsBefore`; they know their
  /// sequences if `numbersSequences`.
  void cutSequences(IntegerAttr chunkSize, bool runsBefore = false,
                    bool numbersSequences = false);
  bool mayForget();
  /// The stage that finds where segments begin, or, with `reverse`, end.
  SegmentStartsStageOp createStarts(TypeRange types, bool reverse);
  /// Where segments begin, if they may forget.
  void findStarts();
  /// What segments make of a state of zero. The states may be made at the same
  /// time as what is behind them if `areBeside`.
  void addStates(bool areBeside = false);
  /// What segments make of a state, without what they add to it, and when
  /// `findStarts` has run. They may be made at the same time as what is behind
  /// them if `areBeside`.
  void addMaps(bool areBeside = false);
  /// Where segments begin, and all that they make of a state.
  void makeMapsAndStates();
  /// How the states between segments lie.
  StateLayoutAttr segmentLayout() {
    return StateLayoutAttr::get(b.getContext(), StateLayout::VK);
  }
  /// The scan from `initialState`, with a final state of type `last` if that is
  /// not null. It may run at the same time as what is behind it if `isBeside`.
  SegmentScanStageOp scanMaps(Value added, Value initialState, Type last,
                              bool reverse, bool isBeside = false);
  /// Every entry of an array of parts that begins a segment, with `behind` for
  /// the last boundary, or, with `last`, that of its last part. The array
  /// itself if segments have no parts.
  Value ofSegments(Value array, bool last = false, bool behind = false);
  Value packed(Value array) { return isPacked ? array : packBatch(b, array); }
  RankedTensorType packedType(Type type) {
    auto array = cast<RankedTensorType>(type);
    return isPacked ? array : getPackedType(array);
  }
  Value unpacked(Value array, Type type) {
    return isPacked
               ? array
               : unpackBatch(b, array, cast<RankedTensorType>(type), op.getV());
  }

  Op op;
  Cut cut;
  ImplicitLocOpBuilder b;
  RuleDims dims;
  Value sequences;
  Value q, k, v, beta, gate;
  /// The boundaries of all segments, and of each sequence's among them; where
  /// the segments before them begin, which sequences end with them, and of
  /// which sequences they are parts, or null.
  Value boundaries, firstSegments, before, closes, lastSegments,
      sequenceNumbers;
  /// Where segments begin for a head; null for their first tokens.
  Value starts;
  /// Which heads have whole sequences, since they keep a state, and where the
  /// sequences of segments end for these; null if none has.
  Value wholeHeads, wholeBegins;
  /// What segments make of a state.
  Value map, decay, states;
  bool isPacked;
};

/// Whether `cut` is one by which `op`, of which states are saved or read, may
/// number them: segments must know their sequence.
LogicalResult checkSavedCut(Operation *op, const Cut &cut);

/// The tokens that are not cut: a chunk of `op`, or those between saved states.
IntegerAttr cutsOf(Operation *op);

/// A backward of one stage, and one of three, of which `op` is the last.
void splitBackward(BackwardStageOp op, const Cut &cut);
LogicalResult splitBackward(GradientsStageOp op, const Cut &cut);

} // namespace mlir::gdn

#endif // GDN_LIB_DIALECT_GDN_TRANSFORMS_SPLITSEQUENCES_H
