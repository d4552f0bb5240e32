// SPDX-License-Identifier: MIT
// How every published list treats the library's own ops: the names by which they are known are the right
// ones.
#include <doctest/doctest.h>
#include <mp/autocast.hpp>
#include <mp/frontends/compat/presets.hpp>
#include <mp/ops.hpp>

#include <array>
#include <concepts>
#include <string>
#include <string_view>

namespace {

using mp::half;
using mp::op_category;
namespace ac = mp::autocast;
namespace lists = mp::autocast::lists;
using namespace mp::ops;

/// Low, Full, full Output, Promote, Widest, Keep.
char letter(op_category category) {
    switch (category) {
        case op_category::lower_precision:
            return 'L';
        case op_category::full_precision:
            return 'F';
        case op_category::full_precision_output:
            return 'O';
        case op_category::promote:
            return 'P';
        case op_category::promote_widest:
            return 'W';
        case op_category::pass_through:
            return 'K';
        default:
            return '?';
    }
}

template <class Op>
std::string treatment() {
    std::string letters;
    for (const ac::op_list* list : {&lists::pytorch_cuda, &lists::pytorch_cpu, &lists::tensorflow,
                                    &lists::apex, &lists::mxnet, &lists::keras, &lists::nvidia}) {
        letters += letter(mp::detail::unconditional(mp::detail::rules_for(*list, mp::detail::names_of_op<Op>),
                                                    list->unlisted));
    }
    return letters;
}

TEST_CASE("the lists treat the library's ops as they treat their own of that kind") {
    // PyTorch CUDA, PyTorch CPU, TensorFlow, Apex, MXNet, Keras, NVIDIA. TensorFlow has no rule for losses by
    // their squares, norms, attention and embeddings, which then stay in float, and Keras casts whole layers.
    CHECK(treatment<matmul_op>() == "LLLLLLL");
    CHECK(treatment<linear_op>() == "LLLLLLL");
    CHECK(treatment<conv2d_op>() == "LLLLLLL");
    CHECK(treatment<scaled_dot_product_attention_op>() == "LLFKKLW");
    CHECK(treatment<add_op>() == "KKWWWLW");
    CHECK(treatment<multiply_op>() == "KKWWWLW");
    CHECK(treatment<relu_op>() == "KKKKKLW");
    CHECK(treatment<gelu_op>() == "KKFFKLW");
    CHECK(treatment<silu_op>() == "KKFKKLW");
    CHECK(treatment<tanh_op>() == "KKWKKLW");
    CHECK(treatment<sigmoid_op>() == "KKWKKLW");
    CHECK(treatment<softmax_op>() == "OKWFFLF");
    CHECK(treatment<log_softmax_op>() == "OKWFFLW");
    CHECK(treatment<layer_norm_op>() == "FKFFFLW");
    CHECK(treatment<rms_norm_op>() == "FKFKKLW");
    CHECK(treatment<softmax_cross_entropy_op>() == "FFFFFFF");
    CHECK(treatment<mean_squared_error_op>() == "FFFFKFF");
    CHECK(treatment<mean_absolute_error_op>() == "FFFFKFF");
    CHECK(treatment<sum_op>() == "OKFFFLF");
    CHECK(treatment<mean_op>() == "KKFKFLW");
    CHECK(treatment<embedding_op>() == "KKFKKLW");
    CHECK(treatment<rotary_embedding_op>() == "KKFKKLW");
    CHECK(treatment<concatenate_op>() == "KPKWWLW");
    CHECK(treatment<split_op>() == "KKKKKLW");
    CHECK(treatment<permute_heads_op>() == "KKKKKLW");
    CHECK(treatment<dropout_op>() == "KKFKKLW");
    CHECK(treatment<max_pool2d_op>() == "KKKKKLW");
    CHECK(treatment<average_pool2d_op>() == "KKWKKLW");
}

TEST_CASE("backward is treated as its forward") {
    CHECK(treatment<linear_backward_op>() == treatment<linear_op>());
    CHECK(treatment<linear_backward_with_preactivation_op>() == treatment<linear_op>());
    CHECK(treatment<conv2d_backward_op>() == treatment<conv2d_op>());
    CHECK(treatment<relu_backward_op>() == treatment<relu_op>());
    CHECK(treatment<gelu_backward_op>() == treatment<gelu_op>());
    CHECK(treatment<layer_norm_backward_op>() == treatment<layer_norm_op>());
    CHECK(treatment<softmax_backward_op>() == treatment<softmax_op>());
    CHECK(treatment<softmax_cross_entropy_backward_op>() == treatment<softmax_cross_entropy_op>());
    CHECK(treatment<softmax_cross_entropy_to_memory_op>() == treatment<softmax_cross_entropy_op>());
    CHECK(treatment<softmax_cross_entropy_with_gradient_op>() == treatment<softmax_cross_entropy_op>());
    CHECK(treatment<scaled_dot_product_attention_backward_op>() ==
          treatment<scaled_dot_product_attention_op>());
    CHECK(treatment<embedding_backward_op>() == treatment<embedding_op>());
    CHECK(treatment<rotary_embedding_backward_op>() == treatment<rotary_embedding_op>());
    CHECK(treatment<permute_heads_backward_op>() == treatment<permute_heads_op>());
    CHECK(treatment<dropout_backward_op>() == treatment<dropout_op>());
}

TEST_CASE("presets are found by name, and each opens its region") {
    for (const ac::preset* preset : ac::presets::all) {
        CHECK(ac::presets::find(preset->name) == preset);
        const mp::autocast_region region(*preset);
        CHECK(mp::autocast_precision() == preset->value);
        CHECK_FALSE(preset->meaning.empty());
    }
    CHECK(ac::presets::find("pytorch") == nullptr);
    CHECK_FALSE(ac::presets::apex_o3.master_weights);
    CHECK(ac::presets::apex_o2.master_weights);
}

/// What linear and softmax compute with and return under a preset, as letters: h, b, f.
std::string formats_under(const ac::preset& preset) {
    const mp::autocast_region region(preset);
    const auto first = [](std::string_view name) { return name.substr(0, 1); };
    const auto linear = ac::explain<ac::by_region, linear_op, mp::cpu, mp::matrix_view<const float>,
                                    mp::matrix_view<const float>>();
    const auto softmax = ac::explain<ac::by_region, softmax_op, mp::cpu, mp::matrix_view<const half>>();
    return std::string(first(linear.compute_type))
        .append(first(softmax.compute_type))
        .append(first(softmax.output_type));
}

TEST_CASE("a preset is one line, and the same ops then run in other formats") {
    CHECK(formats_under(ac::presets::off) == "fhh");
    CHECK(formats_under(ac::presets::fp16) == "hhf");
    CHECK(formats_under(ac::presets::pytorch_cuda) == "hhf");
    CHECK(formats_under(ac::presets::pytorch_cpu) == "bhh");
    CHECK(formats_under(ac::presets::tensorflow) == "hhh");
    CHECK(formats_under(ac::presets::keras_mixed_bfloat16) == "bbb");
    CHECK(formats_under(ac::presets::keras_float32) == "fhh");
    CHECK(formats_under(ac::presets::apex_o1) == "hff");
    CHECK(formats_under(ac::presets::apex_o2) == "hhh");
    CHECK(formats_under(ac::presets::mxnet) == "hff");
    CHECK(formats_under(ac::presets::nvidia) == "hff");
    CHECK(formats_under(ac::presets::fp8_hybrid) == "bhf");
}

TEST_CASE("a cached weight is cast once by the ops that take one, and the results are the same") {
    constexpr std::ptrdiff_t n = 3;
    const std::array<float, 9> w = {0.1F, 0.2F, 0.3F, 0.4F, 0.5F, 0.6F, 0.7F, 0.8F, 0.9F};
    const std::array<float, 9> x = {1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F, 7.0F, 8.0F, 9.0F};
    const auto view = mp::row_major(w.data(), n, n);
    const auto input = mp::row_major(x.data(), n, n);
    const ac::buffer_version version;
    const conv2d_geometry geometry{.channels = 1, .height = 3, .width = 3, .kernel = {3, 3}};
    const auto kernels = mp::row_major(w.data(), 1, n * n);
    const auto images = mp::row_major(x.data(), 1, n * n);
    const auto run = [&](auto weights, auto kernel) {
        std::array<float, 30> y{};
        const mp::cpu exec;
        linear(exec, input, weights, absent, mp::row_major(y.data(), n, n));
        matmul(exec, input, weights, mp::row_major(y.data() + 9, n, n));
        linear_backward(exec, input, weights, input, mp::row_major(y.data() + 18, n, n), absent, absent);
        conv2d(exec, images, kernel, absent, mp::row_major(y.data() + 27, 1, 1), geometry);
        return y;
    };
    const mp::autocast_region region(mp::precision::bf16);
    const auto cached = run(ac::cached(view, version), ac::cached(kernels, version));
    CHECK(mp::autocast_cache()->statistics().hits == 2);    // of the 3 x 3 view
    CHECK(mp::autocast_cache()->statistics().misses == 2);  // one for each shape
    CHECK(cached == run(view, kernels));
}

}  // namespace
