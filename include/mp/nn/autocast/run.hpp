// SPDX-License-Identifier: MIT
/// \file
/// The dispatcher for ops of the library on a CPU: one function for all of them, whatever the types of their operands. In
/// the compiled part of the library, where there is one.
#pragma once

#include <mp/arrays/array/for_each_element.hpp>
#include <mp/arrays/array/staging_buffer.hpp>
#include <mp/base/write_watch.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/nn/autocast/cast_cache.hpp>
#include <mp/nn/autocast/cast_observer.hpp>
#include <mp/nn/autocast/category.hpp>
#include <mp/nn/autocast/decision.hpp>
#include <mp/nn/autocast/observer.hpp>
#include <mp/nn/autocast/op_record.hpp>
#include <mp/nn/autocast/operand_record.hpp>
#include <mp/nn/autocast/region.hpp>
#include <mp/nn/autocast/resolved_types.hpp>
#include <mp/numbers/rules/elementwise.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#include <mp/workspace.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Makes the view one of `type` in `memory`, dense and with the same order of elements.
inline void make_dense(any_operand& view, const element_type& type, const void* memory) {
    view.address = reinterpret_cast<std::uintptr_t>(memory);
    view.element_size = static_cast<std::ptrdiff_t>(type.size);
    view.leading_dimension = view.vector_length();
    view.type = &type;
}

inline std::size_t checked_size(const any_operand& view) {
    check_view("mp::autocast::call", view.is_vector ? "range" : "matrix", view);
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
    with_observed_elements(
        view, [&](auto values) { observer->look_at(index, values, autocast::value_origin::kernel); });
}

/// Reports a cast of `from` to `to`, through the format of the quantiser unless that is null.
inline void report_cast(const region_observer* observer, std::size_t index,
                        autocast::cast_direction direction, const any_operand& from, const any_operand& to,
                        const quantiser* by) {
    if (observer == nullptr || !observer->records()) return;
    const staging_buffer<float> before = observed_elements<float>(from);
    const staging_buffer<float> after = observed_elements<float>(to);
    autocast::cast_target target = cast_target_of(by == nullptr ? *to.type : by->format);
    // The limits of a quantiser's format are those of numbers scaled by their largest.
    if (by != nullptr) target = target.scaled(power_of_two<double>(by->scale_exponent(before.elements())));
    observer->cast(index, direction, from.type->name, from.type->size, target, before.elements(),
                   after.elements(), by != nullptr);
}

