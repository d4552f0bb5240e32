#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# cmake/amalgamate.sh <header>... >mp_half.hpp
#
# One file instead of a folder: the headers named (mp/half.hpp ...) with all that they include of mp, in the order in which
# a compiler reads it. Needs awk.
set -euo pipefail
cd "$(dirname "$0")/../include"

awk -v headers="$*" '
    function fail(message) {
        print "amalgamate.sh: " message >"/dev/stderr"
        failed = 1
        exit 1
    }
    function emit(path,    line, once, target) {
        if (path in seen) return
        # The first line of code of a header says that once is enough; an .inl file is there each time.
        if (path ~ /[.]hpp$/) seen[path] = 1
        while ((status = (getline line <path)) > 0) {
            if (line ~ /^#pragma once/ || line ~ /^\/\/ SPDX-License-Identifier/) continue
            if (line ~ /^ *# *include *<mp\//) {
                target = line
                sub(/^[^<]*</, "", target)
                sub(/>.*/, "", target)
                emit(target)
            } else if (line ~ /^ *# *include *[^< ]/) {
                fail(path ": cannot follow " line)
            } else {
                print line
            }
        }
        if (status < 0) fail("cannot read " path)
        close(path)
    }
    BEGIN {
        while ((getline line <"mp/config.hpp") > 0) {
            if (line ~ /^#define MP_VERSION_(MAJOR|MINOR|PATCH) /) {
                sub(/.* /, "", line)
                version = version (version == "" ? "" : ".") line
            }
        }
        close("mp/config.hpp")
        print "// SPDX-License-Identifier: MIT"
        print "// " headers " of mp " version " and what they include, in one file; made by cmake/amalgamate.sh."
        while ((getline line <"../LICENSE") > 0) print (line == "" ? "//" : "// " line)
        print "#pragma once"
        count = split(headers, list, " ")
        if (count == 0) fail("name the headers, such as mp/half.hpp")
        for (i = 1; i <= count; ++i) emit(list[i])
    }
    END { exit failed }
'
