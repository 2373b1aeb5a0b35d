// Gradients that run beside the adjoint: it reports, they take blocks of chunks from the end.
// RUN: gdn-opt %s --convert-gdn-to-tile --gdn-tile-verify-form --canonicalize --cse | FileCheck %s

// Where a block of 512 tokens begins, of chunks of 32, the V tile is done with all tokens from it on.
// CHECK-LABEL: gdn_tile.program @f_adjoint(
// CHECK-SAME: %[[PROGRESS:[^:]*]]: memref<?x2x2xi32
// CHECK-SAME: work_item(%[[N:.*]], %[[H:.*]], %[[VT:.*]]) tokens(%{{.*}}, %[[BEGIN:.*]], %[[END:.*]])
// CHECK: scf.for
// CHECK: %[[T:.*]] = arith.addi %[[BEGIN]], %{{.*}} : index
// CHECK: gdn_tile.store {{.*}} %dv[
// CHECK: linalg.contract
// CHECK: %[[REST:.*]] = arith.remui %{{.*}}, %c16 : index
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[REST]], %c0 : index
// CHECK: %[[DONE:.*]] = arith.subi %[[END]], %[[T]] : index
// CHECK: scf.if %[[FIRST]] {
// CHECK-NEXT: gdn_tile.report %[[DONE]], %[[PROGRESS]][%[[N]], %[[H]], %[[VT]]] {gdn_tile.step = "store"}

// Turn i takes block i from the end. It waits for all V tiles of its two heads, which lie next to each other.
// CHECK-LABEL: gdn_tile.program @f_gradients(
// CHECK-SAME: work_item(%[[N:.*]], %[[H:.*]], %{{.*}}, %[[TURN:.*]]) tokens(%{{.*}}, %[[BEGIN:.*]], %[[END:.*]])
// CHECK: %[[HEAD:.*]] = arith.muli %[[H]], %c2 : index
// CHECK: %[[FIRST_HEAD:.*]] = arith.andi %[[HEAD]], %c4294967295 : index
// CHECK-COUNT-3: arith.ceildivui
// CHECK: %[[BLOCKS32:.*]] = arith.ceildivui %{{.*}}, %{{.*}} : i32
// CHECK-NEXT: %[[BLOCKS:.*]] = arith.index_castui %[[BLOCKS32]] : i32 to index
// CHECK-NEXT: %[[IDLE:.*]] = arith.cmpi uge, %[[TURN]], %[[BLOCKS]] : index
// CHECK-NEXT: gdn_tile.leave %[[IDLE]]
// CHECK-NEXT: %[[BEHIND:.*]] = arith.addi %[[TURN]], %c1 : index
// CHECK-NEXT: %[[BEHIND32:.*]] = arith.index_castui %[[BEHIND]] : index to i32
// CHECK-NEXT: %[[NUMBER:.*]] = arith.subi %[[BLOCKS32]], %[[BEHIND32]] : i32
// CHECK: %[[LAST:.*]] = arith.index_castui %[[END]] : index to i32
// CHECK: %[[BLOCK:.*]] = arith.select %[[IDLE]], %[[LAST]], %{{.*}} : i32
// CHECK-NEXT: %[[FIRST:.*]] = arith.index_castui %[[BLOCK]] : i32 to index
// CHECK: %[[DONE:.*]] = arith.subi %[[END]], %[[FIRST]] : index
// CHECK: gdn_tile.await_report %progress[%[[N]], %[[FIRST_HEAD]]] count %c2 done %[[DONE]]
// CHECK: scf.for

// 8 to 64 turns, as many as there are blocks, but at most twice those of the mean sequence. The first launch lets the second
// run beside it.
// CHECK-LABEL: func.func @f(
// CHECK: gdn_tile.launch @f_adjoint {{.*}} {gdn_tile.first_of_two}
// CHECK: %[[BLOCKS:.*]] = arith.divui %{{.*}}, %c512 : index
// CHECK-NEXT: %[[SEQUENCES:.*]] = arith.maxui %{{.*}}, %c1 : index
// CHECK-NEXT: %[[TWICE:.*]] = arith.muli %[[BLOCKS]], %c2 : index
// CHECK-NEXT: %[[MEAN:.*]] = arith.ceildivui %[[TWICE]], %[[SEQUENCES]] : index
// CHECK-NEXT: %[[MOST:.*]] = arith.minui %[[BLOCKS]], %[[MEAN]] : index
// CHECK-NEXT: %[[LEAST:.*]] = arith.maxui %[[MOST]], %c8 : index
// CHECK-NEXT: %[[TURNS:.*]] = arith.minui %[[LEAST]], %c64 : index
// CHECK: gdn_tile.launch @f_gradients grid(%{{.*}}, %c1, %c1, %[[TURNS]]) {{.*}} {gdn_tile.beside, gdn_tile.in_turns}
func.func @f(%q: tensor<1x?x1x64xbf16>, %v: tensor<1x?x2x128xbf16>, %b: tensor<1x?x2xf32>, %s: tensor<?x2x128x64xbf16>,
    %cu: tensor<?xi32>) -> (tensor<1x?x1x64xbf16>, tensor<1x?x2x128xbf16>) {
  %a:3 = gdn.stage.adjoint q(%q : tensor<1x?x1x64xbf16>) k(%q : tensor<1x?x1x64xbf16>) v(%v : tensor<1x?x2x128xbf16>)
      beta(%b : tensor<1x?x2xf32>) cu_seqlens(%cu : tensor<?xi32>) d_o(%v : tensor<1x?x2x128xbf16>)
      {chunk_size = 32 : i64, segment_length = 64 : i64, reporting_tiles = 2 : i64}
      -> tensor<1x?x2x128xbf16>, tensor<?x2x128x64xbf16>, tensor<?x2x2xi32>
  %g:3 = gdn.stage.gradients q(%q : tensor<1x?x1x64xbf16>) k(%q : tensor<1x?x1x64xbf16>) v(%v : tensor<1x?x2x128xbf16>)
      beta(%b : tensor<1x?x2xf32>) cu_seqlens(%cu : tensor<?xi32>) d_o(%v : tensor<1x?x2x128xbf16>)
      writes(%v : tensor<1x?x2x128xbf16>) dv(%a#0 : tensor<1x?x2x128xbf16>)
      states(%s : tensor<?x2x128x64xbf16>) d_states(%a#1 : tensor<?x2x128x64xbf16>) progress(%a#2 : tensor<?x2x2xi32>)
      {chunk_size = 64 : i64, segment_length = 64 : i64}
      -> tensor<1x?x1x64xbf16>, tensor<1x?x1x64xbf16>, tensor<1x?x2xf32>
  return %g#0, %a#0 : tensor<1x?x1x64xbf16>, tensor<1x?x2x128xbf16>
}
