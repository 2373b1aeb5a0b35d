// States that a call has or not: a program looks at the first extent, zeros stand for one that is not there. With any strides
// a program's array has no dimension that is contiguous.
// RUN: gdn-opt %s --convert-gdn-to-tile -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-LABEL: gdn_tile.program @optional_fused(
// CHECK-SAME: %initial_state: memref<?x2x64x64xf32, strided<[?, ?, ?, ?], offset: ?>>) outs(
// CHECK-SAME: %final_state: memref<?x2x64x64xf32, strided<[?, ?, ?, 1], offset: ?>>)
// CHECK: %[[ROWS:.*]] = memref.dim %initial_state, %{{.*}}
// CHECK: %[[THERE:.*]] = arith.cmpi ne, %[[ROWS]], %{{.*}} : index
// CHECK: %[[STATE:.*]] = scf.if %[[THERE]] -> (tensor<64x64xf32>) {
// CHECK:   %[[LOADED:.*]] = gdn_tile.load %initial_state
// CHECK:   scf.yield %[[LOADED]]
// CHECK: } else {
// CHECK:   scf.yield %{{.*}} : tensor<64x64xf32>
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[STATE]]
// CHECK: %[[LAST:.*]] = memref.dim %final_state, %{{.*}}
// CHECK: %[[WANTED:.*]] = arith.cmpi ne, %[[LAST]], %{{.*}} : index
// CHECK: scf.if %[[WANTED]] {
// CHECK:   gdn_tile.store %{{.*}}, %final_state
func.func @optional(%q: tensor<1x32x2x64xf32>, %beta: tensor<1x32x2xf32>,
    %h0: tensor<?x2x64x64xf32> {gdn.optional, gdn.strided})
    -> (tensor<1x32x2x64xf32>, tensor<?x2x64x64xf32> {gdn.optional}) {
  %o, %ht = gdn.stage.fused q(%q : tensor<1x32x2x64xf32>) k(%q : tensor<1x32x2x64xf32>) v(%q : tensor<1x32x2x64xf32>)
      beta(%beta : tensor<1x32x2xf32>) initial_state(%h0 : tensor<?x2x64x64xf32>) {chunk_size = 32}
      -> tensor<1x32x2x64xf32>, tensor<?x2x64x64xf32>
  return %o, %ht : tensor<1x32x2x64xf32>, tensor<?x2x64x64xf32>
}

// -----

// Notes hold through casts.
// CHECK-LABEL: gdn_tile.program @casts_fused(
// CHECK-COUNT-2: arith.cmpi ne, %{{.*}} : index
func.func @casts(%q: tensor<1x32x2x64xf32>, %beta: tensor<1x32x2xf32>, %h0: tensor<?x?x64x64xf32> {gdn.optional})
    -> (tensor<1x32x2x64xf32>, tensor<?x?x64x64xf32> {gdn.optional}) {
  %first = tensor.cast %h0 : tensor<?x?x64x64xf32> to tensor<?x2x64x64xf32>
  %o, %ht = gdn.stage.fused q(%q : tensor<1x32x2x64xf32>) k(%q : tensor<1x32x2x64xf32>) v(%q : tensor<1x32x2x64xf32>)
      beta(%beta : tensor<1x32x2xf32>) initial_state(%first : tensor<?x2x64x64xf32>) {chunk_size = 32}
      -> tensor<1x32x2x64xf32>, tensor<?x2x64x64xf32>
  %last = tensor.cast %ht : tensor<?x2x64x64xf32> to tensor<?x?x64x64xf32>
  return %o, %last : tensor<1x32x2x64xf32>, tensor<?x?x64x64xf32>
}

// -----

// A program that knows the first extent could not see that it is 0.
func.func @known(%q: tensor<1x32x2x64xf32>, %beta: tensor<1x32x2xf32>, %h0: tensor<?x2x64x64xf32> {gdn.optional})
    -> tensor<1x32x2x64xf32> {
  %first = tensor.cast %h0 : tensor<?x2x64x64xf32> to tensor<1x2x64x64xf32>
  // expected-error @below {{expected initial_state of a dynamic first extent, since the function says gdn.optional, got 'tensor<1x2x64x64xf32>'}}
  %o = gdn.stage.fused q(%q : tensor<1x32x2x64xf32>) k(%q : tensor<1x32x2x64xf32>) v(%q : tensor<1x32x2x64xf32>)
      beta(%beta : tensor<1x32x2xf32>) initial_state(%first : tensor<1x2x64x64xf32>) {chunk_size = 32} -> tensor<1x32x2x64xf32>
  return %o : tensor<1x32x2x64xf32>
}

// -----

func.func @gate(%q: tensor<1x32x2x64xf32>, %beta: tensor<?x32x2xf32> {gdn.optional}) -> tensor<1x32x2x64xf32> {
  // expected-error @below {{expected gdn.optional on states alone, got it on beta}}
  %o = gdn.stage.fused q(%q : tensor<1x32x2x64xf32>) k(%q : tensor<1x32x2x64xf32>) v(%q : tensor<1x32x2x64xf32>)
      beta(%beta : tensor<?x32x2xf32>) {chunk_size = 32} -> tensor<1x32x2x64xf32>
  return %o : tensor<1x32x2x64xf32>
}

// -----

