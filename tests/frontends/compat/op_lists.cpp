// SPDX-License-Identifier: MIT
// The published lists of ops. The numbers here were counted in the sources by hand, entry by entry.
#include <doctest/doctest.h>
#include <mp/frontends/compat/op_lists.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace {

namespace ac = mp::autocast;
namespace lists = mp::autocast::lists;
using mp::op_category;
using enum mp::op_category;

// --- numbers

struct expected_counts {
    const ac::op_list& list;
    std::size_t lower;
    std::size_t full;
    std::size_t full_output;
    std::size_t append;
    std::size_t promote;
    std::size_t widest;
    std::size_t pass;
    std::size_t banned;
};

// PyTorch's sources have an entry for each overload; overloads of one op are counted once here.
constexpr expected_counts counts[] = {
    // 33 of AT_FORALL_LOWER_PRECISION_FP less the second _convolution, and 2 of cuDNN and its RNN; 60 of AT_FORALL_FP32
    // less 2 of pow and 1 of nuclear_norm; 17 of AT_FORALL_FP32_SET_OPT_DTYPE less 2 each of prod and sum and
    // 1
    // each of softmax, log_softmax, cumprod, cumsum and linalg_matrix_norm; 3 of norm.
    {lists::pytorch_cuda, 33 - 1 + 2 + 1, 60 - 3, 17 - 9, 3 - 2, 11, 0, 0, 1},
    {lists::pytorch_cuda_2_11, 33 - 1 + 2 + 1, 58 - 3, 17 - 9, 3 - 2, 11, 0, 0, 1},
    // 24 less 3 with string padding; 100 (101 before) less 2 of prod, 1 each of quantile, nanquantile, stft, ctc_loss and
    // linalg_cond, and 3 of linalg_matrix_rank; 4 less 1 of index_copy.
    {lists::pytorch_cpu, 24 - 3, 100 - 10, 0, 0, 4 - 1, 0, 0, 0},
    {lists::pytorch_cpu_2_11, 24 - 3, 101 - 10, 0, 0, 4 - 1, 0, 0, 0},
    // 26 (24 before) less 1 of _convolution; 48 (47) less 3 and 17 less 9 as for CUDA; vdot is missing.
    {lists::pytorch_mps, 26 - 1, 48 - 3 + 17 - 9, 0, 0, 10, 0, 0, 0},
    {lists::pytorch_mps_2_5, 24 - 1, 47 - 3 + 17 - 9, 0, 0, 10, 0, 0, 0},
    // 29 (28 before VoxelMax) with CUDA, 2 with 9.1, 5 with cuDNN 7.6.2, 3 with cuDNN 8.0; 95 and 15 for lists of tensors.
    {lists::tensorflow, 29 + 2 + 5 + 3, 9, 0, 0, 0, 43, 95 + 15, 0},
    {lists::tensorflow_2_18, 28 + 2 + 5 + 3, 9, 0, 0, 0, 43, 95 + 15, 0},
    {lists::tensorflow_bfloat16, 14, 7, 0, 0, 0, 48, 96 + 15, 0},
    // 8 of torch.nn.functional, 14 of torch of which 7 are the same, 3 of batched products, 1 of torch.Tensor
    // and 8 recurrent ones; 29, 23 and 4 in full precision; 16 and 2 sequences of torch, 21 of torch.Tensor.
    {lists::apex, 8 + (14 - 7) + 3 + 1 + 8, 29 + 23 + 4, 0, 0, 0, 16 + 2 + 21, 0, 1},
    // 137 and 8 with oneDNN; 1 and 2 with a condition.
    {lists::mxnet, 8, 137 + 8 + 1 + 2, 0, 0, 0, 95, 438, 0},
    // 3 and 5 with oneDNN; 1 with a condition; 14 and 2 with oneDNN.
    {lists::mxnet_bfloat16, 3 + 5, 625 + 1, 0, 0, 0, 14 + 2, 32, 0},
    {lists::nvidia, 3, 5, 0, 0, 0, 0, 0, 0},
};

constexpr std::size_t count(const ac::op_list& list, op_category category) {
    std::size_t result = 0;
    for (const ac::op_rule& rule : list.rules) result += rule.category == category ? 1 : 0;
    return result;
}

