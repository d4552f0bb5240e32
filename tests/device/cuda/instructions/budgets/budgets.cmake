# SPDX-License-Identifier: MIT
# cmake -DCOMPILER= -DDISASSEMBLER= -DCOUNTER= -DINCLUDE= -DSOURCE= -DOUTPUT= -P budgets.cmake: compiles kernels for the
# architecture that the source names (`// architecture <name>`), and has the program COUNTER compare their instructions
# with its budgets: those of PTX, and those of SASS where DISASSEMBLER is nvdisasm.
file(STRINGS "${SOURCE}" architecture REGEX "^// architecture ")
string(REPLACE "// architecture " "" architecture "${architecture}")
if(NOT architecture)
  message(FATAL_ERROR "${SOURCE} names no architecture")
endif()
cmake_path(GET SOURCE STEM name)
set(flags -std=c++20 --expt-relaxed-constexpr "-arch=sm_${architecture}" "-I${INCLUDE}")
file(MAKE_DIRECTORY "${OUTPUT}")
if(DISASSEMBLER)
  execute_process(COMMAND "${COMPILER}" ${flags} -cubin --keep "--keep-dir=${OUTPUT}" "${SOURCE}" -o "${OUTPUT}/${name}.cubin"
    COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND "${DISASSEMBLER}" -c "${OUTPUT}/${name}.cubin" OUTPUT_FILE "${OUTPUT}/${name}.sass"
    COMMAND_ERROR_IS_FATAL ANY)
  set(sass "${OUTPUT}/${name}.sass")
else()
  execute_process(COMMAND "${COMPILER}" ${flags} -ptx "${SOURCE}" -o "${OUTPUT}/${name}.ptx" COMMAND_ERROR_IS_FATAL ANY)
  set(sass)
endif()
execute_process(COMMAND "${COUNTER}" "${SOURCE}" "${OUTPUT}/${name}.ptx" ${sass} COMMAND_ERROR_IS_FATAL ANY)
