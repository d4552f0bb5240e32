# SPDX-License-Identifier: MIT
# cmake -DOBJDUMP=<objdump> -DPROGRAM=<file> -P encoding.cmake
#
# Fails where a kernel for AVX2 or later has a vector instruction in the encoding of SSE: among those of AVX it waits
# until all of them are done, which made rows of softmax three times as slow. Such an instruction comes from inline
# assembly of functions outside of the kernels' namespaces, whose encoding is that of the program.

set(script [=[
/^[0-9a-f]+ <.*>:$/ { name = $2; kernel = name ~ /^<_Z+NK?2mp6detail[0-9]+isa_[a-z0-9_]*(4avx2|6avx512|11avx512_bf16|11avx512_fp16|3amx)[0-9]/; count += kernel }
kernel && /%[xyz]mm/ && $2 !~ /^\{?v/ && $2 != "nop" { found[name " " $2]++ }
END { for (it in found) print it; print count " kernels" }
]=])
execute_process(
  COMMAND "${OBJDUMP}" -d --no-show-raw-insn "${PROGRAM}"
  COMMAND awk "${script}"
  OUTPUT_VARIABLE lines RESULTS_VARIABLE results)
if(NOT results STREQUAL "0;0")
  message(FATAL_ERROR "cannot read ${PROGRAM}: ${results}")
endif()
if(NOT lines MATCHES "[1-9][0-9]* kernels")
  message(FATAL_ERROR "${PROGRAM} has no kernels for AVX2 or later")
endif()
if(lines MATCHES "> *:")
  message(FATAL_ERROR "instructions in the encoding of SSE in kernels of ${PROGRAM}:\n${lines}")
endif()
message(NOTICE "${lines}")
