# SPDX-License-Identifier: MIT
# Turns CUDA on for mp's own programs.

include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  message(FATAL_ERROR "MP_BUILD_CUDA needs nvcc: put it into PATH, or name it in the variable CUDACXX")
endif()
# Turing, Ampere, Ada, Hopper without and with its own matrix instructions, Blackwell. It has to be set before the
# language is enabled, which would choose 52.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 86-real 89-real 90-real 90a-real 100-real 120)
endif()
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)

# CMake 3.25 does not know yet that nvcc speaks C++20, so CMAKE_CUDA_STANDARD cannot ask for it.
target_compile_options(mp_development INTERFACE "$<$<COMPILE_LANGUAGE:CUDA>:-std=c++20>")

# nvcc puts line directives of its own into what the host compiler reads, so -Wpedantic is of no use there.
target_compile_options(mp_development INTERFACE
  "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Xcompiler=-Wall,-Wextra,-Wconversion,-Wshadow>")
if(MP_WERROR)
  target_compile_options(mp_development INTERFACE "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Werror all-warnings>")
  # Nor may registers be spilled to memory, or products of warpgroups wait for each other.
  target_compile_options(mp_development INTERFACE "$<$<COMPILE_LANGUAGE:CUDA>:-Xptxas=-warn-spills>")
  set(CMAKE_CUDA_COMPILER_LAUNCHER "${PROJECT_SOURCE_DIR}/cmake/nvcc_without_serialisation.sh")
endif()

# Everything that nvcc compiles, and nothing else: cmake --build <folder> --target cuda
add_custom_target(cuda)

# mp_skip_ptxas(<target>): with MP_CUDA_INTERPRETED, for programs whose kernels are those of the tests, which ptxas sees.
function(mp_skip_ptxas target)
  if(MP_CUDA_INTERPRETED)
    string(REPLACE "-real" "-virtual" architectures "${CMAKE_CUDA_ARCHITECTURES}")
    set_target_properties(${target} PROPERTIES CUDA_ARCHITECTURES "${architectures}")
  endif()
endfunction()

# mp_only_compile(<target>): the same for programs that nobody runs then. Not for others: less optimised code copies the
# bytes of empty classes, which nobody has written, and the interpreter says so.
function(mp_only_compile target)
  mp_skip_ptxas(${target})
  if(MP_CUDA_INTERPRETED AND CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 13.0)
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:-Ofc=max>")
  endif()
endfunction()