template <std::size_t I>
constexpr bool counts_match = [] {
    constexpr const expected_counts& expected = counts[I];
    static_assert(count(expected.list, lower_precision) == expected.lower);
    static_assert(count(expected.list, full_precision) == expected.full);
    static_assert(count(expected.list, full_precision_output) == expected.full_output);
    static_assert(count(expected.list, append_output_type) == expected.append);
    static_assert(count(expected.list, promote) == expected.promote);
    static_assert(count(expected.list, promote_widest) == expected.widest);
    static_assert(count(expected.list, pass_through) == expected.pass);
    static_assert(count(expected.list, banned) == expected.banned);
    return true;
}();
static_assert([]<std::size_t... I>(std::index_sequence<I...>) {
    return (counts_match<I> && ...);
}(std::make_index_sequence<std::size(counts)>{}));
static_assert(std::size(counts) == lists::all_lists.size() + lists::earlier_lists.size());

// --- facts

constexpr bool listed(const ac::op_list& list, std::string_view op) {
    return !ac::find_rules(list, op).empty();
}

/// Whether the list has one rule for the op, without a condition, of this category.
constexpr bool is(const ac::op_list& list, std::string_view op, op_category category) {
    const auto rules = ac::find_rules(list, op);
    return rules.size() == 1 && rules[0].op == op && rules[0].parameter.empty() &&
           rules[0].category == category && ac::category_in(list, op) == category;
}

// Banned where a float16 sigmoid comes before it, not elsewhere.
static_assert(is(lists::pytorch_cuda, "binary_cross_entropy", banned));
static_assert(is(lists::apex, "binary_cross_entropy", banned));
static_assert(is(lists::pytorch_cpu, "binary_cross_entropy", full_precision));
static_assert(!listed(lists::pytorch_mps, "binary_cross_entropy"));
static_assert(is(lists::pytorch_cuda, "binary_cross_entropy_with_logits", full_precision));
static_assert(is(lists::pytorch_cpu, "binary_cross_entropy_with_logits", full_precision));
static_assert(is(lists::apex, "binary_cross_entropy_with_logits", full_precision));

// Joining arrays.
static_assert(is(lists::pytorch_cpu, "cat", promote) && is(lists::pytorch_cpu, "stack", promote));
static_assert(!listed(lists::pytorch_cuda, "cat") && !listed(lists::pytorch_cuda, "stack"));
static_assert(ac::category_in(lists::pytorch_cuda, "cat") == pass_through);
static_assert(is(lists::apex, "cat", promote_widest) && is(lists::apex, "stack", promote_widest));
static_assert(is(lists::tensorflow, "ConcatV2", pass_through));
static_assert(is(lists::mxnet, "Concat", promote_widest) && is(lists::mxnet, "stack", promote_widest));
static_assert(is(lists::mxnet_bfloat16, "stack", pass_through));

// Softmax has five different treatments.
static_assert(is(lists::pytorch_cuda, "softmax", full_precision_output));
static_assert(is(lists::pytorch_mps, "softmax", full_precision));
static_assert(!listed(lists::pytorch_cpu, "softmax") && !listed(lists::pytorch_cpu, "log_softmax"));
static_assert(is(lists::tensorflow, "Softmax", infer) && is(lists::tensorflow, "LogSoftmax", infer));
static_assert(is(lists::mxnet, "softmax", full_precision) && is(lists::apex, "softmax", full_precision));
static_assert(is(lists::mxnet_bfloat16, "softmax", pass_through));
static_assert(is(lists::nvidia, "softmax", full_precision));

// Sums and norms.
static_assert(is(lists::pytorch_cuda, "sum", full_precision_output));
static_assert(is(lists::pytorch_cuda, "norm", append_output_type) && !listed(lists::pytorch_mps, "norm"));
static_assert(!listed(lists::pytorch_cpu, "sum") && !listed(lists::pytorch_cuda, "mean"));
static_assert(is(lists::apex, "sum", full_precision) && !listed(lists::apex, "mean"));
static_assert(is(lists::tensorflow, "Sum", deny) && is(lists::tensorflow, "Mean", deny));
static_assert(is(lists::tensorflow_bfloat16, "Sum", infer) && is(lists::tensorflow_bfloat16, "Mean", infer));
static_assert(is(lists::pytorch_cuda, "layer_norm", full_precision));
static_assert(is(lists::mxnet, "LayerNorm", full_precision));
static_assert(is(lists::mxnet_bfloat16, "LayerNorm", pass_through));
static_assert(!listed(lists::pytorch_cuda, "batch_norm"));
static_assert(is(lists::pytorch_mps, "batch_norm", full_precision));
static_assert(is(lists::tensorflow, "FusedBatchNormV3", infer));
static_assert(is(lists::mxnet, "BatchNorm", pass_through));

