// RUN: gdn-opt %s --gdn-warp-outline-linalg --canonicalize --cse --split-input-file | FileCheck %s
// Work on whole tensors becomes programs. The scalars of a body become tiles, with a row a token.

// Elementwise, in one role whose lanes have 16 bytes of a row. A chunk is loaded while the one before it is computed. A work
// item has up to 4 chunks. What is left of the function are sizes and the launch.
// CHECK-LABEL: gdn_tile.program @scale_map
// CHECK-SAME: (%x0: memref<?x?x4x128xbf16, strided<[?, ?, ?, 1], offset: ?>>, %x1: memref<4xf32, strided<[1], offset: ?>>, %[[CHUNKS:.*]]: index, %{{.*}}: index)
// CHECK-SAME: outs(%y: memref<?x?x4x128xbf16, strided<[?, ?, ?, 1], offset: ?>>)
// CHECK-SAME: work_item(%[[N:.*]], %[[PART:.*]], %{{.*}}, %[[H:.*]]) tokens(%[[B:.*]], %[[BEGIN:.*]], %[[LAST:.*]])
// CHECK-SAME: min_ctas = 10
// CHECK-SAME: roles = [<name = "rows", warps = 4, registers = 48, steps = ["state"], lanes_per_row = 16>], channels = []
// CHECK: %[[ONE:.*]] = gdn_tile.load %x1[%[[H]]] axes [0]
// CHECK: %[[RATE:.*]] = tensor.extract %[[ONE]]
// CHECK: %[[LENGTH:.*]] = arith.muli %[[CHUNKS]], %c16
// CHECK: %[[BEFORE:.*]] = arith.muli %[[PART]], %[[LENGTH]]
// CHECK: %[[FIRST:.*]] = arith.addi %[[BEGIN]], %[[BEFORE]]
// CHECK: %[[BEHIND:.*]] = arith.addi %[[FIRST]], %[[LENGTH]]
// CHECK: %[[END:.*]] = arith.minsi %[[LAST]], %[[BEHIND]]
// CHECK: %[[COUNT:.*]] = arith.ceildivui
// CHECK: %[[X0:.*]] = gdn_tile.load %x0[%[[B]], %[[FIRST]], %[[H]], %c0] axes [1, 3] until(%[[END]], dim = 1)
// CHECK: scf.for %[[I:.*]] = %c0 to %[[COUNT]] step %c1 iter_args(%[[X:.*]] = %[[X0]]) -> (tensor<16x128xbf16>)
// CHECK:   %[[DISTANCE:.*]] = arith.muli %[[I]], %c16
// CHECK:   %[[T:.*]] = arith.addi %[[FIRST]], %[[DISTANCE]]
// CHECK:   %[[AHEAD:.*]] = arith.addi %[[T]], %c16
// CHECK:   %[[NEXT:.*]] = gdn_tile.load %x0[%[[B]], %[[AHEAD]], %[[H]], %c0] axes [1, 3] until(%[[END]], dim = 1)
// CHECK:   %[[R:.*]] = tensor.splat %[[RATE]] {{.*}}: tensor<16x128xf32>
// CHECK:   %[[W:.*]] = arith.extf %[[X]] {{.*}}: tensor<16x128xbf16> to tensor<16x128xf32>
// CHECK:   %[[M:.*]] = arith.mulf %[[W]], %[[R]]
// CHECK:   %[[O:.*]] = arith.truncf %[[M]]
// CHECK:   gdn_tile.store %[[O]], %y[%[[B]], %[[T]], %[[H]], %c0] axes [1, 3] until(%[[END]], dim = 1)
// CHECK:   scf.yield %[[NEXT]]
// CHECK-LABEL: func.func @scale
// CHECK: %[[BATCH:.*]] = tensor.dim %arg0, %c0
// CHECK: %[[TOKENS:.*]] = tensor.dim %arg0, %c1
// CHECK: %[[E:.*]] = tensor.empty(%[[BATCH]], %[[TOKENS]])
// CHECK: %[[SHARE:.*]] = arith.ceildivui %{{.*}}, %c1320
// CHECK: %[[MOST:.*]] = arith.minui %[[SHARE]], %c4
// CHECK: %[[PARTS:.*]] = arith.ceildivui %{{.*}}, %[[MOST]]
// CHECK: %[[Y:.*]] = gdn_tile.launch @scale_map grid(%[[BATCH]], %[[PARTS]], %c1, %c4) tokens(%[[TOKENS]])
// CHECK-SAME: ins(%arg0, %arg1, %[[MOST]], %[[PARTS]] : tensor<?x?x4x128xbf16>, tensor<4xf32>, index, index) outs(%[[E]] : tensor<?x?x4x128xbf16>)
// CHECK-NEXT: return %[[Y]]
#bthk = affine_map<(b, t, h, k) -> (b, t, h, k)>
#head = affine_map<(b, t, h, k) -> (h)>
func.func @scale(%x: tensor<?x?x4x128xbf16>, %rate: tensor<4xf32>) -> tensor<?x?x4x128xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = tensor.dim %x, %c0 : tensor<?x?x4x128xbf16>
  %t = tensor.dim %x, %c1 : tensor<?x?x4x128xbf16>
  %e = tensor.empty(%b, %t) : tensor<?x?x4x128xbf16>
  %y = linalg.generic {indexing_maps = [#bthk, #head, #bthk], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x, %rate : tensor<?x?x4x128xbf16>, tensor<4xf32>) outs(%e : tensor<?x?x4x128xbf16>) {
  ^bb0(%a: bf16, %r: f32, %out: bf16):
    %w = arith.extf %a : bf16 to f32
    %m = arith.mulf %w, %r : f32
    %o = arith.truncf %m : f32 to bf16
    linalg.yield %o : bf16
  } -> tensor<?x?x4x128xbf16>
  return %y : tensor<?x?x4x128xbf16>
}

