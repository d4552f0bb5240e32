// SPDX-License-Identifier: MIT
// Numbers, arrays and products in a program without exceptions and run-time types, whose own handler is told
// of errors:
//   no_exceptions                  calculates; 0 if it is all right
//   no_exceptions <way to fail>    ends in the handler
#include <mp/array.hpp>
#include <mp/bfloat16.hpp>
#include <mp/block_scaled.hpp>
#include <mp/convert.hpp>
#include <mp/float4.hpp>
#include <mp/float8.hpp>
#include <mp/gemm.hpp>
#include <mp/half.hpp>
#include <mp/math.hpp>
#include <mp/packed_array.hpp>

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#if defined(__cpp_exceptions) || defined(__cpp_rtti) || defined(__GXX_RTTI)
#error "this source is compiled with -fno-exceptions -fno-rtti"
#endif

void handle_error(const char* message) noexcept {
    std::printf("handler: %s\n", message);
    std::fflush(stdout);
    std::_Exit(7);
}

namespace {

using namespace mp::literals;

int failures = 0;

void check(bool right, const char* what) {
    if (right) return;
    std::printf("wrong: %s\n", what);
    ++failures;
}

void numbers() {
    check((1_h / 3_h).bits() == 0x3555, "1/3 in half");
    check((1.5_bf16 * 1.5_bf16).bits() == 0x4010, "1.5 * 1.5 in bfloat16");
    check(mp::sqrt(2_h).bits() == 0x3da8, "sqrt(2) in half");
    mp::half read;
    const std::string_view text = "0.1";
    check(mp::from_chars(text.data(), text.data() + text.size(), read).ec == std::errc{} &&
              read.bits() == 0x2e66,
          "reading 0.1");
}

void arrays() {
    // Large enough for several threads.
    std::vector<float> from(1 << 20, 1.0F / 3);
    from.back() = 65520.0F;
    std::vector<mp::half> to(from.size());
    mp::convert(mp::cpu{.threads = 4}, from, to);
    check(to.front().bits() == 0x3555 && to.back().bits() == 0x7c00, "float to half");
    std::vector<float> back(from.size());
    mp::convert(mp::cpu{}, to, back);
    check(back.front() == 0.333251953125F, "half to float");
    mp::add(mp::cpu{}, to, to, to);
    check(to.front().bits() == 0x3955, "half + half");
    mp::packed_array<mp::float4_e2m1fn> small(5);
    small[3] = mp::float4_e2m1fn{1.5F};
    check(float(small[3]) == 1.5F, "packed float4");
    const std::vector<float> ones(64, 1.0F);
    const auto blocks = mp::quantize<mp::mxfp4>(mp::cpu{}, mp::row_major(ones.data(), 2, 32));
    std::vector<float> again(64);
    mp::dequantize(mp::cpu{}, blocks, mp::row_major(again.data(), 2, 32));
    check(again == ones, "MXFP4 of ones");
}

void products() {
    const std::vector<mp::half> a = {1_h, 2_h, 3_h, 4_h};
    const std::vector<mp::half> b = {5_h, 6_h, 7_h, 8_h};
    std::vector<float> c(4, 1.0F);
    mp::gemm(mp::cpu{.threads = 2}, 1.0F, mp::row_major(a.data(), 2, 2), mp::row_major(b.data(), 2, 2), 1.0F,
             mp::row_major(c.data(), 2, 2));
    check(c == std::vector<float>{20.0F, 23.0F, 44.0F, 51.0F}, "2 by 2");
}

void fail(std::string_view way) {
    if (way == "convert") {
        const std::vector<float> from(3);
        std::vector<mp::half> to(2);
        mp::convert(mp::cpu{}, from, to);
    } else if (way == "thread") {
        const std::vector<float> from(3);
        std::vector<mp::half> to(3);
        mp::convert(mp::cpu{.threads = 0}, from, to);
    } else if (way == "gemm") {
        std::vector<float> c(4);
        mp::gemm(mp::cpu{}, 1.0F, mp::row_major(c.data(), 2, 2), mp::row_major(c.data(), 2, 2), 0.0F,
                 mp::row_major(c.data(), 2, 2));
    }
}

}  // namespace

int main(int count, char** arguments) {
    if (count > 1) {
        fail(arguments[1]);
        return 1;
    }
    numbers();
    arrays();
    products();
    return failures == 0 ? 0 : 1;
}
