# SPDX-License-Identifier: MIT
# A project that is stricter than most.
target_compile_options(consumer PRIVATE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wfloat-equal -Wdouble-promotion -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(consumer PRIVATE -Wuseless-cast)
endif()
