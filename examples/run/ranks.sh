#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ranks.sh COUNT PROGRAM...: that many ranks at once, each under `kiln run`. What they all need is compiled once: one of them leads,
# the others are answered. Ends with the first status that is not 0.
set -u
count=$1
shift
pids=
rank=0
while [ "$rank" -lt "$count" ]; do
    RANK=$rank WORLD_SIZE=$count ${KILN:-kiln} run -- "$@" &
    pids="$pids $!"
    rank=$((rank + 1))
done
status=0
for pid in $pids; do
    wait "$pid" || { code=$?; [ "$status" -ne 0 ] || status=$code; }
done
exit "$status"
