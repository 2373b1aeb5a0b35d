// RUN: gdn-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{'gdn.entry' op expected at least one gdn.variant, got none}}
gdn.entry @none {
}

// -----

gdn.entry @missing {
  // expected-error @below {{'gdn.variant' op expected a function of the module, got @other}}
  gdn.variant @other schedule("cta_per_head")
}

// -----

func.func @first(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> { return %x : tensor<4xf32> }
func.func @scalars(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }
func.func @second(%x: tensor<4xf16>) -> tensor<4xf16> { return %x : tensor<4xf16> }
gdn.entry @differ {
  gdn.variant @first schedule("cta_per_head")
  gdn.variant @scalars schedule("cta_per_head")
  // expected-error @below {{'gdn.variant' op expected arrays and results as @first has them ('(tensor<4xf32>, index) -> tensor<4xf32>'), got '(tensor<4xf16>) -> tensor<4xf16>'}}
  gdn.variant @second schedule("cta_per_head")
}
