// SPDX-License-Identifier: MIT
/// \file
/// Calls of the library's ops on a CPU: their arguments become operands without types, and the op a constant record.
#pragma once

#include <mp/config.hpp>
#include <mp/nn/autocast/op_names.hpp>
#include <mp/nn/autocast/op_record.hpp>
#include <mp/nn/autocast/operand.hpp>
#include <mp/nn/autocast/operand_record.hpp>
#include <mp/nn/autocast/quantise_operand.hpp>
#include <mp/nn/autocast/resolution.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#if MP_CORE_BODIES
#include <mp/nn/autocast/run.hpp>
#endif

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// The name of an op as a template argument.
struct op_label {
    char text[56]{};

    consteval explicit op_label(std::string_view name) {
        for (std::size_t i = 0; i < name.size(); ++i) text[i] = name[i];
    }
};

/// Functions of an op that computes in Real, in the compiled part. Number is whether it is the form of the op with a
/// number in place of an array.
template <op_label Label, class Real, bool Number>
const op_functions& core_functions();

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <class Value, bool Products>
constexpr const element_type* find_element_type() {
    static_assert(
        !Products || has_compiled_kernels<Value> || requires { sizeof(product_elements<Value>); },
        "mp: include <mp/gemm.hpp> for products of formats of your own; their kernels are compiled in your "
        "source");
    return &element_record<Value, Products>::record;
}
template <class Value, bool Products>
inline constexpr const element_type* element_type_of = find_element_type<Value, Products>();

/// The view as an operand; Products is whether the op multiplies matrices.
template <bool Products, class Element>
[[nodiscard]] any_operand operand_of_view(matrix_view<Element> view,
                                          operand_role role = operand_role::input) {
    return {{extent_of(view), element_type_of<std::remove_const_t<Element>, Products>}, role};
}
template <bool Products, class Element, std::size_t Extent>
    requires autocast::floating<std::remove_const_t<Element>>
[[nodiscard]] any_operand operand_of_view(std::span<Element, Extent> view,
                                          operand_role role = operand_role::input) {
    const auto size = static_cast<std::ptrdiff_t>(view.size());
    return {{{reinterpret_cast<std::uintptr_t>(view.data()), static_cast<std::ptrdiff_t>(sizeof(Element)), 1,
              size, size, true},
             element_type_of<std::remove_const_t<Element>, Products>},
            role,
            true};
}
template <bool Products, class View, bool ReadsOldValues>
[[nodiscard]] any_operand operand_of_view(const autocast::output_operand<View, ReadsOldValues>& output) {
    return operand_of_view<Products>(output.view,
                                     ReadsOldValues ? operand_role::in_out : operand_role::output);
}
template <bool Products, class View>
[[nodiscard]] any_operand operand_of_view(const autocast::sum_operand<View>& sum) {
    any_operand result = operand_of_view<Products>(sum.view, operand_role::sum);
    result.adds = sum.adds;
    return result;
}
template <bool Products, class View>
[[nodiscard]] any_operand operand_of_view(const autocast::uncast_operand<View>& input) {
    return operand_of_view<Products>(input.view, operand_role::uncast);
}
template <bool Products, class View>
[[nodiscard]] any_operand operand_of_view(const autocast::cached_operand<View>& input) {
    any_operand result = operand_of_view<Products>(input.view);
    result.version = &input.version;
    return result;
}
/// Absent operands, too, are parameters.
template <bool Products, class Argument>
    requires(!is_array_operand<Argument>)
[[nodiscard]] any_operand operand_of_view(const Argument& argument) {
    any_operand result{};
    result.rows = 1;
    result.row_major = true;
    result.parameter = &argument;
    return result;
}

/// Whether the ops of the library and what is derived from them run by a record: those with a function compute() of
/// operands without types, on a CPU.
template <class Op, class... Arguments>
inline constexpr bool runs_by_record = false;
template <class Op, class First, class... Rest>
    requires requires { typename Op::compiled_op; }
inline constexpr bool runs_by_record<Op, First, Rest...> = std::is_same_v<std::remove_cvref_t<First>, cpu>;

/// What the kernel receives for an operand.
template <class Parameter>
[[nodiscard]] decltype(auto) parameter_of(const any_operand& from) {
    if constexpr (std::same_as<Parameter, const any_operand&>) {
        return (from);
    } else {
        return *static_cast<const std::remove_cvref_t<Parameter>*>(from.parameter);
    }
}

