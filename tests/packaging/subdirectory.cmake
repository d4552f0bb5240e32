# SPDX-License-Identifier: MIT
# Builds and runs a small project that takes mp into its own build. It starts from an empty folder, because an
# option that an earlier run left in the cache would hide what mp turns on by itself.

include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")

file(REMOVE_RECURSE "${WORK_DIR}")
run("${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}/subdirectory" -B "${WORK_DIR}" -G "${GENERATOR}" ${OPTIONS}
  "-Dway=${WAY}" "-Dmp_source_dir=${MP_SOURCE_DIR}")
run("${CMAKE_COMMAND}" --build "${WORK_DIR}")
run("${WORK_DIR}/consumer")
