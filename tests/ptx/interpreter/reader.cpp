// SPDX-License-Identifier: MIT
// Reads modules and functions of PTX.
#include "lexer.hpp"
#include "text.hpp"

#include <array>
#include <cstring>
#include <utility>

namespace ptx {

std::size_t bytes_of_type(std::string_view type) {
    if (type == "pred") return 0;
    if (type.ends_with("128")) return 16;
    if (type.ends_with("64")) return 8;
    if (type.ends_with("32") || type == "f16x2" || type == "bf16x2") return 4;
    if (type.ends_with("16")) return 2;
    if (type.ends_with("8")) return 1;
    throw failure("PTX: type ." + std::string(type) + " is not known");
}

std::size_t variable::bytes() const {
    return bytes_of_type(type) * count;
}

namespace {

bool is_space(std::string_view word) {
    for (const std::string_view it : {".reg", ".param", ".local", ".shared", ".global", ".const"}) {
        if (word == it) return true;
    }
    return false;
}

/// An initial value or a list of them.
void read_initial(lexer& in, variable& result) {
    const std::size_t size = bytes_of_type(result.type);
    const auto put = [&](std::uint64_t value) {
        const std::size_t at = result.initial.size();
        result.initial.resize(at + size);
        std::memcpy(result.initial.data() + at, &value, size);
    };
    int depth = 0;
    do {
        while (in.accept("{")) ++depth;
        if (in.is_number() || in.is("-")) {
            const bool negative = in.accept("-");
            const std::int64_t value = in.number().value;
            put(static_cast<std::uint64_t>(negative ? -value : value));
        } else {
            // The address of a variable, perhaps generic(name), perhaps plus something.
            const bool generic = in.accept("generic");
            if (generic) in.expect("(");
            variable::reference reference{result.initial.size(), in.take(), 0};
            if (in.accept("+")) reference.offset = in.integer();
            if (generic) in.expect(")");
            result.references.push_back(reference);
            put(0);
        }
        while (in.accept("}")) --depth;
    } while (in.accept(","));
    if (depth != 0) in.fail("expected }");
    result.initial.resize(result.bytes());
}

/// Declarations from the space on; several may share it.
void read_variables(lexer& in, int scope, bool is_external, std::vector<variable>& to) {
    variable common;
    common.scope = scope;
    common.is_external = is_external;
    common.space = in.take().substr(1);
    std::size_t lanes = 1;
    for (;;) {
        if (in.accept(".align")) {
            common.alignment = static_cast<std::size_t>(in.integer());
        } else if (in.accept(".v2")) {
            lanes = 2;
        } else if (in.accept(".v4")) {
            lanes = 4;
        } else if (in.accept(".ptr")) {
            if (is_space(in.word())) in.take();
        } else if (in.word().starts_with(".")) {
            common.type = in.take().substr(1);
        } else {
            break;
        }
    }
    if (common.space != "reg") common.alignment = std::max(common.alignment, bytes_of_type(common.type));
    do {
        variable one = common;
        one.count = lanes;
        one.name = in.take();
        if (in.accept("<")) {
            one.is_family = true;
            one.count = static_cast<std::size_t>(in.integer());
            in.expect(">");
        }
        while (in.accept("[")) {
            one.count *= in.is("]") ? 0 : static_cast<std::size_t>(in.integer());
            in.expect("]");
        }
        if (in.accept("=")) read_initial(in, one);
        to.push_back(std::move(one));
    } while (in.accept(","));
}

std::vector<variable> read_parameters(lexer& in) {
    std::vector<variable> result;
    if (!in.accept("(")) return result;
    while (!in.accept(")")) {
        // One a declaration: the comma ends it.
        variable one;
        one.space = in.take().substr(1);
        if (one.space != "param" && one.space != "reg") in.fail("expected a parameter");
        for (;;) {
            if (in.accept(".align")) {
                one.alignment = static_cast<std::size_t>(in.integer());
            } else if (in.accept(".ptr")) {
                if (is_space(in.word())) in.take();
            } else if (in.word().starts_with(".")) {
                one.type = in.take().substr(1);
            } else {
                break;
            }
        }
        one.name = in.take();
        one.alignment = std::max(one.alignment, bytes_of_type(one.type));
        if (in.accept("[")) {
            one.count = static_cast<std::size_t>(in.integer());
            in.expect("]");
        }
        in.accept(",");
        result.push_back(one);
    }
    return result;
}

void read_function(lexer& in, module_text& module) {
    function_text result;
    result.is_entry = in.is(".entry");
    in.take();
    if (!result.is_entry) result.results = read_parameters(in);
    result.name = in.take();
    result.parameters = read_parameters(in);
    while (in.word().starts_with(".")) {
        const std::string_view directive = in.take();
        int threads = 1;
        bool first = true;
        while (in.is_number() || (!first && in.is(","))) {
            if (in.accept(",")) continue;
            threads *= static_cast<int>(in.integer());
            first = false;
        }
        if (directive == ".reqntid" || directive == ".maxntid") result.required_threads = threads;
    }
    if (in.accept(";")) return;  // a declaration
    if (!in.is("{")) in.fail("expected the body of a function");
    result.body_line = in.line();
    result.body_begin = in.begin() + 1;
    in.take();
    result.body_end = in.skip_braces();
    module.functions.push_back(std::move(result));
}

term read_term(lexer& in) {
    term result;
    if (in.accept("!")) {
        result = read_term(in);
        result.negated = true;
        return result;
    }
    if (in.accept("{") || in.is("(")) {
        const bool is_list = in.accept("(");
        const std::string_view end = is_list ? ")" : "}";
        result.kind = is_list ? term::list : term::vector;
        while (!in.accept(end)) {
            result.parts.push_back(read_term(in));
            in.accept(",");
        }
        return result;
    }
    if (in.accept("[")) {
        result.kind = term::address;
        result.parts.push_back(read_term(in));
        if (in.accept("+")) result.value = in.integer();
        while (in.accept(",")) result.parts.push_back(read_term(in));
        in.expect("]");
        return result;
    }
    if (in.is("-") || in.is_number()) {
        const bool negative = in.accept("-");
        result = in.number();
        if (negative) result.value = -result.value;
        return result;
    }
    if (in.accept("_")) return result;
    result.kind = term::name;
    result.text = in.take();
    if (in.accept("|")) result.beside = in.take();
    return result;
}

}  // namespace

module_text read_module(std::string text) {
    module_text module;
    module.text = std::move(text);
    lexer in(module.text, 0, module.text.size(), 1);
    bool is_external = false;
    while (!in.done()) {
        if (in.accept(".version")) {
            in.take();
        } else if (in.accept(".target")) {
            module.target = in.take();
            while (in.accept(",")) in.take();
        } else if (in.accept(".address_size")) {
            if (in.integer() != 64) in.fail("addresses have 64 bits");
        } else if (in.accept(".visible") || in.accept(".weak") || in.accept(".common")) {
        } else if (in.accept(".extern")) {
            is_external = true;
        } else if (in.is(".entry") || in.is(".func")) {
            read_function(in, module);
            is_external = false;
        } else if (is_space(in.word())) {
            read_variables(in, 0, is_external, module.variables);
            in.expect(";");
            is_external = false;
        } else if (in.accept(".file")) {
            in.take();
            in.take();
        } else if (in.accept(".section")) {
            in.take();
            in.expect("{");
            in.skip_braces();
        } else {
            in.fail("expected a directive");
        }
    }
    return module;
}

body_text read_body(const module_text& module, const function_text& function) {
    body_text body;
    lexer in(module.text, function.body_begin, function.body_end, function.body_line);
    int scope = 0;
    while (!in.done()) {
        if (in.accept("{")) {
            body.parent_scope.push_back(scope);
            scope = static_cast<int>(body.parent_scope.size()) - 1;
            continue;
        }
        if (in.accept("}")) {
            scope = body.parent_scope[static_cast<std::size_t>(scope)];
            if (scope < 0) in.fail("a brace too many");
            continue;
        }
        if (in.accept(";")) continue;
        if (is_space(in.word())) {
            read_variables(in, scope, false, body.variables);
            in.expect(";");
            continue;
        }
        if (in.accept(".pragma")) {
            in.take();
            in.expect(";");
            continue;
        }
        if (in.accept(".loc")) {
            while (in.is_number() || in.is(",")) in.take();
            continue;
        }
        statement it;
        it.line = in.line();
        it.scope = scope;
        if (in.accept("@")) {
            it.guard_negated = in.accept("!");
            it.guard = in.take();
        }
        it.opcode = in.take();
        if (in.accept(":")) {
            body.labels.push_back({it.opcode, body.statements.size(), scope});
            continue;
        }
        while (!in.accept(";")) {
            if (in.done()) in.fail("expected ;");
            it.operands.push_back(read_term(in));
            in.accept(",");
        }
        body.statements.push_back(std::move(it));
    }
    return body;
}

}  // namespace ptx
