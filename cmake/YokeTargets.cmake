# What every target of the project shares: warnings, sanitizers, and the three kinds of targets.

add_library(yoke_options INTERFACE)
target_compile_options(yoke_options INTERFACE -Wall -Wextra -Wpedantic -Werror -ffp-contract=off)
target_include_directories(yoke_options INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
if(YOKE_SANITIZE)
  # g++ 12 sees uninitialized members in <regex> where AddressSanitizer has split its stack frames.
  target_compile_options(yoke_options INTERFACE -fsanitize=${YOKE_SANITIZE} -fno-omit-frame-pointer -g1
                                                -DYOKE_SANITIZED -O1 -Wno-maybe-uninitialized)
  target_link_options(yoke_options INTERFACE -fsanitize=${YOKE_SANITIZE})
endif()
if(YOKE_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "YOKE_FUZZ needs clang's libFuzzer: configure a new folder with -DCMAKE_CXX_COMPILER=clang++")
  endif()
  target_compile_options(yoke_options INTERFACE -fsanitize=fuzzer-no-link,address -g -DYOKE_SANITIZED)
  target_link_options(yoke_options INTERFACE -fsanitize=fuzzer-no-link,address)
endif()
find_program(YOKE_MOLD mold)
if(YOKE_MOLD)
  target_link_options(yoke_options INTERFACE -fuse-ld=mold)
endif()

# yoke_library(<folder> [TORCH] SOURCES a.cc ... [DEPENDS base ...] [LINK system libraries ...])
# One folder of yoke/ as a static library `yoke_<folder>`. TORCH: its files may include libtorch,
# and share one precompiled header.
function(yoke_library folder)
  cmake_parse_arguments(ARG "TORCH" "" "SOURCES;DEPENDS;LINK" ${ARGN})
  add_library(yoke_${folder} STATIC ${ARG_SOURCES})
  add_library(yoke::${folder} ALIAS yoke_${folder})
  set_target_properties(yoke_${folder} PROPERTIES EXPORT_NAME ${folder})
  target_compile_features(yoke_${folder} PUBLIC cxx_std_20)
  target_include_directories(yoke_${folder} PUBLIC $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(yoke_${folder} PRIVATE $<BUILD_INTERFACE:yoke_options>)
  target_include_directories(yoke_${folder} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  foreach(other ${ARG_DEPENDS})
    target_link_libraries(yoke_${folder} PUBLIC yoke_${other})
  endforeach()
  target_link_libraries(yoke_${folder} PRIVATE ${ARG_LINK})
  if(ARG_TORCH)
    target_link_libraries(yoke_${folder} PUBLIC Torch::cpu)
    yoke_share_torch_header(yoke_${folder})
  endif()
  set_property(GLOBAL APPEND PROPERTY YOKE_INSTALLED_FOLDERS ${folder})
  install(TARGETS yoke_${folder} EXPORT yokeTargets)
endfunction()

# One precompiled <torch/torch.h> for the whole tree: it costs 36 s and 720 MB once, and saves 10 s a file.
function(yoke_share_torch_header target)
  if(NOT TARGET yoke_torch_header)
    if(NOT EXISTS ${CMAKE_BINARY_DIR}/torch_header.cc)
      file(WRITE ${CMAKE_BINARY_DIR}/torch_header.cc "")
    endif()
    add_library(yoke_torch_header OBJECT ${CMAKE_BINARY_DIR}/torch_header.cc)
    target_link_libraries(yoke_torch_header PRIVATE yoke_options Torch::cpu)
    target_compile_features(yoke_torch_header PUBLIC cxx_std_20)
    target_precompile_headers(yoke_torch_header PRIVATE <torch/torch.h>)
  endif()
  target_precompile_headers(${target} REUSE_FROM yoke_torch_header)
endfunction()

# yoke_program(<name> [TORCH] SOURCES ... DEPENDS base ...): an executable in the build folder.
function(yoke_program name)
  cmake_parse_arguments(ARG "TORCH" "" "SOURCES;DEPENDS;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE yoke_options)
  foreach(other ${ARG_DEPENDS})
    target_link_libraries(${name} PRIVATE yoke_${other})
  endforeach()
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  if(ARG_TORCH)
    target_link_libraries(${name} PRIVATE Torch::cpu)
    # The shared header is compiled with -fPIC; g++ refuses it under another code model.
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${name} PRIVATE -fPIC)
    yoke_share_torch_header(${name})
  endif()
endfunction()

# yoke_test(<name> [TORCH] SOURCES ... DEPENDS ... [TIMEOUT seconds]): a GoogleTest program, each of
# whose tests is one test of ctest.
function(yoke_test name)
  cmake_parse_arguments(ARG "TORCH" "TIMEOUT" "SOURCES;DEPENDS;LINK" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  set(torch "")
  if(ARG_TORCH)
    set(torch TORCH)
  endif()
  yoke_program(${name} ${torch} SOURCES ${ARG_SOURCES} DEPENDS ${ARG_DEPENDS}
               LINK ${ARG_LINK} GTest::gmock GTest::gtest GTest::gtest_main)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                       PROPERTIES TIMEOUT ${ARG_TIMEOUT})
endfunction()

# yoke_fuzz(<name> SOURCES ... DEPENDS ...): a libFuzzer program around LLVMFuzzerTestOneInput, with
# -DYOKE_FUZZ=ON alone. A test replays the same target over its corpus (tests/support/fuzz_replay.h).
function(yoke_fuzz name)
  if(YOKE_FUZZ)
    yoke_program(${name} ${ARGN})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  endif()
endfunction()
