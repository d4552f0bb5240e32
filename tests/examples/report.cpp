// SPDX-License-Identifier: MIT
#include "train_digits/report.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "made_up.hpp"
#include "page_checks.hpp"
#include "thrown.hpp"

namespace {

using examples::train_digits::setting_summary;
using examples_test::setting_of;

std::vector<setting_summary> everything() {
    std::vector<setting_summary> settings;
    for (const double weight : {1.0, 0x1p-14}) {
        settings.push_back(setting_of({{"fp32", {}},
                                       {"fp16", {.loss = 0.02, .gradient_error = 0.5, .flushed = 8}},
                                       {"fp16-master", {}},
                                       {"fp16-static", {}},
                                       {"fp16-dynamic", {.skipped = {1, 4}}},
                                       {"bf16-master", {}},
                                       {"bf16", {}}},
                                      weight));
    }
    return settings;
}

std::size_t occurrences(const std::string& text, const std::string& part) {
    std::size_t count = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
    return count;
}

TEST_CASE("the page is well formed and takes nothing from anywhere else") {
    const std::string page = examples::train_digits::report_page(everything());
    CHECK(first_fault(page) == "");
    for (const char* outside : {"http", "url(", "@import", "src=", "href=", "<script"}) {
        CAPTURE(outside);
        CHECK(page.find(outside) == std::string::npos);
    }
    CHECK(page.find("prefers-color-scheme: dark") != std::string::npos);
}

TEST_CASE("the page names the GPU that trained") {
    std::vector<setting_summary> settings = everything();
    CHECK(examples::train_digits::report_page(settings).find(" steps. Every recipe") != std::string::npos);
    for (setting_summary& it : settings) it.gpu = "A & B";
    const std::string page = examples::train_digits::report_page(settings);
    CHECK(page.find(" steps, on A &amp; B. Every recipe") != std::string::npos);
    CHECK(first_fault(page) == "");
}

TEST_CASE("a setting is drawn with its loss curves, its scale and two histograms") {
    const std::string page = examples::train_digits::report_page(everything());
    CHECK(occurrences(page, "<figure>") == 8);
    CHECK(occurrences(page, "aria-label=\"Training loss") == 2);
    CHECK(occurrences(page, "aria-label=\"Loss scale") == 2);
    CHECK(occurrences(page, "aria-label=\"Share of gradient values") == 4);
    CHECK(occurrences(page, "step 2 skipped at scale 2^10") == 2);
    CHECK(occurrences(page, "step 5 skipped at scale 2^9") == 2);
    CHECK(occurrences(page, "zero in half</text>") == 4);
    CHECK(occurrences(page, "fp16 alone, epoch 3: 0.020") == 2);
}

TEST_CASE("recipes that do not scale leave the plot of the scale out") {
    const std::string page = examples::train_digits::report_page({setting_of({{"fp32", {}}, {"bf16", {}}})});
    CHECK(first_fault(page) == "");
    CHECK(occurrences(page, "<figure>") == 3);
    CHECK(page.find("skipped step") == page.find("skipped steps"));
}

TEST_CASE("a training that broke leaves gaps in the curves, not words in the coordinates") {
    const double infinity = std::numeric_limits<double>::infinity();
    for (const double loss : {infinity, std::numeric_limits<double>::quiet_NaN(), 0.0}) {
        std::string plot =
            examples::train_digits::loss_plot(setting_of({{"fp32", {}}, {"fp16", {.loss = loss}}}));
        CHECK(first_fault(plot) == "");
        for (std::size_t at = plot.find("d=\""); at != std::string::npos; at = plot.find("d=\"", at + 1)) {
            const std::string path = plot.substr(at + 3, plot.find('"', at + 3) - at - 3);
            CHECK(path.find_first_not_of("MLHVZ0123456789.- ") == std::string::npos);
        }
    }
    const mp::range_report nothing;
    CHECK(first_fault(examples::train_digits::exponent_plot(nothing, "none", &nothing, "none")) == "");
}

TEST_CASE("a report that cannot be written is refused before the work, and trying leaves no file") {
    CHECK(examples_test::user_error_of([] { examples::report_file("/no/such/folder/page.html"); }) ==
          "cannot write the report to '/no/such/folder/page.html'");
    const std::string path = (std::filesystem::temp_directory_path() / "mp_report_test.html").string();
    std::filesystem::remove(path);
    const examples::report_file file(path);
    CHECK_FALSE(std::filesystem::exists(path));
    file.write("first, and longer");
    file.write("second");
    {
        const examples::report_file opened_again(path);
        std::ifstream stream(path);
        CHECK(std::string(std::istreambuf_iterator<char>(stream), {}) == "second");
    }
    std::filesystem::remove(path);
}

}  // namespace
