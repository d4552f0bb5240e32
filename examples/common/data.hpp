// SPDX-License-Identifier: MIT
/// \file
/// The scanned digits: reading the file, the split into training and test set, and mini-batches.
#pragma once

#include <mp/gemm.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "random.hpp"
#include "user_error.hpp"

namespace examples {

inline constexpr std::size_t image_pixels = 64;  // 8 x 8
inline constexpr std::size_t digit_classes = 10;

/// Images, one a row with pixels from 0 to 1, and the digit that each of them shows.
struct digits {
    std::vector<float> pixels;
    std::vector<int> labels;

    [[nodiscard]] std::size_t size() const { return labels.size(); }

    /// The images from `first` on, `count` of them.
    [[nodiscard]] mp::matrix_view<const float> images(std::size_t first, std::size_t count) const {
        return mp::row_major(pixels.data() + first * image_pixels, static_cast<std::ptrdiff_t>(count),
                             static_cast<std::ptrdiff_t>(image_pixels));
    }
    [[nodiscard]] std::span<const int> labels_of(std::size_t first, std::size_t count) const {
        return std::span(labels).subspan(first, count);
    }

    /// Appends the image at `index` of another set.
    void add(const digits& from, std::size_t index) {
        const auto first = from.pixels.begin() + static_cast<std::ptrdiff_t>(index * image_pixels);
        pixels.insert(pixels.end(), first, first + static_cast<std::ptrdiff_t>(image_pixels));
        labels.push_back(from.labels[index]);
    }
};

namespace detail {

/// One line of the file: 64 pixels from 0 to 16 and the digit, separated by commas.
inline void parse_line(std::string_view line, const std::string& where, digits& into) {
    std::array<int, image_pixels + 1> fields{};
    std::size_t count = 0;
    for (bool more = true; more; ++count) {
        const std::size_t comma = line.find(',');
        const std::string_view text = line.substr(0, comma);
        more = comma != std::string_view::npos;
        if (more) line.remove_prefix(comma + 1);
        if (count >= fields.size()) continue;
        const int largest = count < image_pixels ? 16 : static_cast<int>(digit_classes) - 1;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), fields[count]);
        if (error != std::errc{} || end != text.data() + text.size() || fields[count] < 0 ||
            fields[count] > largest) {
            throw user_error(where + ": field " + std::to_string(count + 1) + " is '" +
                             std::string(text.substr(0, 20)) + "'; it must be a whole number from 0 to " +
                             std::to_string(largest));
        }
    }
    if (count != fields.size()) {
        throw user_error(where + ": " + std::to_string(count) +
                         " fields; a line has 64 pixels and the digit");
    }
    for (std::size_t i = 0; i < image_pixels; ++i) {
        into.pixels.push_back(static_cast<float>(fields[i]) / 16.0F);
    }
    into.labels.push_back(fields[image_pixels]);
}

}  // namespace detail

/// Reads a file with one image a line: 64 pixels from 0 to 16 and the digit. Throws user_error, naming file
/// and line, for a file that cannot be read or holds anything else.
inline digits read_digits(const std::string& path) {
    std::ifstream file(path);
    if (!file) throw user_error("cannot open the data file '" + path + "'");
    digits result;
    std::string line;
    for (std::size_t number = 1; std::getline(file, line); ++number) {
        if (!line.empty() && line.back() == '\r') line.pop_back();
        detail::parse_line(line, path + ":" + std::to_string(number), result);
    }
    if (file.bad()) throw user_error("cannot read the data file '" + path + "'");
    if (result.labels.empty()) throw user_error("the data file '" + path + "' is empty");
    return result;
}

/// Training and test set.
struct split_digits {
    digits training;
    digits test;
};

/// Puts one image in five, at random, into the test set; always the same ones, so that runs with different
/// seeds are tested alike. Throws user_error if the training set is smaller than one batch.
inline split_digits split(const digits& all, std::size_t batch) {
    std::vector<std::size_t> order(all.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    constexpr std::uint64_t split_seed = 1998;  // any number will do; the digits are of that year
    random_numbers(split_seed).shuffle(std::span(order));
    const std::size_t training = all.size() * 4 / 5;
    if (training < batch) {
        throw user_error("the data file has " + std::to_string(all.size()) + " images; there must be " +
                         std::to_string((batch * 5 + 3) / 4) + " to train on batches of " +
                         std::to_string(batch));
    }
    split_digits result;
    for (std::size_t i = 0; i < order.size(); ++i) {
        (i < training ? result.training : result.test).add(all, order[i]);
    }
    return result;
}

/// Deals the images of a set in batches, each epoch in a new order that the seed decides. What is left over
/// at the end of an epoch when it does not fill a batch sits this epoch out.
class batches {
public:
    batches(const digits& from, std::size_t batch, std::uint64_t seed)
        : from_(from), batch_(batch), random_(seed), order_(from.size()), next_(from.size()) {
        std::iota(order_.begin(), order_.end(), std::size_t{0});
    }

    [[nodiscard]] std::size_t per_epoch() const { return from_.size() / batch_; }

    /// The next batch, valid until the next call.
    const digits& next() {
        if (next_ + batch_ > order_.size()) {
            random_.shuffle(std::span(order_));
            next_ = 0;
        }
        current_.pixels.clear();
        current_.labels.clear();
        for (std::size_t i = 0; i < batch_; ++i) current_.add(from_, order_[next_ + i]);
        next_ += batch_;
        return current_;
    }

private:
    const digits& from_;
    std::size_t batch_;
    random_numbers random_;
    std::vector<std::size_t> order_;
    std::size_t next_;
    digits current_;
};

}  // namespace examples
