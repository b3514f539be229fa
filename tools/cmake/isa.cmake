# The processor's kernels are one source, compiled once for each level of x86-64: engine/ops/backend.cc chooses at run time, so that
# one binary runs on all and is fast on each. AVX-512 units keep to 256-bit vectors in loops that the compiler vectorises: rows are
# short, and wider ones lose more in their remainders than they gain; the loops that gain choose them by their types.
#
# tearless_isa_kernels(engine/ops/cpu INTO engine/ops): compiles engine/ops/cpu/kernels.cc, which may include what engine/ops may, and
# engine/ops itself.
function(tearless_isa_kernels folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "INTO" "")
  tearless_target(target ${arg_INTO})
  set(source "${PROJECT_SOURCE_DIR}/${folder}/kernels.cc")
  foreach(level v2 v3 v4)
    set(kernels "${target}_${level}")
    add_library(${kernels} OBJECT "${source}")
    target_include_directories(${kernels} PRIVATE "${PROJECT_SOURCE_DIR}")
    target_compile_definitions(${kernels} PRIVATE TEARLESS_ISA=isa_${level})
    target_compile_options(${kernels} PRIVATE -march=x86-64-${level} -mtune=generic -mprefer-vector-width=256 -fopenmp -fno-math-errno
      -fno-trapping-math $<$<NOT:$<CONFIG:Debug>>:-O3>)
    target_link_libraries(${kernels} PRIVATE tearless_flags)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${kernels}>)
  endforeach()
endfunction()
