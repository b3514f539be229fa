# Compiler, flags and the tools that make builds quicker; the same flags for every room, so that inline code means the same everywhere.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER AND NOT TEARLESS_WHEEL)
  # ccache requires these sloppiness settings before it caches units that use a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros "${CCACHE}")
endif()
find_program(MOLD mold)
if(MOLD AND NOT TEARLESS_WHEEL)
  add_link_options(-fuse-ld=mold)
endif()

add_library(tearless_flags INTERFACE)
target_compile_options(tearless_flags INTERFACE -Wall -Wextra $<$<BOOL:${TEARLESS_WERROR}>:-Werror>)

# Results are the product: no -ffast-math, no -march=native. What is left out here is only bookkeeping that nobody reads (errno, FP traps).
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fno-math-errno> $<$<COMPILE_LANGUAGE:CXX>:-fno-trapping-math>)
if(TEARLESS_WHEEL)
  add_compile_options(-g0)  # zig's default is -g
endif()
if(CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
  set(level x86-64-v2)
  if(TEARLESS_WHEEL)
    set(level x86_64_v2)  # as zig spells it
  endif()
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-march=${level}>)
endif()

if(TEARLESS_SANITIZE)  # without the checks of what the address sanitizer finds, too, which take a third of the compile time
  add_compile_options(-fsanitize=${TEARLESS_SANITIZE} -fno-sanitize=null,vptr,alignment,object-size -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${TEARLESS_SANITIZE})
endif()
