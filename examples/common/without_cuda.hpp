// SPDX-License-Identifier: MIT
/// \file
/// What a program without CUDA says to --device cuda.
#pragma once

#include "user_error.hpp"

namespace examples {

[[noreturn]] inline void refuse_cuda() {
    throw user_error(
        "--device cuda: this program was built without CUDA; the CMake preset cuda, or -DMP_BUILD_CUDA=ON, "
        "builds it with CUDA");
}

}  // namespace examples
