// SPDX-License-Identifier: MIT
#include "everything.hpp"

std::string used_in_b();

int main() {
    return use_everything() == used_in_b() ? 0 : 1;
}
