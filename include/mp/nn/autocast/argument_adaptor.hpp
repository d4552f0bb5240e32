// SPDX-License-Identifier: MIT
/// \file
/// Arguments of ops with kernels of typed views: as operands for the dispatcher, and as the kernel receives them.
#pragma once

#include <mp/arrays/array/element_type.hpp>
#include <mp/arrays/array/staging_buffer.hpp>
#include <mp/executor.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/autocast/library_op.hpp>
#include <mp/nn/autocast/observer.hpp>
#include <mp/nn/autocast/operand.hpp>
#include <mp/nn/autocast/operand_record.hpp>
#include <mp/nn/autocast/quantise_operand.hpp>
#include <mp/nn/autocast/resolution.hpp>
#include <mp/numbers/format/operations.hpp>
#include <mp/workspace.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The view that an argument is or holds.
template <class Argument>
constexpr const auto& view_in(const Argument& argument) {
    if constexpr (requires { argument.view; } && is_array_operand<Argument>) {
        return argument.view;
    } else {
        return argument;
    }
}

/// An argument of a call of Op under Plan.
template <class Plan, class Op, std::size_t Index, class Argument>
struct argument_adaptor {
    using bare = std::remove_const_t<Argument>;
    using traits = operand_of<bare>;
    using element = typename traits::element;
    using quantised = typename quantised_format<typename Plan::quantising, Op, Index>::type;
    static constexpr bool in_float = computes_in_float<Op>();
    static constexpr bool is_input = is_array_operand<bare> && !is_output<bare> && !is_uncast_operand<bare>;

    /// Whether an array is cast to, or from, Type, unless it is one of Type. A kernel that computes in float reads any
    /// format and rounds once when it writes.
    template <class Type>
    static constexpr bool is_cast = autocast::eligible<element> && autocast::eligible<Type> &&
                                    !std::same_as<element, Type> && !(in_float && std::same_as<Type, float>);

    static constexpr auto find_staged() {
        using output = typename Plan::output;
        using target = typename Plan::target;
        using own = std::conditional_t<std::is_void_v<output>, element, output>;
        if constexpr (is_sum_operand<bare>) {
            // The sum is rounded once, so that the terms are floats where the kernel writes any format.
            using terms = std::conditional_t<!autocast::eligible<element>, element,
                                             std::conditional_t<in_float, float, own>>;
            return std::type_identity<
                std::conditional_t<in_float && adds_itself<Op, Index>(), void, terms>>{};
        } else if constexpr (is_output<bare>) {
            return std::type_identity<std::conditional_t<is_cast<output>, output, void>>{};
        } else if constexpr (is_input && autocast::eligible<element> &&
                             (is_cast<target> || (!std::is_void_v<target> && !std::is_void_v<quantised>))) {
            return std::type_identity<target>{};
        } else {
            return std::type_identity<void>{};
        }
    }
    /// The type of the dense array that the kernel may receive in place of the argument; void if it never does.
    using staged = typename decltype(find_staged())::type;

    /// The argument as the kernel receives it. `passed` are the operands of the call, and read where `staged` is a type.
    static constexpr decltype(auto) get(Argument& argument, const any_operand* passed) {
        if constexpr (!is_array_operand<bare>) {
            return (argument);
        } else if constexpr (!std::is_void_v<staged>) {
            const auto memory = [&] { return reinterpret_cast<staged*>(passed[Index].at(0, 0)); };
            if constexpr (is_sum_operand<bare> && std::same_as<staged, element>) {
                return argument.adds ? traits::template dense<staged>(memory(), argument.view)
                                     : argument.view;
            } else {
                using stored = std::conditional_t<is_input, const staged, staged>;
                return traits::template dense<stored>(memory(), view_in(argument));
            }
        } else if constexpr (is_sum_operand<bare>) {
            return (argument);
        } else if constexpr (is_output<bare>) {
            return std::remove_cvref_t<decltype(argument.view)>(argument.view);
        } else {
            return traits::as_input(view_in(argument));
        }
    }
};

