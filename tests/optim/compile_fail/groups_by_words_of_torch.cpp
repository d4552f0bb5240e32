// expects: lr is called learning_rate here
// SPDX-License-Identifier: MIT
#include <mp/optim.hpp>

#include <vector>

void use(std::vector<float>& w, std::vector<float>& g, std::vector<float>& b, std::vector<float>& db) {
    mp::adamw<float> optimizer({{"weight", w, g}, {"bias", b, db, 1}},
                               {{.lr = 1e-3, .weight_decay = 0.1}, {.lr = 1e-3, .weight_decay = 0.0}});
}
