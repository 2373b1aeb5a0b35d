// RUN: gdn-opt %s --split-input-file --verify-diagnostics
// RUN: not gdn-opt %s --split-input-file 2>&1 | FileCheck %s

// Numbers of instructions are those that PTX has. A negative one would be printed into it without its sign.
// CHECK-NOT: 18446744073709551615

gdn_warp.kernel @wait(%d : memref<64x64xf32>) threads(128) shared(32768) {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !gdn_warp.view<64x64xbf16, swizzle = 128>
  %p = gdn_warp.wgmma %v, %v : !gdn_warp.view<64x64xbf16, swizzle = 128>, !gdn_warp.view<64x64xbf16, swizzle = 128> -> tensor<64x64xf32, #gdn_warp.fragment>
  // expected-error @below {{attribute 'pending' failed to satisfy constraint: 64-bit signless integer attribute whose minimum value is 0 whose maximum value is 7}}
  %r = gdn_warp.wgmma_wait -1 of %p : tensor<64x64xf32, #gdn_warp.fragment>
}

// -----

gdn_warp.kernel @bulk_wait() threads(128) shared(0) {
  // expected-error @below {{attribute 'pending' failed to satisfy constraint: 64-bit signless integer attribute whose minimum value is 0}}
  gdn_warp.bulk_wait -1 read
}

// -----

gdn_warp.kernel @expect() threads(128) shared(64) {
  %c0 = arith.constant 0 : index
  %b = gdn_warp.barrier %c0
  // expected-error @below {{attribute 'bytes' failed to satisfy constraint: 64-bit signless integer attribute whose minimum value is 0}}
  gdn_warp.barrier_expect %b, -16
}

// -----

gdn_warp.kernel @arrive() threads(128) shared(64) {
  %c0 = arith.constant 0 : index
  %b = gdn_warp.barrier %c0
  // expected-error @below {{attribute 'count' failed to satisfy constraint: 64-bit signless integer attribute whose minimum value is 1}}
  gdn_warp.barrier_arrive %b count(-1)
}

// -----

gdn_warp.kernel @sync() threads(128) shared(0) {
  %id = arith.constant 1 : i32
  // expected-error @below {{attribute 'threads' failed to satisfy constraint: 64-bit signless integer attribute whose minimum value is 32}}
  gdn_warp.sync_group %id, -128
}
