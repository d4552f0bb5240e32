# SPDX-License-Identifier: MIT
# cmake -DCOMPILER= -DINCLUDE= -DSOURCE= -DOUTPUT= -P same_code.cmake: passes when the source compiles to the
# same assembly with and without BY_HAND.
foreach(variant IN ITEMS by_hand by_call)
  set(define "")
  if(variant STREQUAL by_hand)
    set(define -DBY_HAND)
  endif()
  set(assembly "${OUTPUT}_${variant}.s")
  execute_process(COMMAND "${COMPILER}" -std=c++20 -O2 -S ${define} "-I${INCLUDE}" "${SOURCE}" -o "${assembly}"
    COMMAND_ERROR_IS_FATAL ANY)
  file(STRINGS "${assembly}" lines)
  list(LENGTH lines length)
  if(length LESS 20)
    message(FATAL_ERROR "${assembly} has ${length} lines only: nothing was compared")
  endif()
  # Numbers of labels and sections of constants may differ, instructions may not.
  list(FILTER lines EXCLUDE REGEX "^[ \t]*[.](ident|file|loc|size|type|section)")
  list(TRANSFORM lines REPLACE "[.]L[A-Z]*[0-9]+(_[0-9]+)?" ".L")
  set(${variant} "${lines}")
endforeach()
if(NOT by_hand STREQUAL by_call)
  message(FATAL_ERROR "a static autocast call is not the code written by hand: compare ${OUTPUT}_by_hand.s "
    "with ${OUTPUT}_by_call.s")
endif()
message(STATUS "the same assembly, ${length} lines")
