# A room is a folder, a target of the same name, and its link line is its arrows (tests/base/arrows_test.cc holds the includes to it).

# tearless_room(engine/norm DEPENDS engine/ops LINK torch::cpu)
# DEPENDS names the rooms this one may include, besides those that they reach; LINK names libraries of others.
# Sources are found by glob: a new file needs no edit here. main.cc belongs to the program, not to the room.
function(tearless_room room)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DEPENDS;LINK")
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
    tearless_precompile(${target})
  else()  # headers only
    add_library(${target} INTERFACE)
    target_include_directories(${target} INTERFACE "${PROJECT_SOURCE_DIR}")
    target_link_libraries(${target} INTERFACE ${below})
  endif()
endfunction()

# tearless_program(tearless harness): build/bin/tearless from harness/main.cc and the room `harness`.
function(tearless_program program room)
  if(NOT EXISTS "${PROJECT_SOURCE_DIR}/${room}/main.cc")
    return()
  endif()
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

# Lends the precompiled ATen headers to a target that reaches LibTorch.
function(tearless_precompile target)
  tearless_reaches_torch(reaches ${target})
  if(reaches AND TARGET torch_pch)
    target_precompile_headers(${target} REUSE_FROM torch_pch)
    target_compile_options(${target} PRIVATE -fpch-preprocess)  # for ccache
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

# tearless_embed(harness/store/schema_1.sql kSchema1): the text of a file as a constant in harness/store/schema_1_sql.h.
function(tearless_embed file constant)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${file}")
  file(READ "${PROJECT_SOURCE_DIR}/${file}" text)
  string(REGEX REPLACE "\\.([a-z]+)$" "_\\1.h" header "${file}")
  get_filename_component(room "${file}" DIRECTORY)
  tearless_target(target ${room})
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/embedded/${header}" @ONLY
    CONTENT "// Made from ${file}.\n#pragma once\n\ninline constexpr char ${constant}[] = R\"embedded(${text})embedded\";\n")
  target_include_directories(${target} PRIVATE "${PROJECT_BINARY_DIR}/embedded")
endfunction()

# Gives a room the source of base/build_stamp.h, renewed at each build.
function(tearless_build_stamp room)
  set(stamp "${PROJECT_BINARY_DIR}/build_stamp.cc")
  add_custom_target(build_stamp BYPRODUCTS "${stamp}"
    COMMAND "${CMAKE_COMMAND}" "-DSOURCE=${PROJECT_SOURCE_DIR}" "-DOUTPUT=${stamp}" -DVERSION=${PROJECT_VERSION}
      "-DCOMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}" -DBUILD_TYPE=${CMAKE_BUILD_TYPE}
      -P "${PROJECT_SOURCE_DIR}/tools/cmake/build_stamp.cmake"
    COMMENT "Stamping the build" VERBATIM)
  tearless_target(target ${room})
  add_dependencies(${target} build_stamp)
  target_sources(${target} PRIVATE "${stamp}")
endfunction()
