//===- Tables.h - Functions and kernels as tables ---------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The descriptions of gdn-c/Runtime.h before they are written: lists own their
// elements, and kernels are named.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_TARGET_HOST_TABLES_H
#define GDN_LIB_TARGET_HOST_TABLES_H

#include "gdn-c/Calls.h"
#include "gdn/Dialect/GDN/IR/GDN.h"
#include "gdn/Dialect/Warp/IR/Warp.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <array>
#include <vector>

namespace llvm {
class Constant;
class Module;
} // namespace llvm

namespace mlir::gdn::host {

/// GdnArgDesc.
struct ArgumentTable {
  std::string name;
  int32_t kind = GDN_ARG_TENSOR;
  int32_t dtype = 0;
  uint32_t flags = 0;
  uint32_t alignment = 0;
  /// An extent, or GDN_SYMBOL(index).
  SmallVector<int64_t> shape;
  /// Of a function's argument: whether kernels read it, and write it.
  bool isRead = false, isWritten = false;
};

/// GdnTensorMapDesc.
struct TensorMapTable {
  int32_t argument;
  int32_t swizzle;
  SmallVector<GdnTensorMapDim> dims;
};

/// GdnKernelDesc.
struct KernelTable {
  std::string name;
  int64_t threads, sharedBytes, cluster, residentBlocks;
  bool follows;
  SmallVector<ArgumentTable> arguments;
  SmallVector<GdnParamDesc> parameters;
  SmallVector<TensorMapTable> tensorMaps;
  /// Each dynamic extent is a symbol of its own: argument and dimension.
  SmallVector<std::pair<unsigned, unsigned>> symbols;
};

/// GdnTemporaryDesc.
struct TemporaryTable {
  int32_t dtype;
  SmallVector<int32_t> shape;
};

/// GdnViewDesc.
struct ViewTable {
  GdnOperand base;
  SmallVector<GdnViewDim> dims;
};

/// GdnLaunchDesc.
struct LaunchTable {
  /// Index into the module's kernels.
  unsigned kernel;
  SmallVector<GdnOperand> operands;
  std::array<int32_t, 3> grid;
};

/// GdnFunctionDesc.
struct FunctionTable {
  std::string name;
  /// JSON, or empty.
  std::string source;
  unsigned numInputs = 0;
  SmallVector<ArgumentTable> arguments;
  SmallVector<std::string> symbols;
  SmallVector<GdnIndexStep> steps;
  SmallVector<GdnExtentRule> rules;
  SmallVector<TemporaryTable> temporaries;
  SmallVector<ViewTable> views;
  SmallVector<LaunchTable> launches;
  /// What the function gives back: arguments.
  SmallVector<int32_t> results;
};

/// GdnVariantDesc.
struct VariantTable {
  /// Index into the module's functions.
  size_t function;
  std::string schedule, stateLayout;
  bool isLate, looksAtGates;
};

/// GdnEntryDesc.
struct EntryTable {
  std::string name;
  SmallVector<std::pair<std::string, std::string>> facts;
  SmallVector<VariantTable> variants;
};

/// All that a module has for its host.
struct ModuleTable {
  std::vector<KernelTable> kernels;
  std::vector<FunctionTable> functions;
  std::vector<EntryTable> entries;
};

/// GDN_DTYPE_* of an element type, or 0.
int32_t getDType(Type type);
/// GDN_ARG_* of a scalar's type, or 0.
int32_t getScalarKind(Type type);

/// The table of a lowered kernel, or failure after a diagnostic.
FailureOr<KernelTable> describeKernel(LLVM::LLVMFuncOp kernel,
                                      warp::LaunchAttr launch);

/// The table of a function that launches kernels, or failure after a
/// diagnostic.
FailureOr<FunctionTable> describeFunction(func::FuncOp function,
                                          ArrayRef<KernelTable> kernels);

/// The table of an entry whose functions are all there, or failure after a
/// diagnostic.
FailureOr<EntryTable> describeEntry(EntryOp entry,
                                    ArrayRef<FunctionTable> functions);

/// The tables of a module. An error says what a reader of the diagnostics
/// before it would not know.
llvm::Expected<ModuleTable> describeModule(ModuleOp module);

/// The name of the table of an entry has this behind that of the entry.
inline constexpr StringLiteral entrySuffix = "_entry";

/// Entries of a function are called as it, with one of these or
/// descriptionSuffix behind.
inline constexpr StringLiteral prepareSuffix = "_prepare",
                               workspaceSuffix = "_workspace_bytes";

/// Defines a function's entries, which pack their arguments and call the
/// runtime.
void writeEntries(llvm::Module &module, const FunctionTable &function,
                  llvm::Constant *description);

/// Fails unless the functions and their arguments can be named so in C.
llvm::Error checkNames(const ModuleTable &table);

} // namespace mlir::gdn::host

#endif // GDN_LIB_TARGET_HOST_TABLES_H
