// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "common/data.hpp"
#include "thrown.hpp"

namespace {

using examples::digits;
using examples::read_digits;
using examples_test::user_error_of;

/// A file that goes away with the object.
class temporary_file {
public:
    explicit temporary_file(const std::string& content)
        : path_((std::filesystem::temp_directory_path() /
                 ("mp_digits_" + std::to_string(reinterpret_cast<std::uintptr_t>(this)) + ".csv"))
                    .string()) {
        std::ofstream(path_, std::ios::binary) << content;
    }
    temporary_file(const temporary_file&) = delete;
    temporary_file& operator=(const temporary_file&) = delete;
    ~temporary_file() { std::filesystem::remove(path_); }

    [[nodiscard]] const std::string& path() const { return path_; }

private:
    std::string path_;
};

std::string line_of(const std::string& pixel, const std::string& digit, std::size_t pixels = 64) {
    std::string line;
    for (std::size_t i = 0; i < pixels; ++i) line += pixel + ",";
    return line + digit + "\n";
}

std::string message_for(const std::string& content) {
    const temporary_file file(content);
    std::string message = user_error_of([&] { read_digits(file.path()); });
    if (const std::size_t at = message.find(file.path()); at != std::string::npos) {
        message.replace(at, file.path().size(), "FILE");
    }
    return message;
}

TEST_CASE("the digits that ship are read whole") {
    const digits all = read_digits(MP_EXAMPLE_DATA_DIR "/digits.csv");
    CHECK(all.size() == 1797);
    CHECK(all.pixels.size() == 1797 * 64);
    CHECK(all.labels[0] == 0);
    CHECK(all.labels[1796] == 8);
    CHECK(*std::min_element(all.pixels.begin(), all.pixels.end()) == 0.0F);
    CHECK(*std::max_element(all.pixels.begin(), all.pixels.end()) == 1.0F);
    CHECK(all.pixels[2] == 5.0F / 16.0F);
    CHECK(all.images(1, 2).rows == 2);
    CHECK(all.images(1, 2)(0, 3) == 12.0F / 16.0F);
    for (int digit = 0; digit < 10; ++digit) {
        CHECK(std::count(all.labels.begin(), all.labels.end(), digit) >= 170);
    }
}

TEST_CASE("lines may end as on Windows, and the last one without an end") {
    const std::string content = line_of("16", "3\r") + line_of("0", "9").substr(0, 129);
    const temporary_file file(content);
    const digits read = read_digits(file.path());
    CHECK(read.labels == std::vector<int>{3, 9});
}

TEST_CASE("a broken data file is named with the line and the field") {
    CHECK(message_for("") == "the data file 'FILE' is empty");
    CHECK(message_for(line_of("1", "2") + "\n") ==
          "FILE:2: field 1 is ''; it must be a whole number from 0 to 16");
    CHECK(message_for(line_of("17", "2")) ==
          "FILE:1: field 1 is '17'; it must be a whole number from 0 to 16");
    CHECK(message_for(line_of("1", "2") + line_of("-1", "2")) ==
          "FILE:2: field 1 is '-1'; it must be a whole number from 0 to 16");
    CHECK(message_for(line_of("1.5", "2")) ==
          "FILE:1: field 1 is '1.5'; it must be a whole number from 0 to 16");
    CHECK(message_for(line_of("1", "10")) ==
          "FILE:1: field 65 is '10'; it must be a whole number from 0 to 9");
    CHECK(message_for(line_of("1", "2", 63)) == "FILE:1: 64 fields; a line has 64 pixels and the digit");
    CHECK(message_for(line_of("1", "2,3")) == "FILE:1: 66 fields; a line has 64 pixels and the digit");
    CHECK(message_for("<html>").starts_with("FILE:1: field 1 is '<html>'"));
    CHECK(message_for(line_of("99999999999999999999", "2")).starts_with("FILE:1: field 1 is '9999999999"));
    CHECK(message_for(std::string(1, '\0') + std::string(1000, 'x')).size() < 120);
}

TEST_CASE("a file that is not there, and a folder, are named") {
    CHECK(user_error_of([] { read_digits("/no/such/file.csv"); }) ==
          "cannot open the data file '/no/such/file.csv'");
    const std::string folder = std::filesystem::temp_directory_path().string();
    CHECK(user_error_of([&] { read_digits(folder); }) == "cannot read the data file '" + folder + "'");
}

TEST_CASE("the split leaves out no image, doubles none, and is always the same") {
    digits all;
    for (int i = 0; i < 300; ++i) {
        all.pixels.resize(all.pixels.size() + 64, static_cast<float>(i));
        all.labels.push_back(i);
    }
    const examples::split_digits parts = examples::split(all, 128);
    CHECK(parts.training.size() == 240);
    CHECK(parts.test.size() == 60);
    std::vector<int> labels = parts.training.labels;
    labels.insert(labels.end(), parts.test.labels.begin(), parts.test.labels.end());
    for (std::size_t i = 0; i < parts.test.size(); ++i) {
        CHECK(parts.test.pixels[i * 64] == static_cast<float>(parts.test.labels[i]));
    }
    CHECK_FALSE(std::is_sorted(labels.begin(), labels.end()));
    std::sort(labels.begin(), labels.end());
    CHECK(labels == all.labels);
    CHECK(examples::split(all, 128).test.labels == parts.test.labels);
}

TEST_CASE("too few images for a batch are refused, and the number that is asked for is enough") {
    digits all;
    all.labels.resize(159);
    all.pixels.resize(all.labels.size() * 64);
    CHECK(user_error_of([&] { examples::split(all, 128); }) ==
          "the data file has 159 images; there must be 160 to train on batches of 128");
    all.labels.resize(160);
    all.pixels.resize(all.labels.size() * 64);
    CHECK(examples::split(all, 128).training.size() == 128);
}

TEST_CASE("an epoch deals every image at most once, in an order that the seed decides") {
    digits all;
    for (int i = 0; i < 50; ++i) {
        all.pixels.resize(all.pixels.size() + 64);
        all.labels.push_back(i);
    }
    const auto deal = [&](std::uint64_t seed) {
        examples::batches source(all, 16, seed);
        CHECK(source.per_epoch() == 3);
        std::vector<int> labels;
        for (std::size_t i = 0; i < 2 * source.per_epoch(); ++i) {
            const digits& batch = source.next();
            CHECK(batch.size() == 16);
            labels.insert(labels.end(), batch.labels.begin(), batch.labels.end());
        }
        return labels;
    };
    std::vector<int> labels = deal(1);
    CHECK(labels == deal(1));
    CHECK(labels != deal(2));
    for (auto epoch = labels.begin(); epoch != labels.end(); epoch += 48) {
        std::sort(epoch, epoch + 48);
        CHECK(std::adjacent_find(epoch, epoch + 48) == epoch + 48);
    }
}

TEST_CASE("random numbers are those of SplitMix64 on every machine") {
    // The first numbers of the seed 1234567, as published with the reference implementation.
    examples::random_numbers random(1234567);
    CHECK(random.next() == 6457827717110365317U);
    CHECK(random.next() == 3203168211198807973U);
    CHECK(random.next() == 9817491932198370423U);
    examples::random_numbers uniform(1);
    double sum = 0;
    for (int i = 0; i < 10000; ++i) {
        const float x = uniform.symmetric();
        CHECK_UNARY(x >= -1.0F && x < 1.0F);
        sum += static_cast<double>(x);
    }
    CHECK(std::abs(sum) < 300);
}

}  // namespace
