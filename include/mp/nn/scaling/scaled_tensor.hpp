// SPDX-License-Identifier: MIT
/// \file
/// Gradients that carry their scale, each its own: what adaptive layer-wise scaling passes from layer to
/// layer.
#pragma once

#include <mp/arrays/convert/bulk.hpp>
#include <mp/base/bits.hpp>
#include <mp/base/contiguous.hpp>
#include <mp/base/parallel.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/nn/scaling/policy.hpp>
#include <mp/nn/scaling/scale_checks.hpp>
#include <mp/nn/scaling/unscale.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>

namespace mp {

/// A gradient and the product of the factors that it carries. Values can be a container or a span.
template <class Values>
struct scaled_tensor {
    Values values;
    float scale = 1.0F;  ///< a power of two: the true gradient is values / scale
};

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

constexpr void require_accumulated(std::string_view function, std::string_view argument, float scale) {
    if (is_non_finite(scale) || !(scale > 0.0F)) {
        throw_argument(function, argument, scale, "must be finite and greater than 0");
    }
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Multiplies a tensor by a power of two, in place and on its tag. Exact except for what underflows or
/// overflows.
///
/// \throws argument_error  the factor is not finite and positive, the scale would not be a finite positive
///                         float, null with a size other than zero, or fewer than one thread
template <class Values>
    requires detail::gradient_range<Values>
void multiply_scale(cpu exec, scaled_tensor<Values>& tensor, float factor) {
    using value = detail::element_value<Values>;
    constexpr std::string_view function = "mp::multiply_scale";
    const std::span values = detail::as_span(tensor.values);
    detail::check_threads(function, exec);
    detail::require_memory(function, "tensor.values.data()", values.data(), values.size());
    detail::require_accumulated(function, "factor", factor);
    const double scale = static_cast<double>(tensor.scale) * static_cast<double>(factor);
    if (detail::is_non_finite(scale) || !(scale >= 0x1p-126 && scale < detail::float_overflow_threshold)) {
        detail::throw_argument(function, "tensor.scale * factor", scale, "must be a positive normal float");
    }
    if (!detail::same_value(factor, 1.0F)) {
        detail::parallel_for(
            exec, values.size(), detail::unscale_grain, [&](std::size_t begin, std::size_t end) {
                const detail::default_floating_point_modes modes;
                constexpr std::size_t chunk = 256;
                double wide[chunk];
                for (std::size_t at = begin; at < end; at += chunk) {
                    const std::size_t count = (std::min)(chunk, end - at);
                    const value* from = values.data() + at;
                    detail::convert_nearest(detail::conversion_isa(), from, wide, count);
                    for (std::size_t i = 0; i < count; ++i) {
                        wide[i] *= static_cast<double>(factor);
                    }
                    detail::convert_nearest(detail::conversion_isa(), wide, values.data() + at, count);
                }
            });
    }
    tensor.scale = static_cast<float>(scale);
}

/// Takes the scale out of the gradient of a layer's weights (or bias) as soon as it is computed: it was
/// computed from a gradient that carries `accumulated`, and optimizers see the true one. In float, since what
/// underflowed before would do so again.
///
/// \throws argument_error  accumulated is not finite and positive, or as unscale_and_check
template <detail::gradient_range Gradients, detail::writable_float_range Unscaled>
non_finite_report unscale_weight_gradient(cpu exec, const Gradients& gradients, Unscaled&& unscaled,
                                          float accumulated) {
    detail::require_accumulated("mp::unscale_weight_gradient", "accumulated", accumulated);
    return unscale_and_check(exec, gradients, unscaled, inverse_of_scale(accumulated));
}

}}  // namespace mp
