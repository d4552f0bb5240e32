# SPDX-License-Identifier: MIT
# Runs the programs without exceptions: one has a handler of its own, the other the library's.

# expect(<regular expression for the exit status> <regular expression for the output> <command>...)
function(expect status output)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(NOT result MATCHES "^(${status})$" OR NOT text MATCHES "^${output}$")
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command} ended with `${result}` and said `${text}`; expected `${status}` and `${output}`")
  endif()
endfunction()

expect(0 "" "${PROGRAM}")
expect(7 "handler: mp::convert: to.size\\(\\) is 2; it must equal from.size\\(\\), which is 3\n" "${PROGRAM}" convert)
expect(7 "handler: mp::convert: exec.threads is 0; it must be at least 1\n" "${PROGRAM}" thread)
expect(7 "handler: mp::gemm: c.data is .*; it must not make c overlap a, .*\n" "${PROGRAM}" gemm)
# std::abort, as the system calls it.
expect("[^0-9]*abort.*|134|3" "mp::packed_span::at: i is 3; it must be less than size\\(\\), which is 3\n"
  "${DEFAULT_HANDLER}")
