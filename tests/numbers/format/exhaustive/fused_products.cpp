// SPDX-License-Identifier: MIT
// Fused multiply-adds of half and bfloat16 in cases that are built to be hard, and all triples of the small
// formats.
#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "numbers/format/exhaustive/progress.hpp"
#include "oracle/fused.hpp"
#include "oracle/library.hpp"
#include "oracle/random.hpp"

namespace {

constexpr std::uint64_t block_size = 65536;

/// Runs `work(block, report)` for all blocks on all threads. Returns whether nothing was reported.
template <class Work>
bool run(const char* name, std::uint64_t blocks, unsigned threads, Work work) {
    exhaustive::progress bar(blocks);
    std::atomic<std::uint64_t> next{0};
    std::atomic<std::uint64_t> done{0};
    std::atomic<int> wrong{0};
    std::mutex mutex;
    const auto report = [&](const char* text) {
        const std::lock_guard lock(mutex);
        if (++wrong <= 10) std::fprintf(stderr, "%s: %s\n", name, text);
    };
    std::vector<std::thread> workers;
    for (unsigned t = 0; t < threads; ++t) {
        workers.emplace_back([&] {
            for (std::uint64_t i = next++; i < blocks && wrong < 10; i = next++) {
                work(i, report);
                ++done;
            }
        });
    }
    while (done < blocks && wrong < 10) {
        bar.show(done, name);
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    for (std::thread& worker : workers) worker.join();
    bar.show(done, wrong == 0 ? "done" : "wrong");
    bar.finish();
    std::printf("%s: %s, %.0f s\n", name, wrong == 0 ? "all right" : "WRONG", bar.seconds());
    return wrong == 0;
}

struct triple {
    std::uint64_t a, b, c;
};

/// Triples near which rounding is decided: sums that cancel except for a few bits, products that are midpoints
/// or nearly so with an addend far below, addends whose last place the product just reaches, results around
/// the smallest normal number and the largest, and random ones.
triple hard_case(oracle::random_bits& random, const oracle::format& f) {
    const std::uint64_t all = code_count(f) - 1;
    const std::uint64_t fraction = min_normal_code(f) - 1;
    const auto fields = static_cast<std::uint32_t>(max_finite_code(f) >> f.fraction_bits);
    const auto code_at = [&](std::uint64_t field, std::uint64_t bits) {
        return (std::min<std::uint64_t>(field, fields) << f.fraction_bits) | (bits & fraction);
    };
    const std::uint64_t sign_a = random.next() & sign_bit(f);
    const std::uint64_t sign_b = random.next() & sign_bit(f);
    triple result{sign_a | code_at(1 + random.below(fields), random.next()),
                  sign_b | code_at(1 + random.below(fields), random.next()), random.next() & all};
    const int product_field = static_cast<int>((result.a & ~sign_bit(f)) >> f.fraction_bits) +
                              static_cast<int>((result.b & ~sign_bit(f)) >> f.fraction_bits) - f.bias;
    const auto near_product = [&](int distance) {
        return static_cast<std::uint64_t>(std::clamp(product_field + distance, 0, static_cast<int>(fields)));
    };
    switch (random.below(6)) {
        case 0: {
            // The product's leading bits with the other sign, and up to two in the last place added.
            const std::uint64_t significand =
                ((result.a & fraction) | (fraction + 1)) * ((result.b & fraction) | (fraction + 1));
            std::uint64_t leading = significand >> f.fraction_bits;
            int carry = 0;
            if (leading > 2 * fraction + 1) {
                leading >>= 1;
                carry = 1;
            }
            result.c = ((sign_a ^ sign_b ^ sign_bit(f)) | code_at(near_product(carry), leading)) +
                       random.below(5) - 2;
            break;
        }
        case 1: {
            // Few bits times few bits, so that the product ends in a one just behind the last place.
            const std::uint64_t odd = 3 + 2 * random.below(2);
            result.b =
                sign_b | code_at(result.b >> f.fraction_bits & (code_count(f) / 2 - 1) >> f.fraction_bits,
                                 odd == 3 ? (fraction + 1) / 2 : (fraction + 1) / 4);
            result.c =
                (random.next() & sign_bit(f)) |
                code_at(
                    random.below(static_cast<std::uint32_t>(std::max(1, static_cast<int>(near_product(0))))),
                    random.next());
            break;
        }
        case 2:
            // An addend whose last place is about the size of the product.
            result.c =
                (random.next() & sign_bit(f)) |
                code_at(near_product(f.fraction_bits - 1 + static_cast<int>(random.below(5))), random.next());
            break;
        case 3: {
            // Around the smallest normal number and below.
            const auto field_b = static_cast<std::uint64_t>(std::clamp(
                f.bias - static_cast<int>((result.a & ~sign_bit(f)) >> f.fraction_bits) - f.fraction_bits +
                    static_cast<int>(random.below(static_cast<std::uint32_t>(2 * f.fraction_bits))),
                0, static_cast<int>(fields)));
            result.b = sign_b | code_at(field_b, random.next());
            result.c = (random.next() & sign_bit(f)) | code_at(random.below(3), random.next());
            break;
        }
        case 4:
            result.c = (random.next() & sign_bit(f)) |
                       code_at(near_product(static_cast<int>(random.below(5)) - 2), random.next());
            break;
        default:
            result = {random.next() & all, random.next() & all, random.next() & all};
            break;
    }
    result.c &= all;
    return result;
}

template <class Value, int Words>
bool hard_cases(const char* name, std::uint64_t cases, unsigned threads) {
    const oracle::format& f = oracle::format_of<Value>;
    std::vector<oracle::fused_oracle<Words>> judges;
    for (const oracle::mode m : oracle::modes) judges.emplace_back(f, m);
    return run(
        name, (cases + block_size - 1) / block_size, threads, [&](std::uint64_t block, const auto& report) {
            oracle::random_bits random(block * 0x9e3779b97f4a7c15U + 1);
            for (std::uint64_t n = 0; n < block_size; ++n) {
                const triple x = hard_case(random, f);
                const Value a = oracle::value_of<Value>(x.a);
                const Value b = oracle::value_of<Value>(x.b);
                const Value c = oracle::value_of<Value>(x.c);
                // The function that users call, and the integer core in the modes by turns.
                const auto compare = [&](oracle::mode m, std::uint64_t code) {
                    if (judges[static_cast<std::size_t>(m)].admits(x.a, x.b, x.c, code)) return;
                    char line[96];
                    std::snprintf(line, sizeof line, "fma(0x%04x, 0x%04x, 0x%04x) gives 0x%04x in mode %s",
                                  static_cast<unsigned>(x.a), static_cast<unsigned>(x.b),
                                  static_cast<unsigned>(x.c), static_cast<unsigned>(code),
                                  oracle::name_of(m));
                    report(line);
                };
                compare(oracle::mode::nearest_even, mp::fma(a, b, c).bits());
                const oracle::mode m = oracle::modes[1 + n % 5];
                if (n % 4 == 0)
                    compare(m,
                            mp::fma(a, b, c, oracle::library_projection(m, oracle::saturate::none)).bits());
            }
        });
}

/// All triples, in every projection.
template <class Value>
bool all_triples(unsigned threads) {
    const oracle::format& f = oracle::format_of<Value>;
    const std::uint64_t count = code_count(f);
    return run(Value::format::name, count * count, threads, [&](std::uint64_t block, const auto& report) {
        oracle::disagreements wrong;
        const std::uint64_t i = block / count;
        const std::uint64_t j = block % count;
        const Value a = oracle::value_of<Value>(i);
        const Value b = oracle::value_of<Value>(j);
        for (std::uint64_t k = 0; k < count; ++k) {
            const Value c = oracle::value_of<Value>(k);
            const oracle::exact_result exact = oracle::fma(f, i, j, k);
            oracle::compare_in_every_projection<Value>(
                wrong, exact, [&](mp::projection p) { return mp::fma(a, b, c, p); }, "fma", i, j, k);
            const oracle::outcome expected =
                finish(f, exact, oracle::mode::nearest_even, oracle::saturate::none);
            if (!matches(f, expected, mp::fma(a, b, c).bits()))
                wrong.add("fma", i, j, k, "without projection");
        }
        if (wrong.count != 0) report(wrong.first().c_str());
    });
}

}  // namespace

int main(int argc, char** argv) {
    std::uint64_t cases = 1000000000;
    unsigned threads = std::max(1U, std::thread::hardware_concurrency());
    for (int i = 1; i < argc; i += 2) {
        const std::string_view name = argv[i];
        const std::string_view value = i + 1 < argc ? argv[i + 1] : "";
        const auto parse = [&](auto& number) {
            const auto result = std::from_chars(value.data(), value.data() + value.size(), number);
            return result.ec == std::errc{} && result.ptr == value.data() + value.size() && number > 0;
        };
        if (name == "--help") {
            std::printf(
                "usage: %s [--cases N] [--threads T]\n"
                "Compares fma of half and bfloat16 in N hard cases each (by default 10^9), and of all "
                "triples of every\n"
                "format of 8 bits and fewer, with an oracle in exact integer arithmetic. Exit code 1 when a "
                "result is\n"
                "wrong, 2 for a wrong option.\n",
                argv[0]);
            return 0;
        }
        if (!(name == "--cases" && parse(cases)) && !(name == "--threads" && parse(threads))) {
            std::fprintf(stderr, "%s: cannot use '%s %s'; --help shows the options\n", argv[0], argv[i],
                         i + 1 < argc ? argv[i + 1] : "");
            return 2;
        }
    }
    bool right = hard_cases<mp::half, 2>("half, hard cases", cases, threads);
    right = hard_cases<mp::bfloat16, 9>("bfloat16, hard cases", cases, threads) && right;
    std::apply([&](auto... value) { ((right = all_triples<decltype(value)>(threads) && right), ...); },
               oracle::small_formats{});
    return right ? 0 : 1;
}
