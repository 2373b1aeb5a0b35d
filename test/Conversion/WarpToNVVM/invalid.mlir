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

// -----

// A sum over the rows of a fragment goes through shared memory.
gdn_warp.kernel @scan(%x : memref<64x64xf32>) threads(128) shared(0) {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #gdn_warp.fragment>
  // expected-error @+2 {{expected a place in shared memory in gdn_warp.scratch (gdn-warp-allocate-shared)}}
  // expected-error @below {{failed to legalize operation 'gdn_tile.scan'}}
  %s = gdn_tile.scan %zero axis 0 : tensor<64x64xf32, #gdn_warp.fragment>
}

// -----

// Shuffles move words.
gdn_warp.kernel @extract(%x : memref<32xbf16>) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.array_load %x[%c0] axes [0] : memref<32xbf16> -> tensor<32xbf16, #gdn_warp.lanes>
  // expected-error @+2 {{expected a vector of f32 or i32 over lanes, got 'tensor<32xbf16, #gdn_warp.lanes>'}}
  // expected-error @below {{failed to legalize operation 'tensor.extract'}}
  %e = tensor.extract %v[%c0] : tensor<32xbf16, #gdn_warp.lanes>
  memref.store %e, %x[%c0] : memref<32xbf16>
}

// -----

// A loop that goes backwards has no number of iterations.
gdn_warp.kernel @backwards(%y : memref<?xf32>) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %step = arith.constant -1 : index
  %one = arith.constant 1.0 : f32
  // expected-error @below {{expected a step of at least 1, got -1}}
  scf.for %i = %c0 to %c8 step %step {
    memref.store %one, %y[%i] : memref<?xf32>
  } {gdn_warp.unroll = 2}
}
