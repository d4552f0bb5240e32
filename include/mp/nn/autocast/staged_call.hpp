// SPDX-License-Identifier: MIT
/// \file
/// Casts of the operands of a call: arrays that are staged for the kernel, kept casts, sums, and what observers see of them.
#pragma once

#include <mp/arrays/array/for_each_element.hpp>
#include <mp/arrays/array/staging_buffer.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/nn/autocast/cast_cache.hpp>
#include <mp/nn/autocast/cast_observer.hpp>
#include <mp/nn/autocast/observer.hpp>
#include <mp/nn/autocast/op_record.hpp>
#include <mp/nn/autocast/operand_record.hpp>
#include <mp/nn/autocast/resolved_types.hpp>
#include <mp/numbers/rules/elementwise.hpp>
#include <mp/workspace.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string_view>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Makes the view one of `type` in `memory`, dense and with the same order of elements.
inline void make_dense(any_operand& view, const element_type& type, const void* memory) {
    view.address = reinterpret_cast<std::uintptr_t>(memory);
    view.element_size = static_cast<std::ptrdiff_t>(type.size);
    view.leading_dimension = view.vector_length();
    view.type = &type;
}

inline std::size_t checked_size(const any_operand& view) {
    if (const foreign_view* const foreign = view.foreign()) return foreign->functions->size(*foreign);
    if (view.is_vector && view.address != 0) return static_cast<std::size_t>(view.columns);
    check_view("mp::autocast::call", view.is_vector ? std::string_view("range") : "matrix", view);
    return static_cast<std::size_t>(view.rows) * static_cast<std::size_t>(view.columns);
}

/// Reads the elements in the order of the view's memory, without gaps.
template <class Real>
void load_vectors(const any_matrix& view, Real* to) {
    const std::ptrdiff_t length = view.vector_length();
    if (view.empty()) return;
    if (view.is_contiguous()) {
        return load_elements(*view.type, view.at(0, 0), 1, static_cast<std::size_t>(view.rows * view.columns),
                             to);
    }
    for (std::ptrdiff_t vector = 0; vector < view.vector_count(); ++vector) {
        load_elements(*view.type, element_of_vector(view, view.row_major, vector, 0), 1,
                      static_cast<std::size_t>(length), to + vector * length);
    }
}

/// Elements in the order of the view's memory, as the Reals that observers read.
template <class Real>
staging_buffer<Real> observed_elements(const any_matrix& view) {
    staging_buffer<Real> copy(static_cast<std::size_t>(view.rows * view.columns));
    load_vectors(view, copy.data());
    return copy;
}
/// Calls f with the elements, as floats, or as doubles where they are.
template <class Function>
void with_observed_elements(const any_matrix& view, Function f) {
    if (view.type->is_double) {
        f(observed_elements<double>(view).elements());
    } else {
        f(observed_elements<float>(view).elements());
    }
}

/// Reports an array that the op reads without a cast.
inline void report_read(const region_observer* observer, std::size_t index, const any_operand& view) {
    if (observer == nullptr || !observer->records()) return;
    if (const foreign_view* const foreign = view.foreign()) {
        return foreign->functions->report(*foreign, *observer, index, true);
    }
    if (is_eligible(*view.type)) {
        observer->read(index, cast_target_of(*view.type), observed_elements<float>(view).elements());
        return;
    }
    with_observed_elements(
        view, [&](auto values) { observer->look_at(index, values, autocast::value_origin::argument); });
}

/// Searches a result for the first value that is not finite.
inline void look_at_result(const region_observer* observer, std::size_t index, const any_operand& view) {
    if (observer == nullptr || !observer->scans()) return;
    if (const foreign_view* const foreign = view.foreign()) {
        return foreign->functions->report(*foreign, *observer, index, false);
    }
    with_observed_elements(
        view, [&](auto values) { observer->look_at(index, values, autocast::value_origin::kernel); });
}

/// The elements of an argument, or of the array staged for it, as floats.
inline staging_buffer<float> observed_floats(const any_operand& view, bool is_staged) {
    const foreign_view* const foreign = view.foreign();
    if (foreign == nullptr) return observed_elements<float>(view);
    staging_buffer<float> copy(foreign->functions->size(*foreign));
    foreign->functions->copy_floats(*foreign, is_staged ? view.type : nullptr, view.at(0, 0), copy.data());
    return copy;
}

