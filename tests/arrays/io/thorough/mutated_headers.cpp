// SPDX-License-Identifier: MIT
// Mutated .npy and GGUF files: each is refused with file_error, or its arrays have the number of elements of their shapes
// and lie in the file. The oracle multiplies shapes in halves of 64 bits.
#include <mp/arrays/io/gguf.hpp>
#include <mp/arrays/io/npy.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arrays/io/gguf_bytes.hpp"
#include "train/training/test_folder.hpp"

namespace {

/// Changes a text in one to three places: bytes, bits, tokens of the format.
class mutator {
public:
    mutator(std::vector<std::string> texts, std::vector<std::string> tokens)
        : texts_(std::move(texts)), tokens_(std::move(tokens)) {}

    std::string next() {
        std::string text = texts_[below(texts_.size())];
        for (std::size_t changes = 1 + below(3); changes > 0; --changes) {
            const std::size_t at = below(text.size());
            const std::string& token = tokens_[below(tokens_.size())];
            switch (below(7)) {
                case 0:
                    text[at] = static_cast<char>(below(256));
                    break;
                case 1:
                    text.insert(at, token);
                    break;
                case 2:
                    text.replace(at, token.size(), token);
                    break;
                case 3:
                    text.erase(at, 1 + below(4));
                    break;
                case 4:
                    text[at] = static_cast<char>(text[at] ^ 1 << below(8));
                    break;
                case 5:
                    if (const std::size_t digit = text.find_first_of("0123456789", at);
                        digit != std::string::npos)
                        text.replace(digit, 1, token);
                    break;
                default:
                    if (below(8) == 0) text.resize(at);
            }
            if (text.empty()) text = texts_[0];
        }
        return text;
    }

private:
    std::size_t below(std::size_t limit) { return random_() % limit; }

    std::vector<std::string> texts_;
    std::vector<std::string> tokens_;
    std::mt19937 random_{1};
};

/// Writes a new file: file systems flush one that was truncated.
void replace_file(const std::string& path, const std::string& text) {
    std::filesystem::remove(path);
    write_file(path, text);
}

/// Returns a * b, or nothing where that needs more than 64 bits: from the four products of halves.
std::optional<std::uint64_t> product(std::uint64_t a, std::uint64_t b) {
    constexpr std::uint64_t half = 0xFFFFFFFF;
    const std::uint64_t crossed = (a >> 32) * (b & half) + (b >> 32) * (a & half);
    if ((a >> 32) * (b >> 32) != 0 || crossed > half) return {};
    const std::uint64_t low = (a & half) * (b & half);
    if (low > ~(crossed << 32)) return {};
    return low + (crossed << 32);
}

/// Whether an array of this shape has this number of elements, and dimensions that a matrix can have.
bool has_elements(const std::vector<std::size_t>& shape, std::size_t count) {
    std::optional<std::uint64_t> elements = 1;
    for (const std::size_t it : shape) {
        if (it > static_cast<std::size_t>((std::numeric_limits<std::ptrdiff_t>::max)())) return false;
        elements = product(*elements, it);
        if (!elements) return false;
    }
    return *elements == count;
}

/// Whether a matrix has as many elements as the array.
template <class File, class... Name>
bool has_good_matrix(const File& file, std::size_t count, const Name&... name) {
    try {
        const mp::matrix_view<const std::int8_t> view = file.template matrix<std::int8_t>(name...);
        if (view.rows < 0 || view.columns < 0) return false;
        return product(static_cast<std::uint64_t>(view.rows), static_cast<std::uint64_t>(view.columns)) ==
               count;
    } catch (const mp::file_error&) {
        return true;
    }
}

}  // namespace

