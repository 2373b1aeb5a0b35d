//===- Header.cpp - The C header of compiled functions --------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Target/Host.h"

#include "Tables.h"

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

/// Keywords of C (up to C23) and C++ (up to C++20), and what a header that both
/// read needs besides.
static bool isKeyword(StringRef name) {
  static constexpr StringLiteral keywords =
      "_Alignas _Alignof _Atomic _BitInt _Bool _Complex "
      "_Decimal128 _Decimal32 _Decimal64 _Generic _Imaginary "
      "_Noreturn _Static_assert _Thread_local alignas alignof and "
      "and_eq asm auto bitand bitor bool break case catch char "
      "char16_t char32_t char8_t class co_await co_return co_yield "
      "compl concept const const_cast consteval constexpr "
      "constinit continue decltype default delete do double "
      "dynamic_cast else enum explicit export extern false float "
      "for friend goto if inline int int32_t long main mutable "
      "namespace new noexcept not not_eq nullptr operator or or_eq "
      "private protected public register reinterpret_cast requires "
      "restrict return short signed size_t sizeof static "
      "static_assert static_cast struct switch template this "
      "thread_local throw true try typedef typeid typename typeof "
      "typeof_unqual uint64_t union unsigned using virtual void "
      "volatile wchar_t while xor xor_eq";
  return llvm::is_contained(llvm::split(keywords, ' '), name);
}

/// Whether the runtime has such names: gdnFunctionLaunch, GdnTensor,
/// GDN_DTYPE_F32.
static bool isOfRuntime(StringRef name) {
  return name.starts_with("GDN_") ||
         ((name.consume_front("gdn") || name.consume_front("Gdn")) &&
          !name.empty() && llvm::isUpper(name.front()));
}

/// Fails unless a C and a C++ compiler take `name` in a header. `what` is it
/// that has the name.
static llvm::Error checkName(const std::string &name, const llvm::Twine &what) {
  if (isIdentifier(name) && !isKeyword(name) && !isOfRuntime(name))
    return llvm::Error::success();
  return llvm::createStringError(
      "expected " + what +
      " that is a C identifier, no keyword of C or C++ and no name of the "
      "runtime's (gdnX..., GdnX..., GDN_...), got '" +
      name + "'");
}

/// Each function has several entries: none may be another one's.
static llvm::Error addEntries(const std::string &function,
                              llvm::StringMap<std::string> &owners) {
  for (StringRef suffix : {"", prepareSuffix.data(), workspaceSuffix.data(),
                           descriptionSuffix.data()}) {
    auto [owner, isNew] =
        owners.try_emplace((function + suffix).str(), function);
    if (!isNew)
      return llvm::createStringError(
          "expected entries of distinct names, got '" + owner->first() +
          "' for both @" + owner->second + " and @" + function +
          "; rename one of these functions");
  }
  return llvm::Error::success();
}

llvm::Error host::checkNames(const ModuleTable &table) {
  llvm::StringMap<std::string> owners;
  for (const FunctionTable &function : table.functions) {
    if (llvm::Error error = checkName(function.name, "a function's name"))
      return error;
    if (llvm::Error error = addEntries(function.name, owners))
      return error;
    // The entries' own parameters.
    llvm::StringSet<> names = {"bytes", "device", "stream", "workspace",
                               "workspace_bytes"};
    for (const ArgumentTable &argument : function.arguments) {
      if (llvm::Error error =
              checkName(argument.name,
                        "a gdn.name of @" + function.name + "'s arguments"))
        return error;
      if (!names.insert(argument.name).second)
        return llvm::createStringError(
            "expected arguments of @" + function.name +
            " with distinct names as gdn.name, got two of '" + argument.name +
            "', or it is a parameter that each function has");
    }
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

/// The C type of a scalar argument.
static StringRef getScalarType(const ArgumentTable &argument) {
  return argument.kind == GDN_ARG_I32   ? "int32_t"
         : argument.kind == GDN_ARG_I64 ? "int64_t"
                                        : "float";
}

/// "bf16 [1, T, 2, 128]", or "int64_t".
static std::string describe(const FunctionTable &function,
                            const ArgumentTable &argument) {
  if (argument.kind != GDN_ARG_TENSOR)
    return getScalarType(argument).str();
  SmallVector<std::string> extents;
  for (int64_t extent : argument.shape)
    extents.push_back(extent < 0 ? function.symbols[-1 - extent]
                                 : std::to_string(extent));
  StringRef orNull = argument.flags & GDN_ARG_FLAG_OPTIONAL ? ", or NULL" : "";
  return (getName(argument.dtype) + " [" + llvm::join(extents, ", ") + "]" +
          orNull)
      .str();
}

static StringRef getDirection(const ArgumentTable &argument) {
  if (!argument.isWritten)
    return "  in     ";
  return argument.isRead ? "  inout  " : "  out    ";
}

static void writeArguments(const FunctionTable &function,
                           llvm::raw_ostream &os) {
  size_t width = 0;
  for (const ArgumentTable &argument : function.arguments)
    width = std::max(width, argument.name.size());
  for (const ArgumentTable &argument : function.arguments)
    os << "///   " << llvm::left_justify(argument.name, width)
       << getDirection(argument) << describe(function, argument) << "\n";
}

/// "const GdnTensor *q, int64_t length, ", a line each.
static std::string makeParameters(const FunctionTable &function) {
  std::string text;
  for (const ArgumentTable &argument : function.arguments) {
    text += argument.kind == GDN_ARG_TENSOR
                ? "const GdnTensor *"
                : (getScalarType(argument) + " ").str();
    text += argument.name + ",\n    ";
  }
  return text;
}

/// "&q, length, ".
static std::string makeOperands(const FunctionTable &function) {
  std::string text;
  for (const ArgumentTable &argument : function.arguments)
    text += (argument.kind == GDN_ARG_TENSOR ? "&" : "") + argument.name + ", ";
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

static constexpr StringLiteral entryText = R"(
//===----------------------------------------------------------------------===//
// {0}
//===----------------------------------------------------------------------===//

/// A table of functions that compute the same, of which gdnCallPlan
/// (gdn-c/Calls.h) chooses one for a call:
///
{1}extern const GdnEntryDesc {0}_entry;
)";

/// The names of an entry's functions, a line each.
static std::string listVariants(const ModuleTable &table,
                                const EntryTable &entry) {
  std::string text;
  for (const VariantTable &variant : entry.variants)
    text += "///   " + table.functions[variant.function].name + "\n";
  return text;
}

static constexpr StringLiteral headerText = R"(/* {0}.h: the functions in {0}.o.
 *
 * Made by gdn-compile. Link {0}.o with libgdn-runtime. */

#ifndef GDN_COMPILED_{1}_H
#define GDN_COMPILED_{1}_H

#include "{5}"

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
                      GDN_RUNTIME_VERSION_MAJOR, GDN_RUNTIME_VERSION_MINOR,
                      table->entries.empty() ? "gdn-c/Runtime.h"
                                             : "gdn-c/Calls.h");
  for (const FunctionTable &function : (*table).functions) {
    std::string arguments;
    llvm::raw_string_ostream stream(arguments);
    writeArguments(function, stream);
    os << llvm::formatv(functionText.data(), function.name, arguments,
                        makeParameters(function), makeOperands(function));
  }
  for (const EntryTable &entry : table->entries)
    os << llvm::formatv(entryText.data(), entry.name,
                        listVariants(*table, entry));
  os << footerText;
  return llvm::Error::success();
}
