// SPDX-License-Identifier: MIT
/// \file
/// Masters and moments shared among the ranks (ZeRO, stages 1 and 2).
#pragma once

#include <mp/arrays/io/checksum.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/nn/optim/kernels/square_sums.hpp>
#include <mp/nn/optim/parameter.hpp>
#include <mp/nn/scaling/gradient_clipping.hpp>
#include <mp/nn/scaling/gradient_writes.hpp>
#include <mp/nn/scaling/optimizer_protocol.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#include <mp/train/parallel/agreement.hpp>
#include <mp/train/parallel/bucket_plan.hpp>
#include <mp/train/parallel/communicator.hpp>
#include <mp/train/parallel/gradient_reduction.hpp>
#include <mp/train/training/parameter_store.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The share of a rank in the parameters of a store: for each, the elements that are in its part of the bucket.
template <class Weight, class Gradient>
std::vector<parameter<Weight, Gradient>> share_of(std::string_view function, const bucket_plan<cpu>& plan,
                                                  const parameter_store<Weight, Gradient>& store,
                                                  std::size_t rank) {
    std::vector<parameter<Weight, Gradient>> result = store.parameters();
    for (parameter<Weight, Gradient>& it : result) {
        if (it.gradient.empty()) continue;
        const std::size_t found = plan.parameter_at(it.gradient.data());
        if (found == no_index) {
            throw_argument(function, "store", it.name, "must be among the parameters that are reduced");
        }
        const gradient_bucket<cpu>& bucket = plan.buckets[plan.parameters[found].bucket];
        const auto* const data = reinterpret_cast<const std::byte*>(it.gradient.data());
        const gradient_segment& segment =
            *std::find_if(bucket.segments.begin(), bucket.segments.end(), [&](const gradient_segment& there) {
                return data >= there.data && data < there.data + there.count * sizeof(Gradient);
            });
        const std::size_t begin =
            segment.first + static_cast<std::size_t>(data - segment.data) / sizeof(Gradient);
        const std::size_t end = begin + it.gradient.size();
        const std::size_t first = std::clamp(bucket.cuts[rank], begin, end);
        const std::size_t last = std::clamp(bucket.cuts[rank + 1], first, end);
        it.share_of = it.gradient.size();
        it.share_first = first == last ? 0 : first - begin;
        it.weights = it.weights.subspan(it.share_first, last - first);
        it.gradient = it.gradient.subspan(it.share_first, last - first);
    }
    return result;
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// An optimizer whose masters and moments are shared among the ranks: each updates its share of the weights,
/// and then gives it to the others. With bfloat16 weights and AdamW that is 4 + 12/N bytes for each parameter
/// on N ranks, instead of 16. See mp::shard, which makes it.
///
/// Gradients come from a reduction with share_only, which sends half as much as one without; the weights are
/// the other half. With a reduction that leaves all gradients on all ranks, every rank holds everything, and no
/// message is sent here. Steps, skips, norms and clipping are those of the whole model, to the bit what an
/// optimizer without shares would do on every rank by the same reduced gradients: two messages of a few bytes
/// (the norm's has 8 for every 4096 parameters) agree on infinities and on the norm. Element-wise
/// optimizers only: mp::sgd, mp::adamw, mp::lion, in all their formats.
///
/// Its checkpoint is that of the optimizer without shares, see mp::save_checkpoint(ranks, ...). After loading,
/// all ranks have all weights.
template <class Optimizer, communicator Ranks>
class sharded_optimizer {
    static_assert(
        !requires { Optimizer::needs_whole_parameters; },
        "mp::sharded_optimizer: this optimizer looks at whole parameters (at rows, columns or norms of "
        "theirs), and a rank has shares; take mp::sgd, mp::adamw or mp::lion");

public:
    using optimizer_type = Optimizer;
    using parameter_type = typename Optimizer::parameter_type;
    using weight_type = typename Optimizer::weight_type;
    using gradient_type = typename Optimizer::gradient_type;
    using store_type = parameter_store<weight_type, gradient_type>;

    /// See mp::shard.
    template <class... Options>
    sharded_optimizer(cpu exec, gradient_reduction<Ranks>& reduction, store_type& store,
                      const Options&... options)
        : reduction_(reduction),
          channel_(reduction.ranks()),
          store_(store),
          inner_(exec,
                 shares() ? detail::share_of(function, reduction.plan(), store, self()) : store.parameters(),
                 options...) {
        for (const parameter_type& it : store.parameters()) {
            writes_.add(it.gradient.data(), it.gradient.size_bytes());
        }
        if (!shares()) return;
        require_same_channel();
        list_buckets();
        list_chunks();
    }
    sharded_optimizer(const sharded_optimizer&) = delete;
    sharded_optimizer& operator=(const sharded_optimizer&) = delete;
    ~sharded_optimizer() = default;

    /// The optimizer of this rank's share: for its options and its state. Do not step it.
    [[nodiscard]] Optimizer& local() noexcept { return inner_; }
    [[nodiscard]] const Optimizer& local() const noexcept { return inner_; }

    /// As that of the optimizer; the report counts what all ranks have. Collective.
    gradient_report unscale_gradients(float inverse_scale) {
        return agreed(inner_.unscale_gradients(inverse_scale));
    }
    /// Likewise. Collective.
    [[nodiscard]] gradient_report check_gradients(float inverse_scale) {
        return agreed(inner_.check_gradients(inverse_scale));
    }
    /// Likewise. Collective.
    [[nodiscard]] gradient_report check_unscaled_gradients() {
        return agreed(inner_.check_unscaled_gradients());
    }
    /// The Euclidean norm of all gradients, the same on all ranks. Collective.
    [[nodiscard]] double gradient_norm() {
        if (!shares()) return inner_.gradient_norm();
        const std::span<const double> mine = inner_.gradient_square_sums();
        const std::size_t first = gathered_cuts_[self()] / sizeof(double);
        for (std::size_t i = 0; i < own_chunks_.size(); ++i) gathered_[first + i] = mine[own_chunks_[i]];
        auto call = channel_.start_gather(
            std::as_writable_bytes(std::span<double>(gathered_.data(), gathered_.size())), gathered_cuts_);
        reduction_.ranks().wait(call);
        for (std::size_t i = 0; i < gathered_.size(); ++i) in_order_[place_of_gathered_[i]] = gathered_[i];
        const detail::default_floating_point_modes modes;
        return modes.held(detail::double_sqrt(detail::sum_of_blocks(in_order_.data(), in_order_.size())));
    }
    void scale_gradients(float factor) { inner_.scale_gradients(factor); }
    void clip_gradient_value(double limit) { inner_.clip_gradient_value(limit); }
    /// As that of the optimizer, by the norm over all ranks. Collective.
    double clip_gradient_norm(double max_norm) {
        detail::require_limit("mp::sharded_optimizer::clip_gradient_norm", "max_norm", max_norm);
        const double norm = gradient_norm();
        inner_.scale_gradients(detail::in_default_modes([&] { return detail::clip_factor(norm, max_norm); }));
        return norm;
    }

    /// Updates this rank's share, and brings all weights to all ranks. Collective.
    ///
    /// \throws as the optimizer's, and what the communicator throws: the ranks no longer agree then
    void step() {
        writes_.require_step_allowed("mp::sharded_optimizer::step");
        if (writes_.watched() && !inner_.used_is_agreed()) static_cast<void>(agreed({}));
        inner_.step();
        gather_weights();
    }
    void step(float inverse_scale) {
        writes_.require_step_allowed("mp::sharded_optimizer::step");
        inner_.step(inverse_scale);
        gather_weights();
    }
    void require_lasting_weights(std::string_view caller) const { inner_.require_lasting_weights(caller); }
    void set_steps_unused_parameters(bool steps) noexcept { inner_.set_steps_unused_parameters(steps); }
    void skip_step() noexcept { inner_.skip_step(); }
    /// Sets all gradients to zero, also those of other ranks' shares.
    void zero_gradients() noexcept {
        inner_.zero_gradients();
        const std::span<gradient_type> all = store_.gradients();
        std::fill(all.begin(), all.end(), gradient_type{});
    }
    void set_learning_rate_factor(double factor) { inner_.set_learning_rate_factor(factor); }
    [[nodiscard]] std::string_view parameter_name(std::size_t index) const {
        return inner_.parameter_name(index);
    }
    /// Bytes of masters, moments and compensations on this rank.
    [[nodiscard]] std::size_t state_bytes() const noexcept { return inner_.state_bytes(); }
    /// For training_iteration.
    [[nodiscard]] auto& gradient_writes() noexcept { return writes_; }

    /// For mp::save_checkpoint(ranks, path, everything) and mp::load_checkpoint(ranks, path, everything).
    template <class Visitor>
    void visit_state(Visitor& visitor) {
        inner_.visit_state(visitor);
        if constexpr (Visitor::loads) {
            visitor.when_loaded([this] { gather_weights(); });
        }
    }

    /// Gives the weights of this rank's share to all: after they were written by something else than a step.
    /// Collective.
    void gather_weights() {
        if (!shares()) return;
        inner_.follow_weights();
        for (weight_gather& it : gathers_) {
            it.call = channel_.start_gather(it.bytes, it.cuts);
        }
        for (weight_gather& it : gathers_) reduction_.ranks().wait(it.call);
        store_.weights_changed();
        inner_.adopt_weight_versions();  // the share of this rank is as it was
    }

private:
    static constexpr std::string_view function = "mp::sharded_optimizer";

    /// Whether other ranks have a part of it.
    [[nodiscard]] bool shares() const {
        return reduction_.options().share_only && reduction_.ranks().size() > 1;
    }
    [[nodiscard]] std::size_t self() const { return static_cast<std::size_t>(reduction_.ranks().rank()); }

    /// Optimizers that are made in another order on another rank would gather each other's weights.
    void require_same_channel() const {
        detail::crc64_stream store;
        for (const parameter_type& it : store_.parameters()) {
            store.add(it.name + " " + detail::error_text(it.gradient.size()) + " ");
        }
        const std::uint64_t same[] = {static_cast<std::uint64_t>(channel_.number()), store.value()};
        detail::require_same_on_ranks(
            function, same, detail::reducer_reference(reduction_.ranks()), [](std::size_t i) {
                return std::string(i == 0
                                       ? "the number of its channel, which counts the reductions and sharded "
                                         "optimizers of the communicator,"
                                       : "the checksum of the names and sizes of its parameters");
            });
    }

    static constexpr std::size_t counts = 4;  // of a report
    gradient_report agreed(gradient_report report) {
        // Which parameters were used is agreed on by the same message.
        const std::size_t parameters = inner_.parameters().size();
        for (std::size_t i = 0; i < parameters; ++i) agreed_[counts + i] = inner_.is_used(i, writes_) ? 1 : 0;
        const std::span<const std::uint64_t> used(agreed_.data() + counts, parameters);
        if (!shares()) {
            inner_.set_used(used);
            return report;
        }
        agreed_[0] = report.checked;
        agreed_[1] = report.infinities;
        agreed_[2] = report.nans;
        agreed_[3] = report.too_large;
        reduction_.ranks().sum(agreed_);
        inner_.set_used(used);
        if (report.first_parameter != no_index) {
            report.first_element += inner_.parameters()[report.first_parameter].share_first;
        }
        report.checked_elsewhere = agreed_[0] - report.checked;
        report.infinities_elsewhere = agreed_[1] - report.infinities;
        report.nans_elsewhere = agreed_[2] - report.nans;
        report.too_large_elsewhere = agreed_[3] - report.too_large;
        return report;
    }

    /// The stretches of weights that belong to the buckets of the store.
    void list_buckets() {
        const std::span<gradient_type> gradients = store_.gradients();
        const auto* const begin = reinterpret_cast<const std::byte*>(gradients.data());
        for (const auto& it : reduction_.plan().buckets) {
            const std::byte* const data = it.segments[0].data;
            if (data < begin || data >= begin + gradients.size_bytes()) continue;
            const std::size_t first = static_cast<std::size_t>(data - begin) / sizeof(gradient_type);
            weight_gather& added = gathers_.emplace_back();
            added.bytes = std::as_writable_bytes(store_.mutable_weights().subspan(first, it.elements));
            for (const std::size_t cut : it.cuts) added.cuts.push_back(cut * sizeof(weight_type));
        }
    }

    /// Where the sums of squares of all ranks' chunks belong in the order of the whole parameters.
    void list_chunks() {
        constexpr std::size_t chunk = detail::parameter_layout::chunk;
        detail::parameter_layout whole;
        for (const parameter_type& it : store_.parameters()) whole.add(it.weights.size());
        const auto ranks = static_cast<std::size_t>(reduction_.ranks().size());
        gathered_cuts_.assign(1, 0);
        for (std::size_t rank = 0; rank < ranks; ++rank) {
            std::size_t local = 0;
            const auto shares = detail::share_of(function, reduction_.plan(), store_, rank);
            for (std::size_t i = 0; i < shares.size(); ++i) {
                const std::size_t count = (shares[i].weights.size() + chunk - 1) / chunk;
                for (std::size_t c = 0; c < count; ++c, ++local) {
                    place_of_gathered_.push_back(whole.first_chunk(i) + shares[i].share_first / chunk + c);
                    if (rank == self()) own_chunks_.push_back(local);
                }
            }
            gathered_cuts_.push_back(place_of_gathered_.size() * sizeof(double));
        }
        gathered_.resize(place_of_gathered_.size());
        in_order_.resize(whole.chunks());
    }

    struct weight_gather {
        std::span<std::byte> bytes;
        std::vector<std::size_t> cuts;
        typename Ranks::request call{};
    };

    gradient_reduction<Ranks>& reduction_;
    detail::rank_channel<Ranks> channel_;  // beside gradients of other reductions that may be under way
    store_type& store_;
    Optimizer inner_;
    std::vector<weight_gather> gathers_;
    std::vector<std::size_t> own_chunks_;  // among those of inner_
    std::vector<double> gathered_;         // sums of squares, rank after rank
    std::vector<std::size_t> gathered_cuts_;
    std::vector<std::size_t> place_of_gathered_;
    std::vector<double> in_order_;  // as one optimizer of everything would have them
    detail::gradient_writes writes_;
    std::vector<std::uint64_t> agreed_ =
        std::vector<std::uint64_t>(counts + inner_.parameters().size());  // by all ranks
};

/// Makes a mp::sharded_optimizer:
///
///     mp::gradient_reduction reduction(exec, ranks, {.share_only = true}, store);
///     auto optimizer = mp::shard<mp::adamw<mp::bfloat16>>(exec, reduction, store, options);
///     mp::training_iteration iteration(scaler, optimizer);
///
/// \param exec       where steps run
/// \param reduction  over the store, maybe among others; must outlive the optimizer, as must the store
/// \param options    options, or a vector of those of the groups
/// Collective where the reduction has share_only.
///
/// \throws argument_error  as the optimizer's constructor; the reduction has share_only, and not the store
/// \throws rank_error      the ranks make other optimizers, or in another order
template <class Optimizer, communicator Ranks, class... Options>
[[nodiscard]] sharded_optimizer<Optimizer, Ranks> shard(
    cpu exec, gradient_reduction<Ranks>& reduction,
    parameter_store<typename Optimizer::weight_type, typename Optimizer::gradient_type>& store,
    const Options&... options) {
    return sharded_optimizer<Optimizer, Ranks>(exec, reduction, store, options...);
}

}}  // namespace mp