/// Calls cast() while the observer measures.
template <class Cast>
void watched(const region_observer* observer, std::size_t index, autocast::cast_direction direction,
             std::size_t elements, Cast cast) {
    if (observer == nullptr) return cast();
    const region_observer::watched_cast watch(*observer, index, direction, elements);
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

/// Whether an input is cast.
inline bool casts_input(const cast_types& types, std::size_t index, const any_operand& input) {
    if (types.target == nullptr || !is_eligible(*input.type)) return false;
    return (types.quantisers != nullptr && types.quantisers[index] != nullptr) ||
           (types.target->is_reduced && !is_same_type(*types.target, *input.type));
}
/// Whether a result is rounded on its way to the caller's type. The kernel rounds once when it writes, from float, so that
/// casts to float need no copy.
inline bool casts_output(const cast_types& types, const any_operand& output) {
    const element_type* const type = types.output;
    return type != nullptr && type->is_reduced && is_eligible(*output.type) &&
           !is_same_type(*type, *output.type);
}
/// Whether the kernel receives something else in place of an argument.
inline bool is_staged(const op_record& op, const cast_types& types, std::size_t index,
                      const any_operand& argument) {
    switch (argument.role) {
        case operand_role::input:
            return argument.type != nullptr && casts_input(types, index, argument);
        case operand_role::output:
        case operand_role::in_out:
            return casts_output(types, argument);
        case operand_role::sum:
            return (op.sums >> index & 1) == 0;
        default:
            return false;
    }
}

/// One argument of a call between the caller and the kernel.
class staged_operand {
public:
    /// Prepares what the kernel reads and writes in place of the argument: `passed`, which is a copy of it.
    void begin(const op_record& op, const cpu& exec, const cast_types& types, const region_observer* observer,
               std::size_t index, const any_operand& argument, any_operand& passed) {
        switch (argument.role) {
            case operand_role::parameter:
                return;
            case operand_role::input:
                if (argument.type != nullptr) begin_input(exec, types, observer, index, argument, passed);
                return;
            case operand_role::uncast:
                return report_read(observer, index, argument);
            case operand_role::output:
            case operand_role::in_out:
                return begin_output(exec, types, observer, index, argument, passed);
            case operand_role::sum:
                if ((op.sums >> index & 1) == 0) begin_sum(op, exec, argument, passed);
                return;
        }
    }

    /// Writes back what the kernel has computed.
    void finish(const cpu& exec, const region_observer* observer, std::size_t index,
                const any_operand& argument, const any_operand& passed) const {
        if (!argument.is_output()) return;
        if (passed.address == argument.address) return look_at_result(observer, index, argument);
        constexpr auto direction = autocast::cast_direction::output;
        const bool adds = argument.role == operand_role::sum && argument.adds;
        const auto size = static_cast<std::size_t>(argument.rows * argument.columns);
        if (adds && (argument.type->is_double || passed.type->is_double)) {
            map_operands<sum_function, double>(exec, argument, argument, passed);
        } else if (adds) {
            map_operands<sum_function, float>(exec, argument, argument, passed);
        } else {
            watched(observer, index, direction, size, [&] { copy_elements(exec, passed, argument); });
        }
        if (argument.role == operand_role::sum) return look_at_result(observer, index, argument);
        report_cast(observer, index, direction, passed, argument, nullptr);
    }

private:
    void begin_output(const cpu& exec, const cast_types& types, const region_observer* observer,
                      std::size_t index, const any_operand& argument, any_operand& passed) {
        if (!casts_output(types, argument)) {
            if (argument.role == operand_role::in_out) report_read(observer, index, argument);
            return;
        }
        take(exec, passed, *types.output);
        if (argument.role == operand_role::in_out) {
            watched(observer, index, autocast::cast_direction::input, checked_size(argument),
                    [&] { copy_elements(exec, argument, passed); });
            report_cast(observer, index, autocast::cast_direction::input, argument, passed, nullptr);
        }
    }

    /// The kernel writes the terms of a sum as floats (as doubles for a sum of doubles).
    void begin_sum(const op_record& op, const cpu& exec, const any_operand& argument, any_operand& passed) {
        const element_type& type = is_eligible(*argument.type) ? *op.types.float32 : *argument.type;
        if (argument.adds || !is_same_type(type, *argument.type)) take(exec, passed, type);
        passed.role = operand_role::output;
    }

    void begin_input(const cpu& exec, const cast_types& types, const region_observer* observer,
                     std::size_t index, const any_operand& argument, any_operand& passed) {
        if (!casts_input(types, index, argument)) return report_read(observer, index, argument);
        const quantiser* const by = types.quantisers == nullptr ? nullptr : types.quantisers[index];
        const element_type* const target = types.target;
        autocast::cast_cache* const cache =
            argument.version == nullptr || observer == nullptr ? nullptr : observer->cache();
        if (cache != nullptr) {
            return begin_kept(*cache, exec, *target, by, *observer, index, argument, passed);
        }
        take(exec, passed, *target);
        cast(exec, observer, index, argument, passed, by);
    }

    void begin_kept(autocast::cast_cache& cache, const cpu& exec, const element_type& target,
                    const quantiser* by, const region_observer& observer, std::size_t index,
                    const any_operand& argument, any_operand& passed) {
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
            argument.is_vector
                ? std::array<std::ptrdiff_t, 4>{argument.columns}
                : std::array<std::ptrdiff_t, 4>{argument.rows, argument.columns, argument.leading_dimension,
                                                static_cast<std::ptrdiff_t>(order)},
            argument.type->name,
            rounded.name,
            target.name,
            nullptr};
        std::shared_ptr<void> outdated;
        kept_ = cache.find(key, *argument.version, count, &outdated);
        if (kept_ != nullptr) {
            make_dense(passed, target, kept_.get());
            if (cache.compares()) require_current(exec, argument, passed, by, bytes);
            if (observer.records()) observer.reused(index, key.from, key.to, by != nullptr);
            return;
        }
        std::shared_ptr<std::byte> made = std::static_pointer_cast<std::byte>(outdated);
        if (made == nullptr) made = allocate_kept_bytes(bytes);
        make_dense(passed, target, made.get());
        cast(exec, &observer, index, argument, passed, by);
        kept_ = made;
        cache.keep(key, *argument.version, count, kept_, bytes);
    }

    /// Throws where a kept cast is not that of the buffer as it is now.
    static void require_current(const cpu& exec, const any_operand& argument, const any_operand& kept,
                                const quantiser* by, std::size_t bytes) {
        const staging_buffer<std::byte> again(bytes);
        any_operand now = argument;
        make_dense(now, *kept.type, again.data());
        cast_elements(exec, argument, now, by);
        if (std::memcmp(again.data(), kept.at(0, 0), bytes) == 0) return;
        throw_joined<state_error>(
            {"mp::autocast: an array of ", error_text(argument.rows * argument.columns), " elements of type ",
             argument.type->name,
             " that was passed as cached() has been written since it was cast, and changed() of its "
             "buffer_version was not called (weights_changed() of an mp::parameter_store calls it)"});
    }

    void take(const cpu& exec, any_operand& passed, const element_type& type) {
        buffer_ = staging_buffer<std::byte>(exec, checked_size(passed) * type.size);
        make_dense(passed, type, buffer_.data());
    }

    static void cast(const cpu& exec, const region_observer* observer, std::size_t index,
                     const any_operand& argument, const any_operand& to, const quantiser* by) {
        watched(observer, index, autocast::cast_direction::input,
                static_cast<std::size_t>(argument.rows * argument.columns),
                [&] { cast_elements(exec, argument, to, by); });
        report_cast(observer, index, autocast::cast_direction::input, argument, to, by);
    }

    static void cast_elements(const cpu& exec, const any_operand& from, const any_operand& to,
                              const quantiser* by) {
        if (by == nullptr) return copy_elements(exec, from, to);
        const auto size = static_cast<std::size_t>(from.rows * from.columns);
        if (!from.type->is_reduced && from.is_contiguous()) {
            const auto* const floats = reinterpret_cast<const float*>(from.at(0, 0));
            return by->quantise(exec, {floats, size}, to.at(0, 0));
        }
        const workspace::frame frame(exec.workspace);
        const staging_buffer<float> values(exec, size);
        load_vectors(from, values.data());
        by->quantise(exec, values.elements(), to.at(0, 0));
    }

    staging_buffer<std::byte> buffer_;
    std::shared_ptr<const void> kept_;
};

