// expects: mp::to_torch<To>: the number is of another format than PyTorch's class
// SPDX-License-Identifier: MIT
#include <mp/frontends/interop/torch.hpp>

namespace c10 {
struct alignas(2) Half {
    unsigned short x;
};
}  // namespace c10

auto bad(mp::bfloat16 x) {
    return mp::to_torch<c10::Half>(x);
}
