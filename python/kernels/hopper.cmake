# The Hopper kernels that are shipped: this file alone says which. Sequences, tokens, heads, strides and
# the type of cu_seqlens are values of a call (boundaries of 64 bits are read as ones of 32 with a
# stride of 2); what a kernel is compiled for is below. A call that no kernel serves is refused with the
# rule that it breaks (native/Hopper.cpp).
#
#   ELEMENT    q, k, v and o: BF16 F16
#   LAYOUT     Fixed (a sequence a batch row) or Packed (cu_seqlens)
#   STATE      None; Final (no initial state); Both: then the layout, KV or VK, and the type, F32 or BF16
#   GATE       domain, Log Linear Raw; the type
#   BETA       domain, Value Logit DoubledLogit; the type
#   NORM       Plain or L2: q and k are normalised first
#   SCHEDULE   CtaPerHead; CtaPerVTile: a CTA for each half of the V channels of a head
#
# Channels are K = V = 128, the scale is K^(-1/2).
set(hopper_channels 128)
set(hopper_objects)
set(hopper_table)

# Adds one kernel to hopper_objects and hopper_table of the caller.
function(gdn_add_hopper_kernel element layout state gate beta norm schedule)
  string(REGEX REPLACE "([a-z])([A-Z])" "\\1_\\2" schedule_option "${schedule}")
  string(REPLACE "VTile" "V_Tile" schedule_option "${schedule_option}")
  string(TOLOWER "${schedule_option}" schedule_option)
  string(TOLOWER "gdn_hopper_${element}_${layout}_${state}_${gate}_${beta}_${norm}_${schedule_option}" name)
  string(TOLOWER "${element}" type)
  string(REPLACE "_" ";" state "${state}")
  string(REPLACE "_" ";" gate "${gate}")
  string(REPLACE "_" ";" beta "${beta}")
  list(POP_FRONT state ends state_layout state_element)
  list(POP_FRONT gate gate_domain gate_element)
  list(POP_FRONT beta beta_domain beta_element)
  if(ends STREQUAL None)
    set(state_layout KV)
  endif()
  if(NOT state_element)
    set(state_element F32)
  endif()
  foreach(kind state gate beta)
    string(TOLOWER "${${kind}_element}" ${kind}_type)
  endforeach()

  # Packed sequences have no batch; a dimension of 1 leaves room for one more in a tensor map.
  set(batch "?")
  if(layout STREQUAL Packed)
    set(batch "1")
  endif()
  set(type_q "tensor<${batch}x?x?x${hopper_channels}x${type}>")
  set(type_k "${type_q}")
  set(type_v "${type_q}")
  set(type_beta "tensor<${batch}x?x?x${beta_type}>")
  set(type_gate "tensor<${batch}x?x?x${gate_type}>")
  set(type_initial_state "tensor<?x?x${hopper_channels}x${hopper_channels}x${state_type}>")
  set(type_cu_seqlens "tensor<?xi32>")
  set(type_a_log "tensor<?xf32>")
  set(type_dt_bias "tensor<?xf32>")
  set(names q k v beta gate)
  if(ends STREQUAL Both)
    list(APPEND names initial_state)
  endif()
  if(layout STREQUAL Packed)
    list(APPEND names cu_seqlens)
  endif()
  set(attributes)
  if(gate_domain STREQUAL Linear)
    list(APPEND attributes "gate_domain = #gdn.gate_domain<linear>")
  elseif(gate_domain STREQUAL Raw)
    list(APPEND names a_log dt_bias)
    list(APPEND attributes "gate_domain = #gdn.gate_domain<softplus>")
  endif()
  if(beta_domain STREQUAL Logit)
    list(APPEND attributes "beta_domain = #gdn.beta_domain<logit>")
  elseif(beta_domain STREQUAL DoubledLogit)
    list(APPEND attributes "beta_domain = #gdn.beta_domain<doubled_logit>")
  endif()
  if(norm STREQUAL L2)
    list(APPEND attributes "qk_l2norm")
  endif()
  if(state_layout STREQUAL VK)
    list(APPEND attributes "state_layout = #gdn.state_layout<vk>")
  endif()
  set(values "%o")
  set(results "${type_v}")
  if(NOT ends STREQUAL None)
    list(APPEND attributes "output_final_state")
    string(APPEND values ", %final_state")
    string(APPEND results ", ${type_initial_state}")
  endif()
  set(arguments)
  set(operands)
  foreach(argument ${names})
    list(APPEND arguments "%${argument}: ${type_${argument}}")
    string(APPEND operands "\n      ${argument}(%${argument} : ${type_${argument}})")
  endforeach()
  list(JOIN arguments ", " arguments)
  list(JOIN attributes ", " attributes)
  configure_file(kernels/hopper.mlir.in "${kernel_dir}/${name}.mlir" @ONLY)

  add_custom_command(
    OUTPUT "${kernel_dir}/${name}.o"
    COMMAND "${CMAKE_COMMAND}" -E env "GDN_PTXAS=${GDN_PTXAS}"
      $<TARGET_FILE:gdn-compile> "${kernel_dir}/${name}.mlir" --target=sm_90a --emit=obj
      --schedule=${schedule_option} -o "${kernel_dir}/${name}.o"
    DEPENDS gdn-compile "${kernel_dir}/${name}.mlir"
    COMMENT "Compiling Hopper kernel ${name}"
    VERBATIM)
  set(hopper_objects ${hopper_objects} "${kernel_dir}/${name}.o" PARENT_SCOPE)
  set(hopper_table "${hopper_table}GDN_HOPPER_KERNEL(${name}, ${element}, ${layout}, ${ends}, ${state_layout}, ${state_element}, ${gate_domain}, ${gate_element}, ${beta_domain}, ${beta_element}, ${norm}, ${schedule})\n" PARENT_SCOPE)