/// Rounds the number that an op returns to the type of its results.
inline double finish_number(const op_record& op, double result, const element_type* output,
                            const region_observer* observer) {
    constexpr std::size_t returned = autocast::observed_call::returned;
    const auto look_at = [&](auto value) {
        if (observer != nullptr) {
            observer->look_at(returned, std::span<const decltype(value)>(&value, 1),
                              autocast::value_origin::kernel);
        }
    };
    if (op.result->is_double) {
        look_at(result);
        return result;
    }
    const auto value = static_cast<float>(result);
    if (output == nullptr || !output->is_reduced) {
        look_at(value);
        return result;
    }
    alignas(double) std::byte code[sizeof(double)];
    float rounded;
    output->narrow(conversion_isa(), &value, code, 1);
    output->widen(conversion_isa(), code, &rounded, 1);
    if (observer != nullptr && observer->records()) {
        observer->cast(returned, autocast::cast_direction::output, op.result->name, op.result->size,
                       cast_target_of(*output), {&value, 1}, {&rounded, 1}, false);
    }
    return static_cast<double>(rounded);
}

/// The arguments of a call as the kernel receives them, and what is staged of them. Memory that is not initialised: small
/// calls would take longer for that than for the rest.
class staged_call {
public:
    staged_call() {}  // NOLINT(modernize-use-equals-default): members stay uninitialised
    ~staged_call() {
        for (std::size_t i = 0; i < count_; ++i) std::destroy_at(&staged_[i]);
    }
    staged_call(const staged_call&) = delete;
    staged_call& operator=(const staged_call&) = delete;

    void begin(const op_record& op, const cpu& exec, const any_operand* operands, std::size_t count,
               const cast_types& types, const region_observer* observer) {
        for (std::size_t i = 0; i < count; ++i) {
            std::construct_at(&staged_[i]);
            count_ = i + 1;
            std::construct_at(&passed_[i], operands[i]);
            staged_[i].begin(op, exec, types, observer, i + 1, operands[i], passed_[i]);
        }
    }
    [[nodiscard]] const any_operand* operands() const { return passed_; }
    void finish(const cpu& exec, const any_operand* operands, const region_observer* observer) const {
        for (std::size_t i = 0; i < count_; ++i) {
            staged_[i].finish(exec, observer, i + 1, operands[i], passed_[i]);
        }
    }

private:
    union {
        staged_operand staged_[max_operands];
    };
    union {
        any_operand passed_[max_operands];
    };
    std::size_t count_ = 0;
};

/// Casts, computes and writes back.
inline double run_op(const op_record& op, const cpu& exec, const any_operand* operands, std::size_t count,
                     const cast_types& types, const region_observer* observer) {
    // Gives back the memory of the casts and of the kernel.
    const workspace::frame frame(exec.workspace);
    const default_floating_point_modes modes;
    bool stages = observer != nullptr;
    for (std::size_t i = 0; !stages && i < count; ++i) stages = is_staged(op, types, i + 1, operands[i]);
    double result;
    if (stages) {
        staged_call call;
        call.begin(op, exec, operands, count, types, observer);
        result = op.functions().compute(exec, call.operands());
        call.finish(exec, operands, observer);
    } else {
        result = op.functions().compute(exec, operands);
    }
    return op.result == nullptr ? 0.0 : finish_number(op, result, types.output, observer);
}

