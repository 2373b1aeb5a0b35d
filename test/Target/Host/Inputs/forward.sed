# Makes a function of test/Target/PTX/forward.mlir: the arguments that a launch gives, and the launch.
s/%g : !gates, %beta : !gates/%beta : !gates, %g : !gates/
s/%scale : f32) threads/%launch_tokens : i64) threads/
/^gdn_warp.kernel/,/%c0 = /s/^  %c0 = /  %scale = arith.constant 0.088388347 : f32\n&/
$a\
func.func @layer(%q: tensor<?x?x2x128xbf16> {gdn.name = "q", gdn.dims = ["B", "T", "Hq", "K"]},\
                 %k: tensor<?x?x2x128xbf16> {gdn.name = "k", gdn.dims = ["B", "T", "Hq", "K"]},\
                 %v: tensor<?x?x4x128xbf16> {gdn.name = "v", gdn.dims = ["B", "T", "H", "V"]},\
                 %beta: tensor<?x?x4xf32> {gdn.name = "beta", gdn.dims = ["B", "T", "H"]},\
                 %gate: tensor<?x?x4xf32> {gdn.name = "gate", gdn.dims = ["B", "T", "H"]})\
    -> (tensor<?x?x4x128xbf16> {gdn.name = "o", gdn.dims = ["B", "T", "H", "V"]},\
        tensor<?x4x128x128xf32> {gdn.name = "final_state", gdn.dims = ["B", "H", "V", "K"]}) {\
  %c0 = arith.constant 0 : index\
  %c1 = arith.constant 1 : index\
  %c4 = arith.constant 4 : index\
  %b = tensor.dim %q, %c0 : tensor<?x?x2x128xbf16>\
  %t = tensor.dim %q, %c1 : tensor<?x?x2x128xbf16>\
  %oe = tensor.empty(%b, %t) : tensor<?x?x4x128xbf16>\
  %se = tensor.empty(%b) : tensor<?x4x128x128xf32>\
  %o, %s = gdn_tile.launch @forward grid(%b, %c4, %c1) tokens(%t)\
      ins(%q, %k, %v, %beta, %gate : tensor<?x?x2x128xbf16>, tensor<?x?x2x128xbf16>, tensor<?x?x4x128xbf16>,\
          tensor<?x?x4xf32>, tensor<?x?x4xf32>)\
      outs(%oe, %se : tensor<?x?x4x128xbf16>, tensor<?x4x128x128xf32>)\
      -> tensor<?x?x4x128xbf16>, tensor<?x4x128x128xf32>\
  return %o, %s : tensor<?x?x4x128xbf16>, tensor<?x4x128x128xf32>\
}
