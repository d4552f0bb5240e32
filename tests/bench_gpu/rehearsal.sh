#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# tests/bench_gpu/rehearsal.sh WORK: runs bench/gpu/run_all.sh with stand-ins for all programs, of which some hang, fault
# or are wrong, and checks summary, exclusions and archive. Checks also that steps.txt has every case of
# tests/device/cuda.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
gpu=$here/../../bench/gpu
mkdir -p "$1" || exit 2
work=$(cd "$1" && pwd)
failures=0

check() { # MESSAGE COMMAND...
    local message=$1
    shift
    "$@" >/dev/null && return
    printf 'FAILED: %s\n' "$message"
    failures=$((failures + 1))
}

# --- a bundle of stand-ins

rm -rf "$work"/{bundle,path,out,archive,killed}
mkdir -p "$work"/{bundle,path,out,archive}
cp "$gpu/run_all.sh" "$work/bundle"
sed 's/^exactness | 20 /exactness | 2 /' "$gpu/steps.txt" >"$work/bundle/steps.txt"
printf 'kind: cuda\ncommit: none\n' >"$work/bundle/bundle.txt"
for name in exactness gemm arrays optimizers tensor_cores report train_digits test_cuda test_cuda_fast_math; do
    ln -s "$here/stand_in.sh" "$work/bundle/$name"
done
for name in nvidia-smi compute-sanitizer; do ln -s "$here/stand_in.sh" "$work/path/$name"; done
export PATH=$work/path:$PATH
run() { "$work/bundle/run_all.sh" "$work/out" --archive "$work/archive/results.tar.gz" "$@"; }

# --- a run that has no time, and one that continues it

summary=$work/out/summary.txt
status_is() { grep -q "^$1"$'\t'"$2"$'\t' "$summary"; }
count_is_at_least() { [ "$(grep -c "$1" "$summary")" -ge "$2" ]; }

check 'a run without time succeeds' run --seconds 8
check 'steps without time are listed' count_is_at_least $'\tno time\t' 30
run --continue --seconds 300 >"$work/log"
check 'a run with failures fails' [ $? -eq 1 ]

check 'steps that had no time have run' [ "$(grep -c $'\tno time\t' "$summary")" -eq 0 ]
check 'at least 30 steps of exactness' count_is_at_least '^exactness\.' 30
check 'at least 15 steps are ok' count_is_at_least $'\tok\t' 15
check 'no step has two lines' [ -z "$(cut -f 1 "$summary" | sort | uniq -d)" ]
check 'exactness comes first' [ "$(grep -n '^exactness\.' "$summary" | tail -n 1 | cut -d : -f 1)" -lt \
    "$(grep -n '^gemm\.' "$summary" | head -n 1 | cut -d : -f 1)" ]
hanging=bfloat16.wgmma.128x256x64.cluster2
check 'a hanging kernel is killed' status_is "exactness.$hanging" hung
check 'a signal is a fault' status_is exactness.half.mma.128x256x32 faulted
check 'an error of the device is a fault' status_is exactness.losses.cross_entropy faulted
check 'a wrong kernel is found' status_is exactness.bfloat16.wgmma.64x256x64.pingpong.cluster2 wrong
check 'a filter without cases is wrong' status_is exactness.attention.masks wrong
check 'a kernel that the device does not have is skipped' status_is exactness.batched.wgmma skipped
check 'kernels after the failed ones are run' status_is exactness.half.wmma.last ok
check 'benchmarks run without failed kernels' grep -q "^gemm.bfloat16.table: first.ok.*without.*$hanging" "$summary"
check 'steps that need a failed kernel are excluded' status_is 'gemm.integers.table: first' excluded
check 'sanitizers of a failed kernel are excluded' status_is sanitizers.memcheck.attention excluded
check 'sanitizers of other kernels are run' status_is sanitizers.memcheck.grouped ok
check 'rows of a table are gathered' [ "$(cat "$work/out/gemm_bfloat16_cuda.csv")" = \
    $'program,table,row\ngemm,table,table: first\ngemm,table,table: second, of two' ]
check 'what exactness prints is gathered' grep -q '^half.wmma.last,ok,100,0,$' "$work/out/exactness.csv"
check 'the archive is intact and has the summary' [ "$(tar -xzOf "$work/archive/results.tar.gz" ./summary.txt)" = "$(cat "$summary")" ]
check 'nothing is beside the archive' [ "$(ls "$work/archive")" = results.tar.gz ]

# --- a run with little time that is killed

cp "$gpu/steps.txt" "$work/bundle"
"$work/bundle/run_all.sh" "$work/killed" --seconds 30 >"$work/log.killed" 2>&1 &
deadline=$((SECONDS + 60))
until grep -q '^exactness.int8.mma' "$work/killed/summary.txt" || [ $SECONDS -ge $deadline ]; do sleep 0.1; done 2>/dev/null
kill -KILL $!
wait $! 2>/dev/null
tar -xzOf "$work/killed/results.tar.gz" ./summary.txt >"$work/log"
check 'a run that is killed leaves an intact archive' grep -q "^exactness.$hanging.hung" "$work/log"
check 'a step has a fraction of the time left' [ "$(sed -n "s/^exactness.$hanging.hung.//p" "$work/log" | cut -f 1)" -lt 15 ]

# --- steps.txt has every case of tests/device/cuda, except those that need no device, which are one step

mapfile -t patterns < <(sed -n 's/.*--test-case=//p' "$gpu/steps.txt" | sort -u)
mapfile -t cases < <(cd "$here/../device/cuda" &&
    find . -maxdepth 1 -name '*.cu' ! -name 'documents*' ! -name 'fast_math*' \
        -exec sed '/^TEST_SUITE_BEGIN/,/^TEST_SUITE_END/d' {} + | tr '\n' ' ' | grep -oP 'TEST_CASE\( *"\K[^"]*')
# has_match VALUE SIDE: whether a case matches the pattern VALUE, or the case VALUE matches a pattern.
has_match() {
    local other
    if [ "$2" = case ]; then
        for other in "${cases[@]}"; do
            # shellcheck disable=SC2053  # a pattern
            [[ $other == $1 ]] && return
        done
    else
        for other in "${patterns[@]}"; do
            # shellcheck disable=SC2053
            [[ $1 == $other ]] && return
        done
    fi
    return 1
}
check 'there are cases' [ ${#cases[@]} -ge 50 ]
for pattern in "${patterns[@]}"; do check "steps.txt: a case matches '$pattern'" has_match "$pattern" case; done
for case in "${cases[@]}"; do check "steps.txt has the case '$case'" has_match "$case" pattern; done

[ $failures -eq 0 ] || { printf '%s\n' '--- summary' "$(cat "$summary")"; exit 1; }