/// Reports the arrays that the op has written or added to, to those that watch the thread.
inline void tell_written(const any_operand* operands, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        const any_operand& it = operands[i];
        if (!it.is_output()) continue;
        write_watch::tell(reinterpret_cast<const void*>(it.address),  // NOLINT(performance-no-int-to-ptr)
                          it.role == operand_role::in_out || (it.role == operand_role::sum && it.adds));
    }
}

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

MP_CORE_FUNCTION double run_as_it_is(const op_functions& functions, const cpu& exec,
                                     const any_operand* operands, std::size_t count) {
    functions.validate(exec, operands);
    double result;
    {
        const write_watch::silence inside;
        // Gives back the memory of the kernel.
        const workspace::frame frame(exec.workspace);
        const default_floating_point_modes modes;
        result = functions.compute(exec, operands);
    }
    tell_written(operands, count);
    return result;
}

MP_CORE_FUNCTION double run_with_types(const op_record& op, const cpu& exec, const any_operand* operands,
                                       std::size_t count, const cast_types& types) {
    op.functions().validate(exec, operands);
    double result;
    {
        const write_watch::silence inside;
        result = run_op(op, exec, operands, count, types, nullptr);
    }
    tell_written(operands, count);
    return result;
}

MP_CORE_FUNCTION double run_in_region(const op_record& op, const cpu& exec, const any_operand* operands,
                                      std::size_t count) {
    const autocast_state* const state = autocast_thread.state;
    const region_decision decision =
        state == nullptr ? region_decision{} : decide_call(*state, device_kind::cpu, op.decided, operands);
    if (!decision.casts()) {
        const bool any_sum = std::any_of(operands, operands + count,
                                         [](const any_operand& it) { return it.role == operand_role::sum; });
        return any_sum ? run_with_types(op, exec, operands, count, {})
                       : run_as_it_is(op.functions(), exec, operands, count);
    }
    if (decision.category == op_category::banned) throw_banned(op.name, op.banned_reason, decision);
    // Types of the data, each once.
    const number_facts* data[max_operands];
    std::size_t different = 0;
    for (std::size_t i = 0; i < count; ++i) {
        if (operands[i].role != operand_role::input || operands[i].type == nullptr) continue;
        const auto is_known = [&](const number_facts* it) { return is_same_type(*it, *operands[i].type); };
        if (std::none_of(data, data + different, is_known)) data[different++] = operands[i].type;
    }
    const element_type& low = decision.active == precision::fp16 ? *op.types.half : *op.types.bfloat16;
    const number_facts* const requested = op.requested == nullptr ? &no_number : op.requested;
    const resolved_types found =
        resolve_types(decision.category, low, *op.types.float32, requested, {data, different});
    if (found.third->is_number) throw_third_type(op.name, found.third->name, decision.active);
    const bool quantises = op.float8 != nullptr && decision.active == precision::fp8 &&
                           decision.category == op_category::lower_precision;
    const quantiser* quantisers[max_operands + 1] = {};
    for (std::size_t i = 1; quantises && i <= count; ++i) {
        if ((op.product_operands >> i & 1) == 0) continue;
        quantisers[i] = (op.incoming_gradients >> i & 1) != 0 ? &op.float8->gradient : &op.float8->forward;
    }
    // All are records of element types: those of operands, or of the op.
    const auto record_of_type = [](const number_facts* type) {
        return type->is_number ? static_cast<const element_type*>(type) : nullptr;
    };
    const cast_types types{record_of_type(found.target), record_of_type(found.output),
                           quantises ? quantisers : nullptr};
    std::string_view compute_name;
    if (state->ledger != nullptr) {
        const number_facts* computed[max_operands];
        for (std::size_t i = 0; i < different; ++i) {
            computed[i] = found.target->is_number && is_eligible(*data[i]) ? found.target : data[i];
        }
        const number_facts* const compute = widest_of({computed, different}, *op.types.float32);
        compute_name = compute->is_number ? compute->name : std::string_view("none");
    }
    op.functions().validate(exec, operands);
    double result;
    {
        const write_watch::silence inside;
        const region_observer observer(
            state->cache.get(), state->ledger,
            {op.name, op.argument_name, &decision, compute_name, autocast_layer_path(), 0});
        const autocast_excluded kernel_is_not_cast_again;
        if (op.functions().product != nullptr && observer.records()) {
            observer.multiplied(op.functions().product(operands),
                                quantises ? std::string_view("float8") : compute_name);
        }
        const bool observes = state->ledger != nullptr ||
                              std::any_of(operands, operands + count,
                                          [](const any_operand& it) { return it.version != nullptr; });
        result = run_op(op, exec, operands, count, types, observes ? &observer : nullptr);
    }
    tell_written(operands, count);
    return result;
}

}}  // namespace mp::detail
