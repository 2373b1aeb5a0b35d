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

// A CTA has a sequence and a value head; a trip of the roles' loops has 64 tokens, two chunks a, b
// of 32. With G the sum of the gates since the last restart, in base 2, gam = 2^G, b = beta and S^
// the transposed state over gam, a chunk is (rows of w, r, O^T: value channels; their columns: tokens)
//
//   w = V^T / gam - S^ K^T      r = b (w + w X^T)      O^T = scale gam (S^ Q^T + r P^T)      S^ += r K
//
// with P the lower triangle of Q K^T and X = (I + M)^-1 - I, M the strictly lower one of K K^T b. As
// no gate stands in P, X and the products, the role "scores" and the role "solve", whose warps take
// the chunks in turn, run ahead of "state". If G leaves the range of exp2, "state" multiplies S^ by
// gam and G restarts.
//
// Channels, each with a barrier a slot for full and one for empty (depth): in (3): K and Q of chunk
// a, those of chunk b, V; 1 / gam, b, scale gam of each chunk; the factor of a restart, gam at the
// end of the trip. m (2): M^T of each chunk. tile (2): rows of X and P of each chunk. o (2): O.
// K and Q of a chunk share 8 KB blocks, 32 rows each, so that one product of [K; Q] by K^T makes
// both scores.

