#!/bin/sh
# Configures and compiles build/NAME: build.sh NAME MEGABYTES [MESON-OPTION...] [-- TARGET...]
#
# The options take effect only when the folder is new. MEGABYTES: disk space that the build needs. The output goes to
# build/NAME.log; the progress is shown. Exit status 1, with the end of the log, if the build fails.
set -eu
cd "$(dirname "$0")/.."

case "${1:-}" in
--help | -h | '')
    sed -n '2,5s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
esac

name=$1
megabytes=$2
shift 2
options=
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    options="$options $1"
    shift
done
[ $# -eq 0 ] || shift

tools/build_folder.sh
build=build/$name
log=$build.log
fail() {
    tail -n 40 "$log" >&2
    echo "the build failed; all of it is in $log; to begin afresh, delete build/" >&2
    exit 1
}
if [ ! -f "$build/build.ninja" ]; then
    free=$(df -Pm build | awk 'NR == 2 { print $4 }')
    if [ "$free" -lt "$megabytes" ]; then
        echo "$build takes $megabytes MB of disk, and $free are free" >&2
        exit 1
    fi
    # shellcheck disable=SC2086  # options have no blanks
    meson setup "$build" $options >"$log" 2>&1 || fail
    grep -E 'passed over' "$log" || true
else
    : >"$log"
fi
# shellcheck disable=SC2086
python3 tools/progress.py "$build" "$log" ninja -C "$build" -j "$(tools/jobs.sh)" "$@" || fail
