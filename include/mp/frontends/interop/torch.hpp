// SPDX-License-Identifier: MIT
/// \file
/// PyTorch's numbers and tensors without a copy: c10::Half is seen as mp::half, a strided at::Tensor as a matrix view.
///
/// Nothing of PyTorch is included, so that this header may come before or after it, in any of its versions: its types are
/// known by their names, and everything else are templates on what a tensor is asked for.
#pragma once

#include <mp/arrays/convert/packed_array.hpp>
#include <mp/bfloat16.hpp>
#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/float4.hpp>
#include <mp/float8.hpp>
#include <mp/frontends/interop/same_layout.hpp>
#include <mp/half.hpp>
#include <mp/matrix_view.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace mp::detail {

// The types of elements, each with PyTorch's name: that of the class in c10, and of the enumerator of ScalarType.
#define MP_TORCH_TYPES(TYPE)               \
    TYPE(float, Float)                     \
    TYPE(double, Double)                   \
    TYPE(std::int32_t, Int)                \
    TYPE(std::int64_t, Long)               \
    TYPE(half, Half)                       \
    TYPE(bfloat16, BFloat16)               \
    TYPE(float8_e4m3fn, Float8_e4m3fn)     \
    TYPE(float8_e5m2, Float8_e5m2)         \
    TYPE(float8_e4m3fnuz, Float8_e4m3fnuz) \
    TYPE(float8_e5m2fnuz, Float8_e5m2fnuz) \
    TYPE(float8_e8m0fnu, Float8_e8m0fnu)   \
    TYPE(float4_e2m1fn, Float4_e2m1fn_x2)

/// PyTorch's name of a type of elements; empty for others.
template <class T>
inline constexpr std::string_view torch_name{};
#define MP_TORCH_TYPE(type, name) \
    template <>                   \
    inline constexpr std::string_view torch_name<type> = #name;
MP_TORCH_TYPES(MP_TORCH_TYPE)
#undef MP_TORCH_TYPE

/// Text of the compiler's own that ends in the name of T, as "[with T = c10::Half; ...]", "[T = c10::Half]" or
/// "[with T=c10::Half]".
template <class T>
consteval std::string_view text_with_type() noexcept {
    return __PRETTY_FUNCTION__;
}

/// "Half" of the text for c10::Half; nothing for types that are not PyTorch's. Its numbers are in c10; torch::headeronly
/// has them under another name, and might be their home one day.
consteval std::string_view torch_class_name(std::string_view text) noexcept {
    std::size_t begin = text.find("T = ");
    begin = begin == std::string_view::npos ? text.find("T=") : begin + 2;
    if (begin == std::string_view::npos) return {};
    begin += 2;
    const std::string_view name = text.substr(begin, text.find_first_of(";]", begin) - begin);
    if (!name.starts_with("c10::") && !name.starts_with("torch::headeronly::")) return {};
    return name.substr(name.rfind(':') + 1);
}

/// The one of the numbers that PyTorch calls T, or void.
template <class T, class... Numbers>
struct number_by_torch_name : std::type_identity<void> {};
template <class T, class First, class... Rest>
struct number_by_torch_name<T, First, Rest...>
    : std::conditional_t<torch_class_name(text_with_type<T>()) == torch_name<First>,
                         std::type_identity<First>, number_by_torch_name<T, Rest...>> {};

}  // namespace mp::detail

