// The forward of Gated DeltaNet by hand: a test of the lowering, and a picture of a good kernel.
// RUN: gdn-opt %s --gdn-warp-to-llvm | gdn-translate --gdn-to-ptx | FileCheck %s

// CHECK: .entry forward(
// CHECK: .maxntid 512
// CHECK-DAG: setmaxnreg.dec.sync.aligned.u32 {{ *}}80
// CHECK-DAG: setmaxnreg.dec.sync.aligned.u32 {{ *}}96
// CHECK-DAG: setmaxnreg.inc.sync.aligned.u32 {{ *}}168
// CHECK-DAG: cp.async.bulk.tensor.5d.shared::cta.global
// CHECK-DAG: cp.async.bulk.tensor.5d.global.shared::cta
// CHECK-DAG: wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16
// CHECK-DAG: wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16
// CHECK-DAG: fma.rn.f16x2
// CHECK-NOT: local

// A CTA takes items in turn, a sequence and a value head each; a trip of the roles' loops has 64
// tokens of one, two chunks a, b of 32. The roles run ahead of each other across items: only "move"
// and "state" know where one ends.
//
// With G the sum of the gates since the last restart, in base 2, gam = 2^G, b = beta and S^ the
// transposed state over gam, a chunk is (rows of w, r and O^T: value channels; columns: tokens)
//
//   w = V^T / gam - S^ K^T     r = b (w + w X^T)     O^T = scale gam (S^ Q^T + r P^T)     S^ += r K
//
// with P the lower triangle of Q K^T and X = (I + M)^-1 - I, M the strictly lower one of K K^T b.
// As no gate stands in P and X, the roles "scores" and "solve" run ahead of "state". If G leaves
// the range of exp2, "state" multiplies S^ by gam and G restarts; it begins anew with an item.
//
// Channels, each with a barrier a slot for full and one for empty (depth): in (3): K and Q of chunk
// a, those of chunk b, V; 1 / gam, b, scale gam of each chunk; the factor of a restart, gam at the
// end of the trip. m (2): M^T of each chunk. tile (2): rows of X and P of each chunk. o (2): O.
// K and Q of a chunk share 8 KB blocks, 32 rows each, so that one product of [K; Q] by K^T makes
// both scores.

#fragment = #gdn_warp.fragment
!array = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1]>>
!gates = memref<?x?x?xf32, strided<[?, ?, ?]>>
!tile = tensor<64x32xf32, #gdn_warp.fragment>
!tile16 = tensor<64x32xbf16, #gdn_warp.fragment>
!state = tensor<64x128xf32, #gdn_warp.fragment>
!state16 = tensor<64x128xbf16, #gdn_warp.fragment>
!columns = tensor<32xf32, #gdn_warp.columns>
!lanes = tensor<32xf32, #gdn_warp.lanes>
!k_view = !gdn_warp.view<32x128xbf16, swizzle = 128, stride = 8192>
!kq_view = !gdn_warp.view<64x128xbf16, swizzle = 128>
!v_view = !gdn_warp.view<32x64xbf16, swizzle = 128>
!x_view = !gdn_warp.view<32x32xbf16, swizzle = 128, stride = 4096>
!p_view = !gdn_warp.view<32x32xbf16, swizzle = 128, stride = 4096, column = 64>
!m_view = !gdn_warp.view<32x32xf16, stride = 80>
!vector_view = !gdn_warp.view<32xf32>
!ends_view = !gdn_warp.view<2xf32>
!f16_tile = tensor<64x32xf16, #gdn_warp.fragment>
!mask = tensor<64x32xi1, #gdn_warp.fragment>
!numbers = tensor<64x32xi32, #gdn_warp.fragment>
!rows = tensor<64xf32, #gdn_warp.rows>
!final = memref<?x?x128x128xf32>

