// expects: a rule has at most 8 states
// SPDX-License-Identifier: MIT
// The step of an optimizer holds rows of all states of a rule at once.
#include <mp/optim.hpp>

#include <cstdint>

class bad : public mp::optimizer_base<float, float, float, float> {
public:
    void step() {
        apply<9>(1.0F, [](std::uint64_t) { return [](auto...) {}; });
    }
};
void use(bad& optimizer) {
    optimizer.step();
}
