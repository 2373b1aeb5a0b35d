# The project's own few CMake words. Upstream's add_mlir_library would drag in LLVM's install and
# aggregate rules; a plain static library over the packaged libMLIR.so is all we need, and it is the
# one way to be sure that a process never holds two copies of MLIR.

set(GDN_WARNING_FLAGS -Wall -Wextra -Wno-unused-parameter)
set(GDN_COMPILE_FLAGS $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions>)
if(GDN_ENABLE_SANITIZERS)
  set(GDN_SANITIZER_FLAGS -fsanitize=address,undefined -fno-sanitize=vptr -fno-omit-frame-pointer)
  list(APPEND GDN_COMPILE_FLAGS ${GDN_SANITIZER_FLAGS})
  add_link_options(${GDN_SANITIZER_FLAGS})
endif()

# A layer is compiled in LLVM's and MLIR's libraries for the most part, and more optimisation of the code around them
# takes half as long again to build.
set(GDN_MLIR_OPTIMIZATION -O1 CACHE STRING "The optimisation of code that uses MLIR; empty for that of the build type")

# Half of a file's time goes into what all files have: reading headers, instances of the templates of MLIR and of C++.
# .ci/run builds so; who changes a file compiles seven others again.
option(GDN_UNITY_BUILD "Compile eight files of a target at a time" OFF)

# gdn_use_unity_build(NAME): compiles a target so, if this build does.
function(gdn_use_unity_build name)
  # Each file has a DEBUG_TYPE of its own.
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${GDN_UNITY_BUILD} UNITY_BUILD_BATCH_SIZE 8
    UNITY_BUILD_CODE_AFTER_INCLUDE "#undef DEBUG_TYPE")
endfunction()

# gdn_add_library(NAME sources... [MLIR] [DEPENDS targets...] [LINK libraries...])
# MLIR: links libMLIR and libLLVM and shares the precompiled MLIR headers (14 s a file without them).
function(gdn_add_library name)
  cmake_parse_arguments(ARG "MLIR" "" "DEPENDS;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_compile_options(${name} PRIVATE ${GDN_WARNING_FLAGS} ${GDN_COMPILE_FLAGS})
  target_include_directories(${name} INTERFACE
    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include;${PROJECT_BINARY_DIR}/include>"
    "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  gdn_use_unity_build(${name})
  if(ARG_MLIR)
    target_link_libraries(${name} PUBLIC MLIR LLVM)
    add_dependencies(${name} GDNGenerated)
    gdn_use_precompiled_headers(${name})
  endif()
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  set_property(GLOBAL APPEND PROPERTY GDN_LIBRARIES ${name})
endfunction()

# gdn_add_tool(NAME sources... LINK libraries...): an executable in build/bin, which is installed.
function(gdn_add_tool name)
  gdn_add_executable(${name} ${ARGN})
  set_property(GLOBAL APPEND PROPERTY GDN_TOOLS ${name})
endfunction()

# gdn_add_executable(NAME sources... LINK libraries...): a program over MLIR that tests may call.
function(gdn_add_executable name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  # -fPIC and not CMake's -fPIE: a precompiled header is bound to one of them.
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIC ${GDN_WARNING_FLAGS} ${GDN_COMPILE_FLAGS})
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  add_dependencies(${name} GDNGenerated)
  gdn_use_precompiled_headers(${name})
  set_property(GLOBAL APPEND PROPERTY GDN_TEST_DEPENDS ${name})
endfunction()

# With these a file compiles that does not include what it uses of our dialects: scripts/test-full.sh builds without.
option(GDN_PRECOMPILE_DIALECTS "Precompile the headers of our dialects, and not MLIR's alone" ON)

# One precompiled header for all MLIR code: lib/CMakeLists.txt builds it once, with the same options.
function(gdn_use_precompiled_headers name)
  target_compile_options(${name} PRIVATE ${GDN_MLIR_OPTIMIZATION})
  gdn_use_unity_build(${name})
  if(GDN_PRECOMPILE_DIALECTS)
    target_precompile_headers(${name} REUSE_FROM GDNDialectsPrecompiled)
  else()
    target_precompile_headers(${name} REUSE_FROM GDNPrecompiled)
  endif()
endfunction()

# gdn_tablegen(FILE.td output generator [output generator]... ): runs mlir-tblgen and adds the outputs
# to the one target that all MLIR code depends on. Call it in include/, once a .td file.
function(gdn_tablegen td)
  set(LLVM_TARGET_DEFINITIONS ${td})
  set(TABLEGEN_OUTPUT)
  set(rest ${ARGN})
  while(rest)
    list(POP_FRONT rest output options)
    separate_arguments(options)
    mlir_tablegen(${output} ${options})
  endwhile()
  string(REPLACE "/" "." id "${CMAKE_CURRENT_SOURCE_DIR}/${td}")
  string(SHA1 id "${id}")
  add_custom_target(gdn-tablegen-${id} DEPENDS ${TABLEGEN_OUTPUT})
  add_dependencies(GDNGenerated gdn-tablegen-${id})
endfunction()
