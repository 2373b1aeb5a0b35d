//===- Images.h - The kernels of a module as images -------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_TOOLS_IMAGES_H
#define GDN_TOOLS_IMAGES_H

#include "gdn/Target/Host.h"
#include "gdn/Target/PTX.h"

namespace mlir::gdn::tools {

/// The assembled kernels of a module.
struct Images {
  /// One for each kernel.
  std::vector<host::Image> images;
  /// Their PTX, one behind the other.
  std::string ptx;
  /// Hashes of what they were before.
  std::string hashes;
  /// What ptxas says about them.
  std::vector<ptx::KernelUsage> usage;
};

/// Assembles each kernel of a module in the LLVM and nvvm dialects by itself.
llvm::Expected<Images> makeImages(ModuleOp module,
                                  const ptx::Options &options = {});

} // namespace mlir::gdn::tools

#endif // GDN_TOOLS_IMAGES_H
