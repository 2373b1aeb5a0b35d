//===- Header.cpp - The C header of compiled functions --------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Target/Host.h"

#include "Plan.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::host;

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

static bool isIdentifier(StringRef name) {
  return !name.empty() && !llvm::isDigit(name.front()) &&
         llvm::all_of(name,
                      [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

llvm::Error host::checkNames(const ModuleTable &table) {
  for (const FunctionTable &function : table.functions) {
    // The entries' own parameters.
    llvm::StringSet<> names = {"bytes", "device", "stream", "workspace",
                               "workspace_bytes"};
    if (!isIdentifier(function.name))
      return llvm::createStringError(
          "expected a function whose name is a C identifier, got '" +
          function.name + "'");
    for (const ArgumentTable &argument : function.arguments)
      if (!isIdentifier(argument.name) || !names.insert(argument.name).second)
        return llvm::createStringError(
            "expected arguments of @" + function.name +
            " with distinct C identifiers as gdn.name, got '" + argument.name +
            "'");
  }
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static StringRef getName(int32_t dtype) {
  static constexpr StringLiteral names[] = {"bf16", "f16", "f32",
                                            "i32",  "i64", "u8"};
  return names[dtype - GDN_DTYPE_BF16];
}

/// "bf16 [1, T, 2, 128]".
static std::string describe(const FunctionTable &function,
                            const ArgumentTable &argument) {
  SmallVector<std::string> extents;
  for (int64_t extent : argument.shape)
    extents.push_back(extent < 0 ? function.symbols[-1 - extent]
                                 : std::to_string(extent));
  return (getName(argument.dtype) + " [" + llvm::join(extents, ", ") + "]")
      .str();
}

static void writeArguments(const FunctionTable &function,
                           llvm::raw_ostream &os) {
  size_t width = 0;
  for (const ArgumentTable &argument : function.arguments)
    width = std::max(width, argument.name.size());
  for (auto [index, argument] : llvm::enumerate(function.arguments))
    os << "///   " << llvm::left_justify(argument.name, width)
       << (index < function.numInputs ? "  in   " : "  out  ")
       << describe(function, argument) << "\n";
}

/// "const GdnTensor *q, const GdnTensor *k, ", a line each.
static std::string makeParameters(const FunctionTable &function) {
  std::string text;
  for (const ArgumentTable &argument : function.arguments)
    text += "const GdnTensor *" + argument.name + ",\n    ";
  return text;
}

/// "&q, &k, ".
static std::string makeOperands(const FunctionTable &function) {
  std::string text;
  for (const ArgumentTable &argument : function.arguments)
    text += "&" + argument.name + ", ";
  return text;
}

static constexpr StringLiteral functionText = R"(
//===----------------------------------------------------------------------===//
// {0}
//===----------------------------------------------------------------------===//

/// Arrays in device memory, any of them strided views; sizes of one name are
/// equal:
///
{1}///
///   GdnTensor q = {{pointer, GDN_DTYPE_BF16, 4, shape, strides}; // ...
///   {0}_prepare(device);               // once a device
///   {0}_workspace_bytes({3}&bytes);
///   {0}({3}workspace, bytes, stream);
///
/// Each returns a status; gdnGetLastErrorMessage says what was wrong.

/// Loads the kernels and makes them ready on a device.
GdnRuntimeStatus {0}_prepare(int32_t device);

/// Bytes of workspace for these arguments, aligned to GDN_WORKSPACE_ALIGNMENT.
GdnRuntimeStatus {0}_workspace_bytes(
    {2}uint64_t *bytes);

/// Runs on `stream`, whose device is prepared. Neither allocates nor
/// synchronises, and may be captured in a CUDA graph.
GdnRuntimeStatus {0}(
    {2}void *workspace, size_t workspace_bytes, void *stream);

/// The same as a table, for callers that know only gdn-c/Runtime.h.
extern const GdnFunctionDesc {0}_function;
)";

static constexpr StringLiteral headerText = R"(/* {0}.h: the functions in {0}.o.
 *
 * Made by gdn-compile. Link {0}.o with libgdn-runtime. */

#ifndef GDN_COMPILED_{1}_H
#define GDN_COMPILED_{1}_H

#include "gdn-c/Runtime.h"

#if GDN_RUNTIME_VERSION != {2}
#error "expected gdn-c/Runtime.h of version {3}.{4}, which {0}.o was compiled for"
#endif

#ifdef __cplusplus
extern "C" {{
#endif
)";

static constexpr StringLiteral footerText = R"(
#ifdef __cplusplus
} // extern "C"
#endif

#endif
)";

llvm::Error host::emitHeader(ModuleOp module, StringRef name,
                             llvm::raw_ostream &os) {
  llvm::Expected<ModuleTable> table = describeModule(module);
  if (!table)
    return table.takeError();
  if (llvm::Error error = checkNames(*table))
    return error;
  std::string guard = name.upper();
  for (char &c : guard)
    c = llvm::isAlnum(c) ? c : '_';
  os << llvm::formatv(headerText.data(), name, guard, GDN_RUNTIME_VERSION,
                      GDN_RUNTIME_VERSION_MAJOR, GDN_RUNTIME_VERSION_MINOR);
  for (const FunctionTable &function : (*table).functions) {
    std::string arguments;
    llvm::raw_string_ostream stream(arguments);
    writeArguments(function, stream);
    os << llvm::formatv(functionText.data(), function.name, arguments,
                        makeParameters(function), makeOperands(function));
  }
  os << footerText;
  return llvm::Error::success();
}
