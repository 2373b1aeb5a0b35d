// What functions say of their arguments and results.
// RUN: gdn-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{'func.func' op expected gdn.optional, gdn.strided, gdn.name or gdn.dims on an argument or a result, got gdn.optoinal}}
func.func @name(%x: tensor<4xf32> {gdn.optoinal}) { return }

// -----

// expected-error @below {{'func.func' op expected gdn.optional without a value, got true}}
func.func @value(%x: tensor<4xf32> {gdn.optional = true}) { return }

// -----

// expected-error @below {{'func.func' op expected gdn.strided on a tensor or a memref, got 'index'}}
func.func @scalar(%x: index {gdn.strided}) { return }

// -----

// expected-error @below {{'func.func' op expected gdn.optional, gdn.strided, gdn.name or gdn.dims on an argument or a result, got gdn.states}}
func.func @result(%x: tensor<4xf32>) -> (tensor<4xf32> {gdn.states}) { return %x : tensor<4xf32> }

// -----

// expected-error @below {{'func.func' op expected gdn.optional on an array whose first extent is dynamic, got 'tensor<1x2x64x64xf32>'}}
func.func @known(%x: tensor<1x2x64x64xf32> {gdn.optional}) { return }
