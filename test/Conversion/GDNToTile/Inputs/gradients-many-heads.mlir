func.func @gradients(%q: tensor<1x256x1x64xbf16>, %v: tensor<1x256x8x64xbf16>, %beta: tensor<1x256x8xf32>,
    %s: tensor<2x8x64x64xbf16>, %ds: tensor<5x8x64x64xbf16>) -> tensor<1x256x1x64xbf16> {
  %r:3 = gdn.stage.gradients q(%q : tensor<1x256x1x64xbf16>) k(%q : tensor<1x256x1x64xbf16>)
      v(%v : tensor<1x256x8x64xbf16>) beta(%beta : tensor<1x256x8xf32>) d_o(%v : tensor<1x256x8x64xbf16>)
      writes(%v : tensor<1x256x8x64xbf16>) dv(%v : tensor<1x256x8x64xbf16>)
      states(%s : tensor<2x8x64x64xbf16>) d_states(%ds : tensor<5x8x64x64xbf16>)
      {chunk_size = 64, segment_length = 64, state_interval = 256}
      -> tensor<1x256x1x64xbf16>, tensor<1x256x1x64xbf16>, tensor<1x256x8xf32>
  return %r#0 : tensor<1x256x1x64xbf16>
}
