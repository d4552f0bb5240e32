// SPDX-License-Identifier: MIT
#include "everything.hpp"

std::string used_in_b();
std::string used_in_b() {
    return use_everything();
}
