// What functions say of their arguments and results.
// RUN: gdn-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{'func.func' op expected gdn.optional, gdn.strided, gdn.cut, gdn.name or gdn.dims on argument 0, got gdn.optoinal}}
func.func @name(%x: tensor<4xf32> {gdn.optoinal}) { return }

// -----

// expected-error @below {{'func.func' op expected gdn.optional without a value on argument 0, got true}}
func.func @value(%x: tensor<4xf32> {gdn.optional = true}) { return }

// -----

// expected-error @below {{'func.func' op expected argument 0, which has gdn.strided, to be a tensor or a memref, got 'index'}}
func.func @scalar(%x: index {gdn.strided}) { return }

// -----

// expected-error @below {{'func.func' op expected gdn.optional, gdn.strided, gdn.cut, gdn.name or gdn.dims on result 0, got gdn.states}}
func.func @result(%x: tensor<4xf32>) -> (tensor<4xf32> {gdn.states}) { return %x : tensor<4xf32> }

// -----

// expected-error @below {{'func.func' op expected argument 0, which has gdn.optional, to have a dynamic first extent, got 'tensor<1x2x64x64xf32>'}}
func.func @known(%x: tensor<1x2x64x64xf32> {gdn.optional}) { return }

// -----

// expected-error @below {{'func.func' op expected gdn.name of argument 1 to be a string, got 5 : i64}}
func.func @named(%x: tensor<4xf32> {gdn.name = "x"}, %y: tensor<4xf32> {gdn.name = 5}) { return }

// -----

// expected-error @below {{'func.func' op expected gdn.dims of argument 0 to be an array of strings, got "T"}}
func.func @dims(%x: tensor<4xf32> {gdn.dims = "T"}) { return }

// -----

// expected-error @below {{'func.func' op expected gdn.cut of argument 0 to be "segment_length", "segment_parts" or "longer_segment_length", got "length"}}
func.func @cut(%n: index {gdn.cut = "length"}) { return }

// -----

// expected-error @below {{'func.func' op expected argument 0, which has gdn.cut, to be an index, got 'i64'}}
func.func @cut_type(%n: i64 {gdn.cut = "segment_length"}) { return }

// -----

// expected-error @below {{'func.func' op expected one argument with gdn.cut = "segment_length", got 2}}
func.func @cut_twice(%n: index {gdn.cut = "segment_length"}, %m: index {gdn.cut = "segment_length"}) { return }

// -----

// expected-error @below {{'func.func' op expected an argument with gdn.cut = "segment_length" beside segment_parts, got none}}
func.func @no_length(%n: index {gdn.cut = "segment_parts"}) { return }

// -----

// expected-error @below {{'func.func' op expected an argument with gdn.cut = "segment_parts" beside longer_segment_length, got none}}
func.func @no_parts(%n: index {gdn.cut = "segment_length"}, %m: index {gdn.cut = "longer_segment_length"}) { return }

// -----

// expected-error@below {{'func.func' op expected gdn.gate_bound on a function, a finite negative number, got 5.000000e+00 : f64}}
func.func @positive_bound(%n: index) attributes {gdn.gate_bound = 5.0} { return }

// -----

// expected-error @below {{'func.func' op expected gdn.late_forward on a function, without a value, got true}}
func.func @late_value(%n: index) attributes {gdn.late_forward = true} { return }