endfunction()

# Adds a kernel for each combination of what stands behind the keywords.
macro(gdn_add_hopper_kernels)
  cmake_parse_arguments(set "" "" "ELEMENT;LAYOUT;STATE;GATE;BETA;NORM" ${ARGN})
  foreach(element ${set_ELEMENT})
    foreach(layout ${set_LAYOUT})
      foreach(state ${set_STATE})
        foreach(gate ${set_GATE})
          foreach(beta ${set_BETA})
            foreach(norm ${set_NORM})
              foreach(schedule CtaPerHead CtaPerVTile)
                gdn_add_hopper_kernel(${element} ${layout} ${state} ${gate} ${beta} ${norm} ${schedule})
              endforeach()
            endforeach()
          endforeach()
        endforeach()
      endforeach()
    endforeach()
  endforeach()
endmacro()

# Every domain has kernels for gates and beta in float32; beyond that, log and raw gates have ones for
# beta in bfloat16, and raw gates ones for both in bfloat16, as a model's projections leave them. Other
# types are widened before the call (widened_on_gpu in gdn/_arguments.py).
set(hopper_states None Final_KV Final_VK Both_KV_F32 Both_VK_F32)
set(hopper_bf16 ELEMENT BF16 LAYOUT Fixed Packed STATE ${hopper_states})
gdn_add_hopper_kernels(${hopper_bf16} GATE Log_F32 BETA Value_F32 Value_BF16 NORM Plain L2)
gdn_add_hopper_kernels(${hopper_bf16} GATE Log_F32 BETA Logit_F32 Logit_BF16 NORM Plain)
gdn_add_hopper_kernels(${hopper_bf16} GATE Linear_F32 BETA Value_F32 NORM Plain L2)
gdn_add_hopper_kernels(${hopper_bf16} GATE Raw_F32 BETA Logit_F32 Logit_BF16 NORM Plain L2)
gdn_add_hopper_kernels(${hopper_bf16} GATE Raw_BF16 BETA Logit_BF16 NORM Plain L2)
gdn_add_hopper_kernels(ELEMENT BF16 LAYOUT Fixed Packed STATE Both_KV_BF16 Both_VK_BF16
  GATE Log_F32 BETA Value_F32 Value_BF16 NORM Plain)
gdn_add_hopper_kernels(ELEMENT F16 LAYOUT Fixed Packed STATE ${hopper_states}
  GATE Log_F32 BETA Value_F32 NORM Plain)
