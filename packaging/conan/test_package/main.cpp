// SPDX-License-Identifier: MIT
#include <mp/convert.hpp>
#include <mp/half.hpp>

#include <vector>

int main() {
    const std::vector<float> values(100, 0.1F);
    std::vector<mp::half> low(values.size());
    mp::convert(mp::cpu{.threads = 2}, values, low);
    return low[99] == mp::half(0.1F) ? 0 : 1;
}
