// SPDX-License-Identifier: MIT
/// \file
/// A table of embeddings as a layer.
#pragma once

#include <mp/executor.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/ops/embedding.hpp>
#include <mp/train/training/layers/layer_call.hpp>
#include <mp/train/training/parameter_store.hpp>

#include <cstddef>
#include <span>
#include <string>

namespace mp::layers { inline namespace MP_ISA_NAMESPACE {

struct embedding_options {
    initializer initial = initializers::normal(0.02);
    std::size_t group = 0;
};

/// Row i of y = row indices[i] of the table, ".weight" in the store. See mp::ops::embedding() and
/// mp::layers::linear, whose template parameters these are. The result is the caller's, so that embeddings
/// of tokens and places are added where they lie:
///
///     tokens.forward(exec, ids, x.view());
///     places.forward(exec, positions, mp::ops::add_to(x.view()));
///
/// The table of a head that is tied to it is weight(): mp::ops::linear(exec, h, tokens.weight().cached(), ...).
template <class Weight, class Activation = Weight, class Policy = autocast::by_region,
          class Gradient = Weight>
class embedding {
public:
    embedding(parameter_store<Weight, Gradient>& store, const std::string& name, std::ptrdiff_t rows,
              std::ptrdiff_t width, const embedding_options& options = {})
        : weight_(store.add_matrix(name + ".weight", rows, width, options.initial, {options.group})) {}

    /// The indices must stay until backward().
    template <executor Executor, ops::matrix_result Y>
    void forward(const Executor& exec, std::span<const int> indices, const Y& y) {
        forward_.clear();
        indices_ = indices;
        ops::embedding<Policy>(exec, weight_.weights(), indices, y);
        forward_.set();
    }
    /// The gradient of the table, added to what is there if `add` says so: after that of a tied head, say.
    ///
    /// \throws state_error  before forward(), or after one that failed
    template <executor Executor>
    void backward(const Executor& exec, matrix_view<const Activation> dy, bool add = false) {
        forward_.require("embedding", weight_.name(), ".weight");
        ops::embedding_backward<Policy>(exec, indices_, dy, ops::add_to(weight_.gradient(), add));
    }

    [[nodiscard]] const trained_tensor<Weight, Gradient>& weight() const { return weight_; }

private:
    trained_tensor<Weight, Gradient> weight_;
    std::span<const int> indices_;
    detail::forward_mark forward_;
};

}}  // namespace mp::layers
