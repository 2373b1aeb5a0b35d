//===- PrecompiledDialects.h - Our dialects, precompiled --------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_PRECOMPILEDDIALECTS_H
#define GDN_LIB_PRECOMPILEDDIALECTS_H

// Precompiled after Precompiled.h, as a cache too: the classes of our ops are
// half of a pass's time to compile.
#include "gdn/Dialect/GDN/IR/GDN.h"
#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Dialect/Warp/IR/Warp.h"

#endif // GDN_LIB_PRECOMPILEDDIALECTS_H
