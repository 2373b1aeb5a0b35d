//===- Attributes.td - Enumerations of the gdn dialect -----*- tablegen -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// docs/Glossary.md explains the terms.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_GDN_IR_ATTRIBUTES_TD
#define GDN_DIALECT_GDN_IR_ATTRIBUTES_TD

include "gdn/Dialect/GDN/IR/Dialect.td"
include "mlir/IR/EnumAttr.td"

class GDN_Enum<string cppName, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<cppName, summary, cases> {
  let cppNamespace = "::mlir::gdn";
  let genSpecializedAttr = 0;
}

class GDN_EnumAttr<EnumAttrInfo enum, string mnemonic>
    : EnumAttr<GDN_Dialect, enum, mnemonic> {
  let assemblyFormat = "`<` $value `>`";
}

def GDN_GateDomainParameter
    : AttrParameter<"::mlir::gdn::GateDomain", "the word of a form"> {
  let parser = "::mlir::gdn::parseGateDomain($_parser)";
  let printer = "$_printer << ::mlir::gdn::stringifyGateDomain($_self)";
}
// The forms are in gdn/GateForms.inc.
def GDN_GateDomainAttr : AttrDef<GDN_Dialect, "GateDomain"> {
  let mnemonic = "gate_domain";
  let summary = "How the gate operand is to be read";
  let description = [{
    `log` is the natural logarithm of the decay, at most 0; `linear` is the
    decay itself, in [0, 1]; `softplus` and `bounded` are made logarithms by
    [spec 1](../../Spec.md#what-is-computed).
  }];
  let parameters = (ins GDN_GateDomainParameter:$value);
  let assemblyFormat = "`<` $value `>`";
  let returnType = "::mlir::gdn::GateDomain";
  let convertFromStorage = "$_self.getValue()";
  let constBuilderCall =
      "::mlir::gdn::GateDomainAttr::get($_builder.getContext(), $0)";
}

def GDN_BetaDomain : GDN_Enum<"BetaDomain",
    "How the beta operand is to be read", [
  // The operand is beta itself.
  I32EnumAttrCase<"Value", 0, "value">,
  // beta = sigmoid(operand).
  I32EnumAttrCase<"Logit", 1, "logit">,
  // beta = 2 sigmoid(operand): allows negative eigenvalues of the transition.
  I32EnumAttrCase<"DoubledLogit", 2, "doubled_logit">]>;
def GDN_BetaDomainAttr : GDN_EnumAttr<GDN_BetaDomain, "beta_domain">;

def GDN_StateLayout : GDN_Enum<"StateLayout",
    "Order of the two channel dimensions of a state in memory", [
  // [N, H, K, V].
  I32EnumAttrCase<"KV", 0, "kv">,
  // [N, H, V, K].
  I32EnumAttrCase<"VK", 1, "vk">]>;
def GDN_StateLayoutAttr : GDN_EnumAttr<GDN_StateLayout, "state_layout">;

def GDN_ConversionKind : GDN_Enum<"ConversionKind", "What a conversion makes of an array", [
  // The same elements, channels side by side.
  I32EnumAttrCase<"Copy", 0, "copy">,
  // The same of an array [B, H, C, T], whose tokens lie side by side.
  I32EnumAttrCase<"Transpose", 1, "transpose">,
  // factor x, in another type or with other extents.
  I32EnumAttrCase<"Cast", 2, "cast">,
  // factor everywhere.
  I32EnumAttrCase<"Fill", 3, "fill">,
  // log x.
  I32EnumAttrCase<"LinearToLog", 4, "linear_to_log">,
  // -exp(a_log) softplus(x + dt_bias).
  I32EnumAttrCase<"SoftplusToLog", 5, "softplus_to_log">,
  // factor sigmoid(x).
  I32EnumAttrCase<"LogitToValue", 6, "logit_to_value">]>;
def GDN_ConversionKindAttr : EnumAttr<GDN_Dialect, GDN_ConversionKind, "conversion">;

#endif // GDN_DIALECT_GDN_IR_ATTRIBUTES_TD
