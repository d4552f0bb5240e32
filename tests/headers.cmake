# SPDX-License-Identifier: MIT
# Headers by themselves and all together, under the strictest warnings of two compilers.

# Headers that need nvcc or a foreign library are left out; tests/device/cuda has those of nvcc. clang checks the headers where
# it is installed, since all other tests are compiled by g++.
set(not_for_everyone "^mp/((compiled_)?cuda[.]|cuda_gemm[.]|device/(cuda|simt/device)/|frontends/(interop|compat/deepspeed/configuration|compat/pytorch/json_state_dict))")
mp_header_wrappers(wrappers cpp EXCLUDE "${not_for_everyone}")
find_program(MP_SECOND_COMPILER NAMES clang++-16 clang++-17 clang++-18 clang++-19
  DOC "A clang of version 16 or later, to check the headers with")
set(compiler_of_headers "${CMAKE_CXX_COMPILER}")
if(MP_SECOND_COMPILER AND NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  set(compiler_of_headers "${MP_SECOND_COMPILER}")
endif()
# Warnings that stricter projects enable.
set(stricter -Wsign-conversion -Wfloat-equal -Wdouble-promotion)
set(flags_of_headers
  "-std=c++20;-Wall;-Wextra;-Wconversion;-Wshadow;-Wpedantic;${stricter};-Werror;-idirafter;${Boost_INCLUDE_DIRS}")
# mp_add_header_check(<name> <label> <script> <wrapper>...): each header by itself. Uses every processor.
function(mp_add_header_check name label script)
  list(JOIN ARGN "\n" lines)
  set(list "${CMAKE_CURRENT_BINARY_DIR}/${name}.txt")
  file(CONFIGURE OUTPUT "${list}" CONTENT "${lines}\n" @ONLY)
  add_test(NAME ${name} COMMAND "${CMAKE_COMMAND}"
    "-DCOMPILER=${compiler_of_headers}" "-DINCLUDE=${PROJECT_SOURCE_DIR}/include" "-DLIST=${list}"
    "-DFLAGS=${flags_of_headers}" "-DWRAPPERS=${PROJECT_BINARY_DIR}/headers_alone" "-DBASES=${bases_of_headers}"
    "-DWORK=${CMAKE_CURRENT_BINARY_DIR}/${name}" -P "${PROJECT_SOURCE_DIR}/cmake/${script}.cmake")
  set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT 900 RUN_SERIAL ON)
endfunction()
# Public headers, then the others: by clang on top of precompiled headers that many of them include and that take long to
# parse. The choice of these affects only the time.
mp_header_wrappers(public_wrappers cpp CHAINED INCLUDE "^mp/[^/]+$" EXCLUDE "${not_for_everyone}")
list(POP_BACK public_wrappers)
set(inner_wrappers "${wrappers}")
mp_add_header_check(public_headers_alone quick check_headers ${public_wrappers})
list(FILTER inner_wrappers INCLUDE REGEX "/headers_alone/mp/[^/]+/")
set(bases_of_headers "")
foreach(base IN ITEMS error numbers/simd/vec numbers/format/exact numbers/format/basic_float numbers/format/operations
    numbers/format/text arrays/convert/convert arrays/convert/kernels/number_vectors arrays/convert/bulk
    nn/autocast/operand nn/autocast/region nn/autocast/dispatch nn/scaling/scale_checks nn/scaling/unscale
    linalg/gemm/blocked_product device/gpu/gemm/multistage_kernel device/gpu/gemm device/simt/host/cluster
    train/parallel/bucket_plan nn/optim/optimizer_base arrays/array/for_each_element nn/ops/linear)
  list(APPEND bases_of_headers "mp/${base}.hpp")
