// SPDX-License-Identifier: MIT
// Stands in for cuda_recipes.cu where there is no CUDA.
#include "../common/user_error.hpp"
#include "training.hpp"

namespace examples::train_gpt {

gpu find_cuda_device() {
    throw user_error(
        "--device cuda: this program was built without CUDA; the CMake preset cuda, or -DMP_BUILD_CUDA=ON, "
        "builds it with CUDA");
}

}  // namespace examples::train_gpt