// Exponentials and logarithms.
static_assert(is(lists::tensorflow, "Log", infer) && is(lists::tensorflow, "Exp", deny));
static_assert(is(lists::tensorflow, "Pow", deny) && is(lists::tensorflow_bfloat16, "Pow", deny));
static_assert(is(lists::pytorch_cuda, "log", full_precision) && is(lists::apex, "__pow__", full_precision));
static_assert(!listed(lists::pytorch_cpu, "exp") && !listed(lists::pytorch_cpu, "pow"));
static_assert(is(lists::mxnet, "exp", full_precision));
static_assert(is(lists::mxnet_bfloat16, "_npi_exp", pass_through));

// Products.
static_assert(is(lists::pytorch_cuda, "matmul", lower_precision));
static_assert(is(lists::pytorch_cuda, "cudnn_convolution", lower_precision));
static_assert(is(lists::pytorch_mps, "_mps_convolution", lower_precision));
static_assert(!listed(lists::pytorch_mps_2_5, "conv3d") && !listed(lists::pytorch_mps, "vdot"));
static_assert(is(lists::apex, "bmm", lower_precision) && is(lists::apex, "__matmul__", lower_precision));
static_assert(is(lists::tensorflow, "BatchMatMulV2", allow));
static_assert(is(lists::mxnet, "FullyConnected", lower_precision));
static_assert(is(lists::mxnet, "RNN", lower_precision) && is(lists::mxnet_bfloat16, "RNN", full_precision));
static_assert(is(lists::mxnet, "dot", promote_widest));

// Other rooms of the lists.
static_assert(is(lists::pytorch_cuda, "grid_sampler", promote));
static_assert(is(lists::pytorch_cpu, "grid_sampler", full_precision));
static_assert(is(lists::pytorch_cpu, "fft_ihfft", full_precision));
static_assert(is(lists::apex, "cpu", full_precision));
static_assert(is(lists::tensorflow, "TensorListConcatLists", clear));
static_assert(is(lists::tensorflow_bfloat16, "ResizeBilinear", clear));
static_assert(!listed(lists::tensorflow, "ResizeBilinear") && !listed(lists::tensorflow_bfloat16, "OneHot"));
static_assert(is(lists::nvidia, "gemm", lower_precision));

// Ops that no rule names.
static_assert(lists::pytorch_cuda.unlisted == pass_through && lists::pytorch_cpu.unlisted == pass_through);
static_assert(lists::apex.unlisted == pass_through && lists::mxnet.unlisted == pass_through);
static_assert(lists::tensorflow.unlisted == full_precision);
static_assert(lists::nvidia.unlisted == promote_widest);
static_assert(ac::category_in(lists::tensorflow, "matmul") == full_precision);  // case matters
static_assert(ac::category_in(lists::mxnet, "") == pass_through);
static_assert(ac::category_in(lists::mxnet, "zzz") == pass_through);
static_assert(!listed(lists::pytorch_cuda, "exp ") && !listed(lists::pytorch_cuda, "ex"));

// --- names

static_assert(lists::find_list("mxnet_bfloat16") == &lists::mxnet_bfloat16);
static_assert(lists::find_list("PyTorch") == nullptr && lists::find_list("") == nullptr);
static_assert(lists::find_list("pytorch_cud") == nullptr && lists::find_list("pytorch_cuda ") == nullptr);

// --- versions

