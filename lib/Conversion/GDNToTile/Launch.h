//===- Launch.h - Launches of the programs of stage ops ---------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_GDNTOTILE_LAUNCH_H
#define GDN_LIB_CONVERSION_GDNTOTILE_LAUNCH_H

#include "Stage.h"

namespace mlir::gdn {

/// Replaces the stage by a launch of its program.
void replaceByLaunch(const Stage &stage, tile::ProgramOp program);

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_LAUNCH_H
