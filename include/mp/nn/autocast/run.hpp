// SPDX-License-Identifier: MIT
/// \file
/// The dispatcher for ops of the library on a CPU: one function for all of them, whatever the types of their operands; and
/// the casts of all other calls. In the compiled part of the library, where there is one.
#pragma once

#include <mp/base/write_watch.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/nn/autocast/cast_observer.hpp>
#include <mp/nn/autocast/category.hpp>
#include <mp/nn/autocast/decision.hpp>
#include <mp/nn/autocast/observer.hpp>
#include <mp/nn/autocast/op_record.hpp>
#include <mp/nn/autocast/operand_record.hpp>
#include <mp/nn/autocast/region.hpp>
#include <mp/nn/autocast/resolved_types.hpp>
#include <mp/nn/autocast/staged_call.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#include <mp/workspace.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

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

/// Runs a kernel with staged operands. Apart from run_op(), whose frame would be large.
MP_NEVER_INLINE inline double compute_staged(const op_record& op, const cpu& exec, any_operand* operands,
                                             std::size_t count, const cast_types& types,
                                             const region_observer* observer) {
    staged_call call(op, exec, operands, count, 1, types, observer);
    call.begin();
    const double result = op.functions().compute(exec, operands);
    call.finish();
    return result;
}

/// Casts, computes and writes back.
inline double run_op(const op_record& op, const cpu& exec, any_operand* operands, std::size_t count,
                     const cast_types& types, const region_observer* observer) {
    // Gives back the memory of the casts and of the kernel.
    const workspace::frame frame(exec.workspace);
    const default_floating_point_modes modes;
    bool stages = observer != nullptr;
    for (std::size_t i = 0; !stages && i < count; ++i) stages = is_staged(op, types, i + 1, operands[i]);
    const double result = stages ? compute_staged(op, exec, operands, count, types, observer)
                                 : op.functions().compute(exec, operands);
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

MP_CORE_FUNCTION double run_with_types(const op_record& op, const cpu& exec, any_operand* operands,
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

MP_CORE_FUNCTION void run_staged(const op_record& op, const cpu& exec, any_operand* operands,
                                 std::size_t count, const cast_types& types, const region_observer* observer,
                                 void (*kernel)(void* context, const any_operand* operands), void* context) {
    staged_call call(op, exec, operands, count, 0, types, observer);
    call.begin();
    kernel(context, operands);
    call.finish();
}

MP_CORE_FUNCTION double run_in_region(const op_record& op, const cpu& exec, any_operand* operands,
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
