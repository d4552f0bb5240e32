# SPDX-License-Identifier: MIT
# Fuzz targets: test_fuzz runs all inputs of tests/fuzz/corpus through them, with every compiler. With MP_BUILD_FUZZERS
# every tests/fuzz/<name>.cpp also becomes fuzz_<name>, a program of clang's libFuzzer, and a test with
# the label `fuzz`, which starts from tests/fuzz/corpus/<name>. What it finds on the way it keeps in the build
# folder, and begins with it the next time; an input that fails is written there too, and fuzz_<name> <file>
# runs it again.
#
#   .ci/fuzz            two minutes, with the time to build
#   .ci/fuzz 3600       longer

option(MP_BUILD_FUZZERS "Build the fuzz targets (needs clang with libFuzzer)" OFF)
set(MP_FUZZ_SECONDS 49 CACHE STRING "How long the fuzz tests take altogether, in seconds")
file(GLOB fuzz_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/fuzz/*.cpp")
find_path(MP_NLOHMANN_JSON_INCLUDE_DIR nlohmann/json.hpp)
if(NOT MP_NLOHMANN_JSON_INCLUDE_DIR)
  message(STATUS "nlohmann-json was not found: without fuzz_deepspeed_configuration and fuzz_json_state_dict")
  list(FILTER fuzz_sources EXCLUDE REGEX "/(deepspeed_configuration|json_state_dict)[.]cpp$")
endif()

# All targets in one source, whose headers are read once; each has a name instead of libFuzzer's.
set(headers "#include \"fuzz/replay.hpp\"")
set(body "")
foreach(source IN LISTS fuzz_sources)
  cmake_path(GET source STEM name)
  mp_includes_of(includes "${source}")
  if(NOT includes)
    message(FATAL_ERROR "${source}: only comments and includes may stand before its last #include")
  endif()
  list(APPEND headers ${includes})
  string(APPEND body "namespace ${name}_target {\n#define LLVMFuzzerTestOneInput fuzz_${name}\n#include \"${source}\"\n"
    "#undef LLVMFuzzerTestOneInput\nTEST_CASE(\"corpus of fuzz_${name}\") {\n"
    "    fuzzing::replay(\"${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name}\", &fuzz_${name});\n}\n}\n")
endforeach()
mp_write_batch(source test_fuzz 0 "${headers}" "${body}")
mp_add_test(test_fuzz "${source}")

if(NOT MP_BUILD_FUZZERS)
  return()
endif()
if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "MP_BUILD_FUZZERS needs clang, whose libFuzzer runs the targets")
endif()

list(LENGTH fuzz_sources fuzz_count)
math(EXPR seconds "(${MP_FUZZ_SECONDS} + ${fuzz_count} - 1) / ${fuzz_count}")
math(EXPR timeout "${seconds} + 300")

add_custom_target(fuzz_targets)
foreach(source IN LISTS fuzz_sources)
  cmake_path(GET source STEM name)
  add_executable(fuzz_${name} EXCLUDE_FROM_ALL "${source}")
  target_include_directories(fuzz_${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(fuzz_${name} PRIVATE mp_development)
  set(sanitizers "-fsanitize=fuzzer,address,undefined")
  # Looking for uses of stack frames that have returned takes as long as everything else.
  target_compile_options(fuzz_${name} PRIVATE ${sanitizers} -fno-sanitize-recover=all
    -fsanitize-address-use-after-return=never)
  target_link_options(fuzz_${name} PRIVATE ${sanitizers})
  add_dependencies(fuzz_targets fuzz_${name})

  set(found "${CMAKE_CURRENT_BINARY_DIR}/fuzz/${name}")
  file(MAKE_DIRECTORY "${found}")
  add_test(NAME fuzz_${name} COMMAND fuzz_${name}
    -max_total_time=${seconds} -max_len=1024 -print_final_stats=1 "-artifact_prefix=${found}-"
    "${found}" "${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name}")
  set_tests_properties(fuzz_${name} PROPERTIES LABELS fuzz TIMEOUT ${timeout})
endforeach()