gdn_warp.kernel @forward(%q : memref<?x?x?x128xbf16, strided<[?, ?, ?, 1]>>,
    %k : memref<?x?x?x128xbf16, strided<[?, ?, ?, 1]>>,
    %v : memref<?x?x?x128xbf16, strided<[?, ?, ?, 1]>>,
    %g : memref<?x?x?xf32, strided<[?, ?, ?]>>, %beta : memref<?x?x?xf32, strided<[?, ?, ?]>>,
    %o : memref<?x?x?x128xbf16, strided<[?, ?, ?, 1]>>,
    %state : memref<?x?x128x128xf32>, %scale : f32) threads(512) shared(210064) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c192 = arith.constant 192 : index
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
  %cta = gdn_warp.id cta
  %thread = gdn_warp.id thread
  %lane = gdn_warp.id lane
  %warp = gdn_warp.id warp
  %lane0 = arith.cmpi eq, %lane, %c0 : index
  %first_thread = arith.cmpi eq, %thread, %c0 : index
  %tokens = memref.dim %v, %c1 : memref<?x?x?x128xbf16, strided<[?, ?, ?, 1]>>
  %heads = memref.dim %v, %c2 : memref<?x?x?x128xbf16, strided<[?, ?, ?, 1]>>
  %heads_q = memref.dim %q, %c2 : memref<?x?x?x128xbf16, strided<[?, ?, ?, 1]>>
  %share = arith.divui %heads, %heads_q : index
  %batch = arith.divui %cta, %heads : index
  %h = arith.remui %cta, %heads : index
  %hq = arith.divui %h, %share : index
  %tokens_up = arith.addi %tokens, %c63 : index
  %trips_index = arith.divui %tokens_up, %c64 : index
  %trips = arith.index_cast %trips_index : index to i32
  scf.if %first_thread {
    %full0_at = arith.constant 209920 : index
    %full0 = gdn_warp.barrier %full0_at
    gdn_warp.barrier_init %full0, 1
    %full1_at = arith.constant 209928 : index
    %full1 = gdn_warp.barrier %full1_at
    gdn_warp.barrier_init %full1, 1
    %full2_at = arith.constant 209936 : index
    %full2 = gdn_warp.barrier %full2_at
    gdn_warp.barrier_init %full2, 1
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
    %row = gdn_warp.iota 0 : tensor<64x32xi32, #gdn_warp.fragment>
    %column = gdn_warp.iota 1 : tensor<64x32xi32, #gdn_warp.fragment>
    %shift = arith.constant dense<32> : tensor<64x32xi32, #gdn_warp.fragment>
    %row_q = arith.subi %row, %shift : tensor<64x32xi32, #gdn_warp.fragment>
    %above = arith.cmpi sgt, %column, %row : tensor<64x32xi32, #gdn_warp.fragment>
    %causal = arith.cmpi sle, %column, %row_q : tensor<64x32xi32, #gdn_warp.fragment>
    %zero = arith.constant dense<0.0> : tensor<64x32xf32, #gdn_warp.fragment>
    %none = tensor.empty() : tensor<64x32xf32, #gdn_warp.fragment>
    scf.for %i = %i0 to %trips step %i1 iter_args(%slot = %i0, %phase = %i0, %pair = %i0, %pair_phase = %i0)
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
      %kq_a = gdn_warp.view %a_at : !gdn_warp.view<64x128xbf16, swizzle = 128>
      %k_a = gdn_warp.view %a_at : !gdn_warp.view<32x128xbf16, swizzle = 128, stride = 8192>
      %beta_av = gdn_warp.view %beta_a_at : !gdn_warp.view<32xf32>
      %m_av = gdn_warp.view %m_a_at : !gdn_warp.view<32x32xf16, stride = 80>
      %t_av = gdn_warp.view %t_a_at : !gdn_warp.view<32x64xbf16, swizzle = 128>
      %p_av = gdn_warp.slice %t_av[0, 32] : !gdn_warp.view<32x64xbf16, swizzle = 128> -> !gdn_warp.view<32x32xbf16, swizzle = 128, stride = 4096, column = 64>
      %kq_b = gdn_warp.view %b_at : !gdn_warp.view<64x128xbf16, swizzle = 128>
      %k_b = gdn_warp.view %b_at : !gdn_warp.view<32x128xbf16, swizzle = 128, stride = 8192>
      %beta_bv = gdn_warp.view %beta_b_at : !gdn_warp.view<32xf32>
      %m_bv = gdn_warp.view %m_b_at : !gdn_warp.view<32x32xf16, stride = 80>
      %t_bv = gdn_warp.view %t_b_at : !gdn_warp.view<32x64xbf16, swizzle = 128>
      %p_bv = gdn_warp.slice %t_bv[0, 32] : !gdn_warp.view<32x64xbf16, swizzle = 128> -> !gdn_warp.view<32x32xbf16, swizzle = 128, stride = 4096, column = 64>
      gdn_warp.barrier_wait %full, %phase
      gdn_warp.product_fence
      %s_a0 = gdn_warp.product %kq_a, %k_a transpose_b : !gdn_warp.view<64x128xbf16, swizzle = 128>, !gdn_warp.view<32x128xbf16, swizzle = 128, stride = 8192> -> tensor<64x32xf32, #gdn_warp.fragment>
      %s_b0 = gdn_warp.product %kq_b, %k_b transpose_b : !gdn_warp.view<64x128xbf16, swizzle = 128>, !gdn_warp.view<32x128xbf16, swizzle = 128, stride = 8192> -> tensor<64x32xf32, #gdn_warp.fragment>
      gdn_warp.product_commit
      %beta_a = gdn_warp.vector_load %beta_av : !gdn_warp.view<32xf32> -> tensor<64xf32, #gdn_warp.rows>
      %betas_a = linalg.broadcast ins(%beta_a : tensor<64xf32, #gdn_warp.rows>) outs(%none : tensor<64x32xf32, #gdn_warp.fragment>) dimensions = [1]
      %beta_b = gdn_warp.vector_load %beta_bv : !gdn_warp.view<32xf32> -> tensor<64xf32, #gdn_warp.rows>
      %betas_b = linalg.broadcast ins(%beta_b : tensor<64xf32, #gdn_warp.rows>) outs(%none : tensor<64x32xf32, #gdn_warp.fragment>) dimensions = [1]
      %s_a, %s_b = gdn_warp.await 0 of %s_a0, %s_b0 : tensor<64x32xf32, #gdn_warp.fragment>, tensor<64x32xf32, #gdn_warp.fragment>
      scf.if %lane0 {
        gdn_warp.barrier_arrive %empty
      }
      gdn_warp.barrier_wait %m_empty, %free
      %mb_a = arith.mulf %s_a, %betas_a : tensor<64x32xf32, #gdn_warp.fragment>
      %mz_a = arith.select %above, %mb_a, %zero : tensor<64x32xi1, #gdn_warp.fragment>, tensor<64x32xf32, #gdn_warp.fragment>
      %m_a = arith.truncf %mz_a : tensor<64x32xf32, #gdn_warp.fragment> to tensor<64x32xf16, #gdn_warp.fragment>
      gdn_warp.fragment_store %m_a, %m_av rows [0, 32] : tensor<64x32xf16, #gdn_warp.fragment> -> !gdn_warp.view<32x32xf16, stride = 80>
      %mb_b = arith.mulf %s_b, %betas_b : tensor<64x32xf32, #gdn_warp.fragment>
      %mz_b = arith.select %above, %mb_b, %zero : tensor<64x32xi1, #gdn_warp.fragment>, tensor<64x32xf32, #gdn_warp.fragment>
      %m_b = arith.truncf %mz_b : tensor<64x32xf32, #gdn_warp.fragment> to tensor<64x32xf16, #gdn_warp.fragment>
      gdn_warp.fragment_store %m_b, %m_bv rows [0, 32] : tensor<64x32xf16, #gdn_warp.fragment> -> !gdn_warp.view<32x32xf16, stride = 80>
      gdn_warp.sync warp
      scf.if %lane0 {
        gdn_warp.barrier_arrive %m_full
      }
      %pz_a = arith.select %causal, %s_a, %zero : tensor<64x32xi1, #gdn_warp.fragment>, tensor<64x32xf32, #gdn_warp.fragment>
      %p_a = arith.truncf %pz_a : tensor<64x32xf32, #gdn_warp.fragment> to tensor<64x32xbf16, #gdn_warp.fragment>
      %pz_b = arith.select %causal, %s_b, %zero : tensor<64x32xi1, #gdn_warp.fragment>, tensor<64x32xf32, #gdn_warp.fragment>
      %p_b = arith.truncf %pz_b : tensor<64x32xf32, #gdn_warp.fragment> to tensor<64x32xbf16, #gdn_warp.fragment>
      gdn_warp.barrier_wait %tile_empty, %free
      gdn_warp.fragment_store %p_a, %p_av rows [32, 64] : tensor<64x32xbf16, #gdn_warp.fragment> -> !gdn_warp.view<32x32xbf16, swizzle = 128, stride = 4096, column = 64>
      gdn_warp.fragment_store %p_b, %p_bv rows [32, 64] : tensor<64x32xbf16, #gdn_warp.fragment> -> !gdn_warp.view<32x32xbf16, swizzle = 128, stride = 4096, column = 64>
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
    %chunks = arith.muli %trips, %i2 : i32
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
      %m = gdn_warp.view %m_at : !gdn_warp.view<32x32xf16, stride = 80>
      %x = gdn_warp.view %x_at : !gdn_warp.view<32x32xbf16, swizzle = 128, stride = 4096>
      gdn_warp.barrier_wait %m_full, %phase
      gdn_warp.barrier_wait %tile_empty, %free
      gdn_warp.solve %m, %x : !gdn_warp.view<32x32xf16, stride = 80>, !gdn_warp.view<32x32xbf16, swizzle = 128, stride = 4096>
      gdn_warp.fence async
      gdn_warp.sync warp
      scf.if %lane0 {
        gdn_warp.barrier_arrive %m_empty
        gdn_warp.barrier_arrive %tile_full
      }
    }
  }
  // All copies, and the gates: the loop carries those of the next four trips.
  gdn_warp.role "move" warps(7, 1) registers(96) {
    %log2e = arith.constant dense<1.44269504> : tensor<32xf32, #gdn_warp.lanes>
    %floor = arith.constant -24.0 : f32
    %f0 = arith.constant 0.0 : f32
    %f1 = arith.constant 1.0 : f32
    %c31 = arith.constant 31 : index
    %scales = tensor.splat %scale : tensor<32xf32, #gdn_warp.lanes>
    %t0 = arith.constant 0 : index
    %t0_b = arith.addi %t0, %c32 : index
    %g_a0 = gdn_warp.array_load %g[%batch, %t0, %h] axes [1] until(%tokens, dim = 1)
        : memref<?x?x?xf32, strided<[?, ?, ?]>> -> tensor<32xf32, #gdn_warp.lanes>
    %g_b0 = gdn_warp.array_load %g[%batch, %t0_b, %h] axes [1] until(%tokens, dim = 1)
        : memref<?x?x?xf32, strided<[?, ?, ?]>> -> tensor<32xf32, #gdn_warp.lanes>
    %beta_a0 = gdn_warp.array_load %beta[%batch, %t0, %h] axes [1] until(%tokens, dim = 1)
        : memref<?x?x?xf32, strided<[?, ?, ?]>> -> tensor<32xf32, #gdn_warp.lanes>
    %beta_b0 = gdn_warp.array_load %beta[%batch, %t0_b, %h] axes [1] until(%tokens, dim = 1)
        : memref<?x?x?xf32, strided<[?, ?, ?]>> -> tensor<32xf32, #gdn_warp.lanes>
    %t1 = arith.constant 64 : index
    %t1_b = arith.addi %t1, %c32 : index
    %g_a1 = gdn_warp.array_load %g[%batch, %t1, %h] axes [1] until(%tokens, dim = 1)
        : memref<?x?x?xf32, strided<[?, ?, ?]>> -> tensor<32xf32, #gdn_warp.lanes>
    %g_b1 = gdn_warp.array_load %g[%batch, %t1_b, %h] axes [1] until(%tokens, dim = 1)
        : memref<?x?x?xf32, strided<[?, ?, ?]>> -> tensor<32xf32, #gdn_warp.lanes>
    %beta_a1 = gdn_warp.array_load %beta[%batch, %t1, %h] axes [1] until(%tokens, dim = 1)
        : memref<?x?x?xf32, strided<[?, ?, ?]>> -> tensor<32xf32, #gdn_warp.lanes>
    %beta_b1 = gdn_warp.array_load %beta[%batch, %t1_b, %h] axes [1] until(%tokens, dim = 1)
        : memref<?x?x?xf32, strided<[?, ?, ?]>> -> tensor<32xf32, #gdn_warp.lanes>
    %t2 = arith.constant 128 : index
    %t2_b = arith.addi %t2, %c32 : index
    %g_a2 = gdn_warp.array_load %g[%batch, %t2, %h] axes [1] until(%tokens, dim = 1)
        : memref<?x?x?xf32, strided<[?, ?, ?]>> -> tensor<32xf32, #gdn_warp.lanes>
    %g_b2 = gdn_warp.array_load %g[%batch, %t2_b, %h] axes [1] until(%tokens, dim = 1)
        : memref<?x?x?xf32, strided<[?, ?, ?]>> -> tensor<32xf32, #gdn_warp.lanes>
    %beta_a2 = gdn_warp.array_load %beta[%batch, %t2, %h] axes [1] until(%tokens, dim = 1)
        : memref<?x?x?xf32, strided<[?, ?, ?]>> -> tensor<32xf32, #gdn_warp.lanes>
    %beta_b2 = gdn_warp.array_load %beta[%batch, %t2_b, %h] axes [1] until(%tokens, dim = 1)
        : memref<?x?x?xf32, strided<[?, ?, ?]>> -> tensor<32xf32, #gdn_warp.lanes>
    %t3 = arith.constant 192 : index
    %t3_b = arith.addi %t3, %c32 : index
    %g_a3 = gdn_warp.array_load %g[%batch, %t3, %h] axes [1] until(%tokens, dim = 1)
        : memref<?x?x?xf32, strided<[?, ?, ?]>> -> tensor<32xf32, #gdn_warp.lanes>
    %g_b3 = gdn_warp.array_load %g[%batch, %t3_b, %h] axes [1] until(%tokens, dim = 1)
        : memref<?x?x?xf32, strided<[?, ?, ?]>> -> tensor<32xf32, #gdn_warp.lanes>
    %beta_a3 = gdn_warp.array_load %beta[%batch, %t3, %h] axes [1] until(%tokens, dim = 1)
        : memref<?x?x?xf32, strided<[?, ?, ?]>> -> tensor<32xf32, #gdn_warp.lanes>
    %beta_b3 = gdn_warp.array_load %beta[%batch, %t3_b, %h] axes [1] until(%tokens, dim = 1)
        : memref<?x?x?xf32, strided<[?, ?, ?]>> -> tensor<32xf32, #gdn_warp.lanes>
    scf.for %i = %i0 to %trips step %i1 iter_args(%slot = %i0, %phase = %i0, %pair = %i0, %pair_phase = %i0, %decay = %f0,
        %g_a0_ = %g_a0, %g_b0_ = %g_b0, %beta_a0_ = %beta_a0, %beta_b0_ = %beta_b0,
        %g_a1_ = %g_a1, %g_b1_ = %g_b1, %beta_a1_ = %beta_a1, %beta_b1_ = %beta_b1,
        %g_a2_ = %g_a2, %g_b2_ = %g_b2, %beta_a2_ = %beta_a2, %beta_b2_ = %beta_b2,
        %g_a3_ = %g_a3, %g_b3_ = %g_b3, %beta_a3_ = %beta_a3, %beta_b3_ = %beta_b3)
        -> (i32, i32, i32, i32, f32, tensor<32xf32, #gdn_warp.lanes>, tensor<32xf32, #gdn_warp.lanes>, tensor<32xf32, #gdn_warp.lanes>, tensor<32xf32, #gdn_warp.lanes>, tensor<32xf32, #gdn_warp.lanes>, tensor<32xf32, #gdn_warp.lanes>, tensor<32xf32, #gdn_warp.lanes>, tensor<32xf32, #gdn_warp.lanes>, tensor<32xf32, #gdn_warp.lanes>, tensor<32xf32, #gdn_warp.lanes>, tensor<32xf32, #gdn_warp.lanes>, tensor<32xf32, #gdn_warp.lanes>, tensor<32xf32, #gdn_warp.lanes>, tensor<32xf32, #gdn_warp.lanes>, tensor<32xf32, #gdn_warp.lanes>, tensor<32xf32, #gdn_warp.lanes>) : i32 {
      %trip = arith.index_cast %i : i32 to index
      %t = arith.muli %trip, %c64 : index
      %tb = arith.addi %t, %c32 : index
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
      %ka = gdn_warp.view %ka_at : !gdn_warp.view<32x128xbf16, swizzle = 128, stride = 8192>
      %qa = gdn_warp.view %qa_at : !gdn_warp.view<32x128xbf16, swizzle = 128, stride = 8192>
      %kb = gdn_warp.view %kb_at : !gdn_warp.view<32x128xbf16, swizzle = 128, stride = 8192>
      %qb = gdn_warp.view %qb_at : !gdn_warp.view<32x128xbf16, swizzle = 128, stride = 8192>
      %vt = gdn_warp.view %v_at : !gdn_warp.view<64x128xbf16, swizzle = 128>
      %inv_a_at_off = arith.muli %slot, %i1024 : i32
      %inv_a_at_i32 = arith.addi %inv_a_at_off, %i206848 : i32
      %inv_a_at = arith.index_cast %inv_a_at_i32 : i32 to index
      %beta_a_at = arith.addi %inv_a_at, %c128 : index
      %gam_a_at = arith.addi %inv_a_at, %c256 : index
      %inv_b_at = arith.addi %inv_a_at, %c384 : index
      %beta_b_at = arith.addi %inv_a_at, %c512 : index
      %gam_b_at = arith.addi %inv_a_at, %c640 : index
      %ends_at = arith.addi %inv_a_at, %c768 : index
      %inv_av = gdn_warp.view %inv_a_at : !gdn_warp.view<32xf32>
      %inv_bv = gdn_warp.view %inv_b_at : !gdn_warp.view<32xf32>
      %beta_av = gdn_warp.view %beta_a_at : !gdn_warp.view<32xf32>
      %beta_bv = gdn_warp.view %beta_b_at : !gdn_warp.view<32xf32>
      %gam_av = gdn_warp.view %gam_a_at : !gdn_warp.view<32xf32>
      %gam_bv = gdn_warp.view %gam_b_at : !gdn_warp.view<32xf32>
      %ends = gdn_warp.view %ends_at : !gdn_warp.view<2xf32>
      // Cumulated gate since the last restart, in base 2; it restarts where it leaves the range.
      %low = arith.cmpf olt, %decay, %floor : f32
      %all = math.exp2 %decay : f32
      %rescale = arith.select %low, %all, %f1 : f32
      %base = arith.select %low, %f0, %decay : f32
      %l_a = arith.mulf %g_a0_, %log2e : tensor<32xf32, #gdn_warp.lanes>
      %s_a = gdn_tile.scan %l_a axis 0 : tensor<32xf32, #gdn_warp.lanes>
      %base_a = tensor.splat %base : tensor<32xf32, #gdn_warp.lanes>
      %c_a = arith.addf %s_a, %base_a : tensor<32xf32, #gdn_warp.lanes>
      %n_a = arith.negf %c_a : tensor<32xf32, #gdn_warp.lanes>
      %inv_a = math.exp2 %n_a : tensor<32xf32, #gdn_warp.lanes>
      %e_a = math.exp2 %c_a : tensor<32xf32, #gdn_warp.lanes>
      %gam_a = arith.mulf %e_a, %scales : tensor<32xf32, #gdn_warp.lanes>
      %last_a = tensor.extract %c_a[%c31] : tensor<32xf32, #gdn_warp.lanes>
      %l_b = arith.mulf %g_b0_, %log2e : tensor<32xf32, #gdn_warp.lanes>
      %s_b = gdn_tile.scan %l_b axis 0 : tensor<32xf32, #gdn_warp.lanes>
      %base_b = tensor.splat %last_a : tensor<32xf32, #gdn_warp.lanes>
      %c_b = arith.addf %s_b, %base_b : tensor<32xf32, #gdn_warp.lanes>
      %n_b = arith.negf %c_b : tensor<32xf32, #gdn_warp.lanes>
      %inv_b = math.exp2 %n_b : tensor<32xf32, #gdn_warp.lanes>
      %e_b = math.exp2 %c_b : tensor<32xf32, #gdn_warp.lanes>
      %gam_b = arith.mulf %e_b, %scales : tensor<32xf32, #gdn_warp.lanes>
      %last_b = tensor.extract %c_b[%c31] : tensor<32xf32, #gdn_warp.lanes>
      %end = math.exp2 %last_b : f32
      %t_ahead = arith.addi %t, %c256 : index
      %t_ahead_b = arith.addi %t_ahead, %c32 : index
      %g_a_new = gdn_warp.array_load %g[%batch, %t_ahead, %h] axes [1] until(%tokens, dim = 1)
          : memref<?x?x?xf32, strided<[?, ?, ?]>> -> tensor<32xf32, #gdn_warp.lanes>
      %g_b_new = gdn_warp.array_load %g[%batch, %t_ahead_b, %h] axes [1] until(%tokens, dim = 1)
          : memref<?x?x?xf32, strided<[?, ?, ?]>> -> tensor<32xf32, #gdn_warp.lanes>
      %beta_a_new = gdn_warp.array_load %beta[%batch, %t_ahead, %h] axes [1] until(%tokens, dim = 1)
          : memref<?x?x?xf32, strided<[?, ?, ?]>> -> tensor<32xf32, #gdn_warp.lanes>
      %beta_b_new = gdn_warp.array_load %beta[%batch, %t_ahead_b, %h] axes [1] until(%tokens, dim = 1)
          : memref<?x?x?xf32, strided<[?, ?, ?]>> -> tensor<32xf32, #gdn_warp.lanes>
      %t_out = arith.subi %t, %c192 : index
      %has = arith.cmpi sge, %i, %i3 : i32
      gdn_warp.barrier_wait %empty, %free
      gdn_warp.vector_store %inv_a, %inv_av : tensor<32xf32, #gdn_warp.lanes> -> !gdn_warp.view<32xf32>
      gdn_warp.vector_store %inv_b, %inv_bv : tensor<32xf32, #gdn_warp.lanes> -> !gdn_warp.view<32xf32>
      gdn_warp.vector_store %beta_a0_, %beta_av : tensor<32xf32, #gdn_warp.lanes> -> !gdn_warp.view<32xf32>
      gdn_warp.vector_store %beta_b0_, %beta_bv : tensor<32xf32, #gdn_warp.lanes> -> !gdn_warp.view<32xf32>
      gdn_warp.vector_store %gam_a, %gam_av : tensor<32xf32, #gdn_warp.lanes> -> !gdn_warp.view<32xf32>
      gdn_warp.vector_store %gam_b, %gam_bv : tensor<32xf32, #gdn_warp.lanes> -> !gdn_warp.view<32xf32>
      scf.if %lane0 {
        gdn_warp.store %rescale, %ends[%c0] : f32 -> !gdn_warp.view<2xf32>
        gdn_warp.store %end, %ends[%c1] : f32 -> !gdn_warp.view<2xf32>
      }
      gdn_warp.sync warp
      scf.if %lane0 {
        gdn_warp.barrier_expect %full, 49152
        gdn_warp.copy_in %k[%batch, %t, %hq, %c0] axes [1, 3], %ka signal %full
            : memref<?x?x?x128xbf16, strided<[?, ?, ?, 1]>> -> !gdn_warp.view<32x128xbf16, swizzle = 128, stride = 8192>
        gdn_warp.copy_in %q[%batch, %t, %hq, %c0] axes [1, 3], %qa signal %full
            : memref<?x?x?x128xbf16, strided<[?, ?, ?, 1]>> -> !gdn_warp.view<32x128xbf16, swizzle = 128, stride = 8192>
        gdn_warp.copy_in %k[%batch, %tb, %hq, %c0] axes [1, 3], %kb signal %full
            : memref<?x?x?x128xbf16, strided<[?, ?, ?, 1]>> -> !gdn_warp.view<32x128xbf16, swizzle = 128, stride = 8192>
        gdn_warp.copy_in %q[%batch, %tb, %hq, %c0] axes [1, 3], %qb signal %full
            : memref<?x?x?x128xbf16, strided<[?, ?, ?, 1]>> -> !gdn_warp.view<32x128xbf16, swizzle = 128, stride = 8192>
        gdn_warp.copy_in %v[%batch, %t, %h, %c0] axes [1, 3], %vt signal %full
            : memref<?x?x?x128xbf16, strided<[?, ?, ?, 1]>> -> !gdn_warp.view<64x128xbf16, swizzle = 128>
      }
      // The output of 3 trips ago goes out; its slot is free once it was read.
      scf.if %has {
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
        %ot = gdn_warp.view %o_at : !gdn_warp.view<64x128xbf16, swizzle = 128>
        gdn_warp.barrier_wait %o_full, %pair_phase
        scf.if %lane0 {
          gdn_warp.copy_out %ot, %o[%batch, %t_out, %h, %c0] axes [1, 3]
              : !gdn_warp.view<64x128xbf16, swizzle = 128> -> memref<?x?x?x128xbf16, strided<[?, ?, ?, 1]>>
          gdn_warp.copy_commit
          gdn_warp.copy_wait 0 read
          gdn_warp.barrier_arrive %o_empty
        }
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
      %pair_kept = arith.select %has, %pair_next, %pair : i32
      %pair_phase_kept = arith.select %has, %pair_phase_next, %pair_phase : i32
      scf.yield %slot_next, %phase_next, %pair_kept, %pair_phase_kept, %last_b, %g_a1_, %g_b1_, %beta_a1_, %beta_b1_, %g_a2_, %g_b2_, %beta_a2_, %beta_b2_, %g_a3_, %g_b3_, %beta_a3_, %beta_b3_, %g_a_new, %g_b_new, %beta_a_new, %beta_b_new
          : i32, i32, i32, i32, f32, tensor<32xf32, #gdn_warp.lanes>, tensor<32xf32, #gdn_warp.lanes>, tensor<32xf32, #gdn_warp.lanes>, tensor<32xf32, #gdn_warp.lanes>, tensor<32xf32, #gdn_warp.lanes>, tensor<32xf32, #gdn_warp.lanes>, tensor<32xf32, #gdn_warp.lanes>, tensor<32xf32, #gdn_warp.lanes>, tensor<32xf32, #gdn_warp.lanes>, tensor<32xf32, #gdn_warp.lanes>, tensor<32xf32, #gdn_warp.lanes>, tensor<32xf32, #gdn_warp.lanes>, tensor<32xf32, #gdn_warp.lanes>, tensor<32xf32, #gdn_warp.lanes>, tensor<32xf32, #gdn_warp.lanes>, tensor<32xf32, #gdn_warp.lanes>
    } {gdn_warp.unroll = 4}
    %behind = arith.subi %trips, %i3 : i32
    %rest = arith.maxsi %behind, %i0 : i32
    scf.for %i = %rest to %trips step %i1 : i32 {
      %trip = arith.index_cast %i : i32 to index
      %t_out = arith.muli %trip, %c64 : index
      %pair = arith.andi %i, %i1 : i32
      %use = arith.shrui %i, %i1 : i32
      %pair_phase = arith.andi %use, %i1 : i32
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
      %ot = gdn_warp.view %o_at : !gdn_warp.view<64x128xbf16, swizzle = 128>
      gdn_warp.barrier_wait %o_full, %pair_phase
      scf.if %lane0 {
        gdn_warp.copy_out %ot, %o[%batch, %t_out, %h, %c0] axes [1, 3]
            : !gdn_warp.view<64x128xbf16, swizzle = 128> -> memref<?x?x?x128xbf16, strided<[?, ?, ?, 1]>>
        gdn_warp.copy_commit
        gdn_warp.copy_wait 0 read
        gdn_warp.barrier_arrive %o_empty
      }
    }
    scf.if %lane0 {
      gdn_warp.copy_wait 0
    }
  }
  // Each warpgroup 64 value channels. Nothing is in flight where a trip ends.
  gdn_warp.role "state" warps(8, 8) registers(168) {
    %group = arith.divui %warp, %c4 : index
    %part = arith.subi %group, %c2 : index
    %part_at = arith.muli %part, %c8192 : index
    %f1 = arith.constant 1.0 : f32
    %none = tensor.empty() : tensor<64x32xf32, #gdn_warp.fragment>
    %zero = arith.constant dense<0.0> : tensor<64x128xf32, #gdn_warp.fragment>
    %loop:6 = scf.for %i = %i0 to %trips step %i1
        iter_args(%s = %zero, %gam = %f1, %slot = %i0, %phase = %i0, %pair = %i0, %pair_phase = %i0)
        -> (tensor<64x128xf32, #gdn_warp.fragment>, f32, i32, i32, i32, i32) : i32 {
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
      %ends = gdn_warp.view %ends_at : !gdn_warp.view<2xf32>
      %k_av = gdn_warp.view %k_a_at : !gdn_warp.view<32x128xbf16, swizzle = 128, stride = 8192>
      %q_av = gdn_warp.view %q_a_at : !gdn_warp.view<32x128xbf16, swizzle = 128, stride = 8192>
      %v_av = gdn_warp.view %v_a_at : !gdn_warp.view<32x64xbf16, swizzle = 128>
      %o_av = gdn_warp.view %o_a_at : !gdn_warp.view<32x64xbf16, swizzle = 128>
      %t_av = gdn_warp.view %t_a_at : !gdn_warp.view<32x64xbf16, swizzle = 128>
      %x_av = gdn_warp.slice %t_av[0, 0] : !gdn_warp.view<32x64xbf16, swizzle = 128> -> !gdn_warp.view<32x32xbf16, swizzle = 128, stride = 4096>
      %p_av = gdn_warp.slice %t_av[0, 32] : !gdn_warp.view<32x64xbf16, swizzle = 128> -> !gdn_warp.view<32x32xbf16, swizzle = 128, stride = 4096, column = 64>
      %inv_av = gdn_warp.view %inv_a_at : !gdn_warp.view<32xf32>
      %beta_av = gdn_warp.view %beta_a_at : !gdn_warp.view<32xf32>
      %gam_av = gdn_warp.view %gam_a_at : !gdn_warp.view<32xf32>
      %k_bv = gdn_warp.view %k_b_at : !gdn_warp.view<32x128xbf16, swizzle = 128, stride = 8192>
      %q_bv = gdn_warp.view %q_b_at : !gdn_warp.view<32x128xbf16, swizzle = 128, stride = 8192>
      %v_bv = gdn_warp.view %v_b_at : !gdn_warp.view<32x64xbf16, swizzle = 128>
      %o_bv = gdn_warp.view %o_b_at : !gdn_warp.view<32x64xbf16, swizzle = 128>
      %t_bv = gdn_warp.view %t_b_at : !gdn_warp.view<32x64xbf16, swizzle = 128>
      %x_bv = gdn_warp.slice %t_bv[0, 0] : !gdn_warp.view<32x64xbf16, swizzle = 128> -> !gdn_warp.view<32x32xbf16, swizzle = 128, stride = 4096>
      %p_bv = gdn_warp.slice %t_bv[0, 32] : !gdn_warp.view<32x64xbf16, swizzle = 128> -> !gdn_warp.view<32x32xbf16, swizzle = 128, stride = 4096, column = 64>
      %inv_bv = gdn_warp.view %inv_b_at : !gdn_warp.view<32xf32>
      %beta_bv = gdn_warp.view %beta_b_at : !gdn_warp.view<32xf32>
      %gam_bv = gdn_warp.view %gam_b_at : !gdn_warp.view<32xf32>
      gdn_warp.barrier_wait %full, %phase
      %v_a = gdn_warp.fragment_load %v_av transpose : !gdn_warp.view<32x64xbf16, swizzle = 128> -> tensor<64x32xbf16, #gdn_warp.fragment>
      %inv_a = gdn_warp.vector_load %inv_av : !gdn_warp.view<32xf32> -> tensor<32xf32, #gdn_warp.columns>
      %invs_a = linalg.broadcast ins(%inv_a : tensor<32xf32, #gdn_warp.columns>) outs(%none : tensor<64x32xf32, #gdn_warp.fragment>) dimensions = [0]
      %f = gdn_warp.load %ends[%c0] : !gdn_warp.view<2xf32> -> f32
      %gam_next = gdn_warp.load %ends[%c1] : !gdn_warp.view<2xf32> -> f32
      %restarts = arith.cmpf une, %f, %f1 : f32
      %s_a = scf.if %restarts -> (tensor<64x128xf32, #gdn_warp.fragment>) {
        %fs = tensor.splat %f : tensor<64x128xf32, #gdn_warp.fragment>
        %sf = arith.mulf %s, %fs : tensor<64x128xf32, #gdn_warp.fragment>
        scf.yield %sf : tensor<64x128xf32, #gdn_warp.fragment>
      } else {
        scf.yield %s : tensor<64x128xf32, #gdn_warp.fragment>
      }
      %sb_a = arith.truncf %s_a : tensor<64x128xf32, #gdn_warp.fragment> to tensor<64x128xbf16, #gdn_warp.fragment>
      gdn_warp.product_fence
      %u_a0 = gdn_warp.product %sb_a, %k_av transpose_b : tensor<64x128xbf16, #gdn_warp.fragment>, !gdn_warp.view<32x128xbf16, swizzle = 128, stride = 8192> -> tensor<64x32xf32, #gdn_warp.fragment>
      gdn_warp.product_commit
      %vw_a = arith.extf %v_a : tensor<64x32xbf16, #gdn_warp.fragment> to tensor<64x32xf32, #gdn_warp.fragment>
      %vg_a = arith.mulf %vw_a, %invs_a : tensor<64x32xf32, #gdn_warp.fragment>
      %u_a = gdn_warp.await 0 of %u_a0 : tensor<64x32xf32, #gdn_warp.fragment>
      %w_a = arith.subf %vg_a, %u_a : tensor<64x32xf32, #gdn_warp.fragment>
      %wb_a = arith.truncf %w_a : tensor<64x32xf32, #gdn_warp.fragment> to tensor<64x32xbf16, #gdn_warp.fragment>
      gdn_warp.barrier_wait %tile_full, %pair_phase
      %beta_a = gdn_warp.vector_load %beta_av : !gdn_warp.view<32xf32> -> tensor<32xf32, #gdn_warp.columns>
      %betas_a = linalg.broadcast ins(%beta_a : tensor<32xf32, #gdn_warp.columns>) outs(%none : tensor<64x32xf32, #gdn_warp.fragment>) dimensions = [0]
      gdn_warp.product_fence
      %e_a0 = gdn_warp.product %wb_a, %x_av transpose_b into(%w_a : tensor<64x32xf32, #gdn_warp.fragment>) : tensor<64x32xbf16, #gdn_warp.fragment>, !gdn_warp.view<32x32xbf16, swizzle = 128, stride = 4096> -> tensor<64x32xf32, #gdn_warp.fragment>
      gdn_warp.product_commit
      %o_a0 = gdn_warp.product %sb_a, %q_av transpose_b : tensor<64x128xbf16, #gdn_warp.fragment>, !gdn_warp.view<32x128xbf16, swizzle = 128, stride = 8192> -> tensor<64x32xf32, #gdn_warp.fragment>
      gdn_warp.product_commit
      %gam_a = gdn_warp.vector_load %gam_av : !gdn_warp.view<32xf32> -> tensor<32xf32, #gdn_warp.columns>
      %gams_a = linalg.broadcast ins(%gam_a : tensor<32xf32, #gdn_warp.columns>) outs(%none : tensor<64x32xf32, #gdn_warp.fragment>) dimensions = [0]
      %e_a = gdn_warp.await 1 of %e_a0 : tensor<64x32xf32, #gdn_warp.fragment>
      %r_a = arith.mulf %e_a, %betas_a : tensor<64x32xf32, #gdn_warp.fragment>
      %rb_a = arith.truncf %r_a : tensor<64x32xf32, #gdn_warp.fragment> to tensor<64x32xbf16, #gdn_warp.fragment>
      gdn_warp.product_fence
      %o_a1 = gdn_warp.product %rb_a, %p_av transpose_b into(%o_a0 : tensor<64x32xf32, #gdn_warp.fragment>) : tensor<64x32xbf16, #gdn_warp.fragment>, !gdn_warp.view<32x32xbf16, swizzle = 128, stride = 4096, column = 64> -> tensor<64x32xf32, #gdn_warp.fragment>
      gdn_warp.product_commit
      %s_a1 = gdn_warp.product %rb_a, %k_av into(%s_a : tensor<64x128xf32, #gdn_warp.fragment>) : tensor<64x32xbf16, #gdn_warp.fragment>, !gdn_warp.view<32x128xbf16, swizzle = 128, stride = 8192> -> tensor<64x128xf32, #gdn_warp.fragment>
      gdn_warp.product_commit
      gdn_warp.barrier_wait %o_empty, %free
      %o_a2 = gdn_warp.await 1 of %o_a1 : tensor<64x32xf32, #gdn_warp.fragment>
      %og_a = arith.mulf %o_a2, %gams_a : tensor<64x32xf32, #gdn_warp.fragment>
      %ob_a = arith.truncf %og_a : tensor<64x32xf32, #gdn_warp.fragment> to tensor<64x32xbf16, #gdn_warp.fragment>
      gdn_warp.fragment_store %ob_a, %o_av transpose : tensor<64x32xbf16, #gdn_warp.fragment> -> !gdn_warp.view<32x64xbf16, swizzle = 128>
      %v_b = gdn_warp.fragment_load %v_bv transpose : !gdn_warp.view<32x64xbf16, swizzle = 128> -> tensor<64x32xbf16, #gdn_warp.fragment>
      %inv_b = gdn_warp.vector_load %inv_bv : !gdn_warp.view<32xf32> -> tensor<32xf32, #gdn_warp.columns>
      %invs_b = linalg.broadcast ins(%inv_b : tensor<32xf32, #gdn_warp.columns>) outs(%none : tensor<64x32xf32, #gdn_warp.fragment>) dimensions = [0]
      %s_b = gdn_warp.await 0 of %s_a1 : tensor<64x128xf32, #gdn_warp.fragment>
      %sb_b = arith.truncf %s_b : tensor<64x128xf32, #gdn_warp.fragment> to tensor<64x128xbf16, #gdn_warp.fragment>
      gdn_warp.product_fence
      %u_b0 = gdn_warp.product %sb_b, %k_bv transpose_b : tensor<64x128xbf16, #gdn_warp.fragment>, !gdn_warp.view<32x128xbf16, swizzle = 128, stride = 8192> -> tensor<64x32xf32, #gdn_warp.fragment>
      gdn_warp.product_commit
      %vw_b = arith.extf %v_b : tensor<64x32xbf16, #gdn_warp.fragment> to tensor<64x32xf32, #gdn_warp.fragment>
      %vg_b = arith.mulf %vw_b, %invs_b : tensor<64x32xf32, #gdn_warp.fragment>
      %u_b = gdn_warp.await 0 of %u_b0 : tensor<64x32xf32, #gdn_warp.fragment>
      %w_b = arith.subf %vg_b, %u_b : tensor<64x32xf32, #gdn_warp.fragment>
      %wb_b = arith.truncf %w_b : tensor<64x32xf32, #gdn_warp.fragment> to tensor<64x32xbf16, #gdn_warp.fragment>
      %beta_b = gdn_warp.vector_load %beta_bv : !gdn_warp.view<32xf32> -> tensor<32xf32, #gdn_warp.columns>
      %betas_b = linalg.broadcast ins(%beta_b : tensor<32xf32, #gdn_warp.columns>) outs(%none : tensor<64x32xf32, #gdn_warp.fragment>) dimensions = [0]
      gdn_warp.product_fence
      %e_b0 = gdn_warp.product %wb_b, %x_bv transpose_b into(%w_b : tensor<64x32xf32, #gdn_warp.fragment>) : tensor<64x32xbf16, #gdn_warp.fragment>, !gdn_warp.view<32x32xbf16, swizzle = 128, stride = 4096> -> tensor<64x32xf32, #gdn_warp.fragment>
      gdn_warp.product_commit
      %o_b0 = gdn_warp.product %sb_b, %q_bv transpose_b : tensor<64x128xbf16, #gdn_warp.fragment>, !gdn_warp.view<32x128xbf16, swizzle = 128, stride = 8192> -> tensor<64x32xf32, #gdn_warp.fragment>
      gdn_warp.product_commit
      %gam_b = gdn_warp.vector_load %gam_bv : !gdn_warp.view<32xf32> -> tensor<32xf32, #gdn_warp.columns>
      %gams_b = linalg.broadcast ins(%gam_b : tensor<32xf32, #gdn_warp.columns>) outs(%none : tensor<64x32xf32, #gdn_warp.fragment>) dimensions = [0]
      %e_b = gdn_warp.await 1 of %e_b0 : tensor<64x32xf32, #gdn_warp.fragment>
      %r_b = arith.mulf %e_b, %betas_b : tensor<64x32xf32, #gdn_warp.fragment>
      %rb_b = arith.truncf %r_b : tensor<64x32xf32, #gdn_warp.fragment> to tensor<64x32xbf16, #gdn_warp.fragment>
      gdn_warp.product_fence
      %o_b1 = gdn_warp.product %rb_b, %p_bv transpose_b into(%o_b0 : tensor<64x32xf32, #gdn_warp.fragment>) : tensor<64x32xbf16, #gdn_warp.fragment>, !gdn_warp.view<32x32xbf16, swizzle = 128, stride = 4096, column = 64> -> tensor<64x32xf32, #gdn_warp.fragment>
      gdn_warp.product_commit
      %s_b1 = gdn_warp.product %rb_b, %k_bv into(%s_b : tensor<64x128xf32, #gdn_warp.fragment>) : tensor<64x32xbf16, #gdn_warp.fragment>, !gdn_warp.view<32x128xbf16, swizzle = 128, stride = 8192> -> tensor<64x128xf32, #gdn_warp.fragment>
      gdn_warp.product_commit
      %o_b2 = gdn_warp.await 1 of %o_b1 : tensor<64x32xf32, #gdn_warp.fragment>
      %og_b = arith.mulf %o_b2, %gams_b : tensor<64x32xf32, #gdn_warp.fragment>
      %ob_b = arith.truncf %og_b : tensor<64x32xf32, #gdn_warp.fragment> to tensor<64x32xbf16, #gdn_warp.fragment>
      gdn_warp.fragment_store %ob_b, %o_bv transpose : tensor<64x32xbf16, #gdn_warp.fragment> -> !gdn_warp.view<32x64xbf16, swizzle = 128>
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
      %s_next = gdn_warp.await 0 of %s_b1 : tensor<64x128xf32, #gdn_warp.fragment>
      scf.if %lane0 {
        gdn_warp.barrier_arrive %empty
        gdn_warp.barrier_arrive %tile_empty
      }
      scf.yield %s_next, %gam_next, %slot_next, %phase_next, %pair_next, %pair_phase_next
          : tensor<64x128xf32, #gdn_warp.fragment>, f32, i32, i32, i32, i32
    }
    %gams = tensor.splat %loop#1 : tensor<64x128xf32, #gdn_warp.fragment>
    %final = arith.mulf %loop#0, %gams : tensor<64x128xf32, #gdn_warp.fragment>
    %v0 = arith.muli %part, %c64 : index
    gdn_warp.array_store %final, %state[%batch, %h, %v0, %c0] axes [2, 3]
        : tensor<64x128xf32, #gdn_warp.fragment> -> memref<?x?x128x128xf32>
  }
}
