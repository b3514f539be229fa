# build/bin/libtearless_cuda.so, where an nvcc of LibTorch's CUDA version is at hand. The engine opens it for device = "cuda" and never
# links it. nvcc is called directly: the one library needs none of what CMake's CUDA language probes for.
option(TEARLESS_CUDA "Build libtearless_cuda.so when nvcc 13 is found" ON)
find_program(NVCC nvcc PATHS /usr/local/cuda/bin)
if(NOT TEARLESS_CUDA OR NOT NVCC)
  message(STATUS "CUDA: no nvcc; the engine is built for the CPU only")
  return()
endif()
execute_process(COMMAND "${NVCC}" --version OUTPUT_VARIABLE _nvcc)
if(NOT _nvcc MATCHES "release 13\\.")
  message(STATUS "CUDA: ${NVCC} is not of CUDA 13, which LibTorch is built for; the engine is built for the CPU only")
  return()
endif()

# .cu: kernels; .cpp: sources that need LibTorch's headers for CUDA, which nvcc passes to the host's compiler.
file(GLOB cuda_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/engine/cuda/*.cu" "${PROJECT_SOURCE_DIR}/engine/cuda/*.cpp")
file(GLOB cuda_headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/engine/cuda/*.h")
foreach(header engine/ops/kernels.h engine/ops/bf16.h engine/ops/body.h engine/ops/random.h base/hash.h)
  list(APPEND cuda_headers "${PROJECT_SOURCE_DIR}/${header}")
endforeach()
set(cuda_library "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/libtearless_cuda.so")
# It names libtorch_cuda.so as needed, so that opening it brings in ATen's CUDA backend; what that one needs may be absent here.
add_custom_command(
  OUTPUT "${cuda_library}"
  COMMAND "${CMAKE_COMMAND}" -E make_directory "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}"
  COMMAND "${NVCC}" -std=c++20 -O3 --threads 2 -shared -Xcompiler -fPIC,-Wall -cudart shared "-I${PROJECT_SOURCE_DIR}"
    -DAT_PER_OPERATOR_HEADERS -isystem "${TORCH_DIR}/include"
    -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=[sm_90,compute_90]
    ${cuda_sources} -o "${cuda_library}"
    -Xlinker --allow-shlib-undefined,-rpath,${TORCH_DIR}/lib,--no-as-needed,${TORCH_DIR}/lib/libtorch_cuda.so
  DEPENDS ${cuda_sources} ${cuda_headers}
  COMMENT "Building libtearless_cuda.so" VERBATIM)
add_custom_target(tearless_cuda ALL DEPENDS "${cuda_library}")
add_dependencies(programs tearless_cuda)
message(STATUS "CUDA: ${NVCC}")
