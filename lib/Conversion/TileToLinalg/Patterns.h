//===- Patterns.h - Expansions of the tile ops, one family a file ---------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_TILETOLINALG_PATTERNS_H
#define GDN_LIB_CONVERSION_TILETOLINALG_PATTERNS_H

#include "mlir/IR/PatternMatch.h"

namespace mlir::gdn::tile {

/// `gdn_tile.load` and `gdn_tile.store`.
void populateAccessPatterns(RewritePatternSet &patterns);

/// `gdn_tile.scan` and `gdn_tile.causal`.
void populateScanPatterns(RewritePatternSet &patterns);

/// `gdn_tile.solve`.
void populateTriInversePatterns(RewritePatternSet &patterns);

/// A tile of zeros.
Value createZeroTile(OpBuilder &builder, Location loc, RankedTensorType type);

} // namespace mlir::gdn::tile

#endif // GDN_LIB_CONVERSION_TILETOLINALG_PATTERNS_H
