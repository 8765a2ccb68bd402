# What yoke's libraries link besides libtorch: included by the build, and by the installed yokeConfig.cmake for the
# programs that link those libraries. scripts/setup installs all of it.

find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(ZLIB REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(tomlplusplus REQUIRED)

# Debian packages these two without a CMake file.
foreach(_name isal xxhash)
  find_library(YOKE_${_name}_LIBRARY ${_name} REQUIRED)
  mark_as_advanced(YOKE_${_name}_LIBRARY)
  if(NOT TARGET ${_name}::${_name})
    add_library(${_name}::${_name} UNKNOWN IMPORTED)
    set_target_properties(${_name}::${_name} PROPERTIES IMPORTED_LOCATION ${YOKE_${_name}_LIBRARY})
  endif()
endforeach()
