//===- Segments.h - Whether sequences are cut, and into what ----*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A forward whose sequences are cut into segments of one length (gdn-cp-split)
// runs six kernels: the boundaries of the segments, where each begins to count,
// what it makes of a state (what it adds, and its map), the scan over the
// segments of a sequence, and the forward of all segments. This file predicts
// their time and chooses the length.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_COSTMODEL_SEGMENTS_H
#define GDN_COSTMODEL_SEGMENTS_H

#include "gdn/CostModel/CostModel.h"

#include <limits>

namespace gdn::cost {

/// What a caller says about segments.
struct SplitRequest {
  enum class Kind : uint8_t {
    /// Nothing: what is predicted to be the fastest.
    Model,
    Never,
    /// `value` segments of the longest sequence.
    Segments,
    /// Segments of `value` tokens, whatever else the call has. Only schedules
    /// that do not depend on the other sequences are chosen.
    Length
  };
  Kind kind = Kind::Model;
  int64_t value = 0;
  /// Whether any gate may decay: a call without gates has none that does, so
  /// that no segment forgets anything.
  bool decays = true;
  /// Whether segments behind one that forgets run what is before them
  /// themselves. Then all kernels have a CTA a head, and B and the maps may
  /// take a segment in parts: a shorter part is a shorter way to the last
  /// state.
  bool ownStarts = false;
  /// Whether kernels may look at the gates, and then choose between two
  /// lengths.
  bool hasTwoLengths = false;
  /// Whether functions have kernels for gates of any strength and kernels for
  /// those that keep a bound, of which the device lets one kind leave.
  bool looksAtGates = false;

  bool operator==(const SplitRequest &other) const {
    return kind == other.kind && value == other.value &&
           decays == other.decays && ownStarts == other.ownStarts &&
           hasTwoLengths == other.hasTwoLengths &&
           looksAtGates == other.looksAtGates;
  }
};

/// What a cut takes longer where it has `kernels` more than whole sequences
/// have and they leave, one behind the other (docs/experiments/kda.md).
inline double leavingSeconds(const SplitRequest &request, int64_t kernels) {
  constexpr double kLeavingSeconds = 3e-6;
  return request.looksAtGates ? kLeavingSeconds * static_cast<double>(kernels)
                              : 0;
}

/// How sequences are cut.
struct Cut {
  /// Tokens of a segment, and its parts of one length, whose maps are made.
  int64_t length = 0, parts = 1;
  /// The schedule of the forward of the segments.
  Schedule schedule = Schedule::CtaPerHead;
};

/// What is predicted of a forward in segments.
struct SplitEstimate : Cut {
  /// Tokens of a segment of a sequence that the device cuts otherwise, all of
  /// its tokens or more to leave it whole; 0 where all sequences are cut alike.
  /// With a gate a head these are sequences of which, by a sample of the gates,
  /// no head, or half of them or more, keep a state over `length` tokens; with
  /// gates of channels those of each head that keeps one.
  int64_t longerLength = 0;
  /// Whether the forward is launched when the maps are done, and not beside
  /// them.
  bool isLate = false;
  /// Segments of the longest sequence, and of all of them together. Empty ones
  /// are not counted.
  int64_t ofLongest = 1, segments = 1;
  /// Of the kernels before the scan, of the scan, and of the forward. The first
  /// is that of gates of which a quarter of the heads does not decay, or of
  /// none that does if the caller says so.
  double mapSeconds = 0, scanSeconds = 0, forwardSeconds = 0;
  /// What is taken more where all heads decay slowly: by the kernels before the
  /// scan, or by all of them if segments run what is before them themselves.
  double slowGateSeconds = 0;
  /// The same where no gate decays anything at all.
  double noDecaySeconds = 0;

  double seconds() const { return mapSeconds + scanSeconds + forwardSeconds; }
  double slowSeconds() const { return seconds() + slowGateSeconds; }
};

/// Whether sequences are cut, and what speaks for it.
struct SplitChoice {
  bool splits = false;
  /// The cut that was chosen, or the best of those that lost; nothing where
  /// there is none.
  std::optional<SplitEstimate> best;
  /// The time without segments.
  double wholeSeconds = 0;
  bool isForced = false;

  double seconds() const { return splits ? best->seconds() : wholeSeconds; }
};

/// Segments that a call has memory for. Of packed sequences only their number
/// and their tokens together are known, so some of these may be empty.
int64_t countSegments(int64_t sequences, int64_t tokens, int64_t length,
                      bool packed);

inline constexpr double kAnySeconds = std::numeric_limits<double>::infinity();

/// The prediction for one cut. If it clearly takes more than `most`, only so
/// much is said; of segments that wait the kernels before the forward count.
SplitEstimate estimateSplit(const Workload &workload, const Chip &chip,
                            const Choice &whole, const Cut &cut,
                            const SplitRequest &request,
                            double most = kAnySeconds);

/// The same of segments of two lengths, of which the device chooses one for
/// each sequence, or head, by its gates: the shorter one with gates of
/// models, and the other one where all heads decay slowly, or nothing. First
/// the prediction for the shorter one alone, which many may be tried beside.
/// Where both times together clearly are more than `most`, only so much is
/// said.
SplitEstimate estimateShorter(const Workload &workload, const Chip &chip,
                              const Choice &whole, int64_t length,
                              const SplitRequest &request);
SplitEstimate estimateTwoLengths(const Workload &workload, const Chip &chip,
                                 const Choice &whole,
                                 const SplitEstimate &shorter, int64_t longer,
                                 const SplitRequest &request,
                                 double most = kAnySeconds);

/// Decides on segments; `whole` is the choice without them.
///
/// The host does not know the gates. So it cuts where at least 3 % are
/// predicted to be gained with gates of models, where a quarter of the heads
/// does not decay, at most 3 % to be lost where all heads decay slowly, and at
/// most 10 % where nothing decays. Segments with their own starts must gain 15
/// % by the first, and lose at most half of this gain by the second; with gates
/// of channels 10 %, and lose at most as much. Among such cuts the sum of the
/// first two times decides, in which with gates of channels the first counts
/// twice.
SplitChoice chooseSplit(const Workload &workload, const Chip &chip,
                        const Choice &whole, const SplitRequest &request);

} // namespace gdn::cost

#endif // GDN_COSTMODEL_SEGMENTS_H
