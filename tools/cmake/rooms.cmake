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
  add_dependencies(programs ${program})
endfunction()

# engine/norm -> room_engine_norm
function(tearless_target result room)
  string(REPLACE "/" "_" name "room_${room}")
  set(${result} ${name} PARENT_SCOPE)
endfunction()
