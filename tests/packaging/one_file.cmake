# SPDX-License-Identifier: MIT
# Makes mp_half.hpp, and compiles and runs a program that has nothing else, strictly, included twice in two sources.

include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")

file(REMOVE_RECURSE "${WORK_DIR}")
file(MAKE_DIRECTORY "${WORK_DIR}")
execute_process(COMMAND "${MP_SOURCE_DIR}/cmake/amalgamate.sh" mp/half.hpp
  OUTPUT_FILE "${WORK_DIR}/mp_half.hpp" COMMAND_ERROR_IS_FATAL ANY)
file(WRITE "${WORK_DIR}/main.cpp" [=[
#include "mp_half.hpp"
#include "mp_half.hpp"

#include <cstring>

using namespace mp::literals;
static_assert(1_h / 3_h == 0.33325_h && MP_VERSION >= 200);

mp::half twice(mp::half x);

int main() {
    char text[32];
    *mp::to_chars(text, text + 31, twice(2.25_h)).ptr = 0;
    return std::strcmp(text, "4.5");
}
]=])
file(WRITE "${WORK_DIR}/twice.cpp" "#include \"mp_half.hpp\"\nmp::half twice(mp::half x);\nmp::half twice(mp::half x) { return x + x; }\n")
run("${COMPILER}" -std=c++20 -O1 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wdouble-promotion
  -Wfloat-equal -Werror "${WORK_DIR}/main.cpp" "${WORK_DIR}/twice.cpp" -o "${WORK_DIR}/program")
run("${WORK_DIR}/program")

# What cannot be put into one file is an error, not a file that lacks something.
execute_process(COMMAND "${MP_SOURCE_DIR}/cmake/amalgamate.sh" mp/convert.hpp
  OUTPUT_QUIET ERROR_VARIABLE error RESULT_VARIABLE status)
if(status EQUAL 0 OR NOT error MATCHES "cannot follow")
  message(FATAL_ERROR "mp/convert.hpp was put into one file: ${error}")
endif()
