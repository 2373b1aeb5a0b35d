//===- ConversionOps.td - Arrays for other functions -------*- tablegen -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What brings a call's array to a function that does not take it as it is.
// Ops.td includes this file.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_GDN_IR_CONVERSIONOPS_TD
#define GDN_DIALECT_GDN_IR_CONVERSIONOPS_TD

defvar convertedTypes = [BF16, F16, F32];

def GDN_ConvertOp : Op<GDN_Dialect, "convert", [AttrSizedOperandSegments, OnlyKnownAttributes, Pure]> {
  let summary = "Bring an array [B, T, H, C] to what another function takes";
  let description = [{
    One kernel that reads an array and writes another one, of another type, other
    extents, other strides, or another way to say a gate or beta. The operands
    depend on the kind:

    | kind | operands | elements |
    |---|---|---|
    | `copy`, `transpose` | `input` | bf16 or f32, which stand for any of 16 or 32 bits |
    | `cast` | `input`, `like`, `factor` | the input's times `factor` |
    | `fill` | `like`, `factor` | `factor` |
    | `linear_to_log` | `input`, `like` | log x |
    | `softplus_to_log` | `input`, `like`, `a_log`, `dt_bias` | -exp(a_log) softplus(x + dt_bias) |
    | `logit_to_value` | `input`, `like`, `factor` | factor / (1 + exp(-x)) |

    The extents of the result are those of `like`, whose elements nobody reads;
    what lies beyond the input is zero. The last three kinds are computed in f64
    and rounded once: a GPU approximates f32 functions less nearly than torch does.

    Example:

    ```mlir
    %log = gdn.convert linear_to_log input(%g : tensor<?x?x?x?xbf16>) like(%target : tensor<?x?x?x?xf32>)
        -> tensor<?x?x?x?xf32>
    ```
  }];
  let arguments = (ins
    Arg<GDN_ConversionKindAttr, "What becomes of the elements.">:$kind,
    Arg<Optional<TensorRankOf<convertedTypes, [4]>>, "The array that is read, [B, T, H, C]; of a transpose [B, H, C, T].">:$input,
    Arg<Optional<TensorRankOf<convertedTypes, [4]>>, "An array of the result's type and extents.">:$like,
    Arg<Optional<F32>, "What elements are multiplied by.">:$factor,
    Arg<Optional<TensorRankOf<[F32], [1]>>, "Parameter A_log [C] of raw gates.">:$a_log,
    Arg<Optional<TensorRankOf<[F32], [1]>>, "Parameter dt_bias [C] of raw gates.">:$dt_bias);
  let results = (outs Res<TensorRankOf<convertedTypes, [4]>, "The converted array [B, T, H, C].">:$result);
  let assemblyFormat = [{
    $kind (`input` `(` $input^ `:` type($input) `)`)? (`like` `(` $like^ `:` type($like) `)`)?
    (`factor` `(` $factor^ `:` type($factor) `)`)? (`a_log` `(` $a_log^ `:` type($a_log) `)`)?
    (`dt_bias` `(` $dt_bias^ `:` type($dt_bias) `)`)? attr-dict `->` type($result)
  }];
  let hasVerifier = 1;
}

#endif // GDN_DIALECT_GDN_IR_CONVERSIONOPS_TD
