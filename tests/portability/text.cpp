// SPDX-License-Identifier: MIT
// Numbers as text, in and out.
#include <mp/numbers/format/describe.hpp>
#include <mp/numbers/format/formatting.hpp>

#include <charconv>
#include <sstream>

#include "formats.hpp"

namespace portability {

namespace {

template <class T>
void add_text(report& to, const std::string& name) {
    checksum printed;
    checksum read;
    checksum streamed;
    char text[512];
    for (const T x : codes<T>(300)) {
        const auto add = [&](std::to_chars_result result) {
            printed.add(result.ec);
            printed.add(std::string_view(text, static_cast<std::size_t>(result.ptr - text)));
        };
        char* const end = text + sizeof text;
        add(mp::to_chars(text, end, x));
        std::string with_more(text, static_cast<std::size_t>(mp::to_chars(text, end, x).ptr - text));
        with_more += "5001";
        T back{};
        const auto result = mp::from_chars(with_more.data(), with_more.data() + with_more.size(), back);
        read.add(result.ec);
        read.add_code(back);
        for (const auto form : {std::chars_format::scientific, std::chars_format::fixed,
                                std::chars_format::hex, std::chars_format::general}) {
            add(mp::to_chars(text, end, x, form));
            add(mp::to_chars(text, end, x, form, 3));
        }
        std::ostringstream stream;
        stream << x << ' ' << std::scientific << x << ' ' << std::hexfloat << x;
        streamed.add(stream.str());
    }
    generator random(17);
    for (int i = 0; i < 1000; ++i) {
        std::string digits = std::to_string(random.next());
        if (i % 2 == 0) digits.insert(1 + digits.size() * static_cast<std::size_t>(i) / 1001, ".");
        if (i % 5 == 0) digits += std::to_string(random.next()) + std::to_string(random.next());
        digits += "e" + std::to_string(static_cast<int>(random.next() % 100) - 60);
        for (const mp::rounding round :
             {mp::rounding::nearest_even, mp::rounding::downward, mp::rounding::to_odd}) {
            T x{};
            const auto result = mp::from_chars(digits.data(), digits.data() + digits.size(), x,
                                               mp::projection{.round = round});
            read.add(result.ec);
            read.add(static_cast<std::uint64_t>(result.ptr - digits.data()));
            read.add_code(x);
        }
    }
    to.add(name + ".to_chars", printed);
    to.add(name + ".from_chars", read);
    to.add(name + ".stream", streamed);
}

}  // namespace

void add_text_checksums(report& to) {
    for_each_format([&]<class T>(named<T> it) { add_text<T>(to, it.name); });
    checksum described;
    for (const mp::half x : codes<mp::half>(60)) described.add(to_string(mp::describe(x)));
    for (const mp::float8_e4m3fnuz x : codes<mp::float8_e4m3fnuz>(60))
        described.add(to_string(mp::describe(x)));
    to.add("describe", described);
}

}  // namespace portability
