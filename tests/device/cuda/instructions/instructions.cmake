# SPDX-License-Identifier: MIT
# cmake -DCOMPILER= -DINCLUDE= -DSOURCE= -DOUTPUT= -P instructions.cmake: compiles device code to PTX for the
# architecture that the source names, and counts the lines that match its expressions:
#   // architecture <number>
#   // expects <count> <regular expression>
file(STRINGS "${SOURCE}" architecture REGEX "^// architecture ")
string(REPLACE "// architecture " "" architecture "${architecture}")
file(STRINGS "${SOURCE}" expectations REGEX "^// expects ")
if(NOT architecture OR NOT expectations)
  message(FATAL_ERROR "${SOURCE} names no architecture or expects nothing")
endif()
execute_process(COMMAND "${COMPILER}" -std=c++20 -ptx "-arch=sm_${architecture}" "-I${INCLUDE}" "${SOURCE}"
  -o "${OUTPUT}" COMMAND_ERROR_IS_FATAL ANY)
foreach(expectation IN LISTS expectations)
  if(NOT expectation MATCHES "^// expects ([0-9]+) (.+)$")
    message(FATAL_ERROR "${SOURCE}: not understood: ${expectation}")
  endif()
  set(expected "${CMAKE_MATCH_1}")
  set(expression "${CMAKE_MATCH_2}")
  file(STRINGS "${OUTPUT}" lines REGEX "${expression}")
  list(LENGTH lines count)
  if(NOT count EQUAL expected)
    list(JOIN lines "\n" text)
    message(SEND_ERROR "${SOURCE}: ${count} lines of ${OUTPUT} match ${expression}, not ${expected}\n${text}")
  endif()
endforeach()