/// Reports a cast of an argument to the array staged for it, or back, through the format of the quantiser unless that is
/// null.
inline void report_cast(const region_observer* observer, std::size_t index,
                        autocast::cast_direction direction, const any_operand& from, const any_operand& to,
                        const quantiser* by) {
    if (observer == nullptr || !observer->records()) return;
    const bool is_input = direction == autocast::cast_direction::input;
    const staging_buffer<float> before = observed_floats(from, !is_input);
    const staging_buffer<float> after = observed_floats(to, is_input);
    autocast::cast_target target = cast_target_of(by == nullptr ? *to.type : by->format);
    // The limits of a quantiser's format are those of numbers scaled by their largest.
    if (by != nullptr) target = target.scaled(power_of_two<double>(by->scale_exponent(before.elements())));
    observer->cast(index, direction, from.type->name, from.type->size, target, before.elements(),
                   after.elements(), by != nullptr);
}

/// Calls cast() while the observer measures.
template <class Cast>
void watched(const region_observer& observer, std::size_t index, autocast::cast_direction direction,
             const any_operand& argument, Cast cast) {
    const region_observer::watched_cast watch(observer, index, direction, checked_size(argument));
    cast();
}

/// Memory that outlives the call, for casts that are kept.
inline std::shared_ptr<std::byte> allocate_kept_bytes(std::size_t bytes) {
    // Units aligned for every element type.
    using unit = std::max_align_t;
    std::shared_ptr<unit[]> memory =
        std::make_shared_for_overwrite<unit[]>((bytes + sizeof(unit) - 1) / sizeof(unit));
    return {memory, reinterpret_cast<std::byte*>(memory.get())};
}

/// Whether an operand is copied as `type`, which may be null. A kernel that computes in float reads any format and rounds
/// once when it writes, so that casts to float need no copy.
inline bool needs_cast(const op_record& op, const element_type* type, const any_operand& operand) {
    return type != nullptr && (type->is_reduced || !op.computes_in_float) && is_eligible(*operand.type) &&
           !is_same_type(*type, *operand.type);
}
/// Whether an input is cast.
inline bool casts_input(const op_record& op, const cast_types& types, std::size_t index,
                        const any_operand& input) {
    const bool quantises = types.quantisers != nullptr && types.quantisers[index] != nullptr;
    return (quantises && is_eligible(*input.type)) || needs_cast(op, types.target, input);
}
/// Whether the kernel receives something else in place of an argument.
inline bool is_staged(const op_record& op, const cast_types& types, std::size_t index,
                      const any_operand& argument) {
    switch (argument.role) {
        case operand_role::input:
            return argument.type != nullptr && casts_input(op, types, index, argument);
        case operand_role::output:
        case operand_role::in_out:
            return needs_cast(op, types.output, argument);
        case operand_role::sum:
            return (op.sums >> index & 1) == 0;
        default:
            return false;
    }
}

/// The operands of a call, in place of which the kernel receives staged arrays where they are cast. Members without
/// initialisers stay uninitialised: small calls would take longer for that than for the rest.
class staged_call {
public:
    /// \param first  index of the first operand among the op's arguments
    staged_call(const op_record& op, const cpu& exec, any_operand* operands, std::size_t count,
                std::size_t first, const cast_types& types, const region_observer* observer)
        : op_(op),
          exec_(exec),
          operands_(operands),
          count_(count),
          first_(first),
          types_(types),
          observer_(observer) {}
    ~staged_call() {
        for (std::size_t i = 0; i < staged_count_; ++i) std::destroy_at(&staged_[i]);
    }
    staged_call(const staged_call&) = delete;
    staged_call& operator=(const staged_call&) = delete;

    /// Casts, and makes the operands what the kernel reads and writes.
    void begin() {
        for (std::size_t i = 0; i < count_; ++i) begin_one(first_ + i, operands_[i]);
    }

    /// Writes back what the kernel has computed, and makes the operands the caller's again.
    void finish() const {
        if (staged_count_ == 0 && observer_ == nullptr) return;
        const staged_operand* staged = staged_;
        for (std::size_t i = 0; i < count_; ++i) {
            any_operand& operand = operands_[i];
            const bool is_staged = staged != staged_ + staged_count_ && staged->operand == &operand;
            if (is_staged && staged->original.is_output()) {
                write_back(first_ + i, staged->original, operand);
            } else if (operand.is_output()) {
                look_at_result(observer_, first_ + i, operand);
            }
            if (is_staged) operand = (staged++)->original;
        }
    }

private:
    /// An operand that the kernel receives an array in place of, and the memory of that.
    struct staged_operand {
        // Not an aggregate: g++ sets the memory of one to zero first, by an instruction that takes longer than a small cast.
        explicit staged_operand(any_operand& argument) : operand(&argument), original(argument) {}

        any_operand* operand;
        any_operand original;
        staging_buffer<std::byte> buffer;
        std::shared_ptr<const void> kept;
    };