/// The type in which observers read numbers: float holds those of every format that is cast.
template <class Element>
using observed = std::conditional_t<autocast::eligible<Element>, float, Element>;

/// An argument of a call of Op on numbers alone under Plan.
template <class Plan, class Op, std::size_t Index, class Argument>
struct number_adaptor {
    using number = element_of<Argument>;
    using target = typename Plan::target;
    using quantised = typename quantised_format<typename Plan::quantising, Op, Index>::type;
    static constexpr bool is_cast = autocast::eligible<number> && !std::is_void_v<target> &&
                                    !(std::same_as<number, target> && std::is_void_v<quantised>);

    /// What the kernel receives.
    using type = std::conditional_t<is_cast, target, Argument&>;

    static constexpr type get(Argument& argument) {
        if constexpr (!is_cast) {
            return argument;
        } else if constexpr (std::is_void_v<quantised>) {
            return static_cast<target>(argument);
        } else {
            const float from = static_cast<float>(argument);
            target to;
            quantise_operand(quantised_to<quantised>{}, cpu{}, std::span<const float>(&from, 1),
                             std::span<target>(&to, 1));
            return to;
        }
    }

    static void report(const region_observer& observer, Argument& argument) {
        if constexpr (!std::is_void_v<number>) {
            const auto before = static_cast<observed<number>>(argument);
            if constexpr (is_cast) {
                using format = std::conditional_t<std::is_void_v<quantised>, target, quantised>;
                autocast::cast_target to = autocast::cast_target_of<format>();
                if constexpr (!std::is_void_v<quantised>) {
                    to = to.scaled(power_of_two<double>(scale_exponent_of<quantised>({&before, 1})));
                }
                const auto after = static_cast<float>(get(argument));
                observer.cast(Index, autocast::cast_direction::input, autocast::type_name<number>(),
                              sizeof(number), to, {&before, 1}, {&after, 1}, !std::is_void_v<quantised>);
            } else {
                observer.template read<number>(Index, std::span(&before, 1));
            }
        }
    }
};

/// The functions of a view on an executor.
template <class View, class Executor>
struct functions_of_view {
    using traits = operand_of<View>;
    using element = typename traits::element;

    static const View& view_of(const foreign_view& self) { return *static_cast<const View*>(self.view); }
    static const Executor& executor_of(const foreign_view& self) {
        return *static_cast<const Executor*>(self.executor);
    }

    static std::size_t size(const foreign_view& self) { return traits::size(view_of(self)); }

    static std::shared_ptr<void> allocate(const foreign_view& self, std::size_t bytes) {
        return allocate_kept<std::byte>(executor_of(self), bytes);
    }

    static void report(const foreign_view& self, const region_observer& observer, std::size_t index,
                       bool is_read) {
        staging_buffer<observed<element>> copy(size(self));
        observe(self, copy.data());
        if (is_read) {
            observer.template read<element>(index, copy.elements());
        } else {
            observer.look_at(index, copy.elements(), autocast::value_origin::kernel);
        }
    }

    template <class To>
    static void copy_to(const foreign_view& self, To* to) {
        const View& view = view_of(self);
        traits::copy(executor_of(self), traits::as_input(view), traits::template dense<To>(to, view));
    }

    /// Copies the elements to the host.
    static void observe(const foreign_view& self, observed<element>* to) {
        if constexpr (gpu_executor<Executor>) {
            const Executor& exec = executor_of(self);
            const workspace::frame frame(workspace_of(exec));
            const staging_buffer<observed<element>> copy(exec, size(self));
            copy_to(self, copy.data());
            executor_memory<Executor>::copy_to_host(exec, to, copy.data(), copy.elements().size_bytes());
        } else {
            copy_to(self, to);
        }
    }
};