/// The kernel of an op: compute(), or compute_number() for the form of an op with another number of arguments, such as
/// the sum of all elements.
template <class Op, class Real, bool Number>
struct op_kernel {
    using type = decltype(&Op::template compute<Real>);
    static constexpr type function() { return &Op::template compute<Real>; }
};
template <class Op, class Real>
struct op_kernel<Op, Real, true> {
    using type = decltype(&Op::template compute_number<Real>);
    static constexpr type function() { return &Op::template compute_number<Real>; }
};

template <class Function>
struct kernel_type;
template <class Result, class... Parameters>
struct kernel_type<Result (*)(const cpu&, Parameters...)> {
    static constexpr std::size_t parameters = sizeof...(Parameters);
    static constexpr bool returns_nothing = std::is_void_v<Result>;
    template <class Op>
    static constexpr bool has_product = requires(const cpu& exec, Parameters... arguments) {
        { Op::product(exec, arguments...) } -> std::same_as<autocast::product_size>;
    };

    /// Whether these arguments can be passed: operands of any type, and parameters of the type that the kernel reads.
    template <class... Arguments>
    static constexpr bool accepts() {
        if constexpr (sizeof...(Arguments) != sizeof...(Parameters)) {
            return false;
        } else {
            return ((std::same_as<Parameters, const any_operand&>
                         ? is_array_operand<Arguments> || std::is_empty_v<Arguments>
                         : std::same_as<std::remove_cvref_t<Parameters>, Arguments>) &&
                    ...);
        }
    }

    /// Calls f(exec, parameters...).
    template <class Function>
    static auto call(Function f, const cpu& exec, const any_operand* operands) {
        return [&]<std::size_t... I>(std::index_sequence<I...>) {
            return f(exec, parameter_of<Parameters>(operands[I])...);
        }(std::index_sequence_for<Parameters...>{});
    }
};
template <class Op, class Real, bool Number>
using type_of_kernel = kernel_type<typename op_kernel<Op, Real, Number>::type>;

template <class Op, std::size_t Arguments>
inline constexpr bool is_number_form = type_of_kernel<Op, float, false>::parameters != Arguments;
template <class Op, bool Number>
inline constexpr bool op_returns_nothing = type_of_kernel<Op, float, Number>::returns_nothing;

template <class Op, class Real, bool Number>
void validate_operands(const cpu& exec, const any_operand* operands) {
    type_of_kernel<Op, Real, Number>::call([](const auto&... arguments) { Op::validate(arguments...); }, exec,
                                           operands);
}
template <class Op, class Real, bool Number>
autocast::product_size product_of_operands(const any_operand* operands) {
    return type_of_kernel<Op, Real, Number>::call(
        [](const auto&... arguments) { return Op::product(arguments...); }, cpu{}, operands);
}
template <class Op, class Real, bool Number>
double compute_operands(const cpu& exec, const any_operand* operands) {
    const auto compute = op_kernel<Op, Real, Number>::function();
    using type = type_of_kernel<Op, Real, Number>;
    if constexpr (type::returns_nothing) {
        type::call(compute, exec, operands);
        return 0.0;
    } else {
        return static_cast<double>(type::call(compute, exec, operands));
    }
}

template <class Op, class Real, bool Number>
constexpr op_functions make_op_functions() {
    op_functions result{&validate_operands<Op, Real, Number>, nullptr, &compute_operands<Op, Real, Number>};
    if constexpr (type_of_kernel<Op, Real, Number>::template has_product<Op>) {
        result.product = &product_of_operands<Op, Real, Number>;
    }
    return result;
}

template <class Op, class Real, bool Number>
const op_functions& own_functions() {
    static constexpr op_functions functions = make_op_functions<Op, Real, Number>();
    return functions;
}

/// The name of an op in the compiled part; those of other ops may be the same to users.
template <class Op>
constexpr op_label label_of() {
    if constexpr (requires { Op::compiled_name; }) {
        return op_label(Op::compiled_name);
    } else {
        return op_label(Op::name);
    }
}

template <class Op, class Real, bool Number>
constexpr auto functions_of() -> const op_functions& (*)() {
#if !MP_CORE_BODIES
    // Of an op that is derived from one of the library, those of that one.
    return &core_functions<label_of<typename Op::compiled_op>(), Real, Number>;
#else
    return &own_functions<Op, Real, Number>;
#endif
}

/// Which element types the run of an op may need besides those of its operands: those of a region, float for sums, or none.
enum class needed_types : unsigned char { of_region, of_sums, none };

