// SPDX-License-Identifier: MIT
// The code of docs/cookbook.md: it compiles, and does what is said beside it.
#include <doctest/doctest.h>
#include <mp/check.hpp>
#include <mp/gpu.hpp>
#include <mp/mp.hpp>

#include <cstdio>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

namespace {

TEST_CASE("docs/cookbook.md: numbers") {
#include "cookbook_1.inl"
    CHECK(one == 1.0F);
    CHECK(bits == 0xC100);
    CHECK(largest == 448.0F);
#include "cookbook_2.inl"
    CHECK(narrow == 65504.0F);
    CHECK((lost && over));
    const std::string text = "1e-40";
#include "cookbook_3.inl"
    CHECK(x.bits() == 1);
    CHECK(end == text.data() + text.size());
    CHECK(error == std::errc{});
    CHECK(std::string(buffer, last) == "0.1");
}

#include "cookbook_4.inl"

TEST_CASE("docs/cookbook.md: arrays") {
    const std::vector<float> gradients(100, 1e-9F), floats(64, 0.3F), weights(4 * 32, 1.0F);
    std::vector<mp::half> halves(64);
    std::vector<mp::float8_e4m3fn> eights(64);
    std::vector<mp::bfloat16> brains(64);
    const std::size_t rows = 4, columns = 32;
#include "cookbook_5.inl"
    CHECK(lost.flushed == 100);
#include "cookbook_6.inl"
    CHECK(eights[63] == mp::float8_e4m3fn(0.3F));
#include "cookbook_7.inl"
    CHECK(float(brains[0]) == doctest::Approx(0.3).epsilon(0.01));
#include "cookbook_8.inl"
    CHECK(noise.relative_error() < 1e-6);
#include "cookbook_9.inl"
    CHECK(total == 64 * float(halves[0]));
}

TEST_CASE("docs/cookbook.md: products") {
    const std::size_t batch = 2, in = 3, out = 4, m = 2, n = 2, k = 4;
    const std::vector<mp::half> x(batch * in, mp::half(1.0F)), w(out * in, mp::half(0.5F)),
        a(m * k, mp::half(1.0F)), b(k * n, mp::half(0.5F));
    std::vector<mp::bfloat16> y(batch * out);
    std::vector<float> c(m * n);
    const std::vector<float> bias(out, -0.5F);
#include "cookbook_10.inl"
    CHECK(y[0] == 1.0F);
#include "cookbook_11.inl"
    CHECK(y[7] == 1.5F);
#include "cookbook_12.inl"
    CHECK(c[3] == 2.0F);
    CHECK(errors.elements.exact == 4);
#include "cookbook_20.inl"
    CHECK(on_gpu == c);
}

TEST_CASE("docs/cookbook.md: steps") {
    std::vector<mp::half> w(4, mp::half(1.0F)), dw(4);
    const std::vector<int> batches{1, 2};
    const auto loss = [](int batch) { return float(batch) * 0.5F; };
    const auto backward = [&](auto scaled) {
        for (mp::half& gradient : dw) gradient = mp::half(float(scaled));
    };
#include "cookbook_13.inl"
    CHECK(optimizer.step_count() == 1);  // 65536 is an infinity: the first was skipped
    {
#include "cookbook_14.inl"
    }
    CHECK(optimizer.step_count() == 2);

    const auto folder = std::filesystem::temp_directory_path() / "mp_documents_cookbook";
    const auto here = std::filesystem::current_path();
    std::filesystem::create_directories(folder);
    std::filesystem::current_path(folder);
    int epoch = 3;
#include "cookbook_16.inl"
    CHECK(epoch == 3);
    const std::size_t in = 2, out = 2;
    std::vector<float> floats(4);
#include "cookbook_17.inl"
    CHECK(floats[0] == float(w[0]));
    std::filesystem::current_path(here);
    std::filesystem::remove_all(folder);
}

TEST_CASE("docs/cookbook.md: an infinity is found") {
    const std::vector<float> x_values(6, 1e6F), w_values(6, 1.0F), b(2, 0.0F);
    std::vector<float> y_values(4);
    const auto x = mp::row_major(x_values, 2, 3), w = mp::row_major(w_values, 2, 3);
    const auto y = mp::row_major(y_values, 2, 2);
#include "cookbook_15.inl"
    REQUIRE(ledger.first_non_finite().has_value());
    CHECK(ledger.first_non_finite()->layer == "encoder");
}

TEST_CASE("docs/cookbook.md: gradients are right") {
    std::vector<double> x_values{1, 2, 3, 4}, target_values{0, 1, 0, 1}, dx_values(4);
    const auto x = mp::row_major(x_values, 2, 2), dx = mp::row_major(dx_values, 2, 2);
    const auto target = mp::row_major(target_values, 2, 2);
#include "cookbook_18.inl"
    CHECK(compared.passed(1e-7));
}

void backward_of(mp::parameter_store<float>& store, int rank) {
    for (const auto& parameter : store.parameters()) {
        for (float& gradient : parameter.gradient) gradient = float(rank);
    }
}

TEST_CASE("docs/cookbook.md: ranks") {
#include "cookbook_19.inl"
}

}  // namespace
