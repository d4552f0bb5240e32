// expects: an op has more than one override_op
// SPDX-License-Identifier: MIT
#include <mp/autocast.hpp>

struct sum_op {
    static constexpr std::string_view name = "sum";
    static constexpr auto category = mp::op_category::lower_precision;
};

using twice =
    mp::autocast::policy<mp::half, mp::autocast::override_op<sum_op, mp::op_category::full_precision>,
                         mp::autocast::override_op<sum_op, mp::op_category::pass_through>>;
mp::autocast::compute_type_t<twice, sum_op, float> x{};