template <class Op, class Real, bool Number, needed_types Needs, std::size_t... Index>
constexpr op_record make_op_record(const decided_op& decided, std::index_sequence<Index...>) {
    using original = typename original_op<Op>::type;
    constexpr bool products = requires { Op::product_operands; };
    op_record record{.name = Op::name,
                     .decided = decided,
                     .argument_name = &argument_name<Op>,
                     .product_operands = 0,
                     .incoming_gradients = 0,
                     .sums = 0,
                     .computes_in_float = true,
                     .banned_reason = banned_reason<Op>.view(),
                     .requested = nullptr,
                     .types = {},
                     .float8 = nullptr,
                     .functions = functions_of<Op, Real, Number>(),
                     .result = op_returns_nothing<Op, Number> ? nullptr : element_type_of<Real, products>};
    ((record.product_operands |= is_product_operand<original, Index>() ? 1U << Index : 0U), ...);
    ((record.incoming_gradients |= is_incoming_gradient<original, Index> ? 1U << Index : 0U), ...);
    ((record.sums |= adds_itself<Op, Index>() ? 1U << Index : 0U), ...);
    if constexpr (Needs != needed_types::none) record.types.float32 = element_type_of<float, products>;
    if constexpr (Needs == needed_types::of_region) {
        record.types.half = element_type_of<half, products>;
        record.types.bfloat16 = element_type_of<bfloat16, products>;
        if constexpr (products) record.float8 = &region_float8;
    }
    if constexpr (requires { typename Op::requested_result; }) {
        record.requested = element_type_of<typename Op::requested_result, products>;
    }
    return record;
}

/// The record of an op with `Count` arguments in a region.
template <class Op, class Real, std::size_t Count, class... Overrides>
inline constexpr op_record record_in_region =
    make_op_record<Op, Real, is_number_form<Op, Count - 1>, needed_types::of_region>(
        decided_op_of<typename original_op<Op>::type, device_kind::cpu, Overrides...>(),
        std::make_index_sequence<Count>{});
template <class Op, class Real, std::size_t Count, needed_types Needs>
inline constexpr op_record record_under_policy =
    make_op_record<Op, Real, is_number_form<Op, Count - 1>, Needs>(decided_op{},
                                                                   std::make_index_sequence<Count>{});

template <class Plan, class Op, class Indices>
struct quantisers_of;
template <class Plan, class Op, std::size_t... Index>
struct quantisers_of<Plan, Op, std::index_sequence<Index...>> {
    template <class Format>
    static constexpr const quantiser* of() {
        if constexpr (std::is_void_v<Format>) {
            return nullptr;
        } else {
            constexpr bool to_bfloat16 = std::same_as<typename Plan::target, bfloat16>;
            if constexpr (to_bfloat16 && std::same_as<Format, float8_e4m3fn>) {
                return &region_float8.forward;
            } else if constexpr (to_bfloat16 && std::same_as<Format, float8_e5m2>) {
                return &region_float8.gradient;
            } else {
                return &quantiser_to<Format, typename Plan::target>;
            }
        }
    }
    static constexpr const quantiser* all[] = {
        of<typename quantised_format<typename Plan::quantising, Op, Index>::type>()...};
};

/// The types of a plan as data.
template <class Plan, class Op, std::size_t Count>
constexpr cast_types types_of_plan() {
    constexpr bool products = requires { Op::product_operands; };
    cast_types result;
    if constexpr (!std::is_void_v<typename Plan::target>) {
        result.target = element_type_of<typename Plan::target, products>;
    }
    if constexpr (!std::is_void_v<typename Plan::output>) {
        result.output = element_type_of<typename Plan::output, products>;
    }
    if constexpr (!std::is_void_v<typename Plan::quantising>) {
        result.quantisers = quantisers_of<Plan, Op, std::make_index_sequence<Count>>::all;
    }
    return result;
}

/// The type of the number that an op returns under Plan.
template <class Plan, class Real>
struct rounded_result {
    using type = Real;
};
template <class Plan>
    requires autocast::eligible<typename Plan::output>
struct rounded_result<Plan, float> {
    using type = typename Plan::output;
};