func.func @output(%q: tensor<1x32x2x64xf32>, %beta: tensor<1x32x2xf32>) -> (tensor<1x32x2x64xf32> {gdn.strided}) {
  // expected-error @below {{expected gdn.strided on states alone, got it on o}}
  %o = gdn.stage.fused q(%q : tensor<1x32x2x64xf32>) k(%q : tensor<1x32x2x64xf32>) v(%q : tensor<1x32x2x64xf32>)
      beta(%beta : tensor<1x32x2xf32>) {chunk_size = 32} -> tensor<1x32x2x64xf32>
  return %o : tensor<1x32x2x64xf32>
}

// -----

// So is what all sequences need.
func.func @packed(%q: tensor<1x32x2x64xf32>, %beta: tensor<1x32x2xf32>, %cu: tensor<?xi32> {gdn.optional}) -> tensor<1x32x2x64xf32> {
  // expected-error @below {{expected gdn.optional on states alone, got it on cu_seqlens}}
  %o = gdn.stage.fused q(%q : tensor<1x32x2x64xf32>) k(%q : tensor<1x32x2x64xf32>) v(%q : tensor<1x32x2x64xf32>)
      beta(%beta : tensor<1x32x2xf32>) cu_seqlens(%cu : tensor<?xi32>) {chunk_size = 32} -> tensor<1x32x2x64xf32>
  return %o : tensor<1x32x2x64xf32>
}

// -----

// Only programs of stages see that an array is not there.
// expected-error @below {{expected gdn.optional on a state that only stages take, got it on argument 0, which 'arith.negf' takes}}
func.func @taken(%h0: tensor<?x2x64x64xf32> {gdn.optional}) -> tensor<?x2x64x64xf32> {
  %minus = arith.negf %h0 : tensor<?x2x64x64xf32>
  return %minus : tensor<?x2x64x64xf32>
}

// -----

// expected-error @below {{expected gdn.strided on a state that only stages take, got it on argument 0, which 'bufferization.to_tensor' takes}}
func.func @buffer(%h0: memref<?x2x64x64xf32> {gdn.strided}) -> tensor<?x2x64x64xf32> {
  %state = bufferization.to_tensor %h0 : memref<?x2x64x64xf32> to tensor<?x2x64x64xf32>
  return %state : tensor<?x2x64x64xf32>
}

// -----

// expected-error @below {{expected gdn.optional on a state that a stage makes, got it on result 0, which none makes}}
func.func @made(%x: tensor<?x2x64x64xf32>) -> (tensor<?x2x64x64xf32> {gdn.optional}) {
  return %x : tensor<?x2x64x64xf32>
}

// -----

// A state that the next layer reads is always there.
// expected-error @below {{expected gdn.optional on a state that is returned alone, got it on result 1, which 'gdn.stage.fused' takes, too}}
func.func @read(%q: tensor<1x32x2x64xf32>, %beta: tensor<1x32x2xf32>)
    -> (tensor<1x32x2x64xf32>, tensor<?x2x64x64xf32> {gdn.optional}) {
  %o, %state = gdn.stage.fused q(%q : tensor<1x32x2x64xf32>) k(%q : tensor<1x32x2x64xf32>) v(%q : tensor<1x32x2x64xf32>)
      beta(%beta : tensor<1x32x2xf32>) {chunk_size = 32} -> tensor<1x32x2x64xf32>, tensor<?x2x64x64xf32>
  %next = gdn.stage.fused q(%q : tensor<1x32x2x64xf32>) k(%q : tensor<1x32x2x64xf32>) v(%o : tensor<1x32x2x64xf32>)
      beta(%beta : tensor<1x32x2xf32>) initial_state(%state : tensor<?x2x64x64xf32>) {chunk_size = 32} -> tensor<1x32x2x64xf32>
  return %next, %state : tensor<1x32x2x64xf32>, tensor<?x2x64x64xf32>
}

// -----

// expected-error @below {{expected gdn.optional on a state that is returned alone, got it on result 1, which 'func.return' takes, too}}
func.func @twice(%q: tensor<1x32x2x64xf32>, %beta: tensor<1x32x2xf32>)
    -> (tensor<?x2x64x64xf32>, tensor<?x2x64x64xf32> {gdn.optional}) {
  %o, %state = gdn.stage.fused q(%q : tensor<1x32x2x64xf32>) k(%q : tensor<1x32x2x64xf32>) v(%q : tensor<1x32x2x64xf32>)
      beta(%beta : tensor<1x32x2xf32>) {chunk_size = 32} -> tensor<1x32x2x64xf32>, tensor<?x2x64x64xf32>
  return %state, %state : tensor<?x2x64x64xf32>, tensor<?x2x64x64xf32>
}

// -----

// A cast beside the one that is returned says nothing.
// CHECK-LABEL: gdn_tile.program @beside_fused(
// CHECK: memref.dim %final_state
func.func @beside(%q: tensor<1x32x2x64xf32>, %beta: tensor<1x32x2xf32>) -> (tensor<?x2x64x64xf32> {gdn.optional}) {
  %o, %state = gdn.stage.fused q(%q : tensor<1x32x2x64xf32>) k(%q : tensor<1x32x2x64xf32>) v(%q : tensor<1x32x2x64xf32>)
      beta(%beta : tensor<1x32x2xf32>) {chunk_size = 32} -> tensor<1x32x2x64xf32>, tensor<?x2x64x64xf32>
  %one = tensor.cast %state : tensor<?x2x64x64xf32> to tensor<1x2x64x64xf32>
  return %state : tensor<?x2x64x64xf32>
}
