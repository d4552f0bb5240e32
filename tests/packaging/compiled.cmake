# SPDX-License-Identifier: MIT
# A source without exceptions does not link with a compiled part that has them, and the linker names the difference. And a
# source defines no symbol that sources for another processor share, as they share those of the compiled part: the linker
# would take one for all of them.

execute_process(
  COMMAND "${COMPILER}" -std=c++20 -O0 -fno-exceptions -DMP_COMPILED "-I${MP_SOURCE_DIR}/include" "${SOURCE}"
    "${LIBRARY}" -pthread -o "${OUTPUT}"
  RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
if(status EQUAL 0 OR NOT text MATCHES "undefined .*compiled_[0-9_]+_noexcept::multiply")
  message(FATAL_ERROR "linking ended with `${status}` and said `${text}`")
endif()

execute_process(COMMAND "${NM}" --defined-only ${OBJECTS} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "_ZNK?2mp6detail[0-9]+compiled_[0-9_]+[^\n]*" shared "${symbols}")
list(FILTER shared EXCLUDE REGEX "isa_")
if(shared OR NOT symbols MATCHES "isa_")
  message(FATAL_ERROR "${OBJECTS} defines `${shared}`")
endif()
