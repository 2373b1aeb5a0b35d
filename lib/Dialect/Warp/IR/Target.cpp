//===- Target.cpp - The chip that a kernel is for -------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Warp/IR/Warp.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

const Arch *WarpDialect::findArch(StringRef chip) const {
  for (const Arch *arch : archs)
    if (StringRef(arch->chip) == chip)
      return arch;
  return nullptr;
}

std::string WarpDialect::listArchs() const {
  return llvm::join(
      llvm::map_range(archs,
                      [](const Arch *arch) { return StringRef(arch->chip); }),
      ", ");
}

const Arch &warp::getArch(Operation *op) {
  for (Operation *from = op; from; from = from->getParentOp())
    if (auto target = from->getAttrOfType<TargetAttr>(TargetAttr::kName)) {
      auto *dialect = op->getContext()->getLoadedDialect<WarpDialect>();
      // Only before the verifier has refused the name there is no such chip.
      const Arch *arch = dialect->findArch(target.getChip());
      return arch ? *arch : getDefaultArch();
    }
  return getDefaultArch();
}
