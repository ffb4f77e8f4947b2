# One library per folder. `hoplite_module(core/agent DEPS core_directory ...)` makes the static library
# `hoplite_core_agent` from the folder's *.cc and, from its *_test.cc, the test program `core_agent_test`.
#
# Dependencies are an allow-list: a module sees only the include folders of what it lists, because every module's headers
# live under its own staged include root (src/<module>/ is visible as <module>/ only through that module's target). A
# forbidden include therefore does not compile.
function(hoplite_module path)
  cmake_parse_arguments(ARG "" "" "DEPS;LIBS" ${ARGN})
  string(REPLACE "/" "_" name ${path})
  set(dir ${CMAKE_SOURCE_DIR}/src/${path})

  file(GLOB sources CONFIGURE_DEPENDS ${dir}/*.cc)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")

  # The staged root holds one symbolic link, <path> -> src/<path>, and nothing else.
  set(root ${CMAKE_BINARY_DIR}/staged/${name})
  get_filename_component(parent ${root}/${path} DIRECTORY)
  file(MAKE_DIRECTORY ${parent})
  file(CREATE_LINK ${dir} ${root}/${path} SYMBOLIC)

  if(sources)
    add_library(hoplite_${name} STATIC ${sources})
    set(scope PUBLIC)
    if(TARGET hoplite_precompiled)
      target_precompile_headers(hoplite_${name} REUSE_FROM hoplite_precompiled)
    endif()
  else()
    add_library(hoplite_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(hoplite_${name} ${scope} ${root})
  target_link_libraries(hoplite_${name} ${scope} hoplite_options ${ARG_LIBS})
  foreach(dep ${ARG_DEPS})
    target_link_libraries(hoplite_${name} ${scope} hoplite_${dep})
  endforeach()

  # ThreadSanitizer's build leaves out the tests of what has no threads (of the core tests/tidy proves that): compiling is most
  # of its time.
  set(idle FALSE)
  if(HOPLITE_SANITIZE STREQUAL "thread" AND path MATCHES "^(base|protocol|kernels|core/.*)$")
    set(idle TRUE)
  endif()
  if(tests AND HOPLITE_TESTS AND NOT idle)
    hoplite_test(${name}_test SOURCES ${tests} DEPS ${name})
  endif()
endfunction()

# A GoogleTest program, which is one entry of ctest's.
function(hoplite_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "SOURCES;DEPS;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  if(NOT name MATCHES "^(base|protocol)_test$")
    set_target_properties(${name} PROPERTIES TRUSTED TRUE) # ../CMakeLists.txt
  endif()
  if(TARGET hoplite_precompiled_test)
    target_precompile_headers(${name} REUSE_FROM hoplite_precompiled_test)
  endif()
  foreach(dep ${ARG_DEPS})
    target_link_libraries(${name} PRIVATE hoplite_${dep})
  endforeach()
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} GTest::gmock_main GTest::gtest)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${name} PRIVATE -Wno-array-bounds -Wno-stringop-overflow) # false alarms of g++ 12
  endif()
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT})
  if(ARG_LABEL STREQUAL process)
    set_tests_properties(${name} PROPERTIES RUN_SERIAL TRUE) # several daemons each
  endif()
endfunction()
