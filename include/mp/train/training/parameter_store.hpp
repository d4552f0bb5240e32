// SPDX-License-Identifier: MIT
/// \file
/// The weights and gradients of a model in one allocation each, with names, shapes and initial values.
#pragma once

#include <mp/base/buffer_version.hpp>
#include <mp/base/device_range.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/autocast/operand.hpp>
#include <mp/nn/ops/matrix_operand.hpp>
#include <mp/nn/optim/parameter.hpp>
#include <mp/train/training/initializers.hpp>
#include <mp/train/training/tensor.hpp>
#include <mp/train/training/tensor_scale_store.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Whether a visitor saves a run to continue, rather than weights for other programs.
template <class Visitor>
bool saves_run(const Visitor& visitor) {
    if constexpr (requires { visitor.saves_run(); }) return visitor.saves_run();
    return false;
}

/// State shared by a parameter_store and its tensors.
template <class Weight, class Gradient>
struct parameter_memory {
    struct entry {
        std::string name;
        std::ptrdiff_t rows;
        std::ptrdiff_t columns;
        bool is_vector;
        std::size_t group;
        initializer initial;
        std::size_t offset;
        buffer_version version;
    };
    std::vector<entry> entries;
    std::size_t total = 0;
    tensor<Weight> weights;
    tensor<Gradient> gradients;
    bool built = false;
    buffer_version version;  ///< of all weights
    tensor_scale_store scales;
    std::unique_ptr<const memory_copies> copies;  ///< where the memory is a device's

    void require_built(std::string_view function) const {
        if (built) return;
        throw_joined<state_error>(
            {function,
             ": there is no memory yet; call build() of the mp::parameter_store when all "
             "parameters have been added"});
    }
};

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// A parameter in a parameter_store: a matrix, or a vector, which is a matrix of one row. A reference: copies
/// are the same parameter, and the store must outlive them.
template <class Weight, class Gradient = Weight>
class trained_tensor {
public:
    /// No parameter: all functions except exists() throw state_error.
    trained_tensor() = default;

    [[nodiscard]] bool exists() const noexcept { return memory_ != nullptr; }
    /// The weights, for reading. For an op in a region see cached().
    [[nodiscard]] matrix_view<const Weight> weights() const { return in(of("weights").weights); }
    /// The weights, to be written now: counts as a write, so that casts, codes and master weights that are kept of
    /// them are made anew. Writes through a view that was kept need parameter_store::weights_changed().
    [[nodiscard]] matrix_view<Weight> mutable_weights() const {
        const auto result = in(of("mutable_weights").weights);
        entry().version.changed();
        return result;
    }
    /// The gradient, which the backward pass writes or adds to.
    [[nodiscard]] matrix_view<Gradient> gradient() const { return in(of("gradient").gradients); }
    /// The weights of a vector, or of a matrix row after row.
    [[nodiscard]] std::span<const Weight> values() const { return flat(weights()); }
    /// The same, to be written now, as mutable_weights() says.
    [[nodiscard]] std::span<Weight> mutable_values() const { return flat(mutable_weights()); }
    [[nodiscard]] std::span<Gradient> gradient_values() const { return flat(gradient()); }
    /// The weights for an op, whose casts in a region are kept until the weights are written.
    [[nodiscard]] auto cached() const {
        const buffer_version& counted = of("cached").entries[index_].version;
        return autocast::cached(weights(), counted);
    }

    /// The version of the weights, which every write advances.
    [[nodiscard]] const buffer_version& version() const { return of("version").entries[index_].version; }
    [[nodiscard]] std::ptrdiff_t rows() const { return of("rows").entries[index_].rows; }
    [[nodiscard]] std::ptrdiff_t columns() const { return of("columns").entries[index_].columns; }
    [[nodiscard]] const std::string& name() const { return of("name").entries[index_].name; }

private:
    template <class, class>
    friend class parameter_store;
    using memory = detail::parameter_memory<Weight, Gradient>;
    trained_tensor(memory* of, std::size_t index) : memory_(of), index_(index) {}

    [[nodiscard]] const typename memory::entry& entry() const { return memory_->entries[index_]; }
    /// The memory, for a member function. Throws state_error if there is no parameter.
    [[nodiscard]] memory& of(std::string_view function) const {
        if (memory_ != nullptr) return *memory_;
        detail::throw_joined<state_error>(
            {"mp::trained_tensor::", function, ": there is no parameter; exists() says so"});
    }
    template <class Value>
    matrix_view<Value> in(tensor<Value>& all) const {
        memory_->require_built("mp::trained_tensor");
        return row_major(all.values().data() + entry().offset, entry().rows, entry().columns);
    }
    template <class Value>
    static std::span<Value> flat(matrix_view<Value> view) {
        return {view.data, static_cast<std::size_t>(view.rows * view.columns)};
    }

