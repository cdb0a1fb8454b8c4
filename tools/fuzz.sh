#!/bin/sh
# Fuzzes texts of programs with libFuzzer for SECONDS (60): fuzz.sh [SECONDS] [LIBFUZZER-OPTION...]
#
# Installs missing packages, builds with clang, AddressSanitizer and UndefinedBehaviorSanitizer in build/fuzz, and begins with the
# texts that the tests make. The corpus grows in build/fuzz/corpus; a text that fails is kept in build/fuzz, and named. Exit
# status 0 if there is none.
set -eu
cd "$(dirname "$0")/.."

case "${1:-}" in
--help | -h)
    sed -n '2,6s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
esac
seconds=${1:-60}
[ $# -eq 0 ] || shift

tools/packages.sh g++ libcriterion-dev libdlpack-dev python3-numpy
tools/clang.sh

tools/cuda_headers.sh >/dev/null
tools/build.sh test 1000 -- libeddy.a tests/test-program-hostile tests/test-program-control_random
CC=clang tools/build.sh fuzz 500 -Dfuzz=true -Dtests=false -Dexamples=false -Disa=v2 -Dbuildtype=debugoptimized \
    -Db_sanitize=address,undefined -Db_lundef=false -- tests/fuzz/fuzz-program_text

mkdir -p build/fuzz/seeds build/fuzz/corpus
for test in hostile control_random; do
    EDDY_TEST_TEXTS=$PWD/build/fuzz/seeds "build/test/tests/test-program-$test" >build/fuzz/seeds.log 2>&1 || {
        cat build/fuzz/seeds.log >&2
        exit 1
    }
done
# Leaks show in the library's own counts: the runtime lives on between two texts.
ASAN_OPTIONS=detect_leaks=0 exec build/fuzz/tests/fuzz/fuzz-program_text -max_total_time="$seconds" \
    -max_len=16384 -artifact_prefix=build/fuzz/ -print_final_stats=1 -verbosity=1 "$@" build/fuzz/corpus build/fuzz/seeds