// -----

// Sums of rows, times a number a token: vectors with an element a row of the tiles.
// CHECK-LABEL: gdn_tile.program @sums_map
// CHECK-SAME: roles = [<name = "rows", warps = 4, registers = 48, steps = ["state"], lanes_per_row = 16>], channels = []
// CHECK: gdn_tile.load %x1{{.*}} axes [1] until({{.*}} -> tensor<16xf32>
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[V:.*]] = %{{.*}}) -> (tensor<16x64xf32>, tensor<16xf32>)
// CHECK: gdn_tile.load %x1{{.*}} axes [1] until({{.*}} -> tensor<16xf32>
// CHECK: linalg.broadcast ins(%[[V]] : tensor<16xf32>) {{.*}} dimensions = [1]
// CHECK: %[[S:.*]] = linalg.reduce {{.*}} dimensions = [1]
// CHECK: gdn_tile.store %[[S]], %y{{.*}} axes [1] until(
#bthk = affine_map<(b, t, h, k) -> (b, t, h, k)>
#row = affine_map<(b, t, h, k) -> (b, t, h)>
func.func @sums(%x: tensor<1x256x4x64xf32>, %s: tensor<1x256x4xf32>) -> tensor<1x256x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x256x4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x256x4xf32>) -> tensor<1x256x4xf32>
  %y = linalg.generic {indexing_maps = [#bthk, #row, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %s : tensor<1x256x4x64xf32>, tensor<1x256x4xf32>) outs(%z : tensor<1x256x4xf32>) {
  ^bb0(%a: f32, %f: f32, %acc: f32):
    %m = arith.mulf %a, %f : f32
    %r = arith.addf %m, %acc : f32
    linalg.yield %r : f32
  } -> tensor<1x256x4xf32>
  return %y : tensor<1x256x4xf32>
}

// -----

