//===- Relayout.h - Inputs that no kernel reads in place --------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_PYTHON_NATIVE_RELAYOUT_H
#define GDN_PYTHON_NATIVE_RELAYOUT_H

#include "Hopper.h"

#include <string>
#include <vector>

namespace gdn::hopper {

using cpu::Array;

/// One launch that copies an input, or several that lie side by side.
struct Relayout {
  /// The view that is read, as [B, T, H, C], and the strides that its copy has.
  Array source;
  std::array<int64_t, cpu::kMaxRank> strides{};
  /// Where the copy begins in the workspace, and how far it reaches.
  uint64_t offset = 0, bytes = 0;
  /// The names of the inputs.
  std::vector<const char *> inputs;
  /// Whether tokens lie side by side, so that the copy is a transposition.
  bool isTransposed = false;
};

/// The copies of a call: of inputs whose strides or addresses its kernel does
/// not take. Most calls have none.
class Relayouts {
public:
  /// Finds the inputs of `problem` that `plan` does not read in place, and
  /// gives them the strides of their copies. Their addresses are those in a
  /// workspace at address 0 until `place`.
  void plan(Problem &problem, const Plan &plan);

  bool isEmpty() const { return copies.empty(); }
  const std::vector<Relayout> &get() const { return copies; }
  /// Of the workspace.
  uint64_t getBytes() const { return bytes; }
  /// What the cost model predicts for a copy.
  static double predictSeconds(const Relayout &copy, const cost::Chip &chip);

  /// Says where the workspace is.
  void place(void *workspace);
  /// Launches the copies on `stream`. The first one of a kernel loads it.
  Error run(int32_t device, void *stream) const;
  /// As JSON: the inputs, how they are copied, bytes and seconds of each copy.
  std::string toJson(const cost::Chip &chip) const;

private:
  struct Use {
    Array *array;
    size_t copy;
    uint64_t offset;
  };

  void add(Array &array, const char *name, const Array &view);
  bool append(Array &array, const char *name, const Array &view);

  std::vector<Relayout> copies;
  std::vector<Use> uses;
  uint64_t bytes = 0;
  char *base = nullptr;
};

} // namespace gdn::hopper

#endif // GDN_PYTHON_NATIVE_RELAYOUT_H
