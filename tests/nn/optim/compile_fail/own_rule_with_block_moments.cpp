// expects: a rule of your own has no moments in blocks
// SPDX-License-Identifier: MIT
// Rules of users see states as floats in memory, which moments in blocks are only within the library's pass.
#include <mp/optim.hpp>

#include <cstdint>

class bad : public mp::optimizer_base<float, float, float, mp::block_moment> {
public:
    void step() {
        apply<1>(1.0F, [](std::uint64_t) { return [](auto...) {}; });
    }
};
void use(bad& optimizer) {
    optimizer.step();
}
