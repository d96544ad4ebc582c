#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# record.sh IMAGE PROGRAM...: runs `python PROGRAM` in the image, once, on this machine's GPU, and packs what it compiled.
# For GPUs this machine has not: ARCHS=sm_80,sm_100.
set -eu
image=$1
shift
work=$(pwd)/recording
mkdir -p "$work"
run() { podman run --rm --device nvidia.com/gpu=all -v "$work:/recording" -e KILN_CACHE_DIR=/recording/cache "$image" "$@"; }

# What is there would be added to.
rm -rf "$work/app.json" "$work/app.json.requests" "$work/app.json.caches"
run kiln run --record /recording/app.json -- python "$@"
[ -e "$work/release.pem" ] || run kiln key /recording/release.pem
records=/recording/app.json
if [ -n "${ARCHS:-}" ]; then
    # Exit status 3: some requests do not allow another architecture. They are named, and the rest is made.
    run kiln replay /recording/app.json --arch "$ARCHS" -o /recording/others.json || [ $? -eq 3 ]
    records="$records /recording/others.json"
fi
# shellcheck disable=SC2086 # a list of files without spaces
run kiln capsule build --sign /recording/release.pem -o /recording/app.capsule $records
cp "$work/app.capsule" "$work/release.pem.pub" .
