# A room is a folder, a target of the same name, and its link line is its arrows (tests/base/arrows_test.cc checks the includes against them).

# Half of what a unit costs are headers and templates that other files of its room use too, so files of a room are compiled a few together. Names in
# unnamed namespaces must therefore be different within a room. The dev preset compiles each file alone and shows what is forgotten.
option(TEARLESS_UNITY "Compile files of a room together" ON)
# More make the whole build quicker, and the build after a change to one file slower (the dev preset compiles each alone).
set(TEARLESS_UNITY_FILES 12 CACHE STRING "Files that are compiled together")

# Under the sanitizers: templates of strings and JSON, not arithmetic, are what rooms spend their compile time on, and this halves it; the kernels
# (isa.cmake) are optimised all the same.
set(TEARLESS_ROOM_FLAGS)
if(TEARLESS_SANITIZE)
  set(TEARLESS_ROOM_FLAGS -O0)
endif()

# tearless_room(engine/norm DEPENDS engine/ops LINK torch::cpu)
# DEPENDS names the rooms this one may include, besides those that they reach; LINK names libraries of others.
# ARITHMETIC: loops over samples or sentences, which take minutes where they are not optimised: they are under the sanitizers, too.
# Sources are found by glob: a new file needs no edit here. main.cc belongs to the program, not to the room.
function(tearless_room room)
  cmake_parse_arguments(PARSE_ARGV 1 arg "ARITHMETIC" "" "DEPENDS;LINK")
  tearless_target(target ${room})
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${room}/*.cc")
  list(FILTER sources EXCLUDE REGEX "/main\\.cc$")
  set(below ${arg_LINK})
  foreach(dependency IN LISTS arg_DEPENDS)
    tearless_target(name ${dependency})
    list(APPEND below ${name})
  endforeach()
  if(sources)
    add_library(${target} STATIC ${sources})
    target_include_directories(${target} PUBLIC "${PROJECT_SOURCE_DIR}")
    target_link_libraries(${target} PUBLIC ${below} PRIVATE tearless_flags)
    if(NOT arg_ARITHMETIC OR NOT TEARLESS_SANITIZE)
      tearless_precompile(${target})
    endif()
    tearless_unite(${target} ${TEARLESS_UNITY_FILES})
  else()  # headers only
    add_library(${target} INTERFACE)
    target_include_directories(${target} INTERFACE "${PROJECT_SOURCE_DIR}")
    target_link_libraries(${target} INTERFACE ${below})
  endif()
endfunction()

# tearless_program(tearless harness): build/bin/tearless from harness/main.cc and the room `harness`.
function(tearless_program program room)
  tearless_target(target ${room})
  add_executable(${program} "${PROJECT_SOURCE_DIR}/${room}/main.cc")
  target_link_libraries(${program} PRIVATE ${target} tearless_flags)
  tearless_precompile(${program})
  add_dependencies(programs ${program})
endfunction()

# engine/norm -> room_engine_norm
function(tearless_target result room)
  string(REPLACE "/" "_" name "room_${room}")
  set(${result} ${name} PARENT_SCOPE)
endfunction()

function(tearless_unite target files)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${TEARLESS_UNITY} UNITY_BUILD_BATCH_SIZE ${files})
endfunction()

# Gives a target precompiled headers: ATen's where it reaches LibTorch. Half of what a unit costs is reading them. A unit must still
# include what it uses; the dev preset has no precompiled headers and shows what is forgotten.
option(TEARLESS_PCH "Precompile headers of others that many units read" ON)
function(tearless_precompile target)
  target_compile_options(${target} PRIVATE ${TEARLESS_ROOM_FLAGS})
  tearless_lend_headers(${target} plain_pch torch_pch)
endfunction()

# The first of two sets of precompiled headers, or the second where the target reaches LibTorch.
function(tearless_lend_headers target plain torch)
  if(TEARLESS_PCH)
    tearless_reaches_torch(reaches ${target})
    set(headers ${plain})
    if(reaches)
      set(headers ${torch})
    endif()
    target_precompile_headers(${target} REUSE_FROM ${headers})
    target_compile_options(${target} PRIVATE -fpch-preprocess)  # for ccache
  endif()
endfunction()

# tearless_precompiled(torch_pch LINK torch::cpu FLAGS -O0 HEADERS <ATen/core/Tensor.h>): headers to precompile with the flags of LINK and FLAGS.
function(tearless_precompiled name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINK;FLAGS;HEADERS")
  if(TEARLESS_PCH)
    file(WRITE "${PROJECT_BINARY_DIR}/${name}.cc" "")
    add_library(${name} OBJECT "${PROJECT_BINARY_DIR}/${name}.cc")
    target_link_libraries(${name} PRIVATE ${arg_LINK} tearless_flags)
    target_compile_options(${name} PRIVATE ${arg_FLAGS} -fpch-preprocess)
    target_precompile_headers(${name} PRIVATE ${arg_HEADERS})
  endif()
endfunction()

function(tearless_reaches_torch result target)
  set(found FALSE)
  if(target STREQUAL "torch::cpu")
    set(found TRUE)
  elseif(TARGET ${target})
    get_target_property(below ${target} INTERFACE_LINK_LIBRARIES)
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "EXECUTABLE")
      get_target_property(below ${target} LINK_LIBRARIES)
    endif()
    foreach(library IN LISTS below)
      if(library MATCHES "^room_" OR library STREQUAL "torch::cpu")
        tearless_reaches_torch(found ${library})
      endif()
      if(found)
        break()
      endif()
    endforeach()
  endif()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

# tearless_embed(harness/store/schema.sql kSchema): the text of a file as a constant in harness/store/schema_sql.h. FROM: that of another
# file in its place; FROM without a file: "".
function(tearless_embed file constant)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "FROM" "")
  if(NOT "FROM" IN_LIST ARGN)
    set(arg_FROM "${PROJECT_SOURCE_DIR}/${file}")
  endif()
  set(text "")
  if(arg_FROM)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${arg_FROM}")
    file(READ "${arg_FROM}" text)
  endif()
  string(REGEX REPLACE "\\.([a-z]+)$" "_\\1.h" header "${file}")
  get_filename_component(room "${file}" DIRECTORY)
  tearless_target(target ${room})
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/embedded/${header}" @ONLY
    CONTENT "// Generated from ${file}.\n#pragma once\n\ninline constexpr char ${constant}[] = R\"embedded(${text})embedded\";\n")
  target_include_directories(${target} PRIVATE "${PROJECT_BINARY_DIR}/embedded")
endfunction()

# Gives a room the source of base/build_stamp.h, renewed at each build.
function(tearless_build_stamp room)
  set(stamp "${PROJECT_BINARY_DIR}/build_stamp.cc")
  add_custom_target(build_stamp BYPRODUCTS "${stamp}"
    COMMAND "${CMAKE_COMMAND}" "-DSOURCE=${PROJECT_SOURCE_DIR}" "-DOUTPUT=${stamp}" -DVERSION=${PROJECT_VERSION}
      "-DCOMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}" -DBUILD_TYPE=${CMAKE_BUILD_TYPE} -DWHEEL=${TEARLESS_WHEEL}
      -P "${PROJECT_SOURCE_DIR}/tools/cmake/build_stamp.cmake"
    COMMENT "Stamping the build" VERBATIM)
  tearless_target(target ${room})
  add_dependencies(${target} build_stamp)
  target_sources(${target} PRIVATE "${stamp}")
  set_source_files_properties("${stamp}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)  # it alone changes with every commit
endfunction()
