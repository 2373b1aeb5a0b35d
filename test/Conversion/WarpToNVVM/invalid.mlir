// What the conversion cannot take is an error at the op.
// RUN: gdn-opt %s --split-input-file --verify-diagnostics --convert-gdn-warp-to-nvvm

// Functions of other types than f32 have no instruction.
gdn_warp.kernel @type(%x : memref<1xf16>) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  %f = memref.load %x[%c0] : memref<1xf16>
  // expected-error @+2 {{expected f32, got 'f16'}}
  // expected-error @below {{failed to legalize operation 'math.exp'}}
  %e = math.exp %f : f16
  memref.store %e, %x[%c0] : memref<1xf16>
}

// -----

// Arrays are read and written, not passed on.
gdn_warp.kernel @array(%x : memref<1xf32>) threads(128) shared(0) {
  // expected-error @below {{expected an access to an array that a kernel may hold (gdn_warp, memref.load, memref.store, memref.dim)}}
  %y = memref.cast %x : memref<1xf32> to memref<?xf32>
}
