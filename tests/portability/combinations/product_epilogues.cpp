// SPDX-License-Identifier: MIT
// Matrix products with each epilogue, alone and in chains, in both orders of C and of what epilogues read and write.
#include <mp/gemm.hpp>
#include <mp/linalg/gemm/epilogue_gradients.hpp>

#include "combinations.hpp"

#include <utility>

namespace portability {

namespace {

constexpr std::ptrdiff_t shapes[][3] = {{1, 1, 1},    {3, 5, 8},    {1, 33, 17},  {5, 17, 33}, {16, 64, 130},
                                        {33, 17, 16}, {64, 33, 17}, {130, 3, 64}, {17, 5, 0},  {3, 130, 64}};

/// Products of one mix of types with one shape, order and way of adding up.
template <class A, class B, class C>
class endings {
public:
    endings(combinations& to, unsigned number) : to_(to), number_(number), size_(shapes[number / 8]) {
        exec_.products = number % 2 == 0 ? mp::accumulation::ordered : mp::accumulation::fastest;
        if (number % 5 == 4) exec_.threads = 3;
    }

    void run() {
        using mp::compose;
        const auto m = static_cast<std::size_t>(c_.rows);
        const auto n = static_cast<std::size_t>(c_.columns);
        const auto column_float = numbers<float>(n, number_, special_);
        const auto column_half = numbers<mp::half>(n, number_ + 1);
        const auto column_bfloat16 = numbers<mp::bfloat16>(n, number_ + 2);
        const auto row_float = numbers<float>(m, number_ + 3);
        const auto row_half = numbers<mp::half>(m, number_ + 4);
        const bool across = number_ % 8 < 4;
        const stored_matrix<float> of_floats(c_.rows, c_.columns, across, 1, number_ + 5);
        const stored_matrix<mp::half> of_halves(c_.rows, c_.columns, !across, 2, number_ + 6);
        const auto bias = mp::bias_per_column(column_float);

        end("identity", mp::identity_epilogue{});
        end("bias_per_column_float", bias);
        end("bias_per_column_half", mp::bias_per_column(column_half));
        end("bias_per_column_bfloat16", mp::bias_per_column(column_bfloat16));
        end("bias_per_row_float", mp::bias_per_row(row_float));
        end("bias_per_row_half", mp::bias_per_row(row_half));
        end("scale_per_column_float", mp::scale_per_column(column_float));
        end("scale_per_column_half", mp::scale_per_column(column_half));
        end("scale_per_row_float", mp::scale_per_row(row_float));
        end("relu", mp::relu_epilogue{});
        end("gelu", mp::gelu_epilogue{});
        end("gelu_tanh", mp::gelu_tanh_epilogue{});
        end("silu", mp::silu_epilogue{});
        end("residual_float", mp::add_residual(of_floats.view()));
        end("residual_half", mp::add_residual(of_halves.view()));
        end("bias_gelu", compose(bias, mp::gelu_epilogue{}));
        end("bias_relu", compose(mp::bias_per_row(row_half), mp::relu_epilogue{}));
        end("scale_bias", compose(mp::scale_per_row(row_float), mp::bias_per_column(column_half)));
        end("scale_bias_silu_residual",
            compose(compose(mp::scale_per_column(column_float), mp::bias_per_column(column_bfloat16)),
                    compose(mp::silu_epilogue{}, mp::add_residual(of_floats.view()))));
        // Of a user, by value, row and column.
        const auto odd = [](float value, std::ptrdiff_t row, std::ptrdiff_t column) {
            return (row + 2 * column) % 3 == 0 ? 1.5F : value;
        };
        end("lambda", odd);
        end("lambda_gelu", compose(odd, mp::gelu_epilogue{}));
        end("dgelu", mp::dgelu(of_halves.view()));
        end("dsilu", compose(bias, mp::dsilu(of_floats.view())));
        end("drelu", mp::drelu(of_floats.view()));
        stored_matrix<C> c = c_;
        mp::gemm(exec_, factor_, a_.view(), b_.view(), beta_, c.view(),
                 mp::add_residual(std::as_const(c).view()));
        keep("residual_c", c.values);
        outputs<float>("store_float", across);
        outputs<mp::half>("store_half", !across);
        outputs<C>("store_c", across);
    }

private:
    template <class Epilogue>
    void end(const char* name, const Epilogue& epilogue) {
        stored_matrix<C> c = c_;
        mp::gemm(exec_, factor_, a_.view(), b_.view(), beta_, c.view(), epilogue);
        keep(name, c.values);
    }

    template <class... Values>
    void keep(const char* name, const Values&... values) {
        const std::string whole = "epilogues." + type_names<A, B, C>() + "." + name;
        if (exec_.products == mp::accumulation::ordered) {
            to_.add(whole, values...);
        } else {
            to_.add_local(whole, values...);
        }
    }

    template <class Value>
    void outputs(const char* name, bool by_column) {
        using mp::compose;
        const auto column = numbers<float>(static_cast<std::size_t>(c_.columns), number_ + 7);
        stored_matrix<Value> kept(c_.rows, c_.columns, by_column, 3, number_ + 8);
        std::vector<float> largest(2);
        stored_matrix<mp::float8_e4m3fn> codes(c_.rows, c_.columns, !by_column, 1, number_ + 9);
        const auto chain = compose(compose(mp::bias_per_column(column), mp::store_auxiliary(kept.view())),
                                   compose(mp::silu_epilogue{}, mp::amax_into(largest.data())));
        stored_matrix<C> c = c_;
        mp::gemm(exec_, factor_, a_.view(), b_.view(), beta_, c.view(), chain);
        mp::gemm(exec_, factor_, a_.view(), b_.view(), beta_, codes.view(),
                 compose(mp::amax_into(&largest[1]), mp::quantize_to<mp::float8_e4m3fn>(0.75F)));
        keep(name, c.values, kept.values, codes.values, largest);
    }

    combinations& to_;
    unsigned number_;
    const std::ptrdiff_t* size_;
    bool special_ = number_ % 3 == 1;
    float factor_ = number_ % 3 == 0 ? 1.0F : 0.5F;
    float beta_ = number_ % 5 == 0 ? 0.0F : 0.5F;
    mp::cpu exec_{};
    stored_matrix<A> a_{size_[0], size_[2], number_ % 3 == 0, 1, number_ + 10, special_};
    stored_matrix<B> b_{size_[2], size_[1], number_ % 8 < 2, 0, number_ + 11};
    stored_matrix<C> c_{size_[0], size_[1], number_ / 2 % 2 == 0, 2, number_ + 12};
};

template <class A, class B, class C>
void add_mix(combinations& to) {
    for (unsigned number = 0; number < 8 * std::size(shapes); ++number) endings<A, B, C>(to, number).run();
}

}  // namespace

void add_epilogue_combinations(combinations& to) {
    using mp::bfloat16, mp::half;
    add_mix<float, float, float>(to);
    add_mix<half, half, half>(to);
    add_mix<bfloat16, bfloat16, float>(to);
    add_mix<half, float, bfloat16>(to);
    add_mix<mp::float8_e4m3fn, mp::float8_e5m2, half>(to);
}

}  // namespace portability
