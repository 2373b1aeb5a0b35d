// What a function around kernels may not hold, and what kernels may not take.
// RUN: split-file %s %t
// RUN: not gdn-compile %t/part.mlir --target=sm_90a --emit=obj -o %t.o 2>&1 | FileCheck %s --check-prefix=PART
// RUN: not gdn-compile %t/factors.mlir --target=sm_90a --emit=obj -o %t.o 2>&1 | FileCheck %s --check-prefix=FACTORS
// RUN: not gdn-compile %t/other.mlir --target=sm_90a --emit=obj -o %t.o 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: not gdn-compile %t/kernel.mlir --target=sm_90a --emit=obj -o %t.o 2>&1 | FileCheck %s --check-prefix=KERNEL
// RUN: not gdn-compile %t/count.mlir --target=sm_90a --emit=obj -o %t.o 2>&1 | FileCheck %s --check-prefix=COUNT
// RUN: not gdn-compile %t/returned.mlir --target=sm_90a --emit=obj -o %t.o 2>&1 | FileCheck %s --check-prefix=RETURNED
// RUN: not gdn-compile %t/name.mlir --target=sm_90a --emit=obj -o %t.o 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not gdn-compile %t/twice.mlir --target=sm_90a --emit=obj -o %t.o 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not gdn-compile %t/keyword.mlir --target=sm_90a --emit=obj -o %t.o 2>&1 | FileCheck %s --check-prefix=KEYWORD
// RUN: not gdn-compile %t/runtime.mlir --target=sm_90a --emit=obj -o %t.o 2>&1 | FileCheck %s --check-prefix=RUNTIME
// RUN: not gdn-compile %t/entries.mlir --target=sm_90a --emit=obj -o %t.o 2>&1 | FileCheck %s --check-prefix=ENTRIES
// RUN: not gdn-compile %t/nothing.mlir --target=sm_90a --emit=obj -o %t.o 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: not gdn-compile %t/writable.mlir --target=sm_90a --emit=obj -o %t.o 2>&1 | FileCheck %s --check-prefix=WRITABLE
// RUN: not gdn-compile %t/gone.mlir --target=sm_90a --emit=obj -o %t.o 2>&1 | FileCheck %s --check-prefix=GONE
// RUN: not gdn-compile %t/early.mlir --target=sm_90a --emit=obj -o %t.o 2>&1 | FileCheck %s --check-prefix=EARLY
// RUN: not gdn-compile %t/turns.mlir --target=sm_90a --emit=obj -o %t.o 2>&1 | FileCheck %s --check-prefix=TURNS
// RUN: not gdn-compile %t/elsewhere.mlir --target=sm_90a --emit=obj -o %t.o 2>&1 | FileCheck %s --check-prefix=ELSEWHERE
// RUN: not gdn-compile %t/unsigned.mlir --target=sm_90a --emit=obj -o %t.o 2>&1 | FileCheck %s --check-prefix=UNSIGNED

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
// NAME: error: expected a gdn.name of @name's arguments that is a C identifier, no keyword of C or C++ and no name of the runtime's (gdnX..., GdnX..., GDN_...), got 'a b'
func.func @name(%x: tensor<4xf32> {gdn.name = "a b"}) { return }
//--- twice.mlir
// TWICE: error: expected arguments of @twice with distinct names as gdn.name, got two of 'stream', or it is a parameter that each function has
func.func @twice(%x: tensor<4xf32> {gdn.name = "stream"}) { return }
//--- keyword.mlir
// KEYWORD: error: expected a function's name that is a C identifier, no keyword of C or C++ and no name of the runtime's (gdnX..., GdnX..., GDN_...), got 'int'
func.func @int(%x: tensor<4xf32> {gdn.name = "x"}) { return }
//--- runtime.mlir
// The function would call itself.
// RUNTIME: error: expected a function's name that is {{.*}} no name of the runtime's (gdnX..., GdnX..., GDN_...), got 'gdnFunctionLaunch'
func.func @gdnFunctionLaunch(%x: tensor<4xf32> {gdn.name = "x"}) { return }
//--- entries.mlir
// ENTRIES: error: expected entries of distinct names, got 'f_prepare' for both @f and @f_prepare; rename one of these functions
func.func @f(%x: tensor<4xf32> {gdn.name = "x"}) { return }
func.func @f_prepare(%x: tensor<4xf32> {gdn.name = "x"}) { return }
//--- nothing.mlir
// NOTHING: error: expected a public function that launches kernels, got none
func.func private @helper() { return }
//--- writable.mlir
// WRITABLE: error: 'gdn_tile.launch' op expected outs #0 to be an argument with bufferization.writable = true, got argument 0 without it
gdn_warp.kernel @k(%x : memref<4xf32>, %y : memref<4xf32>, %tokens : i64) threads(128) shared(0) {}
func.func @writable(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c1 = arith.constant 1 : index
  %o = gdn_tile.launch @k grid(%c1, %c1, %c1) tokens(%c1) ins(%x : tensor<4xf32>) outs(%x : tensor<4xf32>) -> tensor<4xf32>
  return %o : tensor<4xf32>
}
//--- gone.mlir
// GONE: :[[#]]:8: error: 'gdn_tile.launch' op expected inputs that are still there, got one whose memory has been written since
// GONE: :[[#]]:8: note: this launch updates it in place
gdn_warp.kernel @k(%x : memref<4xf32>, %y : memref<4xf32>, %tokens : i64) threads(128) shared(0) {}
func.func @gone(%x: tensor<4xf32> {bufferization.writable = true}) -> (tensor<4xf32>, tensor<4xf32>) {
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<4xf32>
  %o = gdn_tile.launch @k grid(%c1, %c1, %c1) tokens(%c1) ins(%x : tensor<4xf32>) outs(%x : tensor<4xf32>) -> tensor<4xf32>
  %p = gdn_tile.launch @k grid(%c1, %c1, %c1) tokens(%c1) ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %o, %p : tensor<4xf32>, tensor<4xf32>
}
//--- early.mlir
// The result has the memory of %y as soon as the first launch ends, where the program wants it after the second one.
// EARLY: error: 'gdn_tile.launch' op expected inputs that are still there, got one whose memory has been written since
gdn_warp.kernel @k(%x : memref<4xf32>, %y : memref<4xf32>, %tokens : i64) threads(128) shared(0) {}
func.func @early(%x: memref<4xf32>, %y: memref<4xf32>, %z: memref<4xf32>) {
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<4xf32>
  %a = bufferization.to_tensor %x restrict : memref<4xf32> to tensor<4xf32>
  %o = gdn_tile.launch @k grid(%c1, %c1, %c1) tokens(%c1) ins(%a : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %b = bufferization.to_tensor %y restrict : memref<4xf32> to tensor<4xf32>
  %p = gdn_tile.launch @k grid(%c1, %c1, %c1) tokens(%c1) ins(%b : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  bufferization.materialize_in_destination %o in restrict writable %y : (tensor<4xf32>, memref<4xf32>) -> ()
  bufferization.materialize_in_destination %p in restrict writable %z : (tensor<4xf32>, memref<4xf32>) -> ()
  return
}
//--- turns.mlir
// TURNS: error: 'gdn_tile.launch' op expected outs apart from the inputs where work items run in turns, got outs #0 in the memory of input #0; use no --own-starts
gdn_warp.kernel @k(%x : memref<4xf32>, %y : memref<4xf32>, %tokens : i64) threads(128) shared(0) {}
func.func @turns(%x: tensor<4xf32> {bufferization.writable = true}) -> tensor<4xf32> {
  %c1 = arith.constant 1 : index
  %o = gdn_tile.launch @k grid(%c1, %c1, %c1) tokens(%c1) ins(%x : tensor<4xf32>) outs(%x : tensor<4xf32>) {gdn_tile.in_turns} -> tensor<4xf32>
  return %o : tensor<4xf32>
}
//--- elsewhere.mlir
// ELSEWHERE: error: 'bufferization.materialize_in_destination' op expected a result of a kernel, which no other op returns or materializes, and an argument of the function
func.func @elsewhere(%x: memref<4xf32>, %y: memref<4xf32>) {
  %a = bufferization.to_tensor %x restrict : memref<4xf32> to tensor<4xf32>
  bufferization.materialize_in_destination %a in restrict writable %y : (tensor<4xf32>, memref<4xf32>) -> ()
  return
}

//--- unsigned.mlir
// UNSIGNED: error: 'func.func' op expected arguments to be tensors or memrefs of bf16, f16, f32, i8, i32 or i64, or scalars of index, i64, i32 or f32, got 'ui32'
func.func @unsigned(%count: ui32) { return }

//--- part.mlir
// PART: error: 'tensor.collapse_shape' op expected whole dimensions to join, got a part of one
gdn_warp.kernel @k(%x : memref<32xf32>, %y : memref<4xf32>, %tokens : i64) threads(128) shared(0) {}
func.func @part(%x: tensor<16x8xf32>) -> tensor<4xf32> {
  %c1 = arith.constant 1 : index
  %s = tensor.extract_slice %x[4, 0] [4, 8] [1, 1] : tensor<16x8xf32> to tensor<4x8xf32>
  %j = tensor.collapse_shape %s [[0, 1]] : tensor<4x8xf32> into tensor<32xf32>
  %e = tensor.empty() : tensor<4xf32>
  %o = gdn_tile.launch @k grid(%c1, %c1, %c1) tokens(%c1) ins(%j : tensor<32xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %o : tensor<4xf32>
}
//--- factors.mlir
// Of memory between kernels nobody checks the extents in a call.
// FACTORS: error: 'tensor.expand_shape' op expected the extents of the tensor.empty for dimensions that tensor.collapse_shape has joined
gdn_warp.kernel @k(%x : memref<?x?xf32>, %y : memref<?x?xf32>, %tokens : i64) threads(128) shared(0) {}
func.func @factors(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %p = tensor.dim %x, %c0 : tensor<?x?xf32>
  %q = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%p, %q) : tensor<?x?xf32>
  %y = gdn_tile.launch @k grid(%c1, %c1, %c1) tokens(%c1) ins(%x : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %j = tensor.collapse_shape %y [[0, 1]] : tensor<?x?xf32> into tensor<?xf32>
  %d = tensor.expand_shape %j [[0, 1]] output_shape [%q, %p] : tensor<?xf32> into tensor<?x?xf32>
  %o = gdn_tile.launch @k grid(%c1, %c1, %c1) tokens(%c1) ins(%d : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %o : tensor<?x?xf32>
}
