# SPDX-License-Identifier: MIT
# A source without exceptions does not link with a compiled part that has them, and the linker names the difference.

execute_process(
  COMMAND "${COMPILER}" -std=c++20 -O0 -fno-exceptions -DMP_COMPILED "-I${MP_SOURCE_DIR}/include" "${SOURCE}"
    "${LIBRARY}" -pthread -o "${OUTPUT}"
  RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
if(status EQUAL 0 OR NOT text MATCHES "undefined .*compiled_[0-9_]+_noexcept::multiply")
  message(FATAL_ERROR "linking ended with `${status}` and said `${text}`")
endif()
