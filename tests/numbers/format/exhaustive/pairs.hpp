// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "numbers/format/exhaustive/progress.hpp"
#include "oracle/interval.hpp"
#include "oracle/library.hpp"

/// Compares every pair of operands of a 16-bit format, and every float, with the interval oracle.
namespace exhaustive {

struct options {
    std::uint32_t slice = 0;
    std::uint32_t slices = 1;
    unsigned threads = std::thread::hardware_concurrency() == 0 ? 1 : std::thread::hardware_concurrency();
    oracle::mode rounding = oracle::mode::nearest_even;
};

/// What is compared, each over 2^32 cases in 65536 blocks: a block is one left operand with all right ones,
/// or one upper half of a float's bits with all lower ones.
enum class part : std::uint32_t { sum, difference, product, quotient, conversion };
inline constexpr std::uint32_t part_count = 5;
inline constexpr const char* part_names[] = {"a + b", "a - b", "a * b", "a / b", "from float"};
inline constexpr std::uint32_t block_count = 1U << 16;

inline void print_usage(const char* program) {
    std::printf(
        "usage: %s [--slice N/M] [--threads T] [--rounding MODE]\n"
        "Compares + - * / of all 2^32 pairs of operands, and the conversion of all 2^32 floats, with an "
        "oracle in\n"
        "exact integer arithmetic. Exit code 1 when a result is wrong, 2 for a wrong option.\n"
        "  --slice N/M      only the N-th of M slices, 1 <= N <= M (each slice is spread over all operands)\n"
        "  --threads T      number of threads; all processors by default\n"
        "  --rounding MODE  nearest_even (the operators, the default), nearest_away, toward_zero, upward, "
        "downward\n"
        "                   or to_odd\n",
        program);
}

inline bool parse_number(std::string_view text, std::uint32_t& value) {
    const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
    return result.ec == std::errc{} && result.ptr == text.data() + text.size();
}

/// Returns nothing, after a line on stderr, when an option is wrong.
inline std::optional<options> parse_options(int argc, char** argv) {
    options result;
    for (int i = 1; i < argc; i += 2) {
        const std::string_view name = argv[i];
        const std::string_view value = i + 1 < argc ? argv[i + 1] : "";
        bool right = false;
        if (name == "--slice") {
            const std::size_t slash = value.find('/');
            right = slash != std::string_view::npos && parse_number(value.substr(0, slash), result.slice) &&
                    parse_number(value.substr(slash + 1), result.slices) && result.slice >= 1 &&
                    result.slice <= result.slices;
            --result.slice;
        } else if (name == "--threads") {
            right = parse_number(value, result.threads) && result.threads >= 1 && result.threads <= 4096;
        } else if (name == "--rounding") {
            for (const oracle::mode m : oracle::modes) {
                if (value == oracle::name_of(m)) {
                    result.rounding = m;
                    right = true;
                }
            }
        }
        if (!right) {
            std::fprintf(stderr, "%s: cannot use '%s %s'; --help shows the options\n", argv[0], argv[i],
                         i + 1 < argc ? argv[i + 1] : "");
            return std::nullopt;
        }
    }
    return result;
}

template <class Value, int Words>
class comparison {
public:
    explicit comparison(const options& choice)
        : choice_(choice),
          judge_(oracle::format_of<Value>, choice.rounding, oracle::saturate::none),
          projection_(oracle::library_projection(choice.rounding, oracle::saturate::none)) {}

    int run(const char* name) {
        const std::uint64_t blocks_a_part =
            (block_count - choice_.slice + choice_.slices - 1) / choice_.slices;
        const std::uint64_t total = blocks_a_part * part_count;
        std::printf("%s, rounding %s: slice %u of %u, %.3g results on %u threads\n", name,
                    oracle::name_of(choice_.rounding), choice_.slice + 1, choice_.slices,
                    static_cast<double>(total) * 65536, choice_.threads);
        progress bar(total);
        std::atomic<std::uint64_t> next{0};
        std::atomic<std::uint64_t> done{0};
        std::vector<std::thread> threads;
        for (unsigned t = 0; t < choice_.threads; ++t) {
            threads.emplace_back([&] {
                for (std::uint64_t i = next++; i < total && !stop_; i = next++) {
                    const auto block =
                        static_cast<std::uint32_t>(i % blocks_a_part) * choice_.slices + choice_.slice;
                    compare_block(static_cast<part>(i / blocks_a_part), block);
                    ++done;
                }
            });
        }
        while (done < total && !stop_) {
            bar.show(done, part_names[std::min<std::uint64_t>(next / blocks_a_part, part_count - 1)]);
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
        }
        for (std::thread& thread : threads) thread.join();
        bar.show(done, stop_ ? "stopped" : "done");
        bar.finish();
        if (!mismatches_.empty()) {
            std::printf("%s", mismatches_.c_str());
            std::printf("%s: wrong results, stopped after %.0f s\n", name, bar.seconds());
            return 1;
        }
        std::printf("%s: all right, %.0f s\n", name, bar.seconds());
        return 0;
    }

private:
    void compare_block(part what, std::uint32_t block) {
        // The operators and constructors are what users write; they are compared where they round.
        if (choice_.rounding == oracle::mode::nearest_even) {
            switch (what) {
                case part::sum:
                    return compare_pairs(what, block, [](Value a, Value b) { return a + b; });
                case part::difference:
                    return compare_pairs(what, block, [](Value a, Value b) { return a - b; });
                case part::product:
                    return compare_pairs(what, block, [](Value a, Value b) { return a * b; });
                case part::quotient:
                    return compare_pairs(what, block, [](Value a, Value b) { return a / b; });
                case part::conversion:
                    return compare_floats(block, [](float x) { return Value(x); });
            }
        }
        const mp::projection p = projection_;
        switch (what) {
            case part::sum:
                return compare_pairs(what, block, [p](Value a, Value b) { return mp::add(a, b, p); });
            case part::difference:
                return compare_pairs(what, block, [p](Value a, Value b) { return mp::subtract(a, b, p); });
            case part::product:
                return compare_pairs(what, block, [p](Value a, Value b) { return mp::multiply(a, b, p); });
            case part::quotient:
                return compare_pairs(what, block, [p](Value a, Value b) { return mp::divide(a, b, p); });
            case part::conversion:
                return compare_floats(block, [p](float x) { return mp::round_to<Value>(x, p); });
        }
    }

