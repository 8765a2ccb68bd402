# `cmake --install build --prefix P`: headers, libraries, the program, and what find_package(yoke) reads.

include(CMakePackageConfigHelpers)
set(_cmake_folder ${CMAKE_INSTALL_LIBDIR}/cmake/yoke)

# yoke::yoke: every library of the tree.
add_library(yoke_yoke INTERFACE)
add_library(yoke::yoke ALIAS yoke_yoke)
set_target_properties(yoke_yoke PROPERTIES EXPORT_NAME yoke)
get_property(_folders GLOBAL PROPERTY YOKE_INSTALLED_FOLDERS)
foreach(_folder ${_folders})
  target_link_libraries(yoke_yoke INTERFACE yoke_${_folder})
endforeach()
install(TARGETS yoke_yoke EXPORT yokeTargets)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/yoke DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN cli EXCLUDE)
if(TARGET yoke_cli)
  set_target_properties(yoke_cli PROPERTIES INSTALL_RPATH ${YokeTorch_ROOT_FOUND}/lib)
endif()

install(EXPORT yokeTargets NAMESPACE yoke:: DESTINATION ${_cmake_folder})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/yokeConfig.cmake.in
  ${CMAKE_BINARY_DIR}/yokeConfig.cmake INSTALL_DESTINATION ${_cmake_folder})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/yokeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/yokeConfig.cmake ${CMAKE_BINARY_DIR}/yokeConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/cmake/YokeDependencies.cmake ${PROJECT_SOURCE_DIR}/cmake/FindYokeTorch.cmake
        DESTINATION ${_cmake_folder})
