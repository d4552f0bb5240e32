// SPDX-License-Identifier: MIT
// Types made like those of PyTorch share the bits of the library's numbers. PyTorch itself is not needed.
#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/interop/torch.hpp>

#include <doctest/doctest.h>
#include <cstdint>
#include <ostream>
#include <span>
#include <vector>

namespace {

// As in c10/util/Half.h and c10/util/Float8_e4m3fn.h: a member x, tags, and conversions that play no part.
struct alignas(2) half_like {
    unsigned short x;
    struct from_bits_t {};
    half_like() = default;
    constexpr half_like(unsigned short bits, from_bits_t) : x(bits) {}
    operator float() const { return -1; }
};
struct alignas(1) float8_like {
    std::uint8_t x;
};
struct with_another_member {
    std::uint16_t x;
    std::uint16_t y;
};

}  // namespace

static_assert(mp::torch_number<half_like> && mp::torch_number<float8_like>);
static_assert(!mp::torch_number<with_another_member> && !mp::torch_number<mp::half> &&
              !mp::torch_number<int>);

TEST_CASE("single numbers keep their bits") {
    for (std::uint32_t code = 0; code < 65536; ++code) {
        const auto bits = static_cast<std::uint16_t>(code);
        REQUIRE(mp::from_torch<mp::half>(half_like(bits, {})).bits() == bits);
        REQUIRE(mp::from_torch<mp::bfloat16>(half_like(bits, {})).bits() == bits);
        REQUIRE(mp::to_torch<half_like>(mp::half::from_bits(bits)).x == bits);
    }
    CHECK(mp::from_torch<mp::float8_e4m3fn>(float8_like{0x7e}) == mp::float8_e4m3fn{448});
}

TEST_CASE("arrays are seen as the other type") {
    std::vector<half_like> theirs{{0x3c00, {}}, {0x4000, {}}};
    const std::span<mp::half> ours = mp::view_from_torch<mp::half>(std::span(theirs));
    CHECK(ours.data() == static_cast<void*>(theirs.data()));
    CHECK(ours[1] == mp::half{2});
    const std::vector<mp::half> numbers{mp::half{1}, mp::half{-2}};
    const std::span<const half_like> view = mp::view_as_torch<half_like>(std::span(numbers));
    CHECK(view[1].x == 0xc000);
}
