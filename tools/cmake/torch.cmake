# LibTorch as two plain imported targets. Its own CMake package is not used: it insists on a CUDA toolkit.
# Looked for where the environment's TEARLESS_TORCH says, or -DTEARLESS_TORCH, else in the cache that tools/setup.sh fills.
set(TEARLESS_TORCH_VERSION 2.11.0)

set(_cache "$ENV{XDG_CACHE_HOME}")
if(NOT _cache)
  set(_cache "$ENV{HOME}/.cache")
endif()
set(TEARLESS_TORCH "" CACHE PATH "Folder of LibTorch, with lib/ and include/ (empty: the one that make setup fetched)")
if(DEFINED ENV{TEARLESS_TORCH})  # remembered, so that a later configure without it stays with the same library
  set(TEARLESS_TORCH "$ENV{TEARLESS_TORCH}" CACHE PATH "" FORCE)
endif()
set(TORCH_DIR "${TEARLESS_TORCH}")
if(NOT TORCH_DIR)
  set(TORCH_DIR "${_cache}/tearless/libtorch-${TEARLESS_TORCH_VERSION}/torch")
endif()

set(_version_header "${TORCH_DIR}/include/torch/headeronly/version.h")
if(NOT EXISTS "${_version_header}" OR NOT EXISTS "${TORCH_DIR}/lib/libtorch_cpu.so")
  message(FATAL_ERROR "No LibTorch in ${TORCH_DIR}: run `make setup`, or set TEARLESS_TORCH to an installed torch ${TEARLESS_TORCH_VERSION}.")
endif()
file(STRINGS "${_version_header}" _version REGEX "\"[0-9.]+\"")
string(REGEX MATCH "[0-9.]+" _version "${_version}")
if(NOT _version VERSION_EQUAL TEARLESS_TORCH_VERSION)
  message(FATAL_ERROR "LibTorch in ${TORCH_DIR} is version ${_version}, but ${TEARLESS_TORCH_VERSION} is needed.")
endif()
message(STATUS "LibTorch ${_version} in ${TORCH_DIR}")

add_library(torch::c10 SHARED IMPORTED)
set_target_properties(torch::c10 PROPERTIES IMPORTED_LOCATION "${TORCH_DIR}/lib/libc10.so" IMPORTED_NO_SONAME FALSE)

add_library(torch::cpu SHARED IMPORTED)
set_target_properties(torch::cpu PROPERTIES IMPORTED_LOCATION "${TORCH_DIR}/lib/libtorch_cpu.so")
target_link_libraries(torch::cpu INTERFACE torch::c10)
# ATen/Parallel.h is inline OpenMP. The runtime must be LibTorch's own: a second one would have threads of its own.
target_compile_options(torch::cpu INTERFACE -fopenmp)
file(GLOB _openmp_runtime "${TORCH_DIR}/lib/libgomp*.so*")
target_link_libraries(torch::cpu INTERFACE ${_openmp_runtime})
target_compile_definitions(torch::cpu INTERFACE _GLIBCXX_USE_CXX11_ABI=1)
# ATen's headers then read those of the operations they name and not of all two thousand.
target_compile_definitions(torch::cpu INTERFACE AT_PER_OPERATOR_HEADERS)
# Last in the search order: the wheel also ships headers of fmt and protobuf, of other versions than the libraries we link.
target_compile_options(torch::cpu INTERFACE
  "SHELL:-idirafter ${TORCH_DIR}/include" "SHELL:-idirafter ${TORCH_DIR}/include/torch/csrc/api/include")
# libtorch_cpu.so finds what it needs by its own RPATH; the linker need not look.
target_link_options(torch::cpu INTERFACE -Wl,--allow-shlib-undefined)

tearless_precompiled(torch_pch LINK torch::cpu fmt::fmt FLAGS ${TEARLESS_ROOM_FLAGS}
  HEADERS <ATen/core/Tensor.h> <ATen/TensorOperators.h> <fmt/format.h>)