gdn_warp.kernel @forward(%q : !array,
    %k : !array,
    %v : !array,
    %g : !gates, %beta : !gates,
    %o : !array,
    %state : !final, %scale : f32) threads(512) shared(210064) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %c384 = arith.constant 384 : index
  %c512 = arith.constant 512 : index
  %c640 = arith.constant 640 : index
  %c768 = arith.constant 768 : index
  %c2560 = arith.constant 2560 : index
  %c4096 = arith.constant 4096 : index
  %c8192 = arith.constant 8192 : index
  %c16384 = arith.constant 16384 : index
  %c20480 = arith.constant 20480 : index
  %c32768 = arith.constant 32768 : index
  %i0 = arith.constant 0 : i32
  %i1 = arith.constant 1 : i32
  %i2 = arith.constant 2 : i32
  %i3 = arith.constant 3 : i32
  %i4 = arith.constant 4 : i32
  %i8 = arith.constant 8 : i32
  %i1024 = arith.constant 1024 : i32
  %i2560 = arith.constant 2560 : i32
  %i4096 = arith.constant 4096 : i32
  %i5120 = arith.constant 5120 : i32
  %i8192 = arith.constant 8192 : i32
  %i16384 = arith.constant 16384 : i32
  %i49152 = arith.constant 49152 : i32
  %i147456 = arith.constant 147456 : i32
  %i180224 = arith.constant 180224 : i32
  %i196608 = arith.constant 196608 : i32
  %i206848 = arith.constant 206848 : i32
  %i209920 = arith.constant 209920 : i32
  %i209944 = arith.constant 209944 : i32
  %i209968 = arith.constant 209968 : i32
  %i209984 = arith.constant 209984 : i32
  %i210000 = arith.constant 210000 : i32
  %i210016 = arith.constant 210016 : i32
  %i210032 = arith.constant 210032 : i32
  %i210048 = arith.constant 210048 : i32
  %c63 = arith.constant 63 : index
  %cta_index = gdn_warp.id cta
  %ctas_index = gdn_warp.id cta_count
  %cta = arith.index_cast %cta_index : index to i32
  %ctas = arith.index_cast %ctas_index : index to i32
  %thread = gdn_warp.id thread
  %lane = gdn_warp.id lane
  %warp = gdn_warp.id warp
  %lane0 = arith.cmpi eq, %lane, %c0 : index
  %first_thread = arith.cmpi eq, %thread, %c0 : index
  %tokens = memref.dim %v, %c1 : !array
  %heads_index = memref.dim %v, %c2 : !array
  %heads_q_index = memref.dim %q, %c2 : !array
  %heads = arith.index_cast %heads_index : index to i32
  %heads_q = arith.index_cast %heads_q_index : index to i32
  %share = arith.divui %heads, %heads_q : i32
  %tokens_up = arith.addi %tokens, %c63 : index
  %trips_index = arith.divui %tokens_up, %c64 : index
  %trips = arith.index_cast %trips_index : index to i32
  %sequences_index = memref.dim %v, %c0 : !array
  %sequences = arith.index_cast %sequences_index : index to i32
  %items = arith.muli %sequences, %heads : i32
  %left = arith.subi %items, %cta : i32
  %round_up = arith.addi %left, %ctas : i32
  %after_last = arith.subi %round_up, %i1 : i32
  %mine = arith.divui %after_last, %ctas : i32
  %total = arith.muli %mine, %trips : i32
  scf.if %first_thread {
    %full0_at = arith.constant 209920 : index
    %full0 = gdn_warp.barrier %full0_at
    gdn_warp.barrier_init %full0, 2
    %full1_at = arith.constant 209928 : index
    %full1 = gdn_warp.barrier %full1_at
    gdn_warp.barrier_init %full1, 2
    %full2_at = arith.constant 209936 : index
    %full2 = gdn_warp.barrier %full2_at
    gdn_warp.barrier_init %full2, 2
    %empty0_at = arith.constant 209944 : index
    %empty0 = gdn_warp.barrier %empty0_at
    gdn_warp.barrier_init %empty0, 12
    %empty1_at = arith.constant 209952 : index
    %empty1 = gdn_warp.barrier %empty1_at
    gdn_warp.barrier_init %empty1, 12
    %empty2_at = arith.constant 209960 : index
    %empty2 = gdn_warp.barrier %empty2_at
    gdn_warp.barrier_init %empty2, 12
    %tile_full0_at = arith.constant 209968 : index
    %tile_full0 = gdn_warp.barrier %tile_full0_at
    gdn_warp.barrier_init %tile_full0, 6
    %tile_full1_at = arith.constant 209976 : index
    %tile_full1 = gdn_warp.barrier %tile_full1_at
    gdn_warp.barrier_init %tile_full1, 6
    %tile_empty0_at = arith.constant 209984 : index
    %tile_empty0 = gdn_warp.barrier %tile_empty0_at
    gdn_warp.barrier_init %tile_empty0, 8
    %tile_empty1_at = arith.constant 209992 : index
    %tile_empty1 = gdn_warp.barrier %tile_empty1_at
    gdn_warp.barrier_init %tile_empty1, 8
    %m_full0_at = arith.constant 210000 : index
    %m_full0 = gdn_warp.barrier %m_full0_at
    gdn_warp.barrier_init %m_full0, 4
    %m_full1_at = arith.constant 210008 : index
    %m_full1 = gdn_warp.barrier %m_full1_at
    gdn_warp.barrier_init %m_full1, 4
    %m_empty0_at = arith.constant 210016 : index
    %m_empty0 = gdn_warp.barrier %m_empty0_at
    gdn_warp.barrier_init %m_empty0, 2
    %m_empty1_at = arith.constant 210024 : index
    %m_empty1 = gdn_warp.barrier %m_empty1_at
    gdn_warp.barrier_init %m_empty1, 2
    %o_full0_at = arith.constant 210032 : index
    %o_full0 = gdn_warp.barrier %o_full0_at
    gdn_warp.barrier_init %o_full0, 8
    %o_full1_at = arith.constant 210040 : index
    %o_full1 = gdn_warp.barrier %o_full1_at
    gdn_warp.barrier_init %o_full1, 8
    %o_empty0_at = arith.constant 210048 : index
    %o_empty0 = gdn_warp.barrier %o_empty0_at
    gdn_warp.barrier_init %o_empty0, 1
    %o_empty1_at = arith.constant 210056 : index
    %o_empty1 = gdn_warp.barrier %o_empty1_at
    gdn_warp.barrier_init %o_empty1, 1
    gdn_warp.fence barrier_init
  }
  gdn_warp.sync cta
  // K K^T and Q K^T of both chunks --> M^T, P.
  gdn_warp.role "scores" warps(0, 4) registers(80) {
    %row = gdn_warp.iota 0 : !numbers
    %column = gdn_warp.iota 1 : !numbers
    %shift = arith.constant dense<32> : !numbers
    %row_q = arith.subi %row, %shift : !numbers
    %above = arith.cmpi sgt, %column, %row : !numbers
    %causal = arith.cmpi sle, %column, %row_q : !numbers
    %zero = arith.constant dense<0.0> : !tile
    %none = tensor.empty() : !tile
    scf.for %i = %i0 to %total step %i1 iter_args(%slot = %i0, %phase = %i0, %pair = %i0,
        %pair_phase = %i0)
        -> (i32, i32, i32, i32) : i32 {
      %full_at_off = arith.muli %slot, %i8 : i32
      %full_at_i32 = arith.addi %full_at_off, %i209920 : i32
      %full_at = arith.index_cast %full_at_i32 : i32 to index
      %full = gdn_warp.barrier %full_at
      %empty_at_off = arith.muli %slot, %i8 : i32
      %empty_at_i32 = arith.addi %empty_at_off, %i209944 : i32
      %empty_at = arith.index_cast %empty_at_i32 : i32 to index
      %empty = gdn_warp.barrier %empty_at
      %tile_full_at_off = arith.muli %pair, %i8 : i32
      %tile_full_at_i32 = arith.addi %tile_full_at_off, %i209968 : i32
      %tile_full_at = arith.index_cast %tile_full_at_i32 : i32 to index
      %tile_full = gdn_warp.barrier %tile_full_at
      %tile_empty_at_off = arith.muli %pair, %i8 : i32
      %tile_empty_at_i32 = arith.addi %tile_empty_at_off, %i209984 : i32
      %tile_empty_at = arith.index_cast %tile_empty_at_i32 : i32 to index
      %tile_empty = gdn_warp.barrier %tile_empty_at
      %m_full_at_off = arith.muli %pair, %i8 : i32
      %m_full_at_i32 = arith.addi %m_full_at_off, %i210000 : i32
      %m_full_at = arith.index_cast %m_full_at_i32 : i32 to index
      %m_full = gdn_warp.barrier %m_full_at
      %m_empty_at_off = arith.muli %pair, %i8 : i32
      %m_empty_at_i32 = arith.addi %m_empty_at_off, %i210016 : i32
      %m_empty_at = arith.index_cast %m_empty_at_i32 : i32 to index
      %m_empty = gdn_warp.barrier %m_empty_at
      %free = arith.xori %pair_phase, %i1 : i32
      %a_at_off = arith.muli %slot, %i49152 : i32
      %a_at_i32 = arith.addi %a_at_off, %i0 : i32
      %a_at = arith.index_cast %a_at_i32 : i32 to index
      %b_at = arith.addi %a_at, %c16384 : index
      %vectors_at_off = arith.muli %slot, %i1024 : i32
      %vectors_at_i32 = arith.addi %vectors_at_off, %i206848 : i32
      %vectors_at = arith.index_cast %vectors_at_i32 : i32 to index
      %beta_a_at = arith.addi %vectors_at, %c128 : index
      %beta_b_at = arith.addi %vectors_at, %c512 : index
      %m_a_at_off = arith.muli %pair, %i5120 : i32
      %m_a_at_i32 = arith.addi %m_a_at_off, %i196608 : i32
      %m_a_at = arith.index_cast %m_a_at_i32 : i32 to index
      %m_b_at = arith.addi %m_a_at, %c2560 : index
      %t_a_at_off = arith.muli %pair, %i8192 : i32
      %t_a_at_i32 = arith.addi %t_a_at_off, %i180224 : i32
      %t_a_at = arith.index_cast %t_a_at_i32 : i32 to index
      %t_b_at = arith.addi %t_a_at, %c4096 : index
      %kq_a = gdn_warp.view %a_at : !kq_view
      %k_a = gdn_warp.view %a_at : !k_view
      %beta_av = gdn_warp.view %beta_a_at : !vector_view
      %m_av = gdn_warp.view %m_a_at : !m_view
      %t_av = gdn_warp.view %t_a_at : !v_view
      %p_av = gdn_warp.slice %t_av[0, 32] : !v_view -> !p_view
      %kq_b = gdn_warp.view %b_at : !kq_view
      %k_b = gdn_warp.view %b_at : !k_view
      %beta_bv = gdn_warp.view %beta_b_at : !vector_view
      %m_bv = gdn_warp.view %m_b_at : !m_view
      %t_bv = gdn_warp.view %t_b_at : !v_view
      %p_bv = gdn_warp.slice %t_bv[0, 32] : !v_view -> !p_view
      gdn_warp.barrier_wait %full, %phase
      gdn_warp.wgmma_fence
      %s_a0 = gdn_warp.wgmma %kq_a, %k_a transpose_b : !kq_view, !k_view -> !tile
      %s_b0 = gdn_warp.wgmma %kq_b, %k_b transpose_b : !kq_view, !k_view -> !tile
      gdn_warp.wgmma_commit
      %beta_a = gdn_warp.vector_load %beta_av : !vector_view -> !rows
      %betas_a = linalg.broadcast ins(%beta_a : !rows) outs(%none : !tile) dimensions = [1]
      %beta_b = gdn_warp.vector_load %beta_bv : !vector_view -> !rows
      %betas_b = linalg.broadcast ins(%beta_b : !rows) outs(%none : !tile) dimensions = [1]
      %s_a, %s_b = gdn_warp.wgmma_wait 0 of %s_a0, %s_b0 : !tile, !tile
      gdn_warp.sync warp
      scf.if %lane0 {
        gdn_warp.barrier_arrive %empty
      }
      gdn_warp.barrier_wait %m_empty, %free
      %mb_a = arith.mulf %s_a, %betas_a : !tile
      %mz_a = arith.select %above, %mb_a, %zero : !mask, !tile
      %m_a = arith.truncf %mz_a : !tile to !f16_tile
      gdn_warp.fragment_store %m_a, %m_av rows [0, 32] : !f16_tile -> !m_view
      %mb_b = arith.mulf %s_b, %betas_b : !tile
      %mz_b = arith.select %above, %mb_b, %zero : !mask, !tile
      %m_b = arith.truncf %mz_b : !tile to !f16_tile
      gdn_warp.fragment_store %m_b, %m_bv rows [0, 32] : !f16_tile -> !m_view
      gdn_warp.sync warp
      scf.if %lane0 {
        gdn_warp.barrier_arrive %m_full
      }
      %pz_a = arith.select %causal, %s_a, %zero : !mask, !tile
      %p_a = arith.truncf %pz_a : !tile to !tile16
      %pz_b = arith.select %causal, %s_b, %zero : !mask, !tile
      %p_b = arith.truncf %pz_b : !tile to !tile16
      gdn_warp.barrier_wait %tile_empty, %free
      gdn_warp.fragment_store %p_a, %p_av rows [32, 64] : !tile16 -> !p_view
      gdn_warp.fragment_store %p_b, %p_bv rows [32, 64] : !tile16 -> !p_view
      gdn_warp.fence async
      gdn_warp.sync warp
      scf.if %lane0 {
        gdn_warp.barrier_arrive %tile_full
      }
      %slot_up = arith.addi %slot, %i1 : i32
      %slot_wrap = arith.cmpi eq, %slot_up, %i3 : i32
      %slot_next = arith.select %slot_wrap, %i0, %slot_up : i32
      %phase_flip = arith.xori %phase, %i1 : i32
      %phase_next = arith.select %slot_wrap, %phase_flip, %phase : i32
      %pair_up = arith.addi %pair, %i1 : i32
      %pair_wrap = arith.cmpi eq, %pair_up, %i2 : i32
      %pair_next = arith.select %pair_wrap, %i0, %pair_up : i32
      %pair_phase_flip = arith.xori %pair_phase, %i1 : i32
      %pair_phase_next = arith.select %pair_wrap, %pair_phase_flip, %pair_phase : i32
      scf.yield %slot_next, %phase_next, %pair_next, %pair_phase_next : i32, i32, i32, i32
    }
  }
  // M --> X: each warp every third chunk, %t of 2 trips.
  gdn_warp.role "solve" warps(4, 3) registers(96) {
    %warp_i32 = arith.index_cast %warp : index to i32
    %first = arith.subi %warp_i32, %i4 : i32
    %chunks = arith.muli %total, %i2 : i32
    scf.for %t = %first to %chunks step %i3 : i32 {
      %trip = arith.shrui %t, %i1 : i32
      %half = arith.andi %t, %i1 : i32
      %pair = arith.andi %trip, %i1 : i32
      %use = arith.shrui %trip, %i1 : i32
      %phase = arith.andi %use, %i1 : i32
      %free = arith.xori %phase, %i1 : i32
      %tile_full_at_off = arith.muli %pair, %i8 : i32
      %tile_full_at_i32 = arith.addi %tile_full_at_off, %i209968 : i32
      %tile_full_at = arith.index_cast %tile_full_at_i32 : i32 to index
      %tile_full = gdn_warp.barrier %tile_full_at
      %tile_empty_at_off = arith.muli %pair, %i8 : i32
      %tile_empty_at_i32 = arith.addi %tile_empty_at_off, %i209984 : i32
      %tile_empty_at = arith.index_cast %tile_empty_at_i32 : i32 to index
      %tile_empty = gdn_warp.barrier %tile_empty_at
      %m_full_at_off = arith.muli %pair, %i8 : i32
      %m_full_at_i32 = arith.addi %m_full_at_off, %i210000 : i32
      %m_full_at = arith.index_cast %m_full_at_i32 : i32 to index
      %m_full = gdn_warp.barrier %m_full_at
      %m_empty_at_off = arith.muli %pair, %i8 : i32
      %m_empty_at_i32 = arith.addi %m_empty_at_off, %i210016 : i32
      %m_empty_at = arith.index_cast %m_empty_at_i32 : i32 to index
      %m_empty = gdn_warp.barrier %m_empty_at
      %m_pair = arith.muli %pair, %i5120 : i32
      %m_half = arith.muli %half, %i2560 : i32
      %m_off = arith.addi %m_pair, %m_half : i32
      %m_i32 = arith.addi %m_off, %i196608 : i32
      %m_at = arith.index_cast %m_i32 : i32 to index
      %x_pair = arith.muli %pair, %i8192 : i32
      %x_half = arith.muli %half, %i4096 : i32
      %x_off = arith.addi %x_pair, %x_half : i32
      %x_i32 = arith.addi %x_off, %i180224 : i32
      %x_at = arith.index_cast %x_i32 : i32 to index
      %m = gdn_warp.view %m_at : !m_view
      %x = gdn_warp.view %x_at : !x_view
      gdn_warp.barrier_wait %m_full, %phase
      gdn_warp.barrier_wait %tile_empty, %free
      gdn_warp.tri_inverse %m, %x : !m_view, !x_view
      gdn_warp.fence async
      gdn_warp.sync warp
      scf.if %lane0 {
        gdn_warp.barrier_arrive %m_empty
        gdn_warp.barrier_arrive %tile_full
      }
    }
  }
  // All copies, and the gates: the loop carries those of the next four trips. Three cursors, of an
  // item and a trip, say where it loads gates, loads tiles and stores.
  gdn_warp.role "move" warps(7, 1) registers(96) {
    %log2e = arith.constant dense<1.44269504> : !lanes
    %floor = arith.constant -24.0 : f32
    %f0 = arith.constant 0.0 : f32
    %f1 = arith.constant 1.0 : f32
    %c31 = arith.constant 31 : index
    %scales = tensor.splat %scale : !lanes
    %n0 = arith.divui %cta, %heads : i32
    %h0 = arith.remui %cta, %heads : i32
    %p0_item = arith.addi %cta, %i0 : i32
    %p0_trip = arith.addi %i0, %i0 : i32
    %p0_n = arith.addi %n0, %i0 : i32
    %p0_h = arith.addi %h0, %i0 : i32
    %p0_batch = arith.index_cast %p0_n : i32 to index
    %p0_head = arith.index_cast %p0_h : i32 to index
    %p0_trip_index = arith.index_cast %p0_trip : i32 to index
    %p0_t = arith.muli %p0_trip_index, %c64 : index
    %p0_valid = arith.cmpi slt, %p0_item, %items : i32
    %p0_end = arith.select %p0_valid, %tokens, %c0 : index
    %p0_tb = arith.addi %p0_t, %c32 : index
    %g_a0 = gdn_warp.array_load %g[%p0_batch, %p0_t, %p0_head] axes [1] until(%p0_end, dim = 1)
        : !gates -> !lanes
    %g_b0 = gdn_warp.array_load %g[%p0_batch, %p0_tb, %p0_head] axes [1] until(%p0_end, dim = 1)
        : !gates -> !lanes
    %beta_a0 = gdn_warp.array_load %beta[%p0_batch, %p0_t, %p0_head] axes [1] until(%p0_end,
        dim = 1)
        : !gates -> !lanes
    %beta_b0 = gdn_warp.array_load %beta[%p0_batch, %p0_tb, %p0_head] axes [1] until(%p0_end,
        dim = 1)
        : !gates -> !lanes
    %p0_up = arith.addi %p0_trip, %i1 : i32
    %p0_wrap = arith.cmpi eq, %p0_up, %trips : i32
    %p0_next:4 = scf.if %p0_wrap -> (i32, i32, i32, i32) {
      %p0_item_up = arith.addi %p0_item, %ctas : i32
      %p0_n_up = arith.divui %p0_item_up, %heads : i32
      %p0_h_up = arith.remui %p0_item_up, %heads : i32
      scf.yield %p0_item_up, %i0, %p0_n_up, %p0_h_up : i32, i32, i32, i32
    } else {
      scf.yield %p0_item, %p0_up, %p0_n, %p0_h : i32, i32, i32, i32
    }
    %p1_item = arith.addi %p0_next#0, %i0 : i32
    %p1_trip = arith.addi %p0_next#1, %i0 : i32
    %p1_n = arith.addi %p0_next#2, %i0 : i32
    %p1_h = arith.addi %p0_next#3, %i0 : i32
    %p1_batch = arith.index_cast %p1_n : i32 to index
    %p1_head = arith.index_cast %p1_h : i32 to index
    %p1_trip_index = arith.index_cast %p1_trip : i32 to index
    %p1_t = arith.muli %p1_trip_index, %c64 : index
    %p1_valid = arith.cmpi slt, %p1_item, %items : i32
    %p1_end = arith.select %p1_valid, %tokens, %c0 : index
    %p1_tb = arith.addi %p1_t, %c32 : index
    %g_a1 = gdn_warp.array_load %g[%p1_batch, %p1_t, %p1_head] axes [1] until(%p1_end, dim = 1)
        : !gates -> !lanes
    %g_b1 = gdn_warp.array_load %g[%p1_batch, %p1_tb, %p1_head] axes [1] until(%p1_end, dim = 1)
        : !gates -> !lanes
    %beta_a1 = gdn_warp.array_load %beta[%p1_batch, %p1_t, %p1_head] axes [1] until(%p1_end,
        dim = 1)
        : !gates -> !lanes
    %beta_b1 = gdn_warp.array_load %beta[%p1_batch, %p1_tb, %p1_head] axes [1] until(%p1_end,
        dim = 1)
        : !gates -> !lanes
    %p1_up = arith.addi %p1_trip, %i1 : i32
    %p1_wrap = arith.cmpi eq, %p1_up, %trips : i32
    %p1_next:4 = scf.if %p1_wrap -> (i32, i32, i32, i32) {
      %p1_item_up = arith.addi %p1_item, %ctas : i32
      %p1_n_up = arith.divui %p1_item_up, %heads : i32
      %p1_h_up = arith.remui %p1_item_up, %heads : i32
      scf.yield %p1_item_up, %i0, %p1_n_up, %p1_h_up : i32, i32, i32, i32
    } else {
      scf.yield %p1_item, %p1_up, %p1_n, %p1_h : i32, i32, i32, i32
    }
    %p2_item = arith.addi %p1_next#0, %i0 : i32
    %p2_trip = arith.addi %p1_next#1, %i0 : i32
    %p2_n = arith.addi %p1_next#2, %i0 : i32
    %p2_h = arith.addi %p1_next#3, %i0 : i32
    %p2_batch = arith.index_cast %p2_n : i32 to index
    %p2_head = arith.index_cast %p2_h : i32 to index
    %p2_trip_index = arith.index_cast %p2_trip : i32 to index
    %p2_t = arith.muli %p2_trip_index, %c64 : index
    %p2_valid = arith.cmpi slt, %p2_item, %items : i32
    %p2_end = arith.select %p2_valid, %tokens, %c0 : index
    %p2_tb = arith.addi %p2_t, %c32 : index
    %g_a2 = gdn_warp.array_load %g[%p2_batch, %p2_t, %p2_head] axes [1] until(%p2_end, dim = 1)
        : !gates -> !lanes
    %g_b2 = gdn_warp.array_load %g[%p2_batch, %p2_tb, %p2_head] axes [1] until(%p2_end, dim = 1)
        : !gates -> !lanes
    %beta_a2 = gdn_warp.array_load %beta[%p2_batch, %p2_t, %p2_head] axes [1] until(%p2_end,
        dim = 1)
        : !gates -> !lanes
    %beta_b2 = gdn_warp.array_load %beta[%p2_batch, %p2_tb, %p2_head] axes [1] until(%p2_end,
        dim = 1)
        : !gates -> !lanes
    %p2_up = arith.addi %p2_trip, %i1 : i32
    %p2_wrap = arith.cmpi eq, %p2_up, %trips : i32
    %p2_next:4 = scf.if %p2_wrap -> (i32, i32, i32, i32) {
      %p2_item_up = arith.addi %p2_item, %ctas : i32
      %p2_n_up = arith.divui %p2_item_up, %heads : i32
      %p2_h_up = arith.remui %p2_item_up, %heads : i32
      scf.yield %p2_item_up, %i0, %p2_n_up, %p2_h_up : i32, i32, i32, i32
    } else {
      scf.yield %p2_item, %p2_up, %p2_n, %p2_h : i32, i32, i32, i32
    }
    %p3_item = arith.addi %p2_next#0, %i0 : i32
    %p3_trip = arith.addi %p2_next#1, %i0 : i32
    %p3_n = arith.addi %p2_next#2, %i0 : i32
    %p3_h = arith.addi %p2_next#3, %i0 : i32
    %p3_batch = arith.index_cast %p3_n : i32 to index
    %p3_head = arith.index_cast %p3_h : i32 to index
    %p3_trip_index = arith.index_cast %p3_trip : i32 to index
    %p3_t = arith.muli %p3_trip_index, %c64 : index
    %p3_valid = arith.cmpi slt, %p3_item, %items : i32
    %p3_end = arith.select %p3_valid, %tokens, %c0 : index
    %p3_tb = arith.addi %p3_t, %c32 : index
    %g_a3 = gdn_warp.array_load %g[%p3_batch, %p3_t, %p3_head] axes [1] until(%p3_end, dim = 1)
        : !gates -> !lanes
    %g_b3 = gdn_warp.array_load %g[%p3_batch, %p3_tb, %p3_head] axes [1] until(%p3_end, dim = 1)
        : !gates -> !lanes
    %beta_a3 = gdn_warp.array_load %beta[%p3_batch, %p3_t, %p3_head] axes [1] until(%p3_end,
        dim = 1)
        : !gates -> !lanes
    %beta_b3 = gdn_warp.array_load %beta[%p3_batch, %p3_tb, %p3_head] axes [1] until(%p3_end,
        dim = 1)
        : !gates -> !lanes
    %p3_up = arith.addi %p3_trip, %i1 : i32
    %p3_wrap = arith.cmpi eq, %p3_up, %trips : i32
    %p3_next:4 = scf.if %p3_wrap -> (i32, i32, i32, i32) {
      %p3_item_up = arith.addi %p3_item, %ctas : i32
      %p3_n_up = arith.divui %p3_item_up, %heads : i32
      %p3_h_up = arith.remui %p3_item_up, %heads : i32
      scf.yield %p3_item_up, %i0, %p3_n_up, %p3_h_up : i32, i32, i32, i32
    } else {
      scf.yield %p3_item, %p3_up, %p3_n, %p3_h : i32, i32, i32, i32
    }
    %steps = arith.addi %total, %i3 : i32
    scf.for %i = %i0 to %steps step %i1 iter_args(%slot = %i0, %phase = %i0, %pair = %i0,
        %pair_phase = %i0, %decay_before = %f0,
        %g_item = %p3_next#0, %g_trip = %p3_next#1, %g_n = %p3_next#2, %g_h = %p3_next#3,
        %l_item = %cta, %l_trip = %i0, %l_n = %n0, %l_h = %h0,
        %s_item = %cta, %s_trip = %i0, %s_n = %n0, %s_h = %h0,
        %g_a0_ = %g_a0, %g_b0_ = %g_b0, %beta_a0_ = %beta_a0, %beta_b0_ = %beta_b0,
        %g_a1_ = %g_a1, %g_b1_ = %g_b1, %beta_a1_ = %beta_a1, %beta_b1_ = %beta_b1,
        %g_a2_ = %g_a2, %g_b2_ = %g_b2, %beta_a2_ = %beta_a2, %beta_b2_ = %beta_b2,
        %g_a3_ = %g_a3, %g_b3_ = %g_b3, %beta_a3_ = %beta_a3, %beta_b3_ = %beta_b3)
        -> (i32, i32, i32, i32, f32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32,
            !lanes, !lanes, !lanes, !lanes, !lanes, !lanes, !lanes, !lanes, !lanes, !lanes,
            !lanes, !lanes, !lanes, !lanes, !lanes, !lanes) : i32 {
      %l_batch = arith.index_cast %l_n : i32 to index
      %l_head = arith.index_cast %l_h : i32 to index
      %l_trip_index = arith.index_cast %l_trip : i32 to index
      %l_t = arith.muli %l_trip_index, %c64 : index
      %hq_i32 = arith.divui %l_h, %share : i32
      %hq = arith.index_cast %hq_i32 : i32 to index
      %tb = arith.addi %l_t, %c32 : index
      %full_at_off = arith.muli %slot, %i8 : i32
      %full_at_i32 = arith.addi %full_at_off, %i209920 : i32
      %full_at = arith.index_cast %full_at_i32 : i32 to index
      %full = gdn_warp.barrier %full_at
      %empty_at_off = arith.muli %slot, %i8 : i32
      %empty_at_i32 = arith.addi %empty_at_off, %i209944 : i32
      %empty_at = arith.index_cast %empty_at_i32 : i32 to index
      %empty = gdn_warp.barrier %empty_at
      %free = arith.xori %phase, %i1 : i32
      %ka_at_off = arith.muli %slot, %i49152 : i32
      %ka_at_i32 = arith.addi %ka_at_off, %i0 : i32
      %ka_at = arith.index_cast %ka_at_i32 : i32 to index
      %qa_at = arith.addi %ka_at, %c4096 : index
      %kb_at = arith.addi %ka_at, %c16384 : index
      %qb_at = arith.addi %ka_at, %c20480 : index
      %v_at = arith.addi %ka_at, %c32768 : index
      %ka = gdn_warp.view %ka_at : !k_view
      %qa = gdn_warp.view %qa_at : !k_view
      %kb = gdn_warp.view %kb_at : !k_view
      %qb = gdn_warp.view %qb_at : !k_view
      %vt = gdn_warp.view %v_at : !kq_view
      %inv_a_at_off = arith.muli %slot, %i1024 : i32
      %inv_a_at_i32 = arith.addi %inv_a_at_off, %i206848 : i32
      %inv_a_at = arith.index_cast %inv_a_at_i32 : i32 to index
      %beta_a_at = arith.addi %inv_a_at, %c128 : index
      %gam_a_at = arith.addi %inv_a_at, %c256 : index
      %inv_b_at = arith.addi %inv_a_at, %c384 : index
      %beta_b_at = arith.addi %inv_a_at, %c512 : index
      %gam_b_at = arith.addi %inv_a_at, %c640 : index
      %ends_at = arith.addi %inv_a_at, %c768 : index
      %inv_av = gdn_warp.view %inv_a_at : !vector_view
      %inv_bv = gdn_warp.view %inv_b_at : !vector_view
      %beta_av = gdn_warp.view %beta_a_at : !vector_view
      %beta_bv = gdn_warp.view %beta_b_at : !vector_view
      %gam_av = gdn_warp.view %gam_a_at : !vector_view
      %gam_bv = gdn_warp.view %gam_b_at : !vector_view
      %ends = gdn_warp.view %ends_at : !ends_view
      %loads = arith.cmpi slt, %i, %total : i32
      scf.if %loads {
        gdn_warp.barrier_wait %empty, %free
        scf.if %lane0 {
          gdn_warp.barrier_expect %full, 49152
          gdn_warp.bulk_tensor_load %k[%l_batch, %l_t, %hq, %c0] axes [1, 3], %ka signal %full
              : !array -> !k_view
          gdn_warp.bulk_tensor_load %q[%l_batch, %l_t, %hq, %c0] axes [1, 3], %qa signal %full
              : !array -> !k_view
          gdn_warp.bulk_tensor_load %k[%l_batch, %tb, %hq, %c0] axes [1, 3], %kb signal %full
              : !array -> !k_view
          gdn_warp.bulk_tensor_load %q[%l_batch, %tb, %hq, %c0] axes [1, 3], %qb signal %full
              : !array -> !k_view
          gdn_warp.bulk_tensor_load %v[%l_batch, %l_t, %l_head, %c0] axes [1, 3], %vt signal %full
              : !array -> !kq_view
        }
      }
      // Cumulated gate since the last restart, in base 2; it restarts where it leaves the range.
      %begins = arith.cmpi eq, %l_trip, %i0 : i32
      %decay = arith.select %begins, %f0, %decay_before : f32
      %low = arith.cmpf olt, %decay, %floor : f32
      %all = math.exp2 %decay : f32
      %rescale = arith.select %low, %all, %f1 : f32
      %base = arith.select %low, %f0, %decay : f32
      %l_a = arith.mulf %g_a0_, %log2e : !lanes
      %s_a = gdn_tile.scan %l_a axis 0 : !lanes
      %base_a = tensor.splat %base : !lanes
      %c_a = arith.addf %s_a, %base_a : !lanes
      %n_a = arith.negf %c_a : !lanes
      %inv_a = math.exp2 %n_a : !lanes
      %e_a = math.exp2 %c_a : !lanes
      %gam_a = arith.mulf %e_a, %scales : !lanes
      %last_a = tensor.extract %c_a[%c31] : !lanes
      %l_b = arith.mulf %g_b0_, %log2e : !lanes
      %s_b = gdn_tile.scan %l_b axis 0 : !lanes
      %base_b = tensor.splat %last_a : !lanes
      %c_b = arith.addf %s_b, %base_b : !lanes
      %n_b = arith.negf %c_b : !lanes
      %inv_b = math.exp2 %n_b : !lanes
      %e_b = math.exp2 %c_b : !lanes
      %gam_b = arith.mulf %e_b, %scales : !lanes
      %last_b = tensor.extract %c_b[%c31] : !lanes
      %end = math.exp2 %last_b : f32
      %g_batch = arith.index_cast %g_n : i32 to index
      %g_head = arith.index_cast %g_h : i32 to index
      %g_trip_index = arith.index_cast %g_trip : i32 to index
      %g_t = arith.muli %g_trip_index, %c64 : index
      %g_valid = arith.cmpi slt, %g_item, %items : i32
      %g_end = arith.select %g_valid, %tokens, %c0 : index
      %g_tb = arith.addi %g_t, %c32 : index
      %g_a_new = gdn_warp.array_load %g[%g_batch, %g_t, %g_head] axes [1] until(%g_end, dim = 1)
          : !gates -> !lanes
      %g_b_new = gdn_warp.array_load %g[%g_batch, %g_tb, %g_head] axes [1] until(%g_end, dim = 1)
          : !gates -> !lanes
      %beta_a_new = gdn_warp.array_load %beta[%g_batch, %g_t, %g_head] axes [1] until(%g_end,
          dim = 1)
          : !gates -> !lanes
      %beta_b_new = gdn_warp.array_load %beta[%g_batch, %g_tb, %g_head] axes [1] until(%g_end,
          dim = 1)
          : !gates -> !lanes
      scf.if %loads {
        gdn_warp.vector_store %inv_a, %inv_av : !lanes -> !vector_view
        gdn_warp.vector_store %inv_b, %inv_bv : !lanes -> !vector_view
        gdn_warp.vector_store %beta_a0_, %beta_av : !lanes -> !vector_view
        gdn_warp.vector_store %beta_b0_, %beta_bv : !lanes -> !vector_view
        gdn_warp.vector_store %gam_a, %gam_av : !lanes -> !vector_view
        gdn_warp.vector_store %gam_b, %gam_bv : !lanes -> !vector_view
        scf.if %lane0 {
          gdn_warp.store %rescale, %ends[%c0] : f32 -> !ends_view
          gdn_warp.store %end, %ends[%c1] : f32 -> !ends_view
        }
        gdn_warp.sync warp
        scf.if %lane0 {
          gdn_warp.barrier_arrive %full
        }
      }
      // The output of 3 trips ago goes out; its slot is free once it was read.
      %stores = arith.cmpi sge, %i, %i3 : i32
      %s_next:6 = scf.if %stores -> (i32, i32, i32, i32, i32, i32) {
        %s_batch = arith.index_cast %s_n : i32 to index
        %s_head = arith.index_cast %s_h : i32 to index
        %s_trip_index = arith.index_cast %s_trip : i32 to index
        %s_t = arith.muli %s_trip_index, %c64 : index
        %o_full_at_off = arith.muli %pair, %i8 : i32
        %o_full_at_i32 = arith.addi %o_full_at_off, %i210032 : i32
        %o_full_at = arith.index_cast %o_full_at_i32 : i32 to index
        %o_full = gdn_warp.barrier %o_full_at
        %o_empty_at_off = arith.muli %pair, %i8 : i32
        %o_empty_at_i32 = arith.addi %o_empty_at_off, %i210048 : i32
        %o_empty_at = arith.index_cast %o_empty_at_i32 : i32 to index
        %o_empty = gdn_warp.barrier %o_empty_at
        %o_at_off = arith.muli %pair, %i16384 : i32
        %o_at_i32 = arith.addi %o_at_off, %i147456 : i32
        %o_at = arith.index_cast %o_at_i32 : i32 to index
        %ot = gdn_warp.view %o_at : !kq_view
        gdn_warp.barrier_wait %o_full, %pair_phase
        scf.if %lane0 {
          gdn_warp.bulk_tensor_store %ot, %o[%s_batch, %s_t, %s_head, %c0] axes [1, 3]
              : !kq_view -> !array
          gdn_warp.bulk_commit
          gdn_warp.bulk_wait 0 read
          gdn_warp.barrier_arrive %o_empty
        }
        %pair_up = arith.addi %pair, %i1 : i32
        %pair_wrap = arith.cmpi eq, %pair_up, %i2 : i32
        %pair_next = arith.select %pair_wrap, %i0, %pair_up : i32
        %pair_phase_flip = arith.xori %pair_phase, %i1 : i32
        %pair_phase_next = arith.select %pair_wrap, %pair_phase_flip, %pair_phase : i32
        %s_up = arith.addi %s_trip, %i1 : i32
        %s_wrap = arith.cmpi eq, %s_up, %trips : i32
        %s_after:4 = scf.if %s_wrap -> (i32, i32, i32, i32) {
          %s_item_up = arith.addi %s_item, %ctas : i32
          %s_n_up = arith.divui %s_item_up, %heads : i32
          %s_h_up = arith.remui %s_item_up, %heads : i32
          scf.yield %s_item_up, %i0, %s_n_up, %s_h_up : i32, i32, i32, i32
        } else {
          scf.yield %s_item, %s_up, %s_n, %s_h : i32, i32, i32, i32
        }
        scf.yield %pair_next, %pair_phase_next, %s_after#0, %s_after#1, %s_after#2, %s_after#3
            : i32, i32, i32, i32, i32, i32
      } else {
        scf.yield %pair, %pair_phase, %s_item, %s_trip, %s_n, %s_h : i32, i32, i32, i32, i32, i32
      }
      %g_up = arith.addi %g_trip, %i1 : i32
      %g_wrap = arith.cmpi eq, %g_up, %trips : i32
      %g_next:4 = scf.if %g_wrap -> (i32, i32, i32, i32) {
        %g_item_up = arith.addi %g_item, %ctas : i32
        %g_n_up = arith.divui %g_item_up, %heads : i32
        %g_h_up = arith.remui %g_item_up, %heads : i32
        scf.yield %g_item_up, %i0, %g_n_up, %g_h_up : i32, i32, i32, i32
      } else {
        scf.yield %g_item, %g_up, %g_n, %g_h : i32, i32, i32, i32
      }
      %l_up = arith.addi %l_trip, %i1 : i32
      %l_wrap = arith.cmpi eq, %l_up, %trips : i32
      %l_next:4 = scf.if %l_wrap -> (i32, i32, i32, i32) {
        %l_item_up = arith.addi %l_item, %ctas : i32
        %l_n_up = arith.divui %l_item_up, %heads : i32
        %l_h_up = arith.remui %l_item_up, %heads : i32
        scf.yield %l_item_up, %i0, %l_n_up, %l_h_up : i32, i32, i32, i32
      } else {
        scf.yield %l_item, %l_up, %l_n, %l_h : i32, i32, i32, i32
      }
      %slot_up = arith.addi %slot, %i1 : i32
      %slot_wrap = arith.cmpi eq, %slot_up, %i3 : i32
      %slot_next = arith.select %slot_wrap, %i0, %slot_up : i32
      %phase_flip = arith.xori %phase, %i1 : i32
      %phase_next = arith.select %slot_wrap, %phase_flip, %phase : i32
      scf.yield %slot_next, %phase_next, %s_next#0, %s_next#1, %last_b, %g_next#0, %g_next#1,
          %g_next#2, %g_next#3, %l_next#0, %l_next#1, %l_next#2, %l_next#3, %s_next#2, %s_next#3,
          %s_next#4, %s_next#5, %g_a1_, %g_b1_, %beta_a1_, %beta_b1_, %g_a2_, %g_b2_, %beta_a2_,
          %beta_b2_, %g_a3_, %g_b3_, %beta_a3_, %beta_b3_, %g_a_new, %g_b_new, %beta_a_new,
          %beta_b_new
          : i32, i32, i32, i32, f32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32,
              !lanes, !lanes, !lanes, !lanes, !lanes, !lanes, !lanes, !lanes, !lanes, !lanes,
              !lanes, !lanes, !lanes, !lanes, !lanes, !lanes
    } {gdn_warp.unroll = 4}
    scf.if %lane0 {
      gdn_warp.bulk_wait 0
    }
  }
  // Each warpgroup 64 value channels. Nothing is in flight where a trip ends.
  gdn_warp.role "state" warps(8, 8) registers(168) {
    %group = arith.divui %warp, %c4 : index
    %part = arith.subi %group, %c2 : index
    %part_at = arith.muli %part, %c8192 : index
    %f1 = arith.constant 1.0 : f32
    %none = tensor.empty() : !tile
    %zero = arith.constant dense<0.0> : !state
    scf.for %item = %cta to %items step %ctas iter_args(%slot0 = %i0, %phase0 = %i0, %pair0 = %i0,
        %pair_phase0 = %i0)
        -> (i32, i32, i32, i32) : i32 {
      %n_i32 = arith.divui %item, %heads : i32
      %h_i32 = arith.remui %item, %heads : i32
      %batch = arith.index_cast %n_i32 : i32 to index
      %h = arith.index_cast %h_i32 : i32 to index
      %loop:6 = scf.for %i = %i0 to %trips step %i1
          iter_args(%s = %zero, %gam = %f1, %slot = %slot0, %phase = %phase0, %pair = %pair0,
              %pair_phase = %pair_phase0)
          -> (!state, f32, i32, i32, i32, i32) : i32 {
        %full_at_off = arith.muli %slot, %i8 : i32
        %full_at_i32 = arith.addi %full_at_off, %i209920 : i32
        %full_at = arith.index_cast %full_at_i32 : i32 to index
        %full = gdn_warp.barrier %full_at
        %empty_at_off = arith.muli %slot, %i8 : i32
        %empty_at_i32 = arith.addi %empty_at_off, %i209944 : i32
        %empty_at = arith.index_cast %empty_at_i32 : i32 to index
        %empty = gdn_warp.barrier %empty_at
        %tile_full_at_off = arith.muli %pair, %i8 : i32
        %tile_full_at_i32 = arith.addi %tile_full_at_off, %i209968 : i32
        %tile_full_at = arith.index_cast %tile_full_at_i32 : i32 to index
        %tile_full = gdn_warp.barrier %tile_full_at
        %tile_empty_at_off = arith.muli %pair, %i8 : i32
        %tile_empty_at_i32 = arith.addi %tile_empty_at_off, %i209984 : i32
        %tile_empty_at = arith.index_cast %tile_empty_at_i32 : i32 to index
        %tile_empty = gdn_warp.barrier %tile_empty_at
        %o_full_at_off = arith.muli %pair, %i8 : i32
        %o_full_at_i32 = arith.addi %o_full_at_off, %i210032 : i32
        %o_full_at = arith.index_cast %o_full_at_i32 : i32 to index
        %o_full = gdn_warp.barrier %o_full_at
        %o_empty_at_off = arith.muli %pair, %i8 : i32
        %o_empty_at_i32 = arith.addi %o_empty_at_off, %i210048 : i32
        %o_empty_at = arith.index_cast %o_empty_at_i32 : i32 to index
        %o_empty = gdn_warp.barrier %o_empty_at
        %free = arith.xori %pair_phase, %i1 : i32
        %k_a_at_off = arith.muli %slot, %i49152 : i32
        %k_a_at_i32 = arith.addi %k_a_at_off, %i0 : i32
        %k_a_at = arith.index_cast %k_a_at_i32 : i32 to index
        %q_a_at = arith.addi %k_a_at, %c4096 : index
        %k_b_at = arith.addi %k_a_at, %c16384 : index
        %q_b_at = arith.addi %k_a_at, %c20480 : index
        %v_at = arith.addi %k_a_at, %c32768 : index
        %v_a_at = arith.addi %v_at, %part_at : index
        %v_b_at = arith.addi %v_a_at, %c4096 : index
        %inv_a_at_off = arith.muli %slot, %i1024 : i32
        %inv_a_at_i32 = arith.addi %inv_a_at_off, %i206848 : i32
        %inv_a_at = arith.index_cast %inv_a_at_i32 : i32 to index
        %beta_a_at = arith.addi %inv_a_at, %c128 : index
        %gam_a_at = arith.addi %inv_a_at, %c256 : index
        %inv_b_at = arith.addi %inv_a_at, %c384 : index
        %beta_b_at = arith.addi %inv_a_at, %c512 : index
        %gam_b_at = arith.addi %inv_a_at, %c640 : index
        %ends_at = arith.addi %inv_a_at, %c768 : index
        %t_a_at_off = arith.muli %pair, %i8192 : i32
        %t_a_at_i32 = arith.addi %t_a_at_off, %i180224 : i32
        %t_a_at = arith.index_cast %t_a_at_i32 : i32 to index
        %t_b_at = arith.addi %t_a_at, %c4096 : index
        %o_at_off = arith.muli %pair, %i16384 : i32
        %o_at_i32 = arith.addi %o_at_off, %i147456 : i32
        %o_at = arith.index_cast %o_at_i32 : i32 to index
        %o_a_at = arith.addi %o_at, %part_at : index
        %o_b_at = arith.addi %o_a_at, %c4096 : index
        %ends = gdn_warp.view %ends_at : !ends_view
        %k_av = gdn_warp.view %k_a_at : !k_view
        %q_av = gdn_warp.view %q_a_at : !k_view
        %v_av = gdn_warp.view %v_a_at : !v_view
        %o_av = gdn_warp.view %o_a_at : !v_view
        %t_av = gdn_warp.view %t_a_at : !v_view
        %x_av = gdn_warp.slice %t_av[0, 0] : !v_view -> !x_view
        %p_av = gdn_warp.slice %t_av[0, 32] : !v_view -> !p_view
        %inv_av = gdn_warp.view %inv_a_at : !vector_view
        %beta_av = gdn_warp.view %beta_a_at : !vector_view
        %gam_av = gdn_warp.view %gam_a_at : !vector_view
        %k_bv = gdn_warp.view %k_b_at : !k_view
        %q_bv = gdn_warp.view %q_b_at : !k_view
        %v_bv = gdn_warp.view %v_b_at : !v_view
        %o_bv = gdn_warp.view %o_b_at : !v_view
        %t_bv = gdn_warp.view %t_b_at : !v_view
        %x_bv = gdn_warp.slice %t_bv[0, 0] : !v_view -> !x_view
        %p_bv = gdn_warp.slice %t_bv[0, 32] : !v_view -> !p_view
        %inv_bv = gdn_warp.view %inv_b_at : !vector_view
        %beta_bv = gdn_warp.view %beta_b_at : !vector_view
        %gam_bv = gdn_warp.view %gam_b_at : !vector_view
        gdn_warp.barrier_wait %full, %phase
        %v_a = gdn_warp.fragment_load %v_av transpose : !v_view -> !tile16
        %inv_a = gdn_warp.vector_load %inv_av : !vector_view -> !columns
        %invs_a = linalg.broadcast ins(%inv_a : !columns) outs(%none : !tile) dimensions = [0]
        %f = gdn_warp.load %ends[%c0] : !ends_view -> f32
        %gam_next = gdn_warp.load %ends[%c1] : !ends_view -> f32
        %restarts = arith.cmpf une, %f, %f1 : f32
        %s_a = scf.if %restarts -> (!state) {
          %fs = tensor.splat %f : !state
          %sf = arith.mulf %s, %fs : !state
          scf.yield %sf : !state
        } else {
          scf.yield %s : !state
        }
        %sb_a = arith.truncf %s_a : !state to !state16
        gdn_warp.wgmma_fence
        %u_a0 = gdn_warp.wgmma %sb_a, %k_av transpose_b : !state16, !k_view -> !tile
        gdn_warp.wgmma_commit
        %vw_a = arith.extf %v_a : !tile16 to !tile
        %vg_a = arith.mulf %vw_a, %invs_a : !tile
        %u_a = gdn_warp.wgmma_wait 0 of %u_a0 : !tile
        %w_a = arith.subf %vg_a, %u_a : !tile
        %wb_a = arith.truncf %w_a : !tile to !tile16
        gdn_warp.barrier_wait %tile_full, %pair_phase
        %beta_a = gdn_warp.vector_load %beta_av : !vector_view -> !columns
        %betas_a = linalg.broadcast ins(%beta_a : !columns) outs(%none : !tile) dimensions = [0]
        gdn_warp.wgmma_fence
        %e_a0 = gdn_warp.wgmma %wb_a, %x_av into(%w_a : !tile) : !tile16,
            !x_view -> !tile
        gdn_warp.wgmma_commit
        %o_a0 = gdn_warp.wgmma %sb_a, %q_av transpose_b : !state16, !k_view -> !tile
        gdn_warp.wgmma_commit
        %gam_a = gdn_warp.vector_load %gam_av : !vector_view -> !columns
        %gams_a = linalg.broadcast ins(%gam_a : !columns) outs(%none : !tile) dimensions = [0]
        %e_a = gdn_warp.wgmma_wait 1 of %e_a0 : !tile
        %r_a = arith.mulf %e_a, %betas_a : !tile
        %rb_a = arith.truncf %r_a : !tile to !tile16
        gdn_warp.wgmma_fence
        %o_a1 = gdn_warp.wgmma %rb_a, %p_av transpose_b into(%o_a0 : !tile) : !tile16,
            !p_view -> !tile
        gdn_warp.wgmma_commit
        %s_a1 = gdn_warp.wgmma %rb_a, %k_av into(%s_a : !state) : !tile16, !k_view -> !state
        gdn_warp.wgmma_commit
        gdn_warp.barrier_wait %o_empty, %free
        %o_a2 = gdn_warp.wgmma_wait 1 of %o_a1 : !tile
        %og_a = arith.mulf %o_a2, %gams_a : !tile
        %ob_a = arith.truncf %og_a : !tile to !tile16
        gdn_warp.fragment_store %ob_a, %o_av transpose : !tile16 -> !v_view
        %v_b = gdn_warp.fragment_load %v_bv transpose : !v_view -> !tile16
        %inv_b = gdn_warp.vector_load %inv_bv : !vector_view -> !columns
        %invs_b = linalg.broadcast ins(%inv_b : !columns) outs(%none : !tile) dimensions = [0]
        %s_b = gdn_warp.wgmma_wait 0 of %s_a1 : !state
        %sb_b = arith.truncf %s_b : !state to !state16
        gdn_warp.wgmma_fence
        %u_b0 = gdn_warp.wgmma %sb_b, %k_bv transpose_b : !state16, !k_view -> !tile
        gdn_warp.wgmma_commit
        %vw_b = arith.extf %v_b : !tile16 to !tile
        %vg_b = arith.mulf %vw_b, %invs_b : !tile
        %u_b = gdn_warp.wgmma_wait 0 of %u_b0 : !tile
        %w_b = arith.subf %vg_b, %u_b : !tile
        %wb_b = arith.truncf %w_b : !tile to !tile16
        %beta_b = gdn_warp.vector_load %beta_bv : !vector_view -> !columns
        %betas_b = linalg.broadcast ins(%beta_b : !columns) outs(%none : !tile) dimensions = [0]
        gdn_warp.wgmma_fence
        %e_b0 = gdn_warp.wgmma %wb_b, %x_bv into(%w_b : !tile) : !tile16,
            !x_view -> !tile
        gdn_warp.wgmma_commit
        %o_b0 = gdn_warp.wgmma %sb_b, %q_bv transpose_b : !state16, !k_view -> !tile
        gdn_warp.wgmma_commit
        %gam_b = gdn_warp.vector_load %gam_bv : !vector_view -> !columns
        %gams_b = linalg.broadcast ins(%gam_b : !columns) outs(%none : !tile) dimensions = [0]
        %e_b = gdn_warp.wgmma_wait 1 of %e_b0 : !tile
        %r_b = arith.mulf %e_b, %betas_b : !tile
        %rb_b = arith.truncf %r_b : !tile to !tile16
        gdn_warp.wgmma_fence
        %o_b1 = gdn_warp.wgmma %rb_b, %p_bv transpose_b into(%o_b0 : !tile) : !tile16,
            !p_view -> !tile
        gdn_warp.wgmma_commit
        %s_b1 = gdn_warp.wgmma %rb_b, %k_bv into(%s_b : !state) : !tile16, !k_view -> !state
        gdn_warp.wgmma_commit
        %o_b2 = gdn_warp.wgmma_wait 1 of %o_b1 : !tile
        %og_b = arith.mulf %o_b2, %gams_b : !tile
        %ob_b = arith.truncf %og_b : !tile to !tile16
        gdn_warp.fragment_store %ob_b, %o_bv transpose : !tile16 -> !v_view
        gdn_warp.fence async
        gdn_warp.sync warp
        scf.if %lane0 {
          gdn_warp.barrier_arrive %o_full
        }
        %slot_up = arith.addi %slot, %i1 : i32
        %slot_wrap = arith.cmpi eq, %slot_up, %i3 : i32
        %slot_next = arith.select %slot_wrap, %i0, %slot_up : i32
        %phase_flip = arith.xori %phase, %i1 : i32
        %phase_next = arith.select %slot_wrap, %phase_flip, %phase : i32
        %pair_up = arith.addi %pair, %i1 : i32
        %pair_wrap = arith.cmpi eq, %pair_up, %i2 : i32
        %pair_next = arith.select %pair_wrap, %i0, %pair_up : i32
        %pair_phase_flip = arith.xori %pair_phase, %i1 : i32
        %pair_phase_next = arith.select %pair_wrap, %pair_phase_flip, %pair_phase : i32
        %s_next = gdn_warp.wgmma_wait 0 of %s_b1 : !state
        gdn_warp.sync warp
        scf.if %lane0 {
          gdn_warp.barrier_arrive %empty
          gdn_warp.barrier_arrive %tile_empty
        }
        scf.yield %s_next, %gam_next, %slot_next, %phase_next, %pair_next, %pair_phase_next
            : !state, f32, i32, i32, i32, i32
      }
      %gams = tensor.splat %loop#1 : !state
      %final = arith.mulf %loop#0, %gams : !state
      %v0 = arith.muli %part, %c64 : index
      gdn_warp.array_store %final, %state[%batch, %h, %v0, %c0] axes [2, 3]
          : !state -> !final
      scf.yield %loop#2, %loop#3, %loop#4, %loop#5 : i32, i32, i32, i32
    }
  }
}
