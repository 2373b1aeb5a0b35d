// Layers in loops that carry what a layer makes: the numbers of the same layers one behind the other.
// RUN: rm -rf %t && gdn-run %s --opt-level=0 --entry=counted --out-dir %t/counted && cmp %t/counted/0.npy %t/counted/1.npy
// RUN: gdn-run %s --opt-level=0 --entry=conditional --dim T=37 --repeat=3 --out-dir %t/conditional
// RUN: cmp %t/conditional/0.npy %t/conditional/1.npy
// A loop without a trip returns the argument's elements, in an array of its own.
// RUN: gdn-run %s --opt-level=0 --entry=none --dim T=37 --arg-shape 2=1x37x4x64 --repeat=3 --out-dir %t/none
// RUN: cmp %t/none/0.npy %t/none/1.npy

!qk = tensor<1x40x2x64xbf16>
!v = tensor<1x40x4x64xbf16>
!scalars = tensor<1x40x4xf32>
func.func @counted(%q: !qk, %k: !qk, %v: !v, %beta: !scalars, %gate: !scalars) -> (!v, !v) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %carried = scf.for %i = %c0 to %c3 step %c1 iter_args(%x = %v) -> !v {
    %o = gdn.chunk_gated_delta_rule q(%q : !qk) k(%k : !qk) v(%x : !v) beta(%beta : !scalars) gate(%gate : !scalars) -> !v
    scf.yield %o : !v
  }
  %0 = gdn.chunk_gated_delta_rule q(%q : !qk) k(%k : !qk) v(%v : !v) beta(%beta : !scalars) gate(%gate : !scalars) -> !v
  %1 = gdn.chunk_gated_delta_rule q(%q : !qk) k(%k : !qk) v(%0 : !v) beta(%beta : !scalars) gate(%gate : !scalars) -> !v
  %2 = gdn.chunk_gated_delta_rule q(%q : !qk) k(%k : !qk) v(%1 : !v) beta(%beta : !scalars) gate(%gate : !scalars) -> !v
  return %carried, %2 : !v, !v
}

!dynamic_qk = tensor<1x?x2x64xbf16>
!dynamic_v = tensor<1x?x4x64xbf16>
!dynamic_scalars = tensor<1x?x4xf32>
func.func @conditional(%q: !dynamic_qk, %k: !dynamic_qk, %v: !dynamic_v, %beta: !dynamic_scalars)
    -> (!dynamic_v, !dynamic_v) {
  %true = arith.constant true
  %false = arith.constant false
  %carried:2 = scf.while (%x = %v, %go = %true) : (!dynamic_v, i1) -> (!dynamic_v, i1) {
    scf.condition(%go) %x, %go : !dynamic_v, i1
  } do {
  ^bb0(%x: !dynamic_v, %go: i1):
    %o = gdn.chunk_gated_delta_rule q(%q : !dynamic_qk) k(%k : !dynamic_qk) v(%x : !dynamic_v)
        beta(%beta : !dynamic_scalars) -> !dynamic_v
    scf.yield %o, %false : !dynamic_v, i1
  }
  %0 = gdn.chunk_gated_delta_rule q(%q : !dynamic_qk) k(%k : !dynamic_qk) v(%v : !dynamic_v)
      beta(%beta : !dynamic_scalars) -> !dynamic_v
  return %carried#0, %0 : !dynamic_v, !dynamic_v
}

func.func @none(%q: !dynamic_qk, %k: !dynamic_qk, %v: !dynamic_v, %beta: !dynamic_scalars)
    -> (!dynamic_v, !dynamic_v) {
  %c1 = arith.constant 1 : index
  %c37 = arith.constant 37 : index
  %tokens = tensor.dim %v, %c1 : !dynamic_v
  %carried = scf.for %i = %c37 to %tokens step %c1 iter_args(%x = %v) -> !dynamic_v {
    %o = gdn.chunk_gated_delta_rule q(%q : !dynamic_qk) k(%k : !dynamic_qk) v(%x : !dynamic_v)
        beta(%beta : !dynamic_scalars) -> !dynamic_v
    scf.yield %o : !dynamic_v
  }
  return %carried, %v : !dynamic_v, !dynamic_v
}