    memory* memory_ = nullptr;
    std::size_t index_ = 0;
};

/// Holds the parameters of a model, or those of one format: layers add theirs, build() makes the memory, and
/// optimizers train parameters().
///
///     mp::parameter_store<mp::bfloat16> store;
///     const auto w = store.add_matrix("fc.weight", out, in, mp::initializers::normal(0.02));
///     const auto b = store.add_vector("fc.bias", out, mp::initializers::zeros(), {.group = 1});
///     store.build(seed);
///     mp::adamw<mp::bfloat16> optimizer(store.parameters(), {{.weight_decay = 0.1}, {.weight_decay = 0.0}});
///     ...
///     mp::ops::linear(exec, x, w.cached(), b.values(), y);
///     mp::ops::linear_backward(exec, x, w.cached(), dy, dx, w.gradient(), b.gradient_values());
///     optimizer.step();                        // advances the versions of the weights
///
/// The weights are one array and the gradients another, in the order of adding, each parameter at a cache
/// line and at the same element in every format: what reduces gradients over ranks or writes weights to a file
/// sees a range. Initial values depend on the seed and the place in that array.
///
/// Moves, and is not copied; tensors and layers stay valid. Functions of a store that was moved from throw
/// state_error. Not synchronised.
template <class Weight, class Gradient = Weight>
class parameter_store {
    using memory = detail::parameter_memory<Weight, Gradient>;

public:
    using tensor_type = trained_tensor<Weight, Gradient>;
    using parameter_type = parameter<Weight, Gradient>;

    struct options {
        std::size_t group = 0;  ///< of the optimizer's, see mp::parameter
    };

    parameter_store() : memory_(std::make_unique<memory>()) { memory_->scales.follow(memory_->version); }

    /// A matrix of weights. Zeros if nothing else is said.
    ///
    /// \throws argument_error  a size that is negative or does not fit into memory, a name that is there
    /// \throws state_error     build() has been called
    tensor_type add_matrix(std::string name, std::ptrdiff_t rows, std::ptrdiff_t columns,
                           const initializer& initial = {}, options chosen = {0}) {
        return add("mp::parameter_store::add_matrix", std::move(name), rows, columns, false, initial, chosen);
    }
    /// A vector of weights, likewise.
    tensor_type add_vector(std::string name, std::ptrdiff_t size, const initializer& initial = {},
                           options chosen = {0}) {
        return add("mp::parameter_store::add_vector", std::move(name), 1, size, true, initial, chosen);
    }

    /// Makes the memory, draws the weights, and sets the gradients to zero.
    ///
    /// \throws state_error  called before
    void build(std::uint64_t seed) { build(cpu{}, seed); }
    /// The same in the memory of an executor; the weights are those that a CPU has.
    ///
    /// \throws argument_error  there is not enough device memory
    template <executor Executor>
    void build(const Executor& exec, std::uint64_t seed) {
        require_not_built("mp::parameter_store::build");
        const auto count = static_cast<std::ptrdiff_t>(memory_->total);
        tensor<Weight> weights(1, count);
        for (const auto& it : memory_->entries) {
            initialize(weights.values().subspan(it.offset, size_of(it)), it.initial, seed, it.offset);
        }
        tensor<Gradient> gradients(exec, 1, count);
        if constexpr (gpu_executor<Executor>) {
            tensor<Weight> on_device(exec, 1, count);
            on_device.copy_from(exec, std::as_const(weights).values());
            weights = std::move(on_device);
            memory_->copies = std::make_unique<detail::executor_copies<Executor>>(exec);
        }
        memory_->weights = std::move(weights);
        memory_->gradients = std::move(gradients);
        memory_->built = true;
    }

    /// For an optimizer, in the order of adding.
    ///
    /// \throws state_error  before build(), and where that made memory of a device
    [[nodiscard]] std::vector<parameter_type> parameters() const {
        require_place("mp::parameter_store::parameters", false);
        return list();
    }
    /// For one on an executor: mp::gpu_adamw and its kin where build() had one for GPUs.
    ///
    /// \throws state_error  before build(), and where its memory was of another kind
    template <executor Executor>
    [[nodiscard]] std::vector<parameter_type> parameters(const Executor& /*exec*/) const {
        require_place("mp::parameter_store::parameters", gpu_executor<Executor>);
        return list();
    }

    /// All weights and all gradients, with unused elements, zeros, between the parameters.
    [[nodiscard]] std::span<const Weight> weights() const {
        return at("mp::parameter_store::weights").weights.values();
    }
    /// All weights, to be written now: counts as a write of every parameter, see trained_tensor::mutable_weights().
    [[nodiscard]] std::span<Weight> mutable_weights() {
        weights_changed();
        return memory_->weights.values();
    }
    /// As mutable_weights(), for writing all of them: masters become the new weights even where they round to them.
    [[nodiscard]] std::span<Weight> replace_weights() {
        for (const auto& it : at("mp::parameter_store::replace_weights").entries) it.version.replaced();
        return memory_->weights.values();
    }
    [[nodiscard]] std::span<Gradient> gradients() const {
        return at("mp::parameter_store::gradients").gradients.values();
    }
    /// Number of trained weights.
    [[nodiscard]] std::size_t count() const {
        std::size_t sum = 0;
        for (const auto& it : at("mp::parameter_store::count").entries) sum += size_of(it);
        return sum;
    }

