// SPDX-License-Identifier: MIT
// Operands: names of registers, variables and labels as places.
#include "decoder.hpp"

#include <charconv>
#include <cstdint>
#include <string>

namespace ptx {

std::int32_t special_register(std::string_view name) {
    for (std::size_t i = 0; i < special_names.size(); ++i) {
        if (name == special_names[i]) return static_cast<std::int32_t>(i * 128);
    }
    return -1;
}

const term& decoder::at(std::size_t index) {
    if (index >= now_->operands.size()) fail("an operand is missing");
    used_[index] = true;
    return now_->operands[index];
}

const decoder::register_place* decoder::find_register(std::string_view name, std::size_t& index) const {
    std::size_t digits = name.size();
    while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
    for (int scope = now_->scope; scope >= 0; scope = body_.parent_scope[static_cast<std::size_t>(scope)]) {
        index = 0;
        const auto whole = registers_.find({scope, name});
        if (whole != registers_.end() && whole->second.count == 0) return &whole->second;
        if (digits == name.size()) continue;
        const auto family = registers_.find({scope, name.substr(0, digits)});
        if (family == registers_.end() || family->second.count == 0) continue;
        std::from_chars(name.data() + digits, name.data() + name.size(), index);
        if (index < family->second.count) return &family->second;
    }
    return nullptr;
}

operand decoder::constant(std::uint64_t bits, std::size_t bytes) {
    const bool wide = bytes == 8;
    if (bytes < 8) bits &= (std::uint64_t{1} << (8 * bytes)) - 1;
    const auto [found, is_new] =
        constants_.try_emplace({bits, wide}, static_cast<std::int32_t>(to_.constants.size() * 8));
    if (is_new) {
        const std::uint64_t word = wide ? bits : bits | bits << 32;
        to_.constants.insert(to_.constants.end(), wide ? 32 : 16, word);
    }
    return {operand::place::constant, static_cast<std::uint8_t>(bytes), false, found->second};
}

bool decoder::symbol_address(std::string_view name, std::uint64_t& value, space& in) const {
    if (const auto it = shared_.find(name); it != shared_.end()) {
        value = shared_begin + it->second;
        in = space::shared;
        return true;
    }
    if (const auto it = owner_.shared.find(name); it != owner_.shared.end()) {
        value = shared_begin + it->second;
        in = space::shared;
        return true;
    }
    if (const auto it = owner_.addresses.find(name); it != owner_.addresses.end()) {
        value = it->second;
        in = space::global;
        return true;
    }
    if (!source_.is_entry) return false;
    for (std::size_t i = 0; i < source_.parameters.size(); ++i) {
        if (source_.parameters[i].name == name) {
            value = to_.parameter_offsets[i];
            in = space::parameter;
            return true;
        }
    }
    return false;
}

const decoder::local_place* decoder::find_local(std::string_view name) const {
    for (int scope = now_->scope; scope >= 0; scope = body_.parent_scope[static_cast<std::size_t>(scope)]) {
        const auto it = locals_.find({scope, name});
        if (it != locals_.end()) return &it->second;
    }
    return nullptr;
}

/// The first operand is what is written, unless it is an address or belongs to an instruction that writes nothing.
void decoder::touch(const term& it, std::int32_t at) {
    const std::string_view opcode = now_->opcode;
    const bool writes_nothing =
        (opcode.starts_with("bar") && opcode.find(".red.") == std::string_view::npos) ||
        opcode.starts_with("nanosleep");
    bool is_written = false;
    if (!now_->operands.empty() && !writes_nothing) {
        const term& first = now_->operands[0];
        const auto in = [&](const std::vector<term>& parts) {
            return !parts.empty() && &it >= parts.data() && &it < parts.data() + parts.size();
        };
        is_written = &it == &first || (first.kind == term::vector && in(first.parts)) ||
                     (!first.beside.empty() && it.text == first.beside && it.text != now_->guard);
    }
    (is_written ? uses_.back().writes : uses_.back().reads).push_back(at);
}

operand decoder::any_value(const term& it, std::size_t bytes) {
    switch (it.kind) {
        case term::sink:
            return {};
        case term::integer:
            return constant(static_cast<std::uint64_t>(it.value), bytes);
        case term::floating:
            if (it.is_double != (bytes == 8)) fail("a number of another size");
            return constant(static_cast<std::uint64_t>(it.value), bytes);
        case term::name:
            break;
        default:
            fail("expected a register or a number");
    }
    std::size_t index = 0;
    if (const register_place* const found = find_register(it.text, index)) {
        const std::size_t step = found->bytes == 0 ? 4 : found->bytes == 8 ? 256 : 128;
        const std::int32_t place = found->at + static_cast<std::int32_t>(step * index);
        touch(it, place);
        return {operand::place::frame, found->bytes, it.negated, place};
    }
    if (const std::int32_t at = special_register(it.text); at >= 0) {
        return {operand::place::special, 4, false, at};
    }
    if (it.text == "WARP_SZ") return constant(32, bytes);
    std::uint64_t address = 0;
    space in = space::generic;
    if (symbol_address(it.text, address, in)) return constant(address, bytes);
    fail("'" + std::string(it.text) + "' is not known");
}

operand decoder::value(const term& it, std::size_t bytes) {
    const operand result = any_value(it, bytes);
    if (result.is_used() && result.bytes != bytes) {
        fail("'" + std::string(it.text) + "' has " + std::to_string(result.bytes) + " bytes; " +
             std::to_string(bytes) + " are expected");
    }
    return result;
}

operand decoder::predicate_named(std::string_view name) {
    if (name == "_") return {};
    term it;
    it.kind = term::name;
    it.text = name;
    return predicate(it);
}

operand decoder::predicate(const term& it) {
    if (it.kind == term::integer) {
        operand result = constant(it.value != 0 ? ~std::uint64_t{0} : 0, 4);
        result.bytes = 0;
        return result;
    }
    if (it.kind == term::sink) return {};
    const operand result = any_value(it, 4);
    if (result.in != operand::place::frame || result.bytes != 0) fail("expected a predicate");
    return result;
}

std::int64_t decoder::integer(std::size_t index) {
    const term& it = at(index);
    if (it.kind != term::integer) fail("expected a constant");
    return it.value;
}

space decoder::space_option() {
    if (option("global") || option("const")) return space::global;
    if (option("shared") || option("shared::cta") || option("shared::cluster")) return space::shared;
    if (option("local")) return space::local;
    if (option("param") || option("param::entry") || option("param::func")) return space::parameter;
    return space::generic;
}

space decoder::address(std::size_t index, instruction& to, std::size_t slot, space said) {
    const term& it = at(index);
    if (it.kind != term::address) fail("expected an address in brackets");
    const term& base = it.parts[0];
    to.value = it.value;
    if (base.kind == term::name) {
        if (const local_place* const local = find_local(base.text)) {
            if (said != space::parameter && said != space::local) fail("a variable of another space");
            to.o[slot] = {};
            to.value += static_cast<std::int64_t>(local->at);
            return space::local;
        }
    }
    // Addresses of shared memory may be held in 32 bits.
    to.o[slot] = any_value(base, 8);
    if (to.o[slot].bytes != 8 && to.o[slot].bytes != 4) fail("an address has 32 or 64 bits");
    return said;
}

std::vector<operand> decoder::elements(std::size_t index, std::size_t bytes) {
    const term& it = at(index);
    std::vector<operand> result;
    if (it.kind != term::vector) {
        result.push_back(any_value(it, bytes));
    } else {
        for (const term& part : it.parts) result.push_back(any_value(part, bytes));
    }
    return result;
}

std::int32_t decoder::label_target(std::string_view name) const {
    for (int scope = now_->scope; scope >= 0; scope = body_.parent_scope[static_cast<std::size_t>(scope)]) {
        const auto it = labels_.find({scope, name});
        if (it != labels_.end()) return it->second;
    }
    fail("label '" + std::string(name) + "' is not known");
}

}  // namespace ptx