/// The functions of an operand. Quantised is the float8 format that it is rounded to, or void; Staged are the types that
/// it is staged as.
template <class View, operand_role Role, class Executor, class Quantised, class Staged>
struct functions_of_operand;
template <class View, operand_role Role, class Executor, class Quantised, class... Staged>
struct functions_of_operand<View, Role, Executor, Quantised, type_list<Staged...>>
    : functions_of_view<View, Executor> {
    using base = functions_of_view<View, Executor>;
    using typename base::element;
    using typename base::traits;

    /// Calls f(std::type_identity<T>) with the staged type T.
    template <class Function>
    static void with_type([[maybe_unused]] const number_facts& type, [[maybe_unused]] Function f) {
        ((is_same_type(type, facts_v<Staged>) ? f(std::type_identity<Staged>{}) : void()), ...);
    }

    static void read(const foreign_view& self, const number_facts& type, bool quantises, void* to) {
        if constexpr (Role == operand_role::input || Role == operand_role::in_out) {
            with_type(type, [&]<class To>(std::type_identity<To>) {
                if constexpr (!std::is_void_v<Quantised>) {
                    if (quantises) return quantise(self, std::span(static_cast<To*>(to), base::size(self)));
                }
                base::copy_to(self, static_cast<To*>(to));
            });
        }
    }

    static void write(const foreign_view& self, const number_facts& type, const void* from, bool adds) {
        if constexpr (Role >= operand_role::output) {
            with_type(type, [&]<class From>(std::type_identity<From>) {
                const View& view = base::view_of(self);
                const auto dense = traits::template dense<const From>(static_cast<const From*>(from), view);
                if constexpr (Role == operand_role::sum) {
                    if (adds) return traits::add(base::executor_of(self), dense, view);
                }
                traits::copy(base::executor_of(self), dense, view);
            });
        }
    }

    static void copy_floats(const foreign_view& self, const number_facts* type, const void* staged,
                            float* to) {
        if constexpr (autocast::eligible<element>) {
            if (type == nullptr) return base::observe(self, to);
            with_type(*type, [&]<class From>(std::type_identity<From>) {
                const std::span values(static_cast<const From*>(staged), base::size(self));
                staging_buffer<From> copy;
                const std::span<const From> readable =
                    readable_by_host(base::executor_of(self), values, copy);
                for (std::size_t i = 0; i < readable.size(); ++i) to[i] = static_cast<float>(readable[i]);
            });
        }
    }

    static constexpr view_functions record{&read,           &write,      &copy_floats,          &base::report,
                                           &base::allocate, &base::size, gpu_executor<Executor>};

private:
    template <class To>
    static void quantise(const foreign_view& self, std::span<To> to) {
        const Executor& exec = base::executor_of(self);
        const View& view = base::view_of(self);
        if constexpr (std::same_as<element, float> && requires { traits::contiguous(view); }) {
            if (const std::span<const float> floats = traits::contiguous(view); floats.size() == to.size()) {
                return quantise_operand(quantised_to<Quantised>{}, exec, floats, to);
            }
        }
        const workspace::frame frame(workspace_of(exec));
        const staging_buffer<float> values(exec, to.size());
        base::copy_to(self, values.data());
        quantise_operand(quantised_to<Quantised>{}, exec, values.elements(), to);
    }
};

/// Whether a view is an operand of the ops of the library on a CPU.
template <class View>
inline constexpr bool is_host_view = false;
template <class Element>
    requires(!std::same_as<std::remove_const_t<Element>, long double>)
inline constexpr bool is_host_view<matrix_view<Element>> = true;
template <class Element, std::size_t Extent>
    requires(!std::same_as<std::remove_const_t<Element>, long double>)
inline constexpr bool is_host_view<std::span<Element, Extent>> = true;

/// Record of a type whose arrays foreign views convert.
template <class Value>
inline constexpr element_type facts_of_foreign = [] {
    element_type result{};
    static_cast<number_facts&>(result) = facts_of<Value>();
    return result;
}();
/// The record of a type that an executor's arrays are staged as; null for void.
template <class Executor, class Value>
constexpr const element_type* staged_record() {
    if constexpr (std::is_void_v<Value>) {
        return nullptr;
    } else if constexpr (gpu_executor<Executor>) {
        return &facts_of_foreign<Value>;
    } else {
        return element_type_of<Value, false>;
    }
}