    template <class Operation>
    void compare_pairs(part what, std::uint32_t i, Operation operation) {
        const Value a = oracle::value_of<Value>(i);
        for (std::uint32_t j = 0; j < 1U << 16; ++j) {
            const std::uint32_t result = operation(a, oracle::value_of<Value>(j)).bits();
            if (!admits(what, i, j, result)) report(what, i, j, result);
        }
    }

    template <class Conversion>
    void compare_floats(std::uint32_t upper, Conversion conversion) {
        for (std::uint32_t lower = 0; lower < 1U << 16; ++lower) {
            const std::uint32_t code = upper << 16 | lower;
            const std::uint32_t result = conversion(oracle::value_of<float>(code)).bits();
            if (!judge_.admits_conversion(code, result)) report(part::conversion, upper, lower, result);
        }
    }

    bool admits(part what, std::uint32_t a, std::uint32_t b, std::uint32_t result) const {
        switch (what) {
            case part::sum:
                return judge_.admits_sum(a, b, result);
            case part::difference:
                return judge_.admits_difference(a, b, result);
            case part::product:
                return judge_.admits_product(a, b, result);
            case part::quotient:
                return judge_.admits_quotient(a, b, result);
            case part::conversion:
                return judge_.admits_conversion(a << 16 | b, result);
        }
        return false;
    }

    /// One line for a wrong result, with what the oracle's search gives; ten of them end the run.
    void report(part what, std::uint32_t a, std::uint32_t b, std::uint32_t result) {
        const oracle::format& f = oracle::format_of<Value>;
        oracle::exact_result exact;
        char operands[64];
        std::snprintf(operands, sizeof operands, "a = 0x%04x, b = 0x%04x", a, b);
        switch (what) {
            case part::sum:
                exact = oracle::add(f, a, b);
                break;
            case part::difference:
                exact = oracle::subtract(f, a, b);
                break;
            case part::product:
                exact = oracle::multiply(f, a, b);
                break;
            case part::quotient:
                exact = oracle::divide(f, a, b);
                break;
            case part::conversion:
                exact = oracle::convert(oracle::binary32, a << 16 | b, f);
                std::snprintf(operands, sizeof operands, "x = 0x%08x", a << 16 | b);
                break;
        }
        const oracle::outcome expected = finish(f, exact, choice_.rounding, oracle::saturate::none);
        char line[160];
        if (expected.nan) {
            std::snprintf(line, sizeof line,
                          "%s with %s gives 0x%04x; right is a NaN with sign and payload kept\n",
                          part_names[static_cast<std::uint32_t>(what)], operands, result);
        } else {
            std::snprintf(line, sizeof line, "%s with %s gives 0x%04x; right is 0x%04x\n",
                          part_names[static_cast<std::uint32_t>(what)], operands, result,
                          static_cast<std::uint32_t>(expected.code));
        }
        const std::lock_guard lock(mutex_);
        if (mismatch_count_ < 10) mismatches_ += line;
        if (++mismatch_count_ >= 10) stop_ = true;
    }

    options choice_;
    oracle::interval_oracle<Words> judge_;
    mp::projection projection_;
    std::atomic<bool> stop_{false};
    std::mutex mutex_;
    std::string mismatches_;
    int mismatch_count_ = 0;
};

template <class Value, int Words>
int main_of(const char* name, int argc, char** argv) {
    if (argc == 2 && std::strcmp(argv[1], "--help") == 0) {
        print_usage(argv[0]);
        return 0;
    }
    const std::optional<options> choice = parse_options(argc, argv);
    if (!choice) return 2;
    return comparison<Value, Words>(*choice).run(name);
}

}  // namespace exhaustive
