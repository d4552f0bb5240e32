// SPDX-License-Identifier: MIT
// Numbers of more than 2^31 and 2^32 digits, read by from_chars from texts that take 4 GiB of memory.
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>

#include <charconv>
#include <cstddef>
#include <cstdio>
#include <string>
#include <system_error>

namespace {

int failures = 0;

/// Reads [first, last), which holds one number.
void expect(const char* what, const char* first, const char* last, std::chars_format format, unsigned code,
            std::errc error = {}) {
    mp::half x = mp::half::from_bits(0x1234);
    const std::from_chars_result result = mp::from_chars(first, last, x, format);
    const bool right = result.ptr == last && result.ec == error && x.bits() == code;
    std::printf("%s, %zd characters: %s\n", what, last - first, right ? "right" : "WRONG");
    failures += right ? 0 : 1;
}

}  // namespace

int main() {
    using std::chars_format;
    for (const std::size_t length : {(std::size_t{1} << 31) + 1, (std::size_t{1} << 32) + 1}) {
        const std::string exponent = std::to_string(length);
        std::string text;
        text.reserve(length + 40);
        text.assign("1").append(length, '0');
        const char* const first = text.data();
        const auto last = [&] { return first + text.size(); };
        expect("too large", first, last(), chars_format::general, 0x1234, std::errc::result_out_of_range);
        expect("zero", first + 1, last(), chars_format::general, 0);
        text.append("e-").append(exponent);
        expect("one", first, last(), chars_format::general, 0x3c00);
        text.resize(length + 1);
        text.append("p-").append(std::to_string(4 * length));
        expect("hexadecimal one", first, last(), chars_format::hex, 0x3c00);
        text.resize(length + 1);
        text.append("1");
        text[1] = '.';
        expect("a little more than one", first, last(), chars_format::fixed, 0x3c00);
        // Behind the middle to the next number it decides.
        text.replace(0, 13, "1.00048828125");
        expect("a little more than a middle", first, last(), chars_format::fixed, 0x3c01);
        text.replace(0, 13, "0.00000000000");
        text.append("e").append(std::to_string(length));
        expect("zeros behind the point", first, last(), chars_format::general, 0x3c00);
    }
    return failures == 0 ? 0 : 1;
}
