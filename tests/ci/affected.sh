#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# tests/ci/affected.sh WORK: checks which files .ci/affected prints for changes of a small repository.
set -euo pipefail
scripts=$(cd "$(dirname "$0")/../../.ci" && pwd)
rm -rf "$1"
mkdir -p "$1"
cd "$1"
failures=0

git init -q
git config user.email nobody@localhost
git config user.name nobody
mkdir -p .ci docs include/mp/inner tests/module tests/device/cuda
cp "$scripts"/{affected,base} .ci
echo 'int a;' >include/mp/inner/a.hpp
printf '#include <mp/inner/a.hpp>\n' >include/mp/b.hpp
printf '#  define MP_KERNEL_FILE <mp/inner/kernel.inl>\n' >include/mp/c.hpp
echo 'int k;' >include/mp/inner/kernel.inl
printf '#include "../module/local.hpp"\n' >tests/module/uses_b.cpp
printf '#include <mp/b.hpp>\n' >tests/module/local.hpp
printf '#include <mp/c.hpp>\n' >tests/module/uses_c.cpp
echo 'int main() {}' | tee tests/main.cpp tests/device/cuda/documents.cu >docs/page.md
git add .
git commit -qm base

# expect <changed file> <line> <file>...: a change that appends the line affects these files.
expect() {
    local file=$1 line=$2 printed
    shift 2
    echo "$line" >>"$file"
    git commit -qam change
    printed=$(.ci/affected HEAD~1 | xargs)
    if [ "$printed" != "$*" ]; then
        printf 'FAILED: a change of %s affects "%s", not "%s"\n' "$file" "$printed" "$*"
        failures=$((failures + 1))
    fi
    git reset -q --hard HEAD~1
}
export LC_ALL=C
expect include/mp/inner/a.hpp 'int x;' include/mp/b.hpp include/mp/inner/a.hpp tests/module/local.hpp tests/module/uses_b.cpp
expect include/mp/inner/kernel.inl 'int x;' include/mp/c.hpp include/mp/inner/kernel.inl tests/module/uses_c.cpp
expect include/mp/inner/a.hpp '// a comment'
expect tests/module/uses_c.cpp '// budget 1' tests/module/uses_c.cpp
expect docs/page.md 'text' docs/page.md tests/device/cuda/documents.cu
mapfile -t all < <(git ls-files)
expect tests/main.cpp '//' "${all[@]}"
expect .ci/base '#' "${all[@]}"

# expect_nearest <changed files> <test>...: with these changes these tests of the module are run under sanitizers.
expect_nearest() {
    local files=$1 printed
    shift
    # shellcheck disable=SC2086
    printed=$(.ci/affected --nearest tests/module/ $files | xargs)
    if [ "$printed" != "$*" ]; then
        printf 'FAILED: nearest to "%s" is "%s", not "%s"\n' "$files" "$printed" "$*"
        failures=$((failures + 1))
    fi
}
expect_nearest include/mp/inner/kernel.inl tests/module/uses_c.cpp
expect_nearest tests/module/uses_b.cpp tests/module/uses_b.cpp
expect_nearest tests/module/local.hpp tests/module/uses_b.cpp
expect_nearest 'include/mp/c.hpp tests/module/uses_b.cpp' tests/module/uses_b.cpp tests/module/uses_c.cpp
for number in {01..10}; do printf '#include <mp/c.hpp>\n' >"tests/module/many_$number.cpp"; done
echo '#include <mp/inner/c.hpp>' >tests/module/inner.cpp
echo '#include <mp/c.hpp>' >include/mp/inner/c.hpp
echo 'int d;' >include/mp/inner/d.hpp
git add .
expect_nearest include/mp/inner/c.hpp tests/module/inner.cpp
# Eight of eleven that are equally close; none where one that is taken anyway includes the file.
expect_nearest include/mp/c.hpp tests/module/many_{01..08}.cpp
expect_nearest 'include/mp/c.hpp tests/module/many_10.cpp' tests/module/many_10.cpp
expect_nearest 'include/mp/c.hpp include/mp/inner/kernel.inl' tests/module/many_{01..08}.cpp
expect_nearest 'include/mp/c.hpp include/mp/inner/many_09.hpp' tests/module/many_09.cpp
# A test with the name of a file need not include it.
expect_nearest include/mp/inner/local.hpp
echo 'int local;' >tests/module/c.cpp
echo '#include "local.hpp"' >tests/module/local.cpp
git add .
expect_nearest tests/module/local.hpp tests/module/local.cpp
expect_nearest include/mp/c.hpp tests/module/{c,many_{01..08}}.cpp
expect_nearest include/mp/inner/d.hpp
expect_nearest examples/inner/main.cpp tests/module/inner.cpp
[ $failures -eq 0 ]
