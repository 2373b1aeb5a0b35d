//===- Matrix.h - The matrix of numerical tests -----------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program is a value for each axis of what is compiled; a setting is a value
// for each axis of what it is run on. Programs have open sizes where they can,
// so that one compilation serves many settings.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_TEST_INTEGRATION_CPU_MATRIX_H
#define GDN_TEST_INTEGRATION_CPU_MATRIX_H

#include "gdn/Tools/Compile.h"
#include "gdn/Tools/Inputs.h"
#include <array>
#include <string>
#include <vector>

namespace gdn::numerics {

/// What a program can differ in. The first `kCrossedAxes` are crossed in full
/// by the whole matrix; the others are drawn for each of its programs.
enum ProgramAxis {
  kOp,
  kGate,
  kPacked,
  kGroup,
  kStates,
  kData,
  kCrossedAxes,
  kStateType = kCrossedAxes,
  kParameterType,
  kBeta,
  kL2norm,
  kDims,
  kChunk,
  kPlan,
  kVTiles,
  kChain,
  kSizes,
  kBoundaries,
  kProgramAxes
};

/// What a setting can differ in.
enum SettingAxis { kLength, kMeanGate, kKeys, kSettingAxes };

/// Indices into the value names of the axes.
using Program = std::array<unsigned, kProgramAxes>;
using Setting = std::array<unsigned, kSettingAxes>;

/// An axis as a person names it.
struct Axis {
  const char *name;
  std::vector<const char *> values;
};
const std::array<Axis, kProgramAxes> &programAxes();
const std::array<Axis, kSettingAxes> &settingAxes();

/// The name of the value that a program has on an axis.
llvm::StringRef valueOf(const Program &program, ProgramAxis axis);

/// Sets axes that mean nothing beside the others to their first value, so that
/// equal programs look equal.
Program normalise(Program program);

/// The program of the whole matrix with this number. Axes that are not crossed
/// depend on the number alone.
Program programOf(unsigned number);
unsigned countPrograms();
/// All settings that mean something for a program.
std::vector<Setting> settingsOf(const Program &program);

/// A program and what it is run on.
struct Case {
  Program program;
  std::vector<Setting> settings;
};

/// `count` programs with `settings` settings each, drawn such that each value
/// of an axis comes up equally often. `fixed` values, by axis name, are not
/// drawn.
std::vector<Case> sample(unsigned count, unsigned settings, uint64_t seed,
                         const std::map<std::string, unsigned> &fixed);

/// "op=chunk gate=kda-log ...": the axes of a program, or of a setting.
std::string describe(const Program &program);
std::string describe(const Setting &setting);

/// What a case becomes: text, and what gdn-run would be told.
struct Module {
  std::string text;
  mlir::gdn::tools::CompileOptions compile;
};

/// The text of a program. Static sizes are those of `setting`.
Module writeModule(const Program &program, const Setting &setting);

/// The inputs of a setting; and the same as options of gdn-run.
mlir::gdn::tools::InputOptions inputsOf(const Program &program,
                                        const Setting &setting);
std::string commandOf(const Program &program, const Setting &setting,
                      llvm::StringRef file);

} // namespace gdn::numerics

#endif // GDN_TEST_INTEGRATION_CPU_MATRIX_H
