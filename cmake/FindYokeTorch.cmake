# libtorch as one imported target, Torch::cpu. The wheel's own TorchConfig.cmake needs a CUDA toolkit,
# which a CPU user does not have; so the two libraries and the two include folders are named here.
#
# Looked for in this order; the first that is complete is taken, and named:
#   1. -DYOKE_TORCH_DIR=<folder>    an unpacked libtorch archive, or a `torch` package folder
#   2. CMAKE_PREFIX_PATH            the same
#   3. YOKE_TORCH_REMEMBERED        of an installed yoke: where it was when yoke was built
#   4. <source>/.venv               what scripts/setup installs from the `torch` wheel

set(_candidates "")
if(YOKE_TORCH_DIR)
  set(_candidates ${YOKE_TORCH_DIR})
else()
  list(APPEND _candidates ${CMAKE_PREFIX_PATH})
  list(APPEND _candidates ${YOKE_TORCH_REMEMBERED})
  file(GLOB _venv ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch)
  list(APPEND _candidates ${_venv})
endif()

set(YokeTorch_ROOT_FOUND "")
foreach(_folder ${_candidates})
  if(EXISTS ${_folder}/lib/libtorch_cpu.so AND EXISTS ${_folder}/include/torch/csrc/api/include/torch/torch.h)
    set(YokeTorch_ROOT_FOUND ${_folder})
    break()
  endif()
endforeach()

if(YokeTorch_ROOT_FOUND)
  file(STRINGS ${YokeTorch_ROOT_FOUND}/include/torch/headeronly/version.h _version_lines
       REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
  string(REGEX REPLACE ".*MAJOR ([0-9]+).*MINOR ([0-9]+).*PATCH ([0-9]+).*" "\\1.\\2.\\3"
         YokeTorch_VERSION "${_version_lines}")
endif()

string(JOIN ", " _looked_in ${_candidates} "${PROJECT_SOURCE_DIR}/.venv")
if(YOKE_TORCH_DIR)
  set(_looked_in ${YOKE_TORCH_DIR})
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  YokeTorch
  REQUIRED_VARS YokeTorch_ROOT_FOUND
  VERSION_VAR YokeTorch_VERSION
  REASON_FAILURE_MESSAGE
    "no libtorch (lib/libtorch_cpu.so with its headers) in any of: ${_looked_in}. Run scripts/setup, or give -DYOKE_TORCH_DIR=<unpacked libtorch archive>")

if(YokeTorch_FOUND AND NOT TARGET Torch::cpu)
  message(STATUS "libtorch ${YokeTorch_VERSION}: ${YokeTorch_ROOT_FOUND}")
  set(_lib ${YokeTorch_ROOT_FOUND}/lib)
  add_library(Torch::c10 SHARED IMPORTED)
  set_target_properties(Torch::c10 PROPERTIES IMPORTED_LOCATION ${_lib}/libc10.so)
  add_library(Torch::cpu SHARED IMPORTED)
  set_target_properties(Torch::cpu PROPERTIES IMPORTED_LOCATION ${_lib}/libtorch_cpu.so)
  target_include_directories(Torch::cpu SYSTEM INTERFACE
    ${YokeTorch_ROOT_FOUND}/include ${YokeTorch_ROOT_FOUND}/include/torch/csrc/api/include)
  target_link_libraries(Torch::cpu INTERFACE Torch::c10)
  target_link_options(Torch::cpu INTERFACE
    -Wl,--no-as-needed,-rpath,${_lib}
    -Wl,-rpath-link,${_lib}/../../nvidia/cu13/lib -Wl,-rpath-link,${_lib})
  target_compile_definitions(Torch::cpu INTERFACE _GLIBCXX_USE_CXX11_ABI=1)
endif()
