//===- BufferizableOpInterfaceImpl.h - Bufferize layer ops ------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_GDN_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H
#define GDN_DIALECT_GDN_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H

namespace mlir {
class DialectRegistry;

namespace gdn {
/// Lets One-Shot Bufferize turn the layer ops into their buffer form.
void registerBufferizableOpInterfaceExternalModels(DialectRegistry &registry);
} // namespace gdn
} // namespace mlir

#endif // GDN_DIALECT_GDN_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H
