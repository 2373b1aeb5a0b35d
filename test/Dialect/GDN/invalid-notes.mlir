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
