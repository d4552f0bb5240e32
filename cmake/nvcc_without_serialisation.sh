#!/bin/sh
# SPDX-License-Identifier: MIT
#
# nvcc_without_serialisation.sh <nvcc> <argument>...: runs the compiler, and fails as well where ptxas tells that it
# could not leave matrix instructions of warpgroups running beside each other (C7510, C7511 and others). That costs
# half of the speed, but for ptxas it is a piece of information and no warning that could be made an error.
messages=$("$@" 2>&1)
status=$?
[ -z "$messages" ] || printf '%s\n' "$messages" >&2
if [ $status -eq 0 ]; then
    case $messages in
        *"instructions are serialized"*)
            echo "error: wgmma is serialised" >&2
            exit 1
            ;;
    esac
fi
exit $status