    staged_operand& stage(any_operand& operand) {
        void* const memory = &staged_[staged_count_];
        staged_operand& staged = *new (memory) staged_operand(operand);
        ++staged_count_;
        return staged;
    }

    void begin_one(std::size_t index, any_operand& operand) {
        switch (operand.role) {
            case operand_role::parameter:
                return;
            case operand_role::input:
                if (operand.type != nullptr) begin_input(index, operand);
                return;
            case operand_role::uncast:
                return report_read(observer_, index, operand);
            case operand_role::output:
            case operand_role::in_out:
                return begin_output(index, operand);
            case operand_role::sum:
                if ((op_.sums >> index & 1) == 0) begin_sum(operand);
                return;
        }
    }

    void write_back(std::size_t index, const any_operand& original, const any_operand& staged) const {
        constexpr auto direction = autocast::cast_direction::output;
        const bool adds = original.role == operand_role::sum && original.adds;
        const bool is_same = staged.address == original.address;
        const foreign_view* const foreign = original.foreign();
        if (adds && foreign != nullptr) {
            foreign->functions->write(*foreign, *staged.type, staged.at(0, 0), true);
        } else if (adds && (original.type->is_double || staged.type->is_double)) {
            map_operands<sum_function, double>(exec_, original, original, staged);
        } else if (adds) {
            map_operands<sum_function, float>(exec_, original, original, staged);
        } else if (!is_same) {
            const auto copy_back = [&] {
                if (foreign == nullptr) return copy_elements(exec_, staged, original);
                foreign->functions->write(*foreign, *staged.type, staged.at(0, 0), false);
            };
            if (observer_ == nullptr) return copy_back();
            watched(*observer_, index, direction, original, copy_back);
        }
        if (original.role == operand_role::sum) return look_at_result(observer_, index, original);
        report_cast(observer_, index, direction, staged, original, nullptr);
    }

    void begin_output(std::size_t index, any_operand& operand) {
        const bool is_read = operand.role == operand_role::in_out;
        if (needs_cast(op_, types_.output, operand)) {
            const any_operand& original = take(stage(operand), *types_.output);
            if (is_read) cast(index, original, operand, nullptr);
        } else if (is_read) {
            report_read(observer_, index, operand);
        }
    }

    /// The kernel writes the terms of a sum as floats (as doubles for a sum of doubles), or, unless it computes in float,
    /// as other results.
    void begin_sum(any_operand& operand) {
        const element_type& other = types_.output == nullptr ? *operand.type : *types_.output;
        const element_type& type = !is_eligible(*operand.type) ? *operand.type
                                   : op_.computes_in_float     ? *op_.types.float32
                                                               : other;
        staged_operand& staged = stage(operand);
        if (operand.adds || !is_same_type(type, *operand.type)) take(staged, type);
        operand.role = operand_role::output;
    }

    void begin_input(std::size_t index, any_operand& operand) {
        if (!casts_input(op_, types_, index, operand)) return report_read(observer_, index, operand);
        const quantiser* const by = types_.quantisers == nullptr ? nullptr : types_.quantisers[index];
        const foreign_view* const foreign = operand.foreign();
        const bool can_keep = operand.version != nullptr && observer_ != nullptr &&
                              observer_->cache() != nullptr && (foreign == nullptr || foreign->can_keep);
        staged_operand& staged = stage(operand);
        if (can_keep) return begin_kept(*observer_->cache(), by, index, staged);
        take(staged, *types_.target);
        cast(index, staged.original, operand, by);
    }

