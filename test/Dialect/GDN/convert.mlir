// What brings an array to another function: the form of the op, and its rules.
// RUN: gdn-opt %s --split-input-file --verify-diagnostics | gdn-opt --split-input-file | FileCheck %s

!half = tensor<?x?x?x?xbf16>
!single = tensor<?x?x?x?xf32>

// CHECK-LABEL: func.func @kinds
func.func @kinds(%x: !half, %like: !single, %factor: f32, %parameter: tensor<?xf32>) {
  // CHECK: gdn.convert copy input(%{{.*}} : tensor<?x?x?x?xbf16>) -> tensor<?x?x?x?xbf16>
  %copy = gdn.convert copy input(%x : !half) -> !half
  // CHECK: gdn.convert transpose input(
  %transpose = gdn.convert transpose input(%x : !half) -> !half
  // CHECK: gdn.convert cast input(%{{.*}} : tensor<?x?x?x?xbf16>) like(%{{.*}} : tensor<?x?x?x?xf32>) factor(%{{.*}} : f32) -> tensor<?x?x?x?xf32>
  %cast = gdn.convert cast input(%x : !half) like(%like : !single) factor(%factor : f32) -> !single
  // CHECK: gdn.convert fill like(
  %fill = gdn.convert fill like(%like : !single) factor(%factor : f32) -> !single
  // CHECK: gdn.convert linear_to_log input(
  %log = gdn.convert linear_to_log input(%x : !half) like(%like : !single) -> !single
  // CHECK: gdn.convert softplus_to_log input({{.*}}a_log(%{{.*}} : tensor<?xf32>) dt_bias(%{{.*}} : tensor<?xf32>)
  %raw = gdn.convert softplus_to_log input(%x : !half) like(%like : !single) a_log(%parameter : tensor<?xf32>) dt_bias(%parameter : tensor<?xf32>) -> !single
  // CHECK: gdn.convert logit_to_value input(
  %value = gdn.convert logit_to_value input(%x : !half) like(%like : !single) factor(%factor : f32) -> !single
  return
}

// -----

func.func @no_factor(%x: tensor<?x?x?x?xf32>, %like: tensor<?x?x?x?xf32>) {
  // expected-error @+1 {{expected the operands input, like, factor of a cast, got input, like}}
  %y = gdn.convert cast input(%x : tensor<?x?x?x?xf32>) like(%like : tensor<?x?x?x?xf32>) -> tensor<?x?x?x?xf32>
  return
}

// -----

func.func @other_result(%x: tensor<?x?x?x?xf32>, %like: tensor<?x?x?x?xf32>) {
  // expected-error @+1 {{expected like of the result's type 'tensor<?x?x?x?xf16>', got 'tensor<?x?x?x?xf32>'}}
  %y = gdn.convert linear_to_log input(%x : tensor<?x?x?x?xf32>) like(%like : tensor<?x?x?x?xf32>) -> tensor<?x?x?x?xf16>
  return
}

// -----

func.func @copy_of_other_elements(%x: tensor<?x?x?x?xf32>) {
  // expected-error @+1 {{expected elements of the input's type 'f32', got 'tensor<?x?x?x?xbf16>'}}
  %y = gdn.convert copy input(%x : tensor<?x?x?x?xf32>) -> tensor<?x?x?x?xbf16>
  return
}

// -----

func.func @copy_of_f16(%x: tensor<?x?x?x?xf16>) {
  // expected-error @+1 {{expected elements of bf16 or f32, got f16}}
  %y = gdn.convert copy input(%x : tensor<?x?x?x?xf16>) -> tensor<?x?x?x?xf16>
  return
}
