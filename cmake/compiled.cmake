# SPDX-License-Identifier: MIT
# The target mp::compiled: what mp::mp has, with the parts that depend on no type of the program's compiled into a static
# library. It is built in the project that uses it, by its compiler and for its processors, and only where something links
# it. Part of the installed package.

# mp_add_compiled(<target>): the library, linked with mp::mp by those that link it.
function(mp_add_compiled target)
  set(sources "")
  # One source each, so that they compile beside each other: see <mp/compiled.hpp>.
  foreach(part RANGE 1 4)
    set(source "${CMAKE_CURRENT_BINARY_DIR}/${target}_${part}.cpp")
    # Unlike file(WRITE), this leaves an unchanged file and its time stamp alone.
    file(CONFIGURE OUTPUT "${source}"
      CONTENT "#define MP_COMPILED_SOURCE ${part}\n#include <mp/compiled.hpp>\n" @ONLY)
    list(APPEND sources "${source}")
  endforeach()
  add_library(${target} STATIC EXCLUDE_FROM_ALL ${sources})
  target_compile_definitions(${target} PUBLIC MP_COMPILED)
  # Kernels are worth little without optimisation, and programs may be linked into shared libraries.
  target_compile_options(${target} PRIVATE "$<$<OR:$<CONFIG:>,$<CONFIG:Debug>>:-O2>")
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
endfunction()

# mp_add_compiled_cuda(<target> [<product>...]): the kernels behind <mp/cuda_gemm.hpp>, where CUDA is enabled, for the
# architectures of the project. A product is the types of A, B and C; without any, they are those of MP_COMPILED_PRODUCTS, or
# else the usual ones.
function(mp_add_compiled_cuda target)
  set(products ${ARGN})
  if(NOT products)
    set(products ${MP_COMPILED_PRODUCTS})
  endif()
  if(NOT products)
    foreach(type IN ITEMS mp::half mp::bfloat16)
      list(APPEND products "${type},${type},float" "${type},${type},${type}" "${type},std::int8_t,${type}")
    endforeach()
    list(APPEND products mp::tfloat32,mp::tfloat32,float)
    foreach(pair IN ITEMS mp::float8_e4m3fn,mp::float8_e4m3fn mp::float8_e4m3fn,mp::float8_e5m2
        mp::float8_e5m2,mp::float8_e4m3fn)
      list(APPEND products "${pair},float" "${pair},mp::bfloat16")
    endforeach()
  endif()
  set(sources "")
  # One source each, so that they compile beside each other, and a program gets those that it calls.
  foreach(product IN LISTS products)
    string(MAKE_C_IDENTIFIER "${product}" name)
    set(source "${CMAKE_CURRENT_BINARY_DIR}/${target}_${name}.cu")
    file(CONFIGURE OUTPUT "${source}" @ONLY CONTENT
      "#include <mp/compiled_cuda.hpp>\ntemplate struct mp::compiled_product<mp::cuda_stream, ${product}>;\n")
    list(APPEND sources "${source}")
  endforeach()
  add_library(${target} STATIC EXCLUDE_FROM_ALL ${sources})
  find_package(CUDAToolkit REQUIRED)
  target_include_directories(${target} SYSTEM PUBLIC ${CUDAToolkit_INCLUDE_DIRS})
  # CMake knows C++20 of nvcc from 3.25.2 on.
  target_compile_options(${target} PRIVATE -std=c++20 "$<$<OR:$<CONFIG:>,$<CONFIG:Debug>>:-O2>")
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
endfunction()
