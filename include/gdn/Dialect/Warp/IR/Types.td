//===- Types.td - Types of shared memory -------------------*- tablegen -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// docs/Glossary.md explains the terms.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_WARP_IR_TYPES_TD
#define GDN_DIALECT_WARP_IR_TYPES_TD

include "gdn/Dialect/Warp/IR/Dialect.td"
include "mlir/IR/AttrTypeBase.td"

class Warp_Type<string name, string typeMnemonic> : TypeDef<Warp_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def Warp_ViewType : Warp_Type<"View", "view"> {
  let summary = "A vector or matrix in shared memory";
  let description = [{
    With `swizzle` = 0, element (r, c) lies at byte r * stride + c * size. With
    `swizzle` = 128 the matrix lies in panels of 128-byte rows, `stride` bytes
    from panel to panel: byte b = column + c * size of row r lies at
    (b / 128) * stride + r * 128 + ((b mod 128) xor 16 (r mod 8)), the layout of a
    128-byte-swizzled tensor map and of a wgmma operand. `column` is the byte
    inside the 128-byte row where the view begins: two operands may share a row.
    Left out, `stride` is that of a dense view and `column` is 0.

    Example: `!gdn_warp.view<32x128xbf16, swizzle = 128>`,
    `!gdn_warp.view<32x32xbf16, swizzle = 128, stride = 4096, column = 64>`,
    `!gdn_warp.view<32xf32>`
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType,
    "int64_t":$swizzle, "int64_t":$stride, "int64_t":$column);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let builders = [
    TypeBuilderWithInferredContext<(ins "::llvm::ArrayRef<int64_t>":$shape,
      "::mlir::Type":$elementType, CArg<"int64_t", "0">:$swizzle), [{
        return $_get(elementType.getContext(), shape, elementType, swizzle,
                     getDenseStride(shape, elementType, swizzle), 0);
      }]>];
  let extraClassDeclaration = [{
    /// Bytes of one element.
    int64_t getElementBytes() const { return getElementType().getIntOrFloatBitWidth() / 8; }
    int64_t getRank() const { return getShape().size(); }
    int64_t getRows() const { return getRank() == 1 ? 1 : getShape().front(); }
    int64_t getColumns() const { return getShape().back(); }
    bool isSwizzled() const { return getSwizzle() != 0; }
    /// Panels that the columns span; 1 without a swizzle.
    int64_t getPanels() const;
    /// Bytes from the address of the view to behind its last element.
    int64_t getSpan() const;
    /// The stride of a view whose rows or panels lie one behind the other.
    static int64_t getDenseStride(::llvm::ArrayRef<int64_t> shape, ::mlir::Type elementType,
                                  int64_t swizzle);
  }];
}

def Warp_BarrierType : Warp_Type<"Barrier", "barrier"> {
  let summary = "An mbarrier in shared memory";
}

#endif // GDN_DIALECT_WARP_IR_TYPES_TD
