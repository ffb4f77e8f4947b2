# Installs the library into a folder of its own and builds this folder against it, as a user would.
file(REMOVE_RECURSE ${WORK})
set(steps
    "${CMAKE_COMMAND}|--install|${BUILD}|--component|devel|--prefix|${WORK}/prefix"
    "${CMAKE_COMMAND}|-S|${EXAMPLES}|-B|${WORK}/build|-DCMAKE_PREFIX_PATH=${WORK}/prefix|-DCMAKE_BUILD_TYPE=Debug"
    "${CMAKE_COMMAND}|--build|${WORK}/build"
    "${WORK}/build/hoplite-example|--help"
    "${WORK}/build/hoplite-example-reduce|--help")
foreach(step ${steps})
  string(REPLACE "|" ";" command "${step}")
  execute_process(COMMAND ${command} RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "failed: ${command}")
  endif()
endforeach()
file(REMOVE_RECURSE ${WORK})