/// The first of Types that is none of void.
template <class... Types>
struct first_type {
    using type = void;
};
template <class First, class... Rest>
struct first_type<First, Rest...>
    : std::conditional_t<std::is_void_v<First>, first_type<Rest...>, std::type_identity<First>> {};

template <class Argument>
constexpr operand_role role_of() {
    if constexpr (is_sum_operand<Argument>) {
        return operand_role::sum;
    } else if constexpr (requires(const Argument& it) {
                             []<class V>(const autocast::output_operand<V, true>&) {}(it);
                         }) {
        return operand_role::in_out;
    } else if constexpr (is_output<Argument>) {
        return operand_role::output;
    } else {
        return is_uncast_operand<Argument> ? operand_role::uncast : operand_role::input;
    }
}

/// An argument of Op, as the dispatcher reads it under one of Plans. `foreign` must live as long.
template <class Op, std::size_t Index, class... Plans, class Executor, class Argument>
any_operand operand_of_argument(type_list<Plans...>, const Executor& exec, const Argument& argument,
                                foreign_view& foreign) {
    using view = std::remove_cvref_t<decltype(view_in(argument))>;
    any_operand result;  // of a parameter only the role is read
    if constexpr (!is_array_operand<Argument>) {
        return result;
    } else if constexpr (std::same_as<Executor, cpu> && is_host_view<view>) {
        return operand_of_view<false>(argument);
    } else {
        using traits = operand_of<view>;
        using staged =
            typename distinct<type_list<>,
                              typename argument_adaptor<Plans, Op, Index, Argument>::staged...>::type;
        using quantised =
            typename first_type<typename argument_adaptor<Plans, Op, Index, Argument>::quantised...>::type;
        constexpr operand_role role = role_of<Argument>();
        foreign = {&functions_of_operand<view, role, Executor, quantised, staged>::record,
                   &exec,
                   &view_in(argument),
                   false,
                   {},
                   nullptr};
        static_cast<view_extent&>(result) = {};
        if constexpr (is_output<Argument> || is_cached_operand<Argument>) {
            result.address = reinterpret_cast<std::uintptr_t>(traits::address(view_in(argument)));
        }
        result.type = &facts_of_foreign<typename traits::element>;
        result.role = role;
        if constexpr (is_sum_operand<Argument>) result.adds = argument.adds;
        if constexpr (is_cached_operand<Argument>) {
            result.version = &argument.version;
            foreign.can_keep = can_keep(exec);
            foreign.shape = traits::shape(argument.view);
            foreign.queue = queue_of(exec);
        }
        result.parameter = &foreign;
        return result;
    }
}

/// The record of Op, as run_staged() reads it.
template <class Op, class Executor, bool AnySum, std::size_t... Index>
constexpr op_record make_staged_record(std::index_sequence<Index...>) {
    op_record record{};
    record.computes_in_float = computes_in_float<Op>();
    if constexpr (computes_in_float<Op>() && AnySum) {
        record.types.float32 = staged_record<Executor, float>();
        ((record.sums |= adds_itself<Op, Index>() ? 1U << Index : 0U), ...);
    }
    return record;
}

/// Float8 formats of the arguments under a plan, for run_staged().
template <class Executor, class Target, class... Formats>
struct staged_quantisers {
    template <class Format>
    static constexpr quantiser of_foreign{facts_of<Format>(), &scale_exponent_of<Format>, nullptr};
    template <class Format>
    static constexpr const quantiser* of() {
        if constexpr (std::is_void_v<Format>) {
            return nullptr;
        } else if constexpr (gpu_executor<Executor>) {
            return &of_foreign<Format>;
        } else {
            return &quantiser_to<Format, Target>;
        }
    }
    static constexpr const quantiser* all[] = {of<Formats>()...};
};

template <class Plan, class Executor, class... Formats>
constexpr cast_types staged_types() {
    cast_types result{staged_record<Executor, typename Plan::target>(),
                      staged_record<Executor, typename Plan::output>(), nullptr};
    if constexpr (!(std::is_void_v<Formats> && ...)) {
        result.quantisers = staged_quantisers<Executor, typename Plan::target, Formats...>::all;
    }
    return result;
}

}}  // namespace mp::detail
