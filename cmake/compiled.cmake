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