namespace mp {

/// The number of this library that PyTorch's class T is, `type`: half for c10::Half, bfloat16 for c10::BFloat16, float8_* for
/// c10::Float8_*, float4_e2m1fn for c10::Float4_e2m1fn_x2, which is two of them; void for anything else. Specialise it for a
/// class of your own with the bits of a number.
template <class T>
struct torch_counterpart
    : detail::number_by_torch_name<T, half, bfloat16, float8_e4m3fn, float8_e5m2, float8_e4m3fnuz,
                                   float8_e5m2fnuz, float8_e8m0fnu, float4_e2m1fn> {};
template <class T>
using torch_counterpart_t = typename torch_counterpart<T>::type;

namespace detail {

template <class T>
inline constexpr bool torch_pair = std::is_same_v<torch_counterpart_t<T>, float4_e2m1fn>;

}  // namespace detail

/// A class of numbers of PyTorch, one number to an object.
template <class T>
concept torch_number = std::is_class_v<T> && reduced<torch_counterpart_t<T>> && !detail::torch_pair<T> &&
                       same_layout<T, torch_counterpart_t<T>>;

/// c10::Float4_e2m1fn_x2: two numbers in a byte, the first one in the low bits.
template <class T>
concept torch_packed_pair =
    std::is_class_v<T> && detail::torch_pair<T> && sizeof(T) == 1 && std::is_trivially_copyable_v<T>;

/// What a tensor is asked for, of at::Tensor and torch::stable::Tensor.
template <class T>
concept torch_tensor = requires(const T& tensor) {
    { tensor.dim() } -> std::convertible_to<std::ptrdiff_t>;
    { tensor.size(0) } -> std::convertible_to<std::ptrdiff_t>;
    { tensor.stride(0) } -> std::convertible_to<std::ptrdiff_t>;
    { tensor.numel() } -> std::convertible_to<std::ptrdiff_t>;
    tensor.data_ptr();
    requires std::is_enum_v<std::remove_cvref_t<decltype(tensor.scalar_type())>>;
};

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The enumerator of PyTorch's ScalarType for elements T, as an integer; -1 where this PyTorch has none.
template <class T, class ScalarType>
constexpr int torch_scalar_type() noexcept {
#define MP_TORCH_TYPE(type, name)                                                                \
    if constexpr (std::is_same_v<T, type>) {                                                     \
        if constexpr (requires { ScalarType::name; }) return static_cast<int>(ScalarType::name); \
    }
    MP_TORCH_TYPES(MP_TORCH_TYPE)
#undef MP_TORCH_TYPE
#undef MP_TORCH_TYPES
    return -1;
}

/// PyTorch's name of a dtype: its toString() is found where its headers are included, by the namespace of the enumeration.
template <class ScalarType>
std::string torch_dtype_text(ScalarType type) {
    if constexpr (requires { std::string(toString(type)); }) {
        return toString(type);
    } else {
        return "ScalarType " + std::to_string(static_cast<int>(type));
    }
}

template <class T, class ScalarType>
void check_torch_dtype(std::string_view function, ScalarType type) {
    static_assert(
        !torch_name<T>.empty(),
        "elements of tensors are float, double, std::int32_t, std::int64_t and the formats that PyTorch has");
    if (static_cast<int>(type) != torch_scalar_type<T, ScalarType>()) {
        throw_argument(function, "the dtype of the tensor", torch_dtype_text(type),
                       "must be " + std::string(torch_name<T>) + " for a view of such elements");
    }
}

template <class Result, class First, class... Rest, class ScalarType, class Function>
Result dispatch_torch_among(ScalarType type, Function& f, std::string_view names) {
    constexpr int enumerator = torch_scalar_type<First, ScalarType>();
    if (enumerator >= 0 && static_cast<int>(type) == enumerator) return f(std::type_identity<First>{});
    if constexpr (sizeof...(Rest) != 0) {
        return dispatch_torch_among<Result, Rest...>(type, f, names);
    } else {
        throw_argument("mp::dispatch_torch", "type", torch_dtype_text(type),
                       "must be one of " + std::string(names));
    }
}

/// The elements of a tensor as T. Const ones are asked for as such, so that a tensor that is copied when it is written to
/// is not copied.
template <class T, torch_tensor Tensor>
T* torch_data(std::string_view function, const Tensor& tensor) {
    if constexpr (requires { bool(tensor.is_neg()); }) {
        if (tensor.is_neg()) {
            throw_argument(function, "tensor.is_neg()", "true",
                           "must be false: the memory has the numbers before their negation; resolve_neg() "
                           "makes a copy");
        }
    }
    if constexpr (std::is_const_v<T> && requires { static_cast<const void*>(tensor.const_data_ptr()); }) {
        return static_cast<T*>(tensor.const_data_ptr());
    } else {
        return static_cast<T*>(tensor.data_ptr());
    }
}

/// The matrix with these distances between rows and between columns; with a leading dimension of -1 where it is no
/// matrix_view. The stride of a dimension that has one element, or none, is of no meaning.
template <class T>
matrix_view<T> strided_matrix(T* data, std::ptrdiff_t rows, std::ptrdiff_t columns, std::ptrdiff_t down,
                              std::ptrdiff_t across) {
    const bool empty = rows == 0 || columns == 0;
    if (empty || ((across == 1 || columns == 1) && (down >= columns || rows == 1))) {
        return {data, rows, columns, down > columns ? down : columns, storage_order::row_major};
    }
    if ((down == 1 || rows == 1) && (across >= rows || columns == 1)) {
        return {data, rows, columns, across > rows ? across : rows, storage_order::column_major};
    }
    return {data, rows, columns, -1, storage_order::row_major};
}

inline std::string pair_text(std::ptrdiff_t first, std::ptrdiff_t second) {
    return "(" + std::to_string(first) + ", " + std::to_string(second) + ")";
}

/// Throws unless the elements of the tensor follow on one another, the last dimension fastest. A dimension of one element
/// has any stride.
template <torch_tensor Tensor>
void check_torch_contiguous(std::string_view function, const Tensor& tensor) {
    std::ptrdiff_t expected = 1;
    if (tensor.numel() == 0) return;
    for (std::ptrdiff_t i = tensor.dim() - 1; i >= 0; --i) {
        const std::ptrdiff_t size = tensor.size(i);
        const std::ptrdiff_t stride = tensor.stride(i);
        if (size != 1 && stride != expected) {
            throw_argument(
                function, "tensor.stride(" + std::to_string(i) + ")", stride,
                "must be " + std::to_string(expected) + ", without gaps; contiguous() makes such a copy");
        }
        expected *= size;
    }
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The number of this library with the bits of x: mp::half of a c10::Half. To may be named; another format than that of x
/// does not compile.
///
///     mp::half h = mp::from_torch(tensor.item<c10::Half>());
template <class To = void, torch_number From>
[[nodiscard]] MP_HOST_DEVICE constexpr torch_counterpart_t<From> from_torch(From x) noexcept {
    static_assert(
        std::is_void_v<To> || std::is_same_v<To, torch_counterpart_t<From>>,
        "mp::from_torch<To>: To is another format than PyTorch's class; convert the number afterwards");
    return detail::bit_cast<torch_counterpart_t<From>>(x);
}

/// The PyTorch number with the bits of x, which is of its format.
///
///     c10::BFloat16 b = mp::to_torch<c10::BFloat16>(mp::bfloat16{1.5f});
template <torch_number To, reduced From>
[[nodiscard]] MP_HOST_DEVICE constexpr To to_torch(From x) noexcept {
    static_assert(
        std::is_same_v<From, torch_counterpart_t<To>>,
        "mp::to_torch<To>: the number is of another format than PyTorch's class; convert it before");
    return detail::bit_cast<To>(x);
}

/// An array under the other library's type: the same memory. See view_as in same_layout.hpp for what to mind.
///
///     std::span<c10::Half> data(tensor.data_ptr<c10::Half>(), tensor.numel());
///     mp::convert(mp::cpu{}, floats, mp::view_from_torch(data));
template <class To = void, class From>
    requires torch_number<std::remove_const_t<From>>
[[nodiscard]] auto view_from_torch(std::span<From> x) noexcept {
    using number = torch_counterpart_t<std::remove_const_t<From>>;
    static_assert(std::is_void_v<To> || std::is_same_v<To, number>,
                  "mp::view_from_torch<To>: To is another format than PyTorch's class");
    return detail::view_as<number>(x);
}

/// An array of c10::Float4_e2m1fn_x2: twice as many numbers, packed in the same order.
template <class From>
    requires torch_packed_pair<std::remove_const_t<From>>
[[nodiscard]] auto view_from_torch(std::span<From> x) noexcept {
    using view = packed_span<detail::with_constness_of<float4_e2m1fn, From>>;
    return view(reinterpret_cast<typename view::byte_type*>(x.data()), 2 * x.size());
}

/// The other way: an array of the library's under PyTorch's class, the same memory.
template <torch_number To, class From>
    requires reduced<std::remove_const_t<From>>
[[nodiscard]] auto view_as_torch(std::span<From> x) noexcept {
    static_assert(std::is_same_v<std::remove_const_t<From>, torch_counterpart_t<To>>,
                  "mp::view_as_torch<To>: the numbers are of another format than PyTorch's class");
    return detail::view_as<To>(x);
}

/// Calls f(std::type_identity<T>{}) with the T that a tensor of this dtype has: float, double, half, bfloat16 or one of the
/// float8 formats, or only those that are named, for which f is then compiled. Returns what f returns, which is of one type.
/// Throws argument_error, which names the dtype, for any other. Float4_e2m1fn_x2 calls f where float4_e2m1fn is named.
///
///     mp::dispatch_torch<float, mp::bfloat16>(x.scalar_type(), [&]<class T>(std::type_identity<T>) {
///         mp::ops::silu(mp::cpu{}, mp::torch_view<const T>(x), mp::torch_view<T>(y));
///     });
template <class... Numbers, class ScalarType, class Function>
    requires std::is_enum_v<ScalarType>
decltype(auto) dispatch_torch(ScalarType type, Function f) {
    if constexpr (sizeof...(Numbers) == 0) {
        return dispatch_torch<float, double, half, bfloat16, float8_e4m3fn, float8_e5m2, float8_e4m3fnuz,
                              float8_e5m2fnuz, float8_e8m0fnu>(type, f);
    } else {
        static_assert((!detail::torch_name<Numbers>.empty() && ...),
                      "mp::dispatch_torch: PyTorch has no such dtype");
        using result = std::common_type_t<decltype(f(std::type_identity<Numbers>{}))...>;
        std::string names;
        for (const std::string_view name : {detail::torch_name<Numbers>...}) {
            names.append(names.empty() ? "" : ", ").append(name);
        }
        return detail::dispatch_torch_among<result, Numbers...>(type, f, names);
    }
}

/// The matrix that a tensor of two dimensions is, over its memory: row-major, or column-major as after t(), with the leading
/// dimension that its strides say, as a slice has. T, which may be const, is the counterpart of its dtype. Throws
/// argument_error, which names the strides, where neither rows nor columns are contiguous, as after expand() or [:, ::2].
/// The tensor has to outlive the view, and on a GPU the view goes to a stream.
///
///     auto w = mp::torch_view<const mp::bfloat16>(weight.t());       // matrix_view, column_major
template <class T, torch_tensor Tensor>
[[nodiscard]] matrix_view<T> torch_view(const Tensor& tensor) {
    constexpr std::string_view function = "mp::torch_view";
    using number = std::remove_const_t<T>;
    static_assert(!std::is_same_v<number, float4_e2m1fn>,
                  "mp::torch_view: two numbers of four bits are in a byte; mp::torch_packed has them");
    detail::check_torch_dtype<number>(function, tensor.scalar_type());
    if (tensor.dim() != 2) detail::throw_argument(function, "tensor.dim()", tensor.dim(), "must be 2");
    T* const data = detail::torch_data<T>(function, tensor);
    const matrix_view<T> view =
        detail::strided_matrix(data, tensor.size(0), tensor.size(1), tensor.stride(0), tensor.stride(1));
    if (view.leading_dimension >= 0) return view;
    detail::throw_argument(
        function, "(tensor.stride(0), tensor.stride(1))",
        detail::pair_text(tensor.stride(0), tensor.stride(1)),
        "must be 1 in one place and in the other at least the length of a row or column, for a tensor of " +
            detail::pair_text(view.rows, view.columns) + "; contiguous() makes such a copy");
}

/// Whether torch_view takes the tensor's dimensions and strides, so that no copy is needed.
template <torch_tensor Tensor>
[[nodiscard]] bool fits_torch_view(const Tensor& tensor) {
    if (tensor.dim() != 2) return false;
    const char* const nothing = nullptr;
    return detail::strided_matrix(nothing, tensor.size(0), tensor.size(1), tensor.stride(0), tensor.stride(1))
               .leading_dimension >= 0;
}

/// All elements of a tensor of any number of dimensions that is contiguous, the last dimension fastest; also of indices,
/// std::int32_t and std::int64_t. Throws argument_error, which names the stride, where it is not.
template <class T, torch_tensor Tensor>
[[nodiscard]] std::span<T> torch_span(const Tensor& tensor) {
    constexpr std::string_view function = "mp::torch_span";
    using number = std::remove_const_t<T>;
    static_assert(!std::is_same_v<number, float4_e2m1fn>,
                  "mp::torch_span: two numbers of four bits are in a byte; mp::torch_packed has them");
    detail::check_torch_dtype<number>(function, tensor.scalar_type());
    detail::check_torch_contiguous(function, tensor);
    return {detail::torch_data<T>(function, tensor), static_cast<std::size_t>(tensor.numel())};
}

/// The same of a tensor of Float4_e2m1fn_x2: numbers of four bits, twice as many as the tensor has elements. T is
/// float4_e2m1fn, which may be const.
template <class T = float4_e2m1fn, torch_tensor Tensor>
    requires std::is_same_v<std::remove_const_t<T>, float4_e2m1fn>
[[nodiscard]] packed_span<T> torch_packed(const Tensor& tensor) {
    constexpr std::string_view function = "mp::torch_packed";
    detail::check_torch_dtype<float4_e2m1fn>(function, tensor.scalar_type());
    detail::check_torch_contiguous(function, tensor);
    using byte = typename packed_span<T>::byte_type;
    return {detail::torch_data<byte>(function, tensor), 2 * static_cast<std::size_t>(tensor.numel())};
}

}}  // namespace mp
