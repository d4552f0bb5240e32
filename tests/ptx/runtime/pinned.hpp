// SPDX-License-Identifier: MIT
// What copies do with pinned memory of the host, which they need not have done before the host has waited for them.
#pragma once

#include "order.hpp"

#include <cstddef>
#include <string_view>

namespace ptx::runtime {

bool is_pinned(const void* at);
/// A copy `name` on a stream has read this: the device breaks if the host writes it before it has waited.
void read_pinned(CUstream_st& in, std::string_view name, const void* from, std::size_t bytes);
/// A copy has written this: it is hidden until the host has waited.
void write_pinned(CUstream_st& in, void* to, std::size_t bytes);
/// A copy reads this, so what copies before it have written comes now.
void show_pinned(const void* from, std::size_t bytes);

}  // namespace ptx::runtime
