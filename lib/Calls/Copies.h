//===- Copies.h - Inputs that no function reads in place --------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CALLS_COPIES_H
#define GDN_LIB_CALLS_COPIES_H

#include "Arguments.h"

#include <array>
#include <string>
#include <vector>

namespace gdn::calls {

/// One launch that copies an input, or several that lie side by side.
struct Copy {
  /// The view that is read, as [B, T, H, C], and the strides that its copy has.
  View source;
  Strides strides{};
  /// Where the copy begins in the workspace, and how far it reaches.
  uint64_t offset = 0, bytes = 0;
  /// The names of the inputs.
  std::vector<const char *> inputs;
  /// Whether tokens lie side by side, so that the copy is a transposition.
  bool isTransposed = false;
};

/// Finds the arguments of a plan's function that may be copied.
void placeInputs(GdnCallPlan &plan);

/// The copies of a call: of inputs whose strides or addresses its function does
/// not take. Most calls have none.
class Copies {
public:
  /// Finds the inputs that `plan` does not read in place, and gives them the
  /// strides of their copies. Their addresses are of no memory until `place`.
  void plan(Arguments &arguments, const GdnCallPlan &plan);

  bool isEmpty() const { return copies.empty(); }
  const std::vector<Copy> &get() const { return copies; }
  /// Of the workspace.
  uint64_t getBytes() const { return bytes; }

  /// Says where the workspace is.
  void place(void *workspace);
  /// Loads the functions of the copies.
  GdnRuntimeStatus prepare(const GdnCallTable &table, int32_t device) const;
  /// Launches the copies on `stream`.
  GdnRuntimeStatus launch(const GdnCallTable &table, const Call &call,
                          void *stream) const;
  /// As JSON: the inputs, how they are copied, bytes and seconds of each copy.
  std::string toJson(const Call &call, const cost::Chip &chip) const;
  /// What the cost model predicts for a copy.
  static double predictSeconds(const Copy &copy, const cost::Chip &chip);

private:
  struct Use {
    View *view;
    size_t copy, input;
    uint64_t offset;
  };

  void add(View &view, size_t input);
  bool append(View &view, size_t input, const View &source);
  void layOutAll();

  std::vector<Copy> copies;
  std::vector<Use> uses;
  uint64_t bytes = 0;
  char *base = nullptr;
};

} // namespace gdn::calls

#endif // GDN_LIB_CALLS_COPIES_H
