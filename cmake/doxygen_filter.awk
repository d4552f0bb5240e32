# SPDX-License-Identifier: MIT
# awk -f doxygen_filter.awk header.hpp
#
# Shows Doxygen the headers as their readers see them:
# - the inline namespace of the instruction set (base/isa_namespace.hpp) is not there,
# - a comment above declarations that no empty line parts is of all of them,
# - what is protected is for the library's own classes,
# - members that every tag of an op, every policy or every state has by convention say what they are.

function starts_statement(line) {
    return line !~ /^ *($|#|\/\/|}|public:|private:|protected:|:|&&|\|\|)/ && line !~ /^ *(static_assert|friend|using namespace|else|return)/
}

# Braces and brackets that a line leaves open, without those of texts and comments.
function balance(line,    text, opened, closed) {
    text = line
    gsub(/\\\\|\\"/, "", text)
    gsub(/"[^"]*"/, "", text)
    gsub(/'[^']*'/, "", text)
    sub(/\/\/.*/, "", text)
    opened = gsub(/[({]/, "", text)
    closed = gsub(/[)}]/, "", text)
    return opened - closed
}

function ends_statement(line,    text) {
    text = line
    sub(/ *\/\/.*/, "", text)
    return text ~ /[;}] *$/
}

function convention(line) {
    if (line ~ /constexpr .*[ *&]name( =|;|{)/) return "The name in texts, rules and saved states."
    if (line ~ /constexpr auto category =/) return "What autocast does with the arguments."
    if (line ~ / known_as(\[\])?( =|{)/) return "The op's names in the lists of other systems."
    if (line ~ / argument_names(\[[^]]*\])?( =|{)/) return "The arguments' names in reports and errors."
    if (line ~ / computes_in_float( =|;|{)/) return "Whether the kernel takes reduced numbers to float by itself."
    if (line ~ / product_operands( =|{)/) return "Which arguments are factors of matrix products."
    if (line ~ /using forward_op =/) return "The op whose gradient it is, for rules that name that one."
    if (line ~ / validate\(/) return "Throws argument_error for arguments or parameters that make no sense."
    if (line ~ / visit\(/) return "Shows each member and its name to a visitor: what is saved and loaded."
    if (line ~ /struct state_type( |{|$)/) return "What it keeps from one iteration to the next."
    if (line ~ / initial_state\(/) return "The state before the first iteration."
    if (line ~ / clean\(state_type|clean\(/) return "After an iteration without infinities and NaNs."
    if (line ~ / overflow\(state_type/) return "After an iteration with some."
    if (line ~ / (update|skips)\(.*gradient_observation/) return "As mp::scale_policy asks for."
    if (line ~ /[ d](\(?max\)?|rank|size|timeout|sum|start_exchange|start_gather|open_channel|close_channel|finished|wait|broadcast|ranks)\(/ && FILENAME ~ /(parallel|interop|scaling\/reducer)/)
        return "As mp::communicator asks for."
    if (line ~ / apply_runs\(/) return "The kernels' way in: rows of a tile at once."
    if (line ~ / at\(std::uint64_t step\)/) return "The factor of the learning rate in this step, counted from 0."
    if (line ~ /struct [a-z_]*options( |{|$)/) return "What may be chosen; the defaults are those of torch where it has them."
    if (line ~ /operator\(\)|std::span|matrix_view/ && line ~ / (as_input|size|address|shape|contiguous|dense|copy|out)\(/ && FILENAME ~ /operand/)
        return "As mp::autocast::operand_traits asks for."
    if (line ~ / (name_of|to_string)\(/) return "The enumerator as text."
    if (line ~ /\(\) (const )?(noexcept )?({ return|{$)/) return "What it has, or was made with."
    if (line ~ /(begin|end|size|empty|data)\(\)/) return "As of the standard library's types."
    if (line ~ /\) *-> *[a-z_]+</) return "Finds the template arguments by those of the constructor."
    if (line ~ /= (default|delete);/) return "As its members do."
    if (line ~ / (forward|backward)\(/) return "The pass: see the class."
    if (line ~ / rules\(\)/) return "The rules that the parameters stand for."
    if (line ~ / product\(/) return "The size of the product that it computes, for reports."
    if (line ~ /operator\(\) *\(|operator\(\)\(/) return "Runs it: arguments are as the function of this name has them, already cast."
    if (line ~ /operator(\*=|\/=|\/|\|)\(/) return "As of float, rounded once."
    if (line ~ /operator *(=|==|!=|<=>|<|>|<=|>=|\[\]|\*|->|\+\+|--|\+=|-=|\+|-)\(/) return "As of the standard library's types."
    if (line ~ /using (value_type|element_type|difference_type|size_type|iterator|reference|pointer|iterator_category) =/)
        return "As of the standard library's types."
    if (line ~ /using (weight_type|gradient_type|master_type|state_type|parameter_type|options_type) =/) return "A template argument, or what follows from them."
    return ""
}

# The statement that begins in line i, up to its body, on one line.
function head_of(i,    text) {
    text = lines[i]
    while (i < count && lines[i] !~ /[{;] *$/ && lines[i] !~ /{ .*} *$/) text = text " " lines[++i]
    return text
}

# Of pages, links to what is not part of the site become its names.
FILENAME ~ /[.]md$/ {
    gsub(/\]\([.][.]\/[^)]*\)/, "]")
    print
    next
}

{ lines[++count] = $0 }

END {
    depth = 0
    group = ""
    fresh = 1
    for (i = 1; i <= count; ++i) {
        line = lines[i]
        # Definitions of macros are not statements.
        if (line ~ /\\$/ || (i > 1 && lines[i - 1] ~ /\\$/)) {
            print line
            continue
        }
        # Readers need not know of the inline namespace.
        if (sub(/ inline namespace MP_(ISA|CORE)_NAMESPACE {/, "", line)) inlined = 1
        if (inlined && sub(/^}}/, "}", line)) inlined = 0
        # A comment of documentation begins or goes on.
        if (line ~ /^ *\/\/\/($|[^<])/) {
            if (!in_comment) group = ""
            in_comment = 1
            group = group line "\n"
            first_of_group = 1
            print line
            continue
        }
        if (line ~ /^ *$/ && fresh) group = ""
        in_comment = 0
        if (fresh && line ~ /^ *(public|private|protected):/) {
            if (hidden) print "/// \\endcond"
            hidden = line ~ /protected:/
            hidden_depth = depth
            print line
            if (hidden) print "/// \\cond"
            group = ""
            continue
        }
        if (fresh && starts_statement(line)) {
            head = head_of(i)
            if (head !~ /\/\/\/</) {
                if (!first_of_group || group == "") {
                    text = group == "" || head ~ /= (default|delete);/ ? convention(head) : ""
                    if (text == "" && group == "" && class != "" && head ~ ("[ >)]" class "\\(")) {
                        text = "Made of what the class describes."
                    }
                    if (text != "") {
                        print "/// " text
                    } else {
                        printf "%s", group
                    }
                }
            }
            first_of_group = 0
            statement_depth = depth
            fresh = 0
            container = 0
        }
        # What has a body of statements of its own.
        if (!fresh && depth == statement_depth && line ~ /^ *(namespace|struct|class|enum|union)( |$)/) container = 1
        if (!fresh && line ~ /^ *(struct|class) [a-z_0-9]+/) {
            class = line
            sub(/^ *(struct|class) /, "", class)
            sub(/[^a-z_0-9].*/, "", class)
        }
        depth += balance(line)
        if (hidden && depth < hidden_depth) {
            print "/// \\endcond"
            hidden = 0
        }
        if (container && depth > statement_depth && line ~ /{ *$/) {
            fresh = 1
            group = ""
            container = 0
        } else if (!fresh && depth <= statement_depth && ends_statement(line)) {
            fresh = 1
            container = 0
        } else if (fresh && line ~ /^ *}/) {
            group = ""
        }
        print line
    }
}
