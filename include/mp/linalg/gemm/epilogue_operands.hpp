// SPDX-License-Identifier: MIT
/// \file
/// What epilogues read and write besides C, and the checks that it does not overlap what a product reads and writes.
#pragma once

#include <mp/base/view_extent.hpp>
#include <mp/linalg/gemm/validation.hpp>
#include <mp/matrix_view.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// How an epilogue uses an operand. By element: (i, j) together with (i, j) of C only, in the order of the chain.
enum class epilogue_access : unsigned char {
    read,
    read_by_element,
    written,
    written_by_element,
};

/// An operand of an epilogue. An epilogue that has any passes each to the function of its member
/// for_each_operand(function), a chain those of its parts in their order. Functions of users have none.
struct epilogue_operand {
    named_operand operand;
    epilogue_access access;

    [[nodiscard]] bool is_written() const {
        return access == epilogue_access::written || access == epilogue_access::written_by_element;
    }
    [[nodiscard]] bool is_by_element() const {
        return access == epilogue_access::read_by_element || access == epilogue_access::written_by_element;
    }
};

/// A single value.
template <class Value>
view_extent extent_of_value(const Value* value) {
    return {
        reinterpret_cast<std::uintptr_t>(value), static_cast<std::ptrdiff_t>(sizeof(Value)), 1, 1, 1, true};
}

/// Calls f with each operand that an epilogue describes.
template <class Epilogue, class Function>
void for_each_operand_of(const Epilogue& epilogue, const Function& f) {
    if constexpr (requires { epilogue.for_each_operand(f); }) epilogue.for_each_operand(f);
}

/// Compares an operand with C, which is one of several where `has_one_c` is false: then an operand is read for all of
/// them, and may be none.
inline void check_operand_and_c(const epilogue_operand& x, const view_extent& c, bool has_one_c) {
    if (x.access == epilogue_access::read_by_element && has_one_c && same_elements(c, x.operand.extent)) {
        return;
    }
    check_separate("mp::gemm", {"c", c}, x.operand);
}

/// Compares two operands of one epilogue: what is written must be separate, unless elements are read before or after
/// they are written, each with its own element of C.
inline void check_two_operands(const epilogue_operand& x, const epilogue_operand& y) {
    if (!x.is_written() && !y.is_written()) return;
    const bool is_in_order = x.is_by_element() && y.is_by_element() && !(x.is_written() && y.is_written());
    if (is_in_order && same_elements(x.operand.extent, y.operand.extent)) return;
    const epilogue_operand& written = x.is_written() ? x : y;
    check_separate("mp::gemm", written.operand, x.is_written() ? y.operand : x.operand);
}

/// Compares the operands of an epilogue with each other.
template <class Epilogue>
void check_epilogue_by_itself(const Epilogue& epilogue) {
    std::size_t i = 0;
    for_each_operand_of(epilogue, [&](const epilogue_operand& x) {
        std::size_t j = 0;
        for_each_operand_of(epilogue, [&](const epilogue_operand& y) {
            if (i < j) check_two_operands(x, y);
            ++j;
        });
        ++i;
    });
}

/// Something that a product reads: a matrix, the matrices of a batch, or the scales of either.
template <class Operand>
struct product_input {
    std::string_view name;
    const Operand& operand;
    std::ptrdiff_t count = 1;  ///< of the matrices of a batch
};

// What newer compilers deduce by themselves.
template <class Operand>
product_input(std::string_view, const Operand&) -> product_input<Operand>;
template <class Operand>
product_input(std::string_view, const Operand&, std::ptrdiff_t) -> product_input<Operand>;

/// The extent of a matrix, of the matrix of this index of a batch, or of the scales of either.
template <class Operand>
view_extent extent_at(const Operand& operand, std::ptrdiff_t index) {
    if constexpr (requires { operand.first; }) {
        return extent_at(operand[index], 0);
    } else if constexpr (requires { operand.values; }) {
        return extent_of(operand.values);
    } else {
        return extent_of(operand);
    }
}

/// Compares what an epilogue writes with what the product reads.
template <class Epilogue, class Operand>
void check_epilogue_input(const Epilogue& epilogue, const product_input<Operand>& input) {
    for_each_operand_of(epilogue, [&](const epilogue_operand& x) {
        if (!x.is_written()) return;
        for (std::ptrdiff_t i = 0; i < input.count; ++i) {
            check_separate("mp::gemm", x.operand, {input.name, extent_at(input.operand, i)});
        }
    });
}

/// Whether an epilogue writes a matrix of C's shape, which the products of a batch cannot share.
template <class Epilogue>
inline constexpr bool stores_matrix = requires { requires Epilogue::stores_matrix; };

/// Has the epilogue check the shape of C, and compares its operands with C, with each other and with what the product
/// reads. All matrices have been checked.
template <class Epilogue, class C, class... Operands>
void validate_epilogue(const Epilogue& epilogue, const C& c, const product_input<Operands>&... inputs) {
    if constexpr (requires { epilogue.validate(c.rows, c.columns); }) epilogue.validate(c.rows, c.columns);
    for_each_operand_of(epilogue,
                        [&](const epilogue_operand& x) { check_operand_and_c(x, extent_of(c), true); });
    check_epilogue_by_itself(epilogue);
    (check_epilogue_input(epilogue, inputs), ...);
}

/// The same for several products, `count` of them, whose C are a batch.
template <class Epilogue, class CBatch, class... Operands>
void validate_batch_epilogue(const Epilogue& epilogue, std::ptrdiff_t count, const CBatch& c,
                             const product_input<Operands>&... inputs) {
    static_assert(!stores_matrix<Epilogue>,
                  "mp: store_auxiliary has one matrix, and these products have more than one C");
    const auto& first = c.first;
    if constexpr (requires { epilogue.validate(first.rows, first.columns); }) {
        epilogue.validate(first.rows, first.columns);
    }
    for_each_operand_of(epilogue, [&](const epilogue_operand& x) {
        for (std::ptrdiff_t i = 0; i < count; ++i) check_operand_and_c(x, extent_at(c, i), count == 1);
    });
    check_epilogue_by_itself(epilogue);
    (check_epilogue_input(epilogue, inputs), ...);
}

}}  // namespace mp::detail