    /// Reports that the program has written weights through memory that it got before: what is derived from them is
    /// made anew. Everything of the library that writes weights does so by itself: steps, averages, loading, broadcasts.
    void weights_changed() {
        for (const auto& it : at("mp::parameter_store::weights_changed").entries) it.version.changed();
    }

    /// Where layers with 8-bit operands have their scales, which stay there when the store is moved.
    [[nodiscard]] tensor_scale_store& tensor_scales() const {
        return at("mp::parameter_store::tensor_scales").scales;
    }

    /// Names the weights with their shapes, for mp::save_safetensors and mp::save_checkpoint. An optimizer
    /// names those that it trains by itself. While an average is applied, mp::save_safetensors writes the average.
    ///
    /// \throws state_error  before build(); save_checkpoint or load_checkpoint while the weights are temporary
    template <class Visitor>
    void visit_state(Visitor& visitor) {
        constexpr std::string_view function = "mp::parameter_store::visit_state";
        at(function).require_built(function);
        for (const auto& it : memory_->entries) {
            if (it.version.is_temporary() && (Visitor::loads || detail::saves_run(visitor))) {
                detail::throw_joined<state_error>(
                    {Visitor::loads ? "mp::load_checkpoint" : "mp::save_checkpoint", ": the weights of '",
                     it.name, "' are temporary, such as while mp::weight_average::apply() is in effect"});
            }
            const auto values = memory_->weights.values().subspan(it.offset, size_of(it));
            if (memory_->copies != nullptr) {
                visitor(it.name, detail::device_range<Weight>{
                                     values, memory_->copies.get(),
                                     it.is_vector ? 0 : static_cast<std::size_t>(it.columns)});
            } else if (it.is_vector) {
                visitor(it.name, values);
            } else {
                visitor(it.name, row_major(values.data(), it.rows, it.columns));
            }
        }
        if constexpr (Visitor::loads) {
            visitor.when_loaded([this] { weights_changed(); });
        }
    }

private:
    [[nodiscard]] memory& at(std::string_view function) const {
        if (memory_ != nullptr) return *memory_;
        detail::throw_joined<state_error>({function, ": the store was moved from"});
    }
    void require_place(std::string_view function, bool device) const {
        at(function).require_built(function);
        if (device == (memory_->copies != nullptr)) return;
        detail::throw_joined<state_error>(
            {function,
             (device ? ": the weights are in the memory of the host; build() them with this executor"
                     : ": the weights are in device memory; call parameters(exec) for an optimizer there")});
    }
    [[nodiscard]] std::vector<parameter_type> list() const {
        std::vector<parameter_type> result;
        for (const auto& it : memory_->entries) {
            result.push_back({it.name, memory_->weights.values().subspan(it.offset, size_of(it)),
                              memory_->gradients.values().subspan(it.offset, size_of(it)), it.group,
                              it.is_vector ? 0 : static_cast<std::size_t>(it.rows), 0, 0, it.version});
        }
        return result;
    }

    static std::size_t size_of(const typename memory::entry& it) {
        return static_cast<std::size_t>(it.rows * it.columns);
    }
    void require_not_built(std::string_view function) const {
        if (at(function).built) {
            detail::throw_joined<state_error>(
                {function, ": build() has been called, and the memory is made"});
        }
    }
    tensor_type add(std::string_view function, std::string name, std::ptrdiff_t rows, std::ptrdiff_t columns,
                    bool is_vector, const initializer& initial, const options& chosen) {
        require_not_built(function);
        constexpr std::size_t larger = sizeof(Weight) > sizeof(Gradient) ? sizeof(Weight) : sizeof(Gradient);
        const std::size_t count = detail::checked_element_count(function, rows, columns, larger);
        for (const auto& it : memory_->entries) {
            if (it.name == name) {
                detail::throw_argument(function, "name", name,
                                       "must be another one: there is a parameter of this name");
            }
        }
        memory_->entries.push_back({std::move(name), rows, columns, is_vector, chosen.group, initial,
                                    memory_->total, buffer_version::part_of(memory_->version)});
        constexpr std::size_t line = tensor<Weight>::alignment;  // elements: lines of every format
        memory_->total += (count + line - 1) / line * line;
        return {memory_.get(), memory_->entries.size() - 1};
    }

    std::unique_ptr<memory> memory_;
};

}}  // namespace mp
