// SPDX-License-Identifier: MIT
// Arrays that end where a page ends that must not be touched, and that begin behind one: no instruction reads
// or writes beyond them, whatever a sanitizer can see of it.
#include <mp/convert.hpp>

#include <doctest/doctest.h>

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "arrays/convert/instruction_sets.hpp"

namespace {

/// Some pages between two that cannot be accessed.
class guarded_pages {
public:
    guarded_pages() : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
        void* const memory = mmap(nullptr, size() + 2 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        REQUIRE(memory != MAP_FAILED);
        begin_ = static_cast<unsigned char*>(memory) + page_;
        REQUIRE(mprotect(begin_, size(), PROT_READ | PROT_WRITE) == 0);
    }
    ~guarded_pages() { munmap(begin_ - page_, size() + 2 * page_); }
    guarded_pages(const guarded_pages&) = delete;
    guarded_pages& operator=(const guarded_pages&) = delete;

    template <class T>
    std::span<T> first(std::size_t count) const {
        return {reinterpret_cast<T*>(begin_), count};
    }
    template <class T>
    std::span<T> last(std::size_t count) const {
        return {reinterpret_cast<T*>(begin_ + size()) - count, count};
    }

private:
    std::size_t size() const { return 4 * page_; }

    std::size_t page_;
    unsigned char* begin_ = nullptr;
};

template <class From, class To>
void check(const guarded_pages& from_pages, const guarded_pages& to_pages) {
    const std::vector<From> source = edge_values<From, float>(160);
    for (const mp::instruction_set isa : instruction_sets_at_hand()) {
        const mp::cpu exec{.instructions = isa};
        for (std::size_t count = 0; count < 160; ++count) {
            for (const bool at_end : {false, true}) {
                const std::span<From> from =
                    at_end ? from_pages.last<From>(count) : from_pages.first<From>(count);
                const std::span<To> to = at_end ? to_pages.last<To>(count) : to_pages.first<To>(count);
                std::memcpy(from.data(), source.data(), count * sizeof(From));
                std::size_t wrong = 0;
                const auto compare = [&](const mp::projection& p) {
                    for (std::size_t i = 0; i < count; ++i)
                        wrong += bits_of(to[i]) != bits_of(mp::round_to<To>(source[i], p)) ? 1U : 0U;
                };
                mp::convert(exec, from, to);
                compare({});
                const mp::projection down{mp::rounding::downward, mp::saturation::finite};
                mp::convert(exec, from, to, down);
                compare(down);
                mp::convert_stochastic(exec, from, to, 1);
                if constexpr (sizeof(To) <= sizeof(From)) {
                    const std::span<To> results = mp::convert_in_place<To>(exec, from);
                    for (std::size_t i = 0; i < count; ++i)
                        wrong += bits_of(results[i]) != bits_of(mp::round_to<To>(source[i])) ? 1U : 0U;
                }
                CHECK(wrong == 0);
            }
        }
    }
}

}  // namespace

TEST_CASE("no conversion reads or writes beyond an array") {
    const guarded_pages from;
    const guarded_pages to;
    check<float, mp::half>(from, to);
    check<float, mp::bfloat16>(from, to);
    check<float, mp::float8_e4m3fn>(from, to);
    check<float, double>(from, to);
    check<double, mp::half>(from, to);
    check<double, mp::bfloat16>(from, to);
    check<double, float>(from, to);
    check<mp::half, float>(from, to);
    check<mp::half, double>(from, to);
    check<mp::half, mp::float8_e5m2>(from, to);
    check<mp::float8_e5m2, mp::half>(from, to);
    check<mp::tfloat32, mp::bfloat16>(from, to);
    check<float, float>(from, to);
}

#endif