// The value heads of a q/k head: 3 h, 3 h + 1 and 3 h + 2.
// CHECK-LABEL: gdn_tile.program @group_map
// CHECK: %[[FIRST:.*]] = arith.muli %{{.*}}, %c3
// CHECK: gdn_tile.load %x0[%{{.*}}, %{{.*}}, %[[FIRST]], %c0]
// CHECK: %[[SECOND:.*]] = arith.addi %[[FIRST]], %c1
// CHECK: gdn_tile.load %x0[%{{.*}}, %{{.*}}, %[[SECOND]], %c0]
// CHECK: scf.for {{.*}} iter_args(%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}}, %[[C:.*]] = %{{.*}}) ->
// CHECK-COUNT-3: gdn_tile.load %x0
// CHECK: %[[TWO:.*]] = arith.addf %[[A]], %[[B]]
// CHECK: arith.addf %[[TWO]], %[[C]]
// CHECK: gdn_tile.launch @group_map grid(%c1, %c16, %c1, %c2) tokens(%c256) ins(%arg0, {{.*}} : tensor<1x256x6x64xf32>, index, index)
#grouped = affine_map<(b, t, h, k, g) -> (b, t, h, g, k)>
#summed = affine_map<(b, t, h, k, g) -> (b, t, h, k)>
func.func @group(%x: tensor<1x256x6x64xf32>) -> tensor<1x256x2x64xf32> {
  %zero = arith.constant 0.0 : f32
  %view = tensor.expand_shape %x [[0], [1], [2, 3], [4]] output_shape [1, 256, 2, 3, 64]
      : tensor<1x256x6x64xf32> into tensor<1x256x2x3x64xf32>
  %e = tensor.empty() : tensor<1x256x2x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x256x2x64xf32>) -> tensor<1x256x2x64xf32>
  %y = linalg.generic {indexing_maps = [#grouped, #summed],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%view : tensor<1x256x2x3x64xf32>) outs(%z : tensor<1x256x2x64xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<1x256x2x64xf32>
  return %y : tensor<1x256x2x64xf32>
}

// -----

// An array of zeros that a launch reads has a program. Zeros that a sum begins at have none.
// CHECK: gdn_tile.program @take()
// CHECK-LABEL: gdn_tile.program @zeros_map(%x0: index, %x1: index) outs(%y: memref<?x4x128x64xf32,
// CHECK: %[[ZEROS:.*]] = arith.constant {gdn_tile.step = "state"} dense<0.000000e+00> : tensor<32x64xf32>
// CHECK: scf.for
// CHECK-NOT: gdn_tile.load
// CHECK: gdn_tile.store %[[ZEROS]], %y
// CHECK-LABEL: gdn_tile.program @zeros_map_0(%x0
// CHECK: linalg.reduce
// CHECK-LABEL: func.func @zeros
// CHECK: %[[FILLED:.*]] = gdn_tile.launch @zeros_map grid({{.*}}, %c128) tokens(%c4) ins({{.*}} outs(
// CHECK: gdn_tile.launch @zeros_map_0
// CHECK: gdn_tile.launch @take {{.*}} outs(%[[FILLED]]
#rows = affine_map<(b, t, h, k) -> (b, t, h, k)>
#sums = affine_map<(b, t, h, k) -> (b, t, h)>
gdn_tile.program @take() outs(%s: memref<?x4x128x64xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {}
func.func @zeros(%x: tensor<1x256x4x64xf32>, %n: index) -> (tensor<?x4x128x64xf32>, tensor<1x256x4xf32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%n) : tensor<?x4x128x64xf32>
  %f = tensor.empty() : tensor<1x256x4xf32>
  %state = linalg.fill ins(%zero : f32) outs(%e : tensor<?x4x128x64xf32>) -> tensor<?x4x128x64xf32>
  %none = linalg.fill ins(%zero : f32) outs(%f : tensor<1x256x4xf32>) -> tensor<1x256x4xf32>
  %sum = linalg.generic {indexing_maps = [#rows, #sums], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x : tensor<1x256x4x64xf32>) outs(%none : tensor<1x256x4xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<1x256x4xf32>
  %taken = gdn_tile.launch @take grid(%n, %c4, %c1) tokens(%c4) outs(%state : tensor<?x4x128x64xf32>) -> tensor<?x4x128x64xf32>
  return %taken, %sum : tensor<?x4x128x64xf32>, tensor<1x256x4xf32>
}

// -----

// Rows times what their sum says, which is stored, too: one program reads them once.
// CHECK-LABEL: gdn_tile.program @norm_map(
// CHECK-SAME: %x0: memref<1x?x4x64xbf16, {{.*}} outs(%y: memref<1x?x4x64xbf16, {{.*}}, %y1: memref<1x?x4xf32,
// CHECK-SAME: roles = [<name = "rows", warps = 4, registers = 48, steps = ["state"], lanes_per_row = 16>], channels = []
// CHECK: scf.for
// CHECK: gdn_tile.load %x0
// CHECK-NOT: gdn_tile.load
// CHECK: %[[SQUARES:.*]] = linalg.reduce {{.*}} dimensions = [1]
// CHECK: %[[NORM:.*]] = math.rsqrt %[[SQUARES]] {{.*}}tensor<32xf32>
// CHECK: linalg.broadcast ins(%[[NORM]] : tensor<32xf32>) {{.*}} dimensions = [1]
// CHECK: gdn_tile.store {{.*}}, %y[
// CHECK: gdn_tile.store %[[NORM]], %y1[{{.*}} axes [1] until(
// CHECK-LABEL: func.func @norm(
// CHECK-COUNT-1: gdn_tile.launch
// CHECK-NOT: linalg.generic
#bthk = affine_map<(b, t, h, k) -> (b, t, h, k)>
#row = affine_map<(b, t, h, k) -> (b, t, h)>
#one = affine_map<(b, t, h) -> (b, t, h)>
func.func @norm(%x: tensor<1x?x4x64xbf16>) -> (tensor<1x?x4x64xbf16>, tensor<1x?x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  %t = tensor.dim %x, %c1 : tensor<1x?x4x64xbf16>
  %e = tensor.empty(%t) : tensor<1x?x4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x?x4xf32>) -> tensor<1x?x4xf32>
  %s = linalg.generic {indexing_maps = [#bthk, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x : tensor<1x?x4x64xbf16>) outs(%z : tensor<1x?x4xf32>) {
  ^bb0(%a: bf16, %acc: f32):
    %w = arith.extf %a : bf16 to f32
    %m = arith.mulf %w, %w : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<1x?x4xf32>
  %f = tensor.empty(%t) : tensor<1x?x4x64xbf16>
  %y = linalg.generic {indexing_maps = [#bthk, #row, #bthk], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x, %s : tensor<1x?x4x64xbf16>, tensor<1x?x4xf32>) outs(%f : tensor<1x?x4x64xbf16>) {
  ^bb0(%a: bf16, %q: f32, %out: bf16):
    %w = arith.extf %a : bf16 to f32
    %i = math.rsqrt %q : f32
    %m = arith.mulf %w, %i : f32
    %o = arith.truncf %m : f32 to bf16
    linalg.yield %o : bf16
  } -> tensor<1x?x4x64xbf16>
  %g = tensor.empty(%t) : tensor<1x?x4xf32>
  %n = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s : tensor<1x?x4xf32>) outs(%g : tensor<1x?x4xf32>) {
  ^bb0(%q: f32, %out: f32):
    %i = math.rsqrt %q : f32
    linalg.yield %i : f32
  } -> tensor<1x?x4xf32>
  return %y, %n : tensor<1x?x4x64xbf16>, tensor<1x?x4xf32>
}

// -----

// A gate's gradient, and a sum over all tokens of what it is made of. Vectors are of 32 heads, and a chunk has those of 8
// tokens. A work item adds up its chunks in f32, without what is past the end. A second program adds the items' sums in their
// order.
// CHECK-LABEL: gdn_tile.program @gates_map(
// CHECK-SAME: %[[PARTS:[a-z0-9]+]]: index) outs(%y: memref<?x?x4xf32, {{.*}}>, %y1: memref<1x?x4xf32,
// CHECK-SAME: work_item(%[[N:.*]], %[[PART:.*]], %{{.*}}, %{{.*}}) tokens(
// CHECK-SAME: min_ctas = 5
// CHECK-SAME: roles = [<name = "rows", warps = 1, registers = 96, steps = ["state"]>, <name = "rest", warps = 3, registers = 96, steps = []>]
// CHECK: %[[SUM:.*]] = scf.for {{.*}} iter_args(%[[SO_FAR:.*]] = {{.*}}) -> (tensor<32xf32>)
// CHECK-COUNT-16: gdn_tile.load {{.*}} axes [2] until(%c4, dim = 2)
// CHECK-NOT: gdn_tile.load
// CHECK: gdn_tile.store {{.*}}, %y[{{.*}} axes [2] until(%c4, dim = 2)
// CHECK: %[[LEFT:.*]] = tensor.splat
// CHECK: %[[INSIDE:.*]] = arith.cmpi sgt, %[[LEFT]],
// CHECK: %[[ADDED:.*]] = arith.select %[[INSIDE]]
// CHECK-COUNT-7: gdn_tile.store
// CHECK: arith.addf %[[SO_FAR]]
// CHECK: %[[BEFORE:.*]] = arith.muli %[[N]], %[[PARTS]]
// CHECK: %[[ITEM:.*]] = arith.addi %[[BEFORE]], %[[PART]]
// CHECK: gdn_tile.store %[[SUM]], %y1[%c0, %[[ITEM]], %{{.*}}] axes [2] until(%c4, dim = 2)
// CHECK-LABEL: gdn_tile.program @gates_sum(
// CHECK-SAME: %x0: memref<1x?x4xf32, {{.*}}>) outs(%y: memref<4xbf16,
// CHECK: scf.for
// CHECK: gdn_tile.load {{.*}} axes [1] until({{.*}} -> tensor<64xf32>
// CHECK: gdn_tile.scan
// CHECK: arith.truncf
// CHECK: gdn_tile.store {{.*}}, %y[%{{.*}}] axes [0]
// CHECK-LABEL: func.func @gates
// CHECK: %[[BATCH:.*]] = tensor.dim %arg0, %c0
// CHECK: %[[ITEMS:.*]] = arith.muli %[[BATCH]], %[[COUNT:.*]] : index
// CHECK-NEXT: tensor.empty(%[[ITEMS]]) : tensor<1x?x4xf32>
// CHECK: %[[MAP:.*]]:2 = gdn_tile.launch @gates_map grid(%{{.*}}, %[[COUNT]], %c1, %c1)
// CHECK: gdn_tile.launch @gates_sum grid(%c1, %c4, %c1) tokens(%[[ITEMS]]) ins(%[[MAP]]#1 :
#id = affine_map<(b, t, h) -> (b, t, h)>
#bth = affine_map<(h, b, t) -> (b, t, h)>
#h = affine_map<(h, b, t) -> (h)>
#one = affine_map<(h) -> (h)>
func.func @gates(%x: tensor<?x?x4xf32>, %g: tensor<?x?x4xf32>) -> (tensor<?x?x4xf32>, tensor<4xbf16>) {
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = tensor.dim %x, %c0 : tensor<?x?x4xf32>
  %t = tensor.dim %x, %c1 : tensor<?x?x4xf32>
  %e = tensor.empty(%b, %t) : tensor<?x?x4xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %g : tensor<?x?x4xf32>, tensor<?x?x4xf32>) outs(%e : tensor<?x?x4xf32>) {
  ^bb0(%a: f32, %d: f32, %out: f32):
    %m = arith.mulf %a, %d : f32
    linalg.yield %m : f32
  } -> tensor<?x?x4xf32>
  %f = tensor.empty() : tensor<4xf64>
  %z = linalg.fill ins(%zero : f64) outs(%f : tensor<4xf64>) -> tensor<4xf64>
  %s = linalg.generic {indexing_maps = [#bth, #bth, #h], iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%x, %g : tensor<?x?x4xf32>, tensor<?x?x4xf32>) outs(%z : tensor<4xf64>) {
  ^bb0(%a: f32, %d: f32, %acc: f64):
    %i = math.exp %a : f32
    %m = arith.mulf %i, %d : f32
    %w = arith.extf %m : f32 to f64
    %r = arith.addf %acc, %w : f64
    linalg.yield %r : f64
  } -> tensor<4xf64>
  %p = tensor.empty() : tensor<4xbf16>
  %q = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%s : tensor<4xf64>) outs(%p : tensor<4xbf16>) {
  ^bb0(%a: f64, %out: bf16):
    %n = arith.truncf %a : f64 to f32
    %o = arith.truncf %n : f32 to bf16
    linalg.yield %o : bf16
  } -> tensor<4xbf16>
  return %y, %q : tensor<?x?x4xf32>, tensor<4xbf16>
}

// -----

// The same with a gate a channel: the gradient, its sum over tokens and that over tokens and channels. Chunks of 16 tokens
// leave a thread registers for both sums, and for the next chunk. A part of a sum is a row of columns.
// CHECK-LABEL: gdn_tile.program @channels_map(
// CHECK-SAME: %x0: memref<1x?x4x64xbf16, {{.*}}>, %x1: memref<1x?x4x64xf32, {{.*}}>, %x2: memref<4xf32, {{.*}}>, %x3: memref<4x64xf32,
// CHECK-SAME: outs(%y: memref<1x?x4x64xbf16, {{.*}}>, %y1: memref<1x?x4x64xf32, {{.*}}>, %y2: memref<1x?x4x64xf32,
// CHECK-SAME: min_ctas = 6
// CHECK-SAME: roles = [<name = "rows", warps = 4, registers = 80, steps = ["state"], lanes_per_row = 16>]
// CHECK: %[[BIAS:.*]] = gdn_tile.load %x3[%{{.*}}, %c0] axes [1] {{.*}} -> tensor<64xf32>
// CHECK: scf.for {{.*}} -> (tensor<16x64xf32>, tensor<16x64xf32>, tensor<16x64xbf16>, tensor<16x64xf32>)
// CHECK: linalg.broadcast ins(%[[BIAS]] : tensor<64xf32>) {{.*}} dimensions = [0]
// CHECK: gdn_tile.store {{.*}}, %y[
// CHECK: %[[ROWS:.*]] = linalg.broadcast {{.*}} dimensions = [1]
// CHECK: %[[INSIDE:.*]] = arith.cmpi slt, %[[ROWS]], %{{.*}} : tensor<16x64xi32>
// CHECK: arith.select %[[INSIDE]]
// CHECK: linalg.reduce {{.*}} dimensions = [0]
// CHECK: gdn_tile.store {{.*}}, %y1[%c0, %{{.*}}, %{{.*}}, %c0] axes [3]
// CHECK-LABEL: gdn_tile.program @channels_sum(
// CHECK-SAME: outs(%y: memref<4x64xbf16, {{.*}}>, %y1: memref<4xf32,
// CHECK: scf.for
// CHECK: gdn_tile.load %x0[%c0, %{{.*}}, %{{.*}}, %c0] axes [1, 3]
// CHECK: %[[COLUMNS:.*]] = linalg.reduce {{.*}} dimensions = [0]
// CHECK: %[[ROUNDED:.*]] = arith.truncf %[[COLUMNS]]
// CHECK: gdn_tile.store %[[ROUNDED]], %y[%{{.*}}, %c0] axes [1]
// CHECK: %[[OTHER:.*]] = linalg.reduce {{.*}} dimensions = [0]
// CHECK: %[[ALL:.*]] = linalg.reduce ins(%[[OTHER]] : tensor<64xf32>) {{.*}} dimensions = [0]
// CHECK: tensor.extract %[[ALL]][]
// CHECK: gdn_tile.store {{.*}}, %y1[%{{.*}}] axes [0]
// CHECK-LABEL: func.func @channels
// CHECK: %[[MAP:.*]]:3 = gdn_tile.launch @channels_map grid(%c1, %[[COUNT:.*]], %c1, %c4)
// CHECK: gdn_tile.launch @channels_sum grid(%c1, %c4, %c1) tokens(%[[COUNT]]) ins(%[[MAP]]#1, %[[MAP]]#2 :
#all = affine_map<(b, t, h, k) -> (b, t, h, k)>
#h = affine_map<(b, t, h, k) -> (h)>
#hk = affine_map<(b, t, h, k) -> (h, k)>
#id = affine_map<(h, k) -> (h, k)>
func.func @channels(%x: tensor<1x?x4x64xbf16>, %g: tensor<1x?x4x64xf32>, %rate: tensor<4xf32>, %bias: tensor<4x64xf32>)
    -> (tensor<1x?x4x64xbf16>, tensor<4x64xbf16>, tensor<4xf32>) {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  %t = tensor.dim %x, %c1 : tensor<1x?x4x64xbf16>
  %e = tensor.empty(%t) : tensor<1x?x4x64xbf16>
  %y = linalg.generic {indexing_maps = [#all, #all, #h, #hk, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x, %g, %rate, %bias : tensor<1x?x4x64xbf16>, tensor<1x?x4x64xf32>, tensor<4xf32>, tensor<4x64xf32>) outs(%e : tensor<1x?x4x64xbf16>) {
  ^bb0(%a: bf16, %d: f32, %r: f32, %c: f32, %out: bf16):
    %w = arith.extf %a : bf16 to f32
    %s = arith.addf %w, %c : f32
    %m = arith.mulf %s, %r : f32
    %n = arith.mulf %m, %d : f32
    %o = arith.truncf %n : f32 to bf16
    linalg.yield %o : bf16
  } -> tensor<1x?x4x64xbf16>
  %f = tensor.empty() : tensor<4x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%f : tensor<4x64xf32>) -> tensor<4x64xf32>
  %s = linalg.generic {indexing_maps = [#all, #all, #hk, #hk], iterator_types = ["reduction", "reduction", "parallel", "parallel"]}
      ins(%x, %g, %bias : tensor<1x?x4x64xbf16>, tensor<1x?x4x64xf32>, tensor<4x64xf32>) outs(%z : tensor<4x64xf32>) {
  ^bb0(%a: bf16, %d: f32, %c: f32, %acc: f32):
    %w = arith.extf %a : bf16 to f32
    %m = arith.addf %w, %c : f32
    %n = arith.mulf %m, %d : f32
    %r = arith.addf %acc, %n : f32
    linalg.yield %r : f32
  } -> tensor<4x64xf32>
  %p = tensor.empty() : tensor<4x64xbf16>
  %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%s : tensor<4x64xf32>) outs(%p : tensor<4x64xbf16>) {
  ^bb0(%a: f32, %out: bf16):
    %o = arith.truncf %a : f32 to bf16
    linalg.yield %o : bf16
  } -> tensor<4x64xbf16>
  %i = tensor.empty() : tensor<4xf32>
  %j = linalg.fill ins(%zero : f32) outs(%i : tensor<4xf32>) -> tensor<4xf32>
  %u = linalg.generic {indexing_maps = [#all, #all, #h], iterator_types = ["reduction", "reduction", "parallel", "reduction"]}
      ins(%x, %g : tensor<1x?x4x64xbf16>, tensor<1x?x4x64xf32>) outs(%j : tensor<4xf32>) {
  ^bb0(%a: bf16, %d: f32, %acc: f32):
    %w = arith.extf %a : bf16 to f32
    %n = arith.mulf %w, %d : f32
    %r = arith.addf %acc, %n : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  return %y, %q, %u : tensor<1x?x4x64xbf16>, tensor<4x64xbf16>, tensor<4xf32>
}

// -----

// What somebody reads before the next op stays a program of its own, and so does what shares nothing with the others.
// CHECK-LABEL: gdn_tile.program @apart_map(
// CHECK-LABEL: gdn_tile.program @apart_map_0(
// CHECK-LABEL: gdn_tile.program @apart_map_1(
// CHECK-LABEL: func.func @apart
// CHECK: gdn_tile.launch @apart_map
// CHECK: gdn_tile.launch @halve
// CHECK: gdn_tile.launch @apart_map_0
// CHECK: gdn_tile.launch @apart_map_1
#id = affine_map<(b, t, h) -> (b, t, h)>
gdn_tile.program @halve(%x: memref<1x256x4xf32>) outs(%s: memref<1x256x4xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {}
func.func @apart(%x: tensor<1x256x4xf32>, %u: tensor<1x128x4xf32>) -> (tensor<1x256x4xf32>, tensor<1x128x4xf32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c256 = arith.constant 256 : index
  %e = tensor.empty() : tensor<1x256x4xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<1x256x4xf32>) outs(%e : tensor<1x256x4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %m = arith.negf %a : f32
    linalg.yield %m : f32
  } -> tensor<1x256x4xf32>
  %l = tensor.empty() : tensor<1x256x4xf32>
  %half = gdn_tile.launch @halve grid(%c1, %c4, %c1) tokens(%c256) ins(%y : tensor<1x256x4xf32>) outs(%l : tensor<1x256x4xf32>) -> tensor<1x256x4xf32>
  %f = tensor.empty() : tensor<1x256x4xf32>
  %z = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %half : tensor<1x256x4xf32>, tensor<1x256x4xf32>) outs(%f : tensor<1x256x4xf32>) {
  ^bb0(%a: f32, %d: f32, %out: f32):
    %m = arith.mulf %a, %d : f32
    linalg.yield %m : f32
  } -> tensor<1x256x4xf32>
  %i = tensor.empty() : tensor<1x128x4xf32>
  %w = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%u : tensor<1x128x4xf32>) outs(%i : tensor<1x128x4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %m = arith.negf %a : f32
    linalg.yield %m : f32
  } -> tensor<1x128x4xf32>
  return %z, %w : tensor<1x256x4xf32>, tensor<1x128x4xf32>
}

// -----

// Both programs read rows whose sums they need: each makes the sums, and none goes through memory.
// CHECK-LABEL: gdn_tile.program @twice_map(
// CHECK: linalg.reduce
// CHECK: gdn_tile.store
// CHECK-NOT: gdn_tile.store
// CHECK-LABEL: gdn_tile.program @twice_map_0(
// CHECK: linalg.reduce
// CHECK-LABEL: func.func @twice
// CHECK: %[[FIRST:.*]] = gdn_tile.launch @twice_map grid({{.*}} ins(%arg0, {{.*}} : tensor<1x256x4x64xf32>, index, index)
// CHECK: %[[HALF:.*]] = gdn_tile.launch @halve {{.*}} ins(%[[FIRST]]
// CHECK: gdn_tile.launch @twice_map_0 grid({{.*}} ins(%arg0, %[[HALF]],
#id = affine_map<(b, t, h, k) -> (b, t, h, k)>
#row = affine_map<(b, t, h, k) -> (b, t, h)>
gdn_tile.program @halve(%x: memref<1x256x4x64xf32>) outs(%s: memref<1x256x4x64xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {}
func.func @twice(%x: tensor<1x256x4x64xf32>) -> tensor<1x256x4x64xf32> {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c256 = arith.constant 256 : index
  %e = tensor.empty() : tensor<1x256x4xf32>
  %f = tensor.empty() : tensor<1x256x4x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x256x4xf32>) -> tensor<1x256x4xf32>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x : tensor<1x256x4x64xf32>) outs(%z : tensor<1x256x4xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %a, %acc : f32
    linalg.yield %r : f32
  } -> tensor<1x256x4xf32>
  %y = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x, %s : tensor<1x256x4x64xf32>, tensor<1x256x4xf32>) outs(%f : tensor<1x256x4x64xf32>) {
  ^bb0(%a: f32, %q: f32, %out: f32):
    %m = arith.mulf %a, %q : f32
    linalg.yield %m : f32
  } -> tensor<1x256x4x64xf32>
  %half = gdn_tile.launch @halve grid(%c1, %c4, %c1) tokens(%c256) ins(%y : tensor<1x256x4x64xf32>) outs(%f : tensor<1x256x4x64xf32>) -> tensor<1x256x4x64xf32>
  %w = linalg.generic {indexing_maps = [#id, #row, #id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x, %s, %half : tensor<1x256x4x64xf32>, tensor<1x256x4xf32>, tensor<1x256x4x64xf32>) outs(%f : tensor<1x256x4x64xf32>) {
  ^bb0(%a: f32, %q: f32, %d: f32, %out: f32):
    %m = arith.mulf %a, %q : f32
    %n = arith.addf %m, %d : f32
    linalg.yield %n : f32
  } -> tensor<1x256x4x64xf32>
  return %w : tensor<1x256x4x64xf32>
}

// -----

// What reads a sum over tokens waits for the second program of it.
// CHECK-LABEL: func.func @times_over_sum
// CHECK: gdn_tile.launch @times_over_sum_map grid
// CHECK: %[[SUM:.*]] = gdn_tile.launch @times_over_sum_sum
// CHECK: gdn_tile.launch @times_over_sum_map_0 {{.*}} ins(%{{.*}}, %[[SUM]],
#bth = affine_map<(b, t, h) -> (b, t, h)>
#h = affine_map<(b, t, h) -> (h)>
#sin = affine_map<(h, b, t) -> (b, t, h)>
#sout = affine_map<(h, b, t) -> (h)>
func.func @times_over_sum(%x: tensor<1x256x4xf32>) -> tensor<1x256x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %s = linalg.generic {indexing_maps = [#sin, #sout], iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%x : tensor<1x256x4xf32>) outs(%z : tensor<4xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %a, %acc : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %o = tensor.empty() : tensor<1x256x4xf32>
  %y = linalg.generic {indexing_maps = [#bth, #h, #bth], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %s : tensor<1x256x4xf32>, tensor<4xf32>) outs(%o : tensor<1x256x4xf32>) {
  ^bb0(%a: f32, %f: f32, %out: f32):
    %m = arith.divf %a, %f : f32
    linalg.yield %m : f32
  } -> tensor<1x256x4xf32>
  return %y : tensor<1x256x4xf32>
}

// -----

// What reads an array that a launch overwrites stays in front of it.
// CHECK-LABEL: func.func @layer
// CHECK: %[[OLD:.*]] = gdn_tile.launch @layer_map grid
// CHECK: %[[NEW:.*]] = gdn_tile.launch @p grid
// CHECK: gdn_tile.launch @layer_map_0 {{.*}} ins(%[[NEW]], %[[OLD]],
#m = affine_map<(n, h, v, k) -> (n, h, v, k)>
func.func @layer(%q: tensor<1x256x4x64xbf16>, %x: tensor<1x256x4x64xbf16> {bufferization.writable = true}, %z: tensor<1x256x4x64xbf16>) -> (tensor<1x256x4x64xbf16>, tensor<1x256x4x64xbf16>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c256 = arith.constant 256 : index
  %e = tensor.empty() : tensor<1x256x4x64xbf16>
  %old = linalg.generic {indexing_maps = [#m, #m], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x : tensor<1x256x4x64xbf16>) outs(%e : tensor<1x256x4x64xbf16>) {
  ^bb0(%a: bf16, %out: bf16):
    %w = arith.addf %a, %a : bf16
    linalg.yield %w : bf16
  } -> tensor<1x256x4x64xbf16>
  %new = gdn_tile.launch @p grid(%c1, %c4, %c1) tokens(%c256) ins(%q : tensor<1x256x4x64xbf16>) outs(%x : tensor<1x256x4x64xbf16>) -> tensor<1x256x4x64xbf16>
  %e2 = tensor.empty() : tensor<1x256x4x64xbf16>
  %d = linalg.generic {indexing_maps = [#m, #m, #m], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%new, %old : tensor<1x256x4x64xbf16>, tensor<1x256x4x64xbf16>) outs(%e2 : tensor<1x256x4x64xbf16>) {
  ^bb0(%a: bf16, %b: bf16, %out: bf16):
    %w = arith.subf %a, %b : bf16
    linalg.yield %w : bf16
  } -> tensor<1x256x4x64xbf16>
  return %new, %d : tensor<1x256x4x64xbf16>, tensor<1x256x4x64xbf16>
}
gdn_tile.program @p(%x: memref<1x256x4x64xbf16>) outs(%y: memref<1x256x4x64xbf16>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [<name = "all", warps = 4, registers = 160, steps = ["state"]>], channels = []>} {
  %c0 = arith.constant 0 : index
  %0 = gdn_tile.load %x[%batch, %c0, %h, %c0] axes [1, 3] {gdn_tile.step = "state"} : memref<1x256x4x64xbf16> -> tensor<64x64xbf16>
  gdn_tile.store %0, %y[%batch, %c0, %h, %c0] axes [1, 3] {gdn_tile.step = "state"} : tensor<64x64xbf16> -> memref<1x256x4x64xbf16>
}

// -----

// Past the end the gradient is zero, and so is what a guard makes of it: nothing is masked.
// CHECK-LABEL: gdn_tile.program @guarded_map(
// CHECK: scf.for
// CHECK-NOT: arith.cmpi
// CHECK: linalg.reduce
// CHECK-LABEL: gdn_tile.program @guarded_sum(
#all = affine_map<(b, t, h, k) -> (b, t, h, k)>
#hk = affine_map<(b, t, h, k) -> (h, k)>
func.func @guarded(%x: tensor<1x?x4x64xf32>, %g: tensor<1x?x4x64xbf16>) -> tensor<4x64xf32> {
  %zero = arith.constant 0.0 : f32
  %f = tensor.empty() : tensor<4x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%f : tensor<4x64xf32>) -> tensor<4x64xf32>
  %s = linalg.generic {indexing_maps = [#all, #all, #hk], iterator_types = ["reduction", "reduction", "parallel", "parallel"]}
      ins(%x, %g : tensor<1x?x4x64xf32>, tensor<1x?x4x64xbf16>) outs(%z : tensor<4x64xf32>) {
  ^bb0(%a: f32, %d: bf16, %acc: f32):
    %w = arith.extf %d : bf16 to f32
    %e = math.exp %a : f32
    %m = arith.mulf %e, %w : f32
    %i = arith.cmpf oeq, %w, %zero : f32
    %n = arith.select %i, %zero, %m : f32
    %r = arith.addf %n, %acc : f32
    linalg.yield %r : f32
  } -> tensor<4x64xf32>
  return %s : tensor<4x64xf32>
}
