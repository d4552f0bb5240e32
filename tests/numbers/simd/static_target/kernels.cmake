# SPDX-License-Identifier: MIT
# cmake -DNM=<nm> -DOBJECT=<file> -DKERNELS=<avx2, avx512 or any_target> -P kernels.cmake
#
# Fails where the object has kernels of another target, or lacks those of its own. Of any_target there are all.

execute_process(COMMAND "${NM}" -C --defined-only "${OBJECT}" OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
set(pattern_avx2 "::avx2::")
set(pattern_avx512 "::avx512::")
set(pattern_higher "::(avx512_bf16|avx512_fp16|amx)::")
set(pattern_portable "::portable(_vectors)?::|[a-z_]*portabl[ey][a-z_]*")
foreach(kind avx2 avx512 higher portable)
  string(REGEX MATCH "[^\n]*(${pattern_${kind}})[^\n]*" found "${symbols}")
  if(KERNELS STREQUAL "any_target" OR KERNELS STREQUAL kind)
    if(NOT found)
      message(FATAL_ERROR "${OBJECT} has no kernel of ${kind}")
    endif()
  elseif(found)
    message(FATAL_ERROR "${OBJECT} has a kernel that is not of ${KERNELS}: ${found}")
  endif()
endforeach()
