// SPDX-License-Identifier: MIT
#include "decoder.hpp"

#include <algorithm>
#include <array>

namespace ptx {

namespace {

constexpr std::size_t round_up(std::size_t value, std::size_t to) {
    return (value + to - 1) / to * to;
}

const instruction_table& all_instructions() {
    static const instruction_table table = [] {
        instruction_table result;
        add_integer_instructions(result);
        add_bit_instructions(result);
        add_carry_instructions(result);
        add_float_instructions(result);
        add_packed_instructions(result);
        add_logic_instructions(result);
        add_comparison_instructions(result);
        add_conversion_instructions(result);
        add_memory_instructions(result);
        add_atomic_instructions(result);
        add_warp_instructions(result);
        add_barrier_instructions(result);
        add_memory_barrier_instructions(result);
        add_tensor_copy_instructions(result);
        add_matrix_instructions(result);
        add_fragment_instructions(result);
        add_warpgroup_instructions(result);
        return result;
    }();
    return table;
}

}  // namespace

decoder::decoder(program& owner, function& to) : owner_(owner), to_(to), source_(*to.source) {}

void decoder::fail(const std::string& what) const {
    std::string message = "PTX of " + to_.name;
    if (now_ != nullptr)
        message += ", line " + std::to_string(now_->line) + " (" + std::string(now_->opcode) + ")";
    throw failure(message + ": " + what);
}

void decoder::run() {
    body_ = read_body(owner_.source, source_);
    place_parameters();
    place_variables();
    for (const label& it : body_.labels) labels_[{it.scope, it.name}] = static_cast<std::int32_t>(it.at);
    to_.code.reserve(body_.statements.size() + 1);
    for (const statement& it : body_.statements) decode(it);
    instruction end;
    end.is = instruction::kind::leave;
    end.text = "the end";
    to_.code.push_back(end);
    uses_.emplace_back();
    watch_registers(to_, uses_);
    to_.is_decoded = true;
}

void decoder::place_parameters() {
    std::size_t at = 0;
    const auto place = [&](const std::vector<variable>& list, std::vector<std::size_t>& offsets) {
        for (const variable& it : list) {
            at = round_up(at, it.alignment);
            offsets.push_back(at);
            if (!source_.is_entry) locals_[{0, it.name}] = {at, it.bytes()};
            at += it.bytes();
        }
    };
    place(source_.results, to_.result_offsets);
    place(source_.parameters, to_.parameter_offsets);
    to_.parameter_bytes = at;
    to_.local_bytes = source_.is_entry ? 0 : round_up(at, 16);
}

void decoder::place_variables() {
    std::size_t frame = 0;
    std::size_t shared = owner_.shared_bytes;
    // Predicates first, a word each; then everything that has words for lanes.
    for (const bool predicates : {true, false}) {
        for (const variable& it : body_.variables) {
            if (it.space != "reg" || (it.type == "pred") != predicates) continue;
            const std::size_t bytes = bytes_of_type(it.type);
            if (bytes > 8) fail("registers of 128 bits are not known");
            const std::size_t step = predicates ? 4 : bytes == 8 ? 256 : 128;
            registers_[{it.scope, it.name}] = {static_cast<std::int32_t>(frame),
                                               static_cast<std::uint8_t>(bytes), it.is_family ? it.count : 0};
            frame += step * std::max<std::size_t>(it.count, 1);
        }
        frame = round_up(frame, 128);
    }
    std::string_view dynamic;
    for (const variable& it : body_.variables) {
        if (it.space == "local" || it.space == "param") {
            to_.local_bytes = round_up(to_.local_bytes, it.alignment);
            locals_[{it.scope, it.name}] = {to_.local_bytes, it.bytes()};
            to_.local_bytes += it.bytes();
        } else if (it.space == "shared") {
            shared = round_up(shared, it.alignment);
            shared_[it.name] = shared;
            shared += it.bytes();
        }
    }
    if (!owner_.dynamic_shared.empty()) shared_[owner_.dynamic_shared] = round_up(shared, 1024);
    to_.shared_bytes = shared;
    to_.local_bytes = round_up(to_.local_bytes, 16);
    to_.frame_bytes = frame;
}

bool decoder::option(std::string_view word) {
    for (auto& [text, used] : words_) {
        if (!used && text == word) return used = true;
    }
    return false;
}

std::string_view decoder::one_of(std::initializer_list<std::string_view> words) {
    for (const std::string_view word : words) {
        if (option(word)) return word;
    }
    return {};
}

std::string_view decoder::type() {
    for (auto it = words_.rbegin(); it != words_.rend(); ++it) {
        if (!it->second) {
            it->second = true;
            return it->first;
        }
    }
    fail("a type is missing");
}

std::string_view decoder::next_word() {
    for (auto& [text, used] : words_) {
        if (!used) {
            used = true;
            return text;
        }
    }
    return {};
}

void decoder::decode_call(instruction& to) {
    std::size_t next = 0;
    const bool has_results = at(0).kind == term::list;
    const std::vector<term> results = has_results ? at(next++).parts : std::vector<term>{};
    const std::string_view name = at(next++).text;
    const std::vector<term> arguments = next < operands() ? at(next).parts : std::vector<term>{};
    if (!owner_.has(name)) fail("function '" + std::string(name) + "' is not known");
    const function& callee = owner_.find(name);
    to.callee = &callee;
    const auto copy = [&](const std::vector<term>& here, const std::vector<std::size_t>& there, bool back) {
        if (here.size() != there.size()) fail("another number of parameters");
        for (std::size_t i = 0; i < here.size(); ++i) {
            const local_place* const local = find_local(here[i].text);
            if (local == nullptr) fail("parameter '" + std::string(here[i].text) + "' is not known");
            to.copies.push_back({static_cast<std::int32_t>(local->at), static_cast<std::int32_t>(there[i]),
                                 static_cast<std::int32_t>(back ? -static_cast<std::int64_t>(local->bytes)
                                                                : static_cast<std::int64_t>(local->bytes))});
        }
    };
    copy(arguments, callee.parameter_offsets, false);
    copy(results, callee.result_offsets, true);
}

void decoder::decode(const statement& it) {
    now_ = &it;
    uses_.emplace_back();
    instruction to;
    to.line = it.line;
    to.text = it.opcode;
    if (!it.guard.empty()) {
        to.guard = predicate_named(it.guard).at;
        uses_.back() = {{}, {}, to.guard, {}};
        to.guard_negated = it.guard_negated;
    }
    words_.clear();
    used_.assign(it.operands.size(), false);
    std::string_view rest = it.opcode;
    std::string_view first;
    while (true) {
        const std::size_t dot = rest.find('.');
        const std::string_view word = rest.substr(0, dot);
        if (first.empty()) {
            first = word;
        } else {
            words_.emplace_back(word, false);
        }
        if (dot == std::string_view::npos) break;
        rest.remove_prefix(dot + 1);
    }
    if (first == "bra") {
        option("uni");
        to.is = instruction::kind::branch;
        to.target = label_target(at(0).text);
    } else if (first == "ret" || first == "exit") {
        option("uni");
        to.is = instruction::kind::leave;
        to.detail[0] = first == "exit" ? 1 : 0;
    } else if (first == "call") {
        option("uni");
        to.is = instruction::kind::call;
        decode_call(to);
    } else {
        // Some instructions are others for numbers, or with a carry.
        const std::string_view last = words_.empty() ? std::string_view{} : words_.back().first;
        std::string name(first);
        if (last == "f32" || last == "f64") name += "/float";
        if (last == "pred" && first != "bar" && first != "barrier") name += "/pred";
        if (last.ends_with("f16") || last.ends_with("f16x2")) name += "/half";
        if (std::ranges::find(words_, std::pair(std::string_view("cc"), false)) != words_.end())
            name += "/carry";
        auto found = all_instructions().find(name);
        if (found == all_instructions().end()) found = all_instructions().find(first);
        if (found == all_instructions().end()) fail("instruction is not known");
        found->second(*this, to);
        if (to.run == nullptr && to.try_run == nullptr) fail("this form of the instruction is not known");
        if (first == "mov") uses_.back().is = register_use::kind::copies;
        if (first == "selp") {
            uses_.back().is = register_use::kind::selects;
            uses_.back().reads.clear();
            for (std::size_t k = 1; k < 4; ++k)
                uses_.back().reads.push_back(to.o[k].in == operand::place::frame ? to.o[k].at : -1);
        }
        to.is = to.try_run != nullptr ? instruction::kind::blocking : instruction::kind::plain;
    }
    for (const auto& [text, used] : words_) {
        if (!used) fail("'." + std::string(text) + "' is not known here");
    }
    for (const bool used : used_) {
        if (!used) fail("an operand too many");
    }
    to_.code.push_back(std::move(to));
}

}  // namespace ptx