    void begin_kept(autocast::cast_cache& cache, const quantiser* by, std::size_t index,
                    staged_operand& staged) {
        const any_operand& argument = staged.original;
        any_operand& passed = *staged.operand;
        const element_type& target = *types_.target;
        const foreign_view* const foreign = argument.foreign();
        const std::size_t size = checked_size(argument);
        const std::size_t bytes = size * target.size;
        const number_facts& rounded = by == nullptr ? static_cast<const number_facts&>(target) : by->format;
        // Read before the buffer is: what changes later is not mistaken for what was cast.
        const std::uint64_t count = argument.version->count();
        const storage_order order =
            argument.row_major ? storage_order::row_major : storage_order::column_major;
        const autocast::cast_cache::key key{
            reinterpret_cast<const void*>(argument.address),  // NOLINT(performance-no-int-to-ptr)
            size,
            foreign != nullptr ? foreign->shape
            : argument.is_vector
                ? std::array<std::ptrdiff_t, 4>{argument.columns}
                : std::array<std::ptrdiff_t, 4>{argument.rows, argument.columns, argument.leading_dimension,
                                                static_cast<std::ptrdiff_t>(order)},
            argument.type->name,
            rounded.name,
            target.name,
            foreign != nullptr ? foreign->queue : nullptr};
        std::shared_ptr<void> outdated;
        staged.kept = cache.find(key, *argument.version, count, &outdated);
        if (staged.kept != nullptr) {
            make_dense(passed, target, staged.kept.get());
            const bool on_device = foreign != nullptr && foreign->functions->on_device;
            if (cache.compares() && !on_device) require_current(argument, passed, by, size, bytes);
            if (observer_->records()) observer_->reused(index, key.from, key.to, by != nullptr);
            return;
        }
        std::shared_ptr<void> made = outdated;
        if (made == nullptr) {
            made = foreign == nullptr ? allocate_kept_bytes(bytes)
                                      : foreign->functions->allocate_kept(*foreign, bytes);
        }
        if (made == nullptr) {
            take(staged, target);
        } else {
            make_dense(passed, target, made.get());
        }
        cast(index, argument, passed, by);
        if (made == nullptr) return;
        staged.kept = made;
        cache.keep(key, *argument.version, count, made, bytes);
    }

    /// Throws where a kept cast is not that of the buffer as it is now.
    void require_current(const any_operand& argument, const any_operand& kept, const quantiser* by,
                         std::size_t size, std::size_t bytes) const {
        const staging_buffer<std::byte> again(bytes);
        any_operand now = argument;
        make_dense(now, *kept.type, again.data());
        cast_elements(argument, now, by);
        if (std::memcmp(again.data(), kept.at(0, 0), bytes) == 0) return;
        throw_joined<state_error>(
            {"mp::autocast: an array of ", error_text(size), " elements of type ", argument.type->name,
             " that was passed as cached() has been written since it was cast, and changed() of its "
             "buffer_version was not called (weights_changed() of an mp::parameter_store calls it)"});
    }

    /// Makes the operand a dense array of `type`, and returns what it was.
    const any_operand& take(staged_operand& staged, const element_type& type) {
        const foreign_view* const foreign = staged.original.foreign();
        const bool on_device = foreign != nullptr && foreign->functions->on_device;
        if (on_device && exec_.workspace == nullptr) {
            throw_argument(
                "mp::autocast::call", "exec.workspace", "null",
                "must be a workspace of device memory, since an argument of the op is cast or added to");
        }
        const std::size_t bytes = checked_size(staged.original) * type.size;
        if (exec_.workspace == nullptr && bytes <= sizeof(small_) - small_used_) {
            make_dense(*staged.operand, type, small_ + small_used_);
            small_used_ += (bytes + small_alignment - 1) / small_alignment * small_alignment;
        } else {
            staged.buffer = staging_buffer<std::byte>(exec_, bytes);
            make_dense(*staged.operand, type, staged.buffer.data());
        }
        return staged.original;
    }

    void cast(std::size_t index, const any_operand& argument, const any_operand& to,
              const quantiser* by) const {
        constexpr auto direction = autocast::cast_direction::input;
        if (observer_ == nullptr) return cast_elements(argument, to, by);
        watched(*observer_, index, direction, argument, [&] { cast_elements(argument, to, by); });
        report_cast(observer_, index, direction, argument, to, by);
    }

    void cast_elements(const any_operand& from, const any_operand& to, const quantiser* by) const {
        if (const foreign_view* const foreign = from.foreign()) {
            return foreign->functions->read(*foreign, *to.type, by != nullptr, to.at(0, 0));
        }
        if (by == nullptr) return copy_elements(exec_, from, to);
        const auto size = static_cast<std::size_t>(from.rows * from.columns);
        if (!from.type->is_reduced && from.is_contiguous()) {
            const auto* const floats = reinterpret_cast<const float*>(from.at(0, 0));
            return by->quantise(exec_, {floats, size}, to.at(0, 0));
        }
        const workspace::frame frame(exec_.workspace);
        const staging_buffer<float> values(exec_, size);
        load_vectors(from, values.data());
        by->quantise(exec_, values.elements(), to.at(0, 0));
    }

    static constexpr std::size_t small_alignment = 64;

    const op_record& op_;
    const cpu& exec_;
    any_operand* operands_;
    std::size_t count_;
    std::size_t first_;
    const cast_types& types_;
    const region_observer* observer_;
    std::size_t staged_count_ = 0;
    std::size_t small_used_ = 0;
    union {
        staged_operand staged_[max_operands];
    };
    /// Arrays of small calls, which the heap would take longer for than the op.
    alignas(small_alignment) std::byte small_[1024];
};

}}  // namespace mp::detail
