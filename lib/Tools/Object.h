//===- Object.h - Compiled functions in this process ------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_TOOLS_OBJECT_H
#define GDN_LIB_TOOLS_OBJECT_H

#include "gdn-c/Runtime.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <memory>

namespace llvm {
class MemoryBuffer;
namespace orc {
class LLJIT;
} // namespace orc
} // namespace llvm

namespace mlir::gdn::tools {

/// An object in this process. It finds the runtime that the tool has.
class Object {
public:
  static llvm::Expected<Object>
  load(std::unique_ptr<llvm::MemoryBuffer> object);

  Object(Object &&) noexcept;
  Object &operator=(Object &&) noexcept;
  ~Object();

  /// The description of a function, or an error if there is none. It lives as
  /// long as this.
  llvm::Expected<const GdnFunctionDesc *> lookup(llvm::StringRef function);

private:
  explicit Object(std::unique_ptr<llvm::orc::LLJIT> session);

  std::unique_ptr<llvm::orc::LLJIT> session;
};

} // namespace mlir::gdn::tools

#endif // GDN_LIB_TOOLS_OBJECT_H
