// SPDX-License-Identifier: MIT
// Stands in for cuda_recipes.cu where there is no CUDA.
#include "../common/without_cuda.hpp"
#include "recipes.hpp"

namespace examples::train_digits {

gpu find_cuda_device() {
    refuse_cuda();
}

}  // namespace examples::train_digits