static_assert(lists::find_list("pytorch_cuda", "2.15") == &lists::pytorch_cuda);
static_assert(lists::find_list("pytorch_cuda", "2.16.1") == &lists::pytorch_cuda);
static_assert(lists::find_list("pytorch_cuda", "3.0") == &lists::pytorch_cuda);
static_assert(lists::find_list("pytorch_cuda", "2.11.0") == &lists::pytorch_cuda_2_11);
static_assert(lists::find_list("pytorch_cpu", "2.14") == &lists::pytorch_cpu_2_11);
static_assert(lists::find_list("pytorch_mps", "2.9") == &lists::pytorch_mps_2_5);  // 2.9 is before 2.15
static_assert(lists::find_list("pytorch_cuda", "2.10") == nullptr);
static_assert(lists::find_list("tensorflow", "2.21") == &lists::tensorflow);
static_assert(lists::find_list("tensorflow", "2.20") == &lists::tensorflow_2_18);
static_assert(lists::find_list("tensorflow_bfloat16", "2.21") == &lists::tensorflow_bfloat16);
static_assert(lists::find_list("tensorflow", "") == nullptr &&
              lists::find_list("tensorflow", "2") == nullptr);
static_assert(lists::find_list("tensorflow", "2.x") == nullptr &&
              lists::find_list("tensorflo", "2.21") == nullptr);
static_assert(lists::find_list("tensorflow", ".2") == nullptr &&
              lists::find_list("tensorflow", "2..3") == nullptr);

// What is said of a version: a name of it is in the newer list or in the earlier one, and all others in both.
static_assert(is(lists::pytorch_cuda, "rms_norm", full_precision) &&
              !listed(lists::pytorch_cuda_2_11, "rms_norm"));
static_assert(is(lists::pytorch_cuda_2_11, "_cudnn_rnn", lower_precision));
static_assert(is(lists::pytorch_cpu_2_11, "cholesky", full_precision) && !listed(lists::pytorch_cpu, "qr"));
static_assert(is(lists::pytorch_mps, "conv3d", lower_precision));
static_assert(is(lists::pytorch_mps, "conv_transpose3d", full_precision));  // it takes no 16 bits there
static_assert(is(lists::tensorflow, "VoxelMax", allow) && !listed(lists::tensorflow_2_18, "VoxelMax"));

// --- the order

constexpr ac::op_rule in_order[] = {{"a", promote}, {"b", promote}, {"b", promote, "p", "x"}};
constexpr ac::op_rule descending[] = {{"b", promote}, {"a", promote}};
constexpr ac::op_rule twice[] = {{"a", promote}, {"a", banned}};
constexpr ac::op_rule condition_first[] = {{"a", promote, "p", "x"}, {"a", promote}};
constexpr ac::op_rule parameters_descending[] = {{"a", promote, "q", "x"}, {"a", promote, "p", "y"}};
constexpr ac::op_rule values_descending[] = {{"a", promote, "p", "y"}, {"a", promote, "p", "x"}};
constexpr ac::op_rule condition_twice[] = {{"a", promote, "p", "x"}, {"a", banned, "p", "x"}};
static_assert(ac::is_sorted_list(in_order) && ac::is_sorted_list({}));
static_assert(!ac::is_sorted_list(descending) && !ac::is_sorted_list(twice));
static_assert(!ac::is_sorted_list(condition_first) && !ac::is_sorted_list(parameters_descending));
static_assert(!ac::is_sorted_list(values_descending) && !ac::is_sorted_list(condition_twice));

}  // namespace

TEST_CASE("every list holds the numbers of ops that its source holds") {
    // Proven above; here for the report of the numbers.
    std::size_t total = 0;
    for (const ac::op_list* list : lists::all_lists) total += list->rules.size();
    CHECK(total == 113 + 114 + 88 + 201 + 180 + 123 + 689 + 682 + 8);
    // 110 of torch 2.11 besides _cudnn_rnn, which no list of autocast_mode.h has.
    const std::size_t earlier[] = {110 + 1, 115, 85, 200};
    for (std::size_t i = 0; i < lists::earlier_lists.size(); ++i) {
        CHECK(lists::earlier_lists[i]->rules.size() == earlier[i]);
        CHECK(ac::is_sorted_list(lists::earlier_lists[i]->rules));
    }
}

TEST_CASE("every list is found by its name, and no two have the same") {
    std::set<std::string_view> names;
    for (const ac::op_list* list : lists::all_lists) {
        CHECK(lists::find_list(list->name) == list);
        names.insert(list->name);
    }
    CHECK(names.size() == lists::all_lists.size());
}

