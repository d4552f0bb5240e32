// SPDX-License-Identifier: MIT
// PTX as it is written: modules, functions, statements and their operands, before any of it has a meaning.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace ptx {

/// What stops an interpreted kernel, or the reading of one: an instruction that is not known, an access outside of
/// memory, threads that wait for ever.
class failure : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// An operand.
struct term {
    enum { name, integer, floating, vector, address, list, sink } kind = sink;
    std::string_view text{};    ///< of a name
    std::int64_t value = 0;     ///< of an integer; bits of a number, or what is added to an address
    bool is_double = false;     ///< of a number
    bool negated = false;       ///< a predicate behind !
    std::vector<term> parts{};  ///< of a vector or a list; of an address its base, then coordinates
    std::string_view beside{};  ///< the predicate behind |
};

struct statement {
    std::string_view guard{};  ///< the predicate before the instruction
    bool guard_negated = false;
    std::string_view opcode{};
    std::vector<term> operands{};
    int line = 0;
    int scope = 0;  ///< innermost {} that it stands in
};

struct variable {
    std::string_view name{};
    std::string_view space{};  ///< reg, param, local, shared, global, const
    std::string_view type{};   ///< b32 and so on
    std::size_t alignment = 1;
    std::size_t count = 1;
    bool is_family = false;  ///< %r<count>
    bool is_external = false;
    int scope = 0;
    std::vector<std::byte> initial{};
    /// Addresses among the initial bytes: at which byte, of what, plus what.
    struct reference {
        std::size_t at;
        std::string_view of;
        std::int64_t offset;
    };
    std::vector<reference> references{};

    [[nodiscard]] std::size_t bytes() const;
};

struct label {
    std::string_view name;
    std::size_t at;  ///< statement that follows
    int scope;
};

/// A function whose body is read when it is first called.
struct function_text {
    std::string_view name{};
    bool is_entry = false;
    std::vector<variable> results{};
    std::vector<variable> parameters{};
    std::size_t body_begin = 0;  ///< offsets into the text, between the braces
    std::size_t body_end = 0;
    int body_line = 0;
    int required_threads = 0;  ///< .reqntid, or .maxntid
};

struct module_text {
    std::string text{};
    std::string_view target{};
    std::vector<function_text> functions{};
    std::vector<variable> variables{};
};

struct body_text {
    std::vector<statement> statements{};
    std::vector<variable> variables{};
    std::vector<label> labels{};
    std::vector<int> parent_scope{-1};  ///< of each scope; 0 is the function
};

/// Bytes of a type such as b32; 0 for pred.
std::size_t bytes_of_type(std::string_view type);

/// Everything but the bodies of functions.
module_text read_module(std::string text);
body_text read_body(const module_text& module, const function_text& function);

}  // namespace ptx
