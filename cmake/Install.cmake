# The library as users get it: one archive with everything that the client is made of, the public headers, and the files
# for find_package(hoplite). Inside this build it has the same name, hoplite::hoplite.
include(CMakePackageConfigHelpers)

set(parts client shm auth protocol base)
add_library(hoplite_lib STATIC)
foreach(part ${parts})
  target_sources(hoplite_lib PRIVATE $<TARGET_OBJECTS:hoplite_${part}>)
endforeach()
set_target_properties(hoplite_lib PROPERTIES OUTPUT_NAME hoplite EXPORT_NAME hoplite LINKER_LANGUAGE CXX)
target_include_directories(hoplite_lib INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>
                                                 $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(hoplite_lib INTERFACE cxx_std_20)
target_link_libraries(hoplite_lib INTERFACE $<BUILD_INTERFACE:hoplite_options> Threads::Threads OpenSSL::Crypto xxhash)
add_library(hoplite::hoplite ALIAS hoplite_lib)

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/hoplite)
install(TARGETS hoplite_lib EXPORT hopliteTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT devel)
install(EXPORT hopliteTargets NAMESPACE hoplite:: DESTINATION ${config_dir} COMPONENT devel)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/hoplite DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT devel)
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/hopliteConfig.cmake.in ${CMAKE_BINARY_DIR}/hopliteConfig.cmake
                              INSTALL_DESTINATION ${config_dir})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/hopliteConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/hopliteConfig.cmake ${CMAKE_BINARY_DIR}/hopliteConfigVersion.cmake
        DESTINATION ${config_dir} COMPONENT devel)
