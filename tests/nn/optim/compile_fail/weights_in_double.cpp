// expects: exact_in_float
// SPDX-License-Identifier: MIT
// Updates are computed in float, so double weights would lose digits.
#include <mp/optim.hpp>

using bad = mp::sgd<double>;
bad* optimizer = nullptr;
std::size_t use() {
    return optimizer->parameters().size();
}
