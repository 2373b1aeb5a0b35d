//===- Host.h - The host's side of functions that launch kernels *- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A module that went through `gdn-warp-to-llvm` has kernels, which become an
// image (Target/PTX.h), and functions that launch them. Such a function becomes
// a constant table, GdnFunctionDesc of gdn-c/Runtime.h, which the runtime
// reads: no code is generated for the host but entries that hand their
// arguments over.
//
// For a function `f` an object has
//
//   const GdnFunctionDesc f_function;
//   GdnRuntimeStatus f_prepare(int32_t device);
//   GdnRuntimeStatus f_workspace_bytes(const GdnTensor *..., uint64_t *bytes);
//   GdnRuntimeStatus f(const GdnTensor *..., void *workspace,
//                      size_t workspace_bytes, void *stream);
//
// with a tensor for each argument and then for each result, and needs
// libgdn-runtime alone.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_TARGET_HOST_H
#define GDN_TARGET_HOST_H

#include "gdn/Dialect/Warp/IR/Arch.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

#include <string>
#include <utility>
#include <vector>

namespace llvm {
class raw_ostream;
class raw_pwrite_stream;
} // namespace llvm

namespace mlir::gdn::host {

/// What an object is made for.
struct Options {
  /// 10 * major + minor of the one chip that runs the image.
  int32_t computeCapability = warp::getDefaultArch().computeCapability;
  /// LLVM's name of the host's CPU; the few instructions of the entries need
  /// nothing but the baseline.
  std::string cpu = "generic";
};

/// Code for the GPU, as the object has it.
struct Image {
  /// A cubin, or PTX.
  std::string bytes;
  /// The kernels of the module that are in it, and their names there.
  std::vector<std::pair<std::string, std::string>> kernels;
};

/// Suffix of the symbol of a function's description.
inline constexpr StringLiteral descriptionSuffix = "_function";

/// Writes the functions of a module, with the images of their kernels, as a
/// relocatable object file. A linker keeps one of equal images of several
/// objects.
llvm::Error emitObject(ModuleOp module, ArrayRef<Image> images,
                       llvm::raw_pwrite_stream &stream,
                       const Options &options = {});

/// Writes the C header of such an object, which is called `name`.
llvm::Error emitHeader(ModuleOp module, StringRef name,
                       llvm::raw_ostream &stream);

} // namespace mlir::gdn::host

#endif // GDN_TARGET_HOST_H
