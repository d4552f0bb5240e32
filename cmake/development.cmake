# SPDX-License-Identifier: MIT
# What mp's own tests, benchmarks and examples are compiled with. None of it reaches a project that uses mp.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, RelWithDebInfo or MinSizeRel" FORCE)
endif()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_CXX_EXTENSIONS OFF)

# What mp::mp has, but with the headers as one's own, so that the compiler warns about them: linked from mp::mp they
# would be headers of the system for good.
add_library(mp_development INTERFACE)
target_compile_features(mp_development INTERFACE cxx_std_20)
target_include_directories(mp_development INTERFACE "${PROJECT_SOURCE_DIR}/include")
target_link_libraries(mp_development INTERFACE Threads::Threads)

# -Wconversion and -Wshadow take a tenth of the time of a test. Targets with the property MP_FEWER_WARNINGS go without;
# headers, examples and benchmarks never do, nor do tests under the presets clang and sanitizers.
set(stricter_warnings -Wconversion -Wshadow -Wpedantic)
set(mp_warnings -Wall -Wextra "$<$<NOT:$<BOOL:$<TARGET_PROPERTY:MP_FEWER_WARNINGS>>>:${stricter_warnings}>")
if(MP_WERROR)
  list(APPEND mp_warnings -Werror)
endif()
target_compile_options(mp_development INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${mp_warnings}>")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 takes "x" + std::string for a copy onto itself (GCC bug 105651).
  target_compile_options(mp_development INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>" "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wno-restrict>")
endif()

# g++ looks for garbage when it has taken 128 MB, and again and again: a sixth of the time of a test of templates. Here
# it may take 1 GB before, which the largest of them need anyway.
target_compile_options(mp_development INTERFACE
  "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=1000000>")

if(MP_SANITIZE)
  # The checks that sanitizers weave in make g++ see uninitialised variables where there are none.
  target_compile_options(mp_development INTERFACE "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>")
  # A finding ends the program, so that the test fails: by an illegal instruction where behavior is undefined, which compiles
  # in 0.65 of the time of a message. AddressSanitizer prints the stack (tests/main.cpp). All checks except vptr.
  target_compile_options(mp_development INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${MP_SANITIZE};-fsanitize-undefined-trap-on-error;-fno-omit-frame-pointer>")
  # Not for targets with the property MP_FOREIGN_CASTS, which run code of others that casts floats out of range.
  target_compile_options(mp_development INTERFACE
    "$<$<BOOL:$<TARGET_PROPERTY:MP_FOREIGN_CASTS>>:-fno-sanitize=float-cast-overflow>")
  target_link_options(mp_development INTERFACE "-fsanitize=${MP_SANITIZE}")
  if(MP_SANITIZE MATCHES "address")
    # Where a function has many accesses, a call for each instead of the check itself: the same findings, and code that
    # compiles in half of the time. Without calls in small functions, which have the loops, tests run twice as fast.
    target_compile_options(mp_development INTERFACE
      "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:SHELL:--param asan-instrumentation-with-call-threshold=30>"
      "$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-mllvm -asan-instrumentation-with-call-threshold=30>")
  endif()
endif()

# Programs link the compiled part, with which they compile faster; those that are compiled with options of their own, which
# have to reach the kernels, link mp_development and have the headers alone.
option(MP_LINK_COMPILED "Link tests, examples and benchmarks with the library's compiled part" ON)
add_library(mp_programs INTERFACE)
target_link_libraries(mp_programs INTERFACE mp_development)
if(MP_LINK_COMPILED)
  mp_add_compiled(mp_compiled_for_programs)
  target_link_libraries(mp_compiled_for_programs PUBLIC mp_development)
  # What runs longer than it takes to compile.
  if(CMAKE_CXX_FLAGS_RELEASE MATCHES "-O[0g]")
    target_compile_options(mp_compiled_for_programs PRIVATE -O1)
  endif()
  target_link_libraries(mp_programs INTERFACE mp_compiled_for_programs)
endif()

include("${PROJECT_SOURCE_DIR}/cmake/headers.cmake")
include("${PROJECT_SOURCE_DIR}/cmake/tools.cmake")
