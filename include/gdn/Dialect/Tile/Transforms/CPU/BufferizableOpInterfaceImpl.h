//===- BufferizableOpInterfaceImpl.h - Bufferize launches -------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_TILE_TRANSFORMS_CPU_BUFFERIZABLEOPINTERFACEIMPL_H
#define GDN_DIALECT_TILE_TRANSFORMS_CPU_BUFFERIZABLEOPINTERFACEIMPL_H

namespace mlir {
class DialectRegistry;

namespace gdn::tile {
/// Registers how one-shot bufferization treats `gdn_tile.launch`.
void registerBufferizableOpInterfaceExternalModels(DialectRegistry &registry);
} // namespace gdn::tile
} // namespace mlir

#endif // GDN_DIALECT_TILE_TRANSFORMS_CPU_BUFFERIZABLEOPINTERFACEIMPL_H