/// Runs an op with the casts of Plan, or as the region decides where Plan is void.
template <class Plan, class Op, class... Overrides, class... Arguments>
auto run_by_record(type_list<Overrides...>, const cpu& exec, const Arguments&... arguments) {
    using real = arithmetic_type<Arguments...>;
    constexpr bool products = requires { Op::product_operands; };
    constexpr std::size_t count = sizeof...(Arguments);
    static_assert(count <= max_operands);
    static_assert(
        type_of_kernel<Op, real, is_number_form<Op, count>>::template accepts<Arguments...>(),
        "mp::autocast: on a CPU this op takes its operands as matrix views or ranges, marked as outputs "
        "where it writes them, and its other arguments with the types that its function has");
    any_operand operands[] = {operand_of_view<products>(arguments)...};
    double result;
    if constexpr (std::is_void_v<Plan>) {
        result = run_in_region(record_in_region<Op, real, count + 1, Overrides...>, exec, operands, count);
    } else {
        constexpr bool any_sum = (is_sum_operand<Arguments> || ...);
        constexpr bool casts =
            !std::is_void_v<typename Plan::target> || !std::is_void_v<typename Plan::output>;
        if constexpr (any_sum || casts) {
            constexpr needed_types needs = any_sum ? needed_types::of_sums : needed_types::none;
            static constexpr cast_types types = types_of_plan<Plan, Op, count + 1>();
            result =
                run_with_types(record_under_policy<Op, real, count + 1, needs>, exec, operands, count, types);
        } else {
            result =
                run_as_it_is(functions_of<Op, real, is_number_form<Op, count>>()(), exec, operands, count);
        }
    }
    if constexpr (!op_returns_nothing<Op, is_number_form<Op, count>>) {
        return static_cast<typename rounded_result<Plan, real>::type>(result);
    }
}

template <auto Reason>
inline constexpr bool banned_because = false;

/// The plan for a call in Category under Policy; does not compile for what is an error.
template <class Policy, op_category Category, class Op, class... Arguments>
constexpr auto checked_plan() {
    if constexpr (!Policy::enabled) {
        return uncast_plan{};
    } else {
        using types = resolution<Policy, Op, Category, Arguments...>;
        static_assert(
            std::is_void_v<typename types::third_type>,
            "mp::autocast: this op promotes its arguments to one type, and besides float and the low "
            "precision of the policy there is a third floating-point format among them; cast that one "
            "first, or use the category promote_widest");
        return typename types::plan{};
    }
}

/// Fails to compile where Policy bans Op.
template <class Policy, op_category Category, class Op>
constexpr void check_ban() {
    if constexpr (Policy::enabled && Category == op_category::banned) {
        static_assert(
            banned_because<banned_reason_of<Op>()>,
            "mp::autocast: this op is banned under autocast, because its results in low precision "
            "cannot be trusted. Its banned_reason says why and what to call instead; to run it as it "
            "is, use the policy mp::autocast::off, or an override_op that lifts the ban");
    }
}

template <class Policy>
struct overrides_of;
template <class... Overrides>
struct overrides_of<autocast::region_policy<Overrides...>> {
    using type = type_list<Overrides...>;
};

/// Runs an op of the library on a CPU under Policy.
template <class Policy, class Op, class... Arguments>
auto run_op_by_record(const Op& /*tag*/, const Arguments&... arguments) {
    if constexpr (follows_region<Policy>) {
        return run_by_record<void, Op>(typename overrides_of<Policy>::type{}, arguments...);
    } else {
        constexpr op_category category = autocast::category_of<Policy, Op>;
        check_ban<Policy, category, Op>();
        using plan = decltype(checked_plan<Policy, category, Op, Arguments...>());
        return run_by_record<plan, Op>(type_list<>{}, arguments...);
    }
}

}}  // namespace mp::detail

namespace mp::autocast { inline namespace MP_ISA_NAMESPACE {

// Defined in <mp/autocast.hpp>.
template <class Policy, op Op, class... Arguments>
    requires(!detail::follows_region<Policy>)
constexpr auto call(const Op& tag, Arguments&&... arguments);
template <class Policy, op Op, class... Arguments>
    requires detail::follows_region<Policy>
auto call(const Op& tag, Arguments&&... arguments);

}}  // namespace mp::autocast

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// autocast::call(), which only GPUs need the dispatcher for.
template <class Policy, class Op, class... Arguments>
auto call_op(const Op& tag, Arguments&&... arguments) {
    if constexpr (runs_by_record<Op, std::remove_cvref_t<Arguments>...>) {
        return run_op_by_record<Policy>(tag, arguments...);
    } else {
        return autocast::call<Policy>(tag, std::forward<Arguments>(arguments)...);
    }
}

}}  // namespace mp::detail
