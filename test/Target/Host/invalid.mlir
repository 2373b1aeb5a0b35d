// What a function around kernels may not hold, and what kernels may not take.
// RUN: split-file %s %t
// RUN: not gdn-compile %t/other.mlir --target=sm_90a --emit=obj -o %t.o 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: not gdn-compile %t/kernel.mlir --target=sm_90a --emit=obj -o %t.o 2>&1 | FileCheck %s --check-prefix=KERNEL
// RUN: not gdn-compile %t/count.mlir --target=sm_90a --emit=obj -o %t.o 2>&1 | FileCheck %s --check-prefix=COUNT
// RUN: not gdn-compile %t/returned.mlir --target=sm_90a --emit=obj -o %t.o 2>&1 | FileCheck %s --check-prefix=RETURNED
// RUN: not gdn-compile %t/name.mlir --target=sm_90a --emit=obj -o %t.o 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not gdn-compile %t/nothing.mlir --target=sm_90a --emit=obj -o %t.o 2>&1 | FileCheck %s --check-prefix=NOTHING

//--- other.mlir
// OTHER: error: 'math.exp' op expected only kernels and the arithmetic of their sizes in a function for a GPU
func.func @other(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = math.exp %x : tensor<4xf32>
  return %y : tensor<4xf32>
}
//--- kernel.mlir
// KERNEL: error: 'llvm.func' op expected arrays of bf16, f16, f32, i32, i64 or i8 that are dense, or whose strides are dynamic but for a last one of 1, got 'memref<4x4xf32, strided<[8, 1]>>'
gdn_warp.kernel @k(%x : memref<4x4xf32, strided<[8, 1]>>) threads(128) shared(0) {}
func.func @f() { return }
//--- count.mlir
// COUNT: error: 'gdn_tile.launch' op expected kernel @k to take 2 arguments (inputs, outs, tokens, cu_seqlens), got 1
gdn_warp.kernel @k(%x : memref<4xf32>) threads(128) shared(0) {}
func.func @count() -> tensor<4xf32> {
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<4xf32>
  %o = gdn_tile.launch @k grid(%c1, %c1, %c1) tokens(%c1) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %o : tensor<4xf32>
}
//--- returned.mlir
// RETURNED: error: 'func.return' op expected results of kernels, each returned once, got another value as result 0
func.func @returned(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
//--- name.mlir
// NAME: error: expected arguments of @name with distinct C identifiers as gdn.name, got 'a b'
func.func @name(%x: tensor<4xf32> {gdn.name = "a b"}) { return }
//--- nothing.mlir
// NOTHING: error: expected a public function that launches kernels, got none
func.func private @helper() { return }
