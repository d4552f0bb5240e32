// expects: mp::view_from_torch<To>: To is another format than PyTorch's class
// SPDX-License-Identifier: MIT
#include <mp/frontends/interop/torch.hpp>

namespace c10 {
struct alignas(2) BFloat16 {
    unsigned short x;
};
}  // namespace c10

auto bad(std::span<c10::BFloat16> x) {
    return mp::view_from_torch<mp::half>(x);
}
