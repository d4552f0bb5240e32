// SPDX-License-Identifier: MIT
// From statements to instructions: names become places, and the words of an opcode a function. Whatever word or
// operand nobody asked for is a failure.
#pragma once

#include "machine.hpp"
#include "text.hpp"

#include <array>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ptx {

class decoder {
public:
    decoder(program& owner, function& to);
    void run();

    // --- the words behind the first one

    /// Whether the word is there.
    bool option(std::string_view word);
    /// Which of the words is there; empty if none is.
    std::string_view one_of(std::initializer_list<std::string_view> words);
    /// The last or the last but one word, which is a type.
    std::string_view type();
    /// Any word that is left, from the first on; empty if none is.
    std::string_view next_word();

    // --- operands of the statement, from the first on

    [[nodiscard]] std::size_t operands() const { return now_->operands.size(); }
    [[nodiscard]] const term& at(std::size_t index);
    /// A register or an immediate of this width.
    operand value(std::size_t index, std::size_t bytes) { return value(at(index), bytes); }
    operand value(const term& it, std::size_t bytes);
    /// A register of any width, or an immediate of this one.
    operand any_value(const term& it, std::size_t bytes);
    operand predicate(std::size_t index) { return predicate(at(index)); }
    operand predicate(const term& it);
    operand predicate_named(std::string_view name);
    std::int64_t integer(std::size_t index);
    /// The base of an address goes to o[slot], what is added to it into `value`; tells the space of a symbol.
    space address(std::size_t index, instruction& to, std::size_t slot, space said);
    /// Elements of a vector, or the operand alone.
    std::vector<operand> elements(std::size_t index, std::size_t bytes);
    [[nodiscard]] std::string_view target_of(const term& it) { return it.text; }
    program& owner() { return owner_; }

    /// Whether a name is a local variable, or a parameter of a device function, and where it is.
    struct local_place {
        std::size_t at;
        std::size_t bytes;
    };
    const local_place* find_local(std::string_view name) const;

    [[noreturn]] void fail(const std::string& what) const;
    [[nodiscard]] const statement& now() const { return *now_; }
    /// The space of a load or a store, generic if none is said.
    space space_option();

private:
    struct register_place {
        std::int32_t at;
        std::uint8_t bytes;
        std::size_t count;  ///< of a family
    };
    void place_parameters();
    void place_variables();
    void decode(const statement& it);
    void touch(const term& it, std::int32_t at);
    std::int32_t label_target(std::string_view name) const;
    void decode_call(instruction& to);
    const register_place* find_register(std::string_view name, std::size_t& index) const;
    operand constant(std::uint64_t bits, std::size_t bytes);
    bool symbol_address(std::string_view name, std::uint64_t& value, space& in) const;

    program& owner_;
    function& to_;
    const function_text& source_;
    body_text body_;
    const statement* now_ = nullptr;
    std::vector<std::pair<std::string_view, bool>> words_;
    std::vector<bool> used_;
    std::map<std::pair<int, std::string_view>, register_place> registers_;
    std::map<std::pair<int, std::string_view>, local_place> locals_;
    std::unordered_map<std::string_view, std::size_t> shared_;
    std::map<std::pair<int, std::string_view>, std::int32_t> labels_;
    std::map<std::pair<std::uint64_t, bool>, std::int32_t> constants_;
    std::vector<register_use> uses_;  ///< of every instruction
};

using decode_function = void (*)(decoder&, instruction&);
using instruction_table = std::unordered_map<std::string_view, decode_function>;

/// Finds registers that may be read before they are written, so that they are watched.
void watch_registers(function& of, const std::vector<register_use>& uses);

/// Special registers, in the order in which they lie among those of a warp.
enum class special {
    tid_x,
    tid_y,
    tid_z,
    ntid_x,
    ntid_y,
    ntid_z,
    ctaid_x,
    ctaid_y,
    ctaid_z,
    nctaid_x,
    nctaid_y,
    nctaid_z,
    laneid,
    warpid,
    cluster_ctarank,
    cluster_nctarank,
    lanemask_eq,
    lanemask_lt,
    lanemask_le,
    lanemask_gt,
    lanemask_ge,
    clusterid_x,
    nclusterid_x,
    cluster_ctaid_x,
    cluster_nctaid_x,
    nwarpid
};
inline constexpr std::array<std::string_view, 26> special_names{"%tid.x",
                                                                "%tid.y",
                                                                "%tid.z",
                                                                "%ntid.x",
                                                                "%ntid.y",
                                                                "%ntid.z",
                                                                "%ctaid.x",
                                                                "%ctaid.y",
                                                                "%ctaid.z",
                                                                "%nctaid.x",
                                                                "%nctaid.y",
                                                                "%nctaid.z",
                                                                "%laneid",
                                                                "%warpid",
                                                                "%cluster_ctarank",
                                                                "%cluster_nctarank",
                                                                "%lanemask_eq",
                                                                "%lanemask_lt",
                                                                "%lanemask_le",
                                                                "%lanemask_gt",
                                                                "%lanemask_ge",
                                                                "%clusterid.x",
                                                                "%nclusterid.x",
                                                                "%cluster_ctaid.x",
                                                                "%cluster_nctaid.x",
                                                                "%nwarpid"};

/// Where a special register such as %tid.x lies among those of a warp; -1 for a name that is none.
std::int32_t special_register(std::string_view name);
inline constexpr std::size_t special_bytes = 32 * 128;

void add_integer_instructions(instruction_table& table);
void add_bit_instructions(instruction_table& table);
void add_carry_instructions(instruction_table& table);
void add_float_instructions(instruction_table& table);
void add_packed_instructions(instruction_table& table);
void add_logic_instructions(instruction_table& table);
void add_comparison_instructions(instruction_table& table);
void add_conversion_instructions(instruction_table& table);
void add_memory_instructions(instruction_table& table);
void add_atomic_instructions(instruction_table& table);
void add_warp_instructions(instruction_table& table);
void add_barrier_instructions(instruction_table& table);
void add_memory_barrier_instructions(instruction_table& table);
/// The forms of cp.async that are not bulk copies; false for another one.
bool decode_copy(decoder& d, instruction& to);
void add_tensor_copy_instructions(instruction_table& table);
void add_matrix_instructions(instruction_table& table);
void add_fragment_instructions(instruction_table& table);
void add_warpgroup_instructions(instruction_table& table);

}  // namespace ptx
