// SPDX-License-Identifier: MIT
// Matrices of Eigen hold the library's numbers, and do with them what the library does.
#include <doctest/doctest.h>

#if __has_include(<Eigen/Core>) || __has_include(<eigen3/Eigen/Core>)
#include <mp/float8.hpp>
#include <mp/frontends/interop/eigen.hpp>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <sstream>
#include <vector>

namespace {

template <class T>
using matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;

}  // namespace

TEST_CASE_TEMPLATE("products of matrices are sums of products of the library's numbers", T, mp::half,
                   mp::bfloat16, mp::float8_e4m3fn) {
    // Small integers: every sum is exact, whatever its order.
    matrix<T> a(7, 3);
    matrix<T> b(3, 5);
    for (int i = 0; i < 7; ++i)
        for (int k = 0; k < 3; ++k) a(i, k) = T((i + 2 * k) % 3 - 1);
    for (int k = 0; k < 3; ++k)
        for (int j = 0; j < 5; ++j) b(k, j) = T((3 * k + j) % 4 - 2);
    const matrix<T> c = a * b + matrix<T>::Constant(7, 5, T{1});
    for (int i = 0; i < 7; ++i) {
        for (int j = 0; j < 5; ++j) {
            int sum = 1;
            for (int k = 0; k < 3; ++k) sum += ((i + 2 * k) % 3 - 1) * ((3 * k + j) % 4 - 2);
            CHECK(c(i, j) == T(sum));
        }
    }
    CHECK((a.transpose() * a).trace() == T(a.template cast<float>().squaredNorm()));
    CHECK(a.sum() == T(a.template cast<float>().sum()));
    CHECK(a.maxCoeff() == T{1});
    CHECK(a.cwiseAbs().minCoeff() == T{0});
    CHECK(a.isApprox(a));
    CHECK(a.allFinite());
    CHECK_FALSE(a.isZero());
    CHECK(a.hasNaN() == false);
    const matrix<T> scaled = a * T{2} - a;
    CHECK(scaled == a);
    matrix<T> many(40, 40);
    many.setOnes();
    CHECK((many * many.topRows(8).transpose())(39, 7) == T(std::is_same_v<T, mp::float8_e4m3fn> ? 16 : 40));
}

TEST_CASE("each operation of a matrix rounds once") {
    Eigen::Array<mp::half, 2, 1> x;
    x << mp::half{0.1f}, mp::half{2048};
    Eigen::Array<mp::half, 2, 1> y;
    y << mp::half{3}, mp::half{1};
    CHECK((x * y)(0) == mp::half{0.1f} * mp::half{3});
    CHECK((x + y)(1) == mp::half{2048});
    CHECK((x / y)(0) == mp::half{0.1f} / mp::half{3});
    CHECK(x.sqrt()(1) == mp::sqrt(mp::half{2048}));
    CHECK(x.abs()(0) == x(0));
    CHECK(x.square()(0) == x(0) * x(0));
    CHECK(x.inverse()(1) == mp::half{1.0f / 2048});
    CHECK((x < y)(0));
    CHECK(x.isFinite().all());
    x(1) = std::numeric_limits<mp::half>::infinity();
    CHECK(x.isInf()(1));
    CHECK_FALSE(x.isNaN().any());
    CHECK(x.matrix().norm() == std::numeric_limits<mp::half>::infinity());
}

TEST_CASE("matrices are cast, printed and filled") {
    Eigen::Matrix2d d;
    d << 0.1, 1 + 0x1p-11 + 0x1p-30, -3, 1e-9;
    const Eigen::Matrix<mp::half, 2, 2> h = d.cast<mp::half>();
    CHECK(h(0, 0) == mp::half{0.1});
    CHECK(h(0, 1) == mp::half{1 + 0x1p-10});  // rounded once from double
    CHECK(h.cast<float>()(1, 0) == -3);
    CHECK(h.cast<mp::bfloat16>()(1, 0) == mp::bfloat16{-3});
    CHECK(h.cast<Eigen::half>()(0, 0) == mp::to_eigen(h(0, 0)));
    CHECK(h.cast<Eigen::bfloat16>().cast<mp::half>()(0, 0) == mp::half{mp::bfloat16{h(0, 0)}});
    CHECK(h.cast<int>()(1, 0) == -3);
    std::ostringstream text;
    text << h;
    CHECK(text.str() == "  0.1 1.001\n   -3     0");
    const auto random = Eigen::Matrix<mp::half, 30, 30>::Random().eval();
    CHECK(random.allFinite());
    CHECK(random.cwiseAbs().maxCoeff() <= mp::half{1});
    CHECK(random.minCoeff() < mp::half{-0.5f});
    CHECK(random.maxCoeff() > mp::half{0.5f});
    CHECK((Eigen::NumTraits<mp::half>::dummy_precision() == mp::half{0x1p-7f}));
    CHECK((Eigen::NumTraits<mp::half>::highest() == mp::half{65504}));
    CHECK((Eigen::NumTraits<mp::half>::digits10() == 3));
}

TEST_CASE("Eigen's own 16-bit types have the same bits") {
    for (std::uint32_t code = 0; code < 65536; ++code) {
        const auto bits = static_cast<std::uint16_t>(code);
        const mp::half h = mp::half::from_bits(bits);
        const Eigen::half eigen_h = mp::to_eigen(h);
        std::uint16_t read = 0;
        std::memcpy(&read, &eigen_h, 2);
        REQUIRE(read == bits);
        REQUIRE(mp::from_eigen(eigen_h).bits() == bits);
        if (!mp::isnan(h)) REQUIRE(static_cast<float>(eigen_h) == float(h));
        const mp::bfloat16 b = mp::bfloat16::from_bits(bits);
        REQUIRE(mp::from_eigen(mp::to_eigen(b)).bits() == bits);
        if (!mp::isnan(b)) REQUIRE(static_cast<float>(mp::to_eigen(b)) == float(b));
    }
    std::vector<mp::half> numbers{mp::half{1}, mp::half{2}, mp::half{3}};
    const Eigen::Map<Eigen::Matrix<Eigen::half, 3, 1>> map(mp::as_eigen(std::span(numbers)).data());
    CHECK(map(2) == Eigen::half(3.0f));
    Eigen::Matrix<Eigen::bfloat16, 2, 1> v;
    v << Eigen::bfloat16(5.0f), Eigen::bfloat16(6.0f);
    const std::span<const mp::bfloat16> view =
        mp::view_of_eigen(std::span<const Eigen::bfloat16>(v.data(), 2));
    CHECK(view[1] == mp::bfloat16{6});
}
#else
TEST_CASE("tests of mp/frontends/interop/eigen.hpp are left out") {
    MESSAGE("Eigen is not installed");
}
#endif