endforeach()
set(affected_wrappers "")
foreach(wrapper IN LISTS inner_wrappers)
  string(REGEX REPLACE "^.*/headers_alone/(mp/.+)[.]cpp$" "${PROJECT_SOURCE_DIR}/include/\\1.hpp" header "${wrapper}")
  mp_affected(affected "${header}")
  if(affected)
    list(APPEND affected_wrappers "${wrapper}")
  endif()
endforeach()
list(LENGTH affected_wrappers count)
# Precompiling the bases takes as long as a hundred headers by themselves.
if(compiler_of_headers MATCHES "clang" AND count GREATER 200)
  mp_add_header_check(headers_alone thorough check_headers_alone ${affected_wrappers})
elseif(affected_wrappers)
  mp_add_header_check(headers_alone thorough check_headers ${affected_wrappers})
endif()

# All of them together, by the compiler of the tests.
list(POP_BACK wrappers together)
add_library(test_headers_together OBJECT "${together}")
target_link_libraries(test_headers_together PRIVATE mp_development Boost::headers)
target_compile_options(test_headers_together PRIVATE ${stricter} "$<$<CXX_COMPILER_ID:GNU>:-Wuseless-cast>")

# mp_add_header_pass(<name> <compiler> <exclude> <flag>...): all headers but those that <exclude> matches compile
# together with these flags.
function(mp_add_header_pass name compiler exclude)
  mp_header_wrappers(${name} cpp EXCLUDE "${exclude}")
  list(POP_BACK ${name} all)
  set(list "${CMAKE_CURRENT_BINARY_DIR}/${name}.txt")
  file(CONFIGURE OUTPUT "${list}" CONTENT "${all}\n" @ONLY)
  add_test(NAME ${name} COMMAND "${CMAKE_COMMAND}"
    "-DCOMPILER=${compiler}" "-DINCLUDE=${PROJECT_SOURCE_DIR}/include" "-DLIST=${list}" "-DFLAGS=${ARGN}"
    -P "${PROJECT_SOURCE_DIR}/cmake/check_headers.cmake")
  set_tests_properties(${name} PROPERTIES LABELS thorough TIMEOUT 900)
endfunction()

# A later standard, after headers that make macros of common words.
mp_add_header_pass(headers_after_macros "${CMAKE_CXX_COMPILER}" "${not_for_everyone}|^mp/(frontends/)?check"
  -std=c++2b -Wall -Wextra -Wdeprecated -Werror -include
  "${CMAKE_CURRENT_SOURCE_DIR}/packaging/notorious_macros.hpp")
# Only the simulated GPU, which mp/gpu includes, needs exceptions, and Boost.
mp_add_header_pass(headers_without_exceptions "${CMAKE_CXX_COMPILER}"
  "${not_for_everyone}|^mp/(check|gpu|simt|device/gpu|device/simt|frontends/check|nn/[a-z]+/gpu/)"
  -std=c++20 -fno-exceptions -fno-rtti -Wall -Wextra -Werror)
# The other standard library, where clang has it.
if(MP_SECOND_COMPILER)
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/libcxx.cpp" CONTENT "#include <version>\n" @ONLY)
  execute_process(
    COMMAND "${MP_SECOND_COMPILER}" -std=c++20 -stdlib=libc++ -fsyntax-only "${CMAKE_CURRENT_BINARY_DIR}/libcxx.cpp"
    RESULT_VARIABLE no_libcxx OUTPUT_QUIET ERROR_QUIET)
  if(no_libcxx EQUAL 0)
    mp_add_header_pass(headers_with_libcxx "${MP_SECOND_COMPILER}" "${not_for_everyone}"
      -std=c++2b -stdlib=libc++ -Wall -Wextra -Wdeprecated -Wconversion ${stricter} -Werror
      # Boost 1.74 derives from unary_function, which C++17 removed and libc++ 16 knows.
      -D_LIBCPP_ENABLE_CXX17_REMOVED_UNARY_BINARY_FUNCTION
      -idirafter "${Boost_INCLUDE_DIRS}")
  endif()
endif()