TEST_CASE("every rule is found by the name of its op, whatever lies around it") {
    for (const ac::op_list* list : lists::all_lists) {
        CAPTURE(list->name);
        for (const ac::op_rule& rule : list->rules) {
            CAPTURE(rule.op);
            const auto found = ac::find_rules(*list, rule.op);
            const auto same = [&](const ac::op_rule& other) { return other.op == rule.op; };
            CHECK(static_cast<std::ptrdiff_t>(found.size()) ==
                  std::count_if(list->rules.begin(), list->rules.end(), same));
            CHECK(std::all_of(found.begin(), found.end(), same));
            CHECK(std::count(found.begin(), found.end(), rule) == 1);
            CHECK(ac::find_rules(*list, std::string(rule.op) + '\x01').empty());
            CHECK(ac::category_in(*list, rule.op) ==
                  (rule.parameter.empty() ? rule.category : list->unlisted));
        }
    }
}

TEST_CASE("rules are in ascending order of bytes, and names are words") {
    for (const ac::op_list* list : lists::all_lists) {
        CAPTURE(list->name);
        std::string previous;
        for (const ac::op_rule& rule : list->rules) {
            const std::string key = std::string(rule.op) + '\x01' + std::string(rule.parameter) + '\x01' +
                                    std::string(rule.value);
            CHECK(previous < key);
            previous = key;
            CHECK(!rule.op.empty());
            CHECK(std::all_of(rule.op.begin(), rule.op.end(), [](char character) {
                return character == '_' || std::isalnum(static_cast<unsigned char>(character)) != 0;
            }));
            CHECK(rule.parameter.empty() == rule.value.empty());
            CHECK(mp::name_of(rule.category) != "unknown");
        }
    }
}

TEST_CASE("a ban says why and what to call instead, in a list that names that op") {
    std::size_t bans = 0;
    for (const ac::op_list* list : lists::all_lists) {
        for (const ac::op_rule& rule : list->rules) {
            if (rule.category != banned) continue;
            ++bans;
            CHECK(rule.op == "binary_cross_entropy");
            CHECK(rule.reason.find("binary_cross_entropy_with_logits") != std::string_view::npos);
            CHECK(is(*list, "binary_cross_entropy_with_logits", full_precision));
        }
    }
    CHECK(bans == 2);
}

TEST_CASE("MXNet runs two activations in float for some values of act_type only") {
    const auto leaky = ac::find_rules(lists::mxnet, "LeakyReLU");
    REQUIRE(leaky.size() == 2);
    CHECK(leaky[0] == ac::op_rule{"LeakyReLU", full_precision, "act_type", "elu"});
    CHECK(leaky[1] == ac::op_rule{"LeakyReLU", full_precision, "act_type", "selu"});
    CHECK(ac::category_in(lists::mxnet, "LeakyReLU") == pass_through);

    const auto activation = ac::find_rules(lists::mxnet, "Activation");
    REQUIRE(activation.size() == 1);
    CHECK(activation[0] == ac::op_rule{"Activation", full_precision, "act_type", "softrelu"});

    const auto bfloat16 = ac::find_rules(lists::mxnet_bfloat16, "LeakyReLU");
    REQUIRE(bfloat16.size() == 1);
    CHECK(bfloat16[0] == ac::op_rule{"LeakyReLU", full_precision, "act_type", "selu"});
    CHECK(is(lists::mxnet_bfloat16, "Activation", pass_through));

    // Nowhere else is there a condition.
    std::ptrdiff_t conditions = 0;
    for (const ac::op_list* list : lists::all_lists) {
        conditions += std::count_if(list->rules.begin(), list->rules.end(),
                                    [](const ac::op_rule& rule) { return !rule.parameter.empty(); });
    }
    CHECK(conditions == 4);
}

TEST_CASE("the loss outputs of MXNet run in float") {
    CHECK(lists::mxnet_loss_outputs.size() == 4);
    for (const std::string_view op : lists::mxnet_loss_outputs) CHECK(is(lists::mxnet, op, full_precision));
    for (const std::string_view op : lists::mxnet_bfloat16_loss_outputs) {
        CHECK(is(lists::mxnet_bfloat16, op, full_precision));
    }
}