TEST_CASE(".npy: mutated files are refused, or have arrays that lie in them") {
    const auto npy = [](std::string_view header, std::size_t bytes) {
        std::string text = "\x93NUMPY\x01";
        text.append({'\0', static_cast<char>(header.size() & 255), static_cast<char>(header.size() >> 8)});
        return text.append(header).append(bytes, '\1');
    };
    const std::string one = npy("{'descr': '|i1', 'fortran_order': False, 'shape': (2, 3)}", 6);
    mutator mutate_header({"{'descr': '|i1', 'fortran_order': False, 'shape': (2, 3)}",
                           "{'descr': '|i1', 'fortran_order': True, 'shape': (0, 4)}",
                           "{'shape': (0, 4, 5, 6, 7), 'descr': '|i1', 'fortran_order': False}",
                           "{'descr': '<f8', 'fortran_order': False, 'shape': (1,)}"},
                          {"0",
                           "1",
                           "9",
                           ",",
                           "(",
                           ")",
                           "4294967296",
                           "9223372036854775807",
                           "9223372036854775808",
                           "18446744073709551615",
                           "0, ",
                           "True",
                           "i1",
                           "f8",
                           "i4",
                           "V1",
                           "'",
                           "{",
                           "}",
                           " ",
                           "L",
                           "-"});
    mutator mutate_bytes({one, one + one}, {std::string(1, '\0'), "\1", "\2", "\3", one});
    const test_folder folder;
    const std::string path = folder.file("x");
    int accepted = 0;
    for (int i = 0; i < 10000; ++i) {
        constexpr std::size_t sizes[] = {0, 6, 0, 6, 8};
        std::string text = i % 4 == 0 ? mutate_bytes.next() : npy(mutate_header.next(), sizes[i % 5]);
        if (i % 16 == 1) text += one;
        replace_file(path, text);
        try {
            const std::vector<mp::npy_file> arrays = mp::npy_file::read_all(path);
            // Offsets from the elements of the first array, which lie at least ten bytes after the beginning.
            std::ptrdiff_t end = 0;
            for (const mp::npy_file& it : arrays) {
                INFO(text);
                CHECK(has_elements(it.shape(), it.size()));
                CHECK((it.size() == 0 ? it.bytes().empty() : it.bytes().size() % it.size() == 0));
                CHECK(has_good_matrix(it, it.size()));
                const std::ptrdiff_t begin = it.bytes().data() - arrays[0].bytes().data();
                CHECK(begin >= end);
                end = begin + std::ssize(it.bytes());
            }
            CHECK(end + 10 <= std::ssize(text));
            ++accepted;
        } catch (const mp::file_error&) {
        }
    }
    CHECK(accepted > 300);
}

TEST_CASE("GGUF: mutated files are refused, or have arrays that lie in them") {
    const std::string data(256, '\1');
    const std::string alignment = gguf_text("general.alignment") + le(4, 4) + le(64, 4);
    const std::string words =
        gguf_text("w") + le(9, 4) + le(8, 4) + le(2, 8) + gguf_text("x") + gguf_text("yz");
    mutator mutate(
        {gguf_file_of({}, {gguf_tensor("a", {2, 3}, 24, 0)}, data),
         gguf_file_of({words}, {gguf_tensor("a", {0, 5}, 24, 0), gguf_tensor("b", {64, 2}, 8, 32)}, data),
         gguf_file_of({alignment, words},
                      {gguf_tensor("a", {64}, 40, 64), gguf_tensor("b", {32, 1, 1, 2}, 39, 128)}, data)},
        {le(0, 8), le(1, 8), le(1ULL << 32, 8), le(1ULL << 63, 8), le(~0ULL, 8), le(~0ULL >> 1, 8), le(64, 8),
         le(24, 4), le(40, 4), le(1ULL << 61, 8), std::string(1, '\0'), "a"});
    const test_folder folder;
    const std::string path = folder.file("x");
    int accepted = 0;
    for (int i = 0; i < 10000; ++i) {
        const std::string text = mutate.next();
        replace_file(path, text);
        try {
            const mp::gguf_file file(path);
            std::size_t bytes = 24;
            std::vector<const std::byte*> ends;
            for (const auto& [name, it] : file.tensors()) {
                CAPTURE(i);
                CHECK(has_elements(it.shape, it.count));
                CHECK((it.count == 0) == it.bytes.empty());
                CHECK(has_good_matrix(file, it.count, name));
                bytes += it.bytes.size();
                ends.push_back(it.bytes.data());
                ends.push_back(it.bytes.data() + it.bytes.size());
                if (it.count > 4096) continue;
                std::vector<float> values(it.count);
                try {
                    file.read_converted(name, values);
                } catch (const mp::file_error&) {
                }
            }
            CHECK(bytes <= text.size());
            const auto [first, last] = std::minmax_element(ends.begin(), ends.end());
            CHECK((ends.empty() || *last - *first <= std::ssize(text)));
            ++accepted;
        } catch (const mp::file_error&) {
        }
    }
    CHECK(accepted > 500);
}
