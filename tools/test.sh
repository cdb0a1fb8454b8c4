#!/bin/sh
# Builds and runs the tests: as they are, under AddressSanitizer with UndefinedBehaviorSanitizer, and under
# ThreadSanitizer. The last line is "N passed, N failed"; the exit status is 0 when none failed.
#
#   --long      the long suites too
#   --werror    warnings are errors
set -eu
cd "$(dirname "$0")/.."

setup=normal
# A suite that is asked for by name is run whatever the setup leaves out.
leave_out='--no-suite long'
werror=false
for argument; do
    case $argument in
    --long)
        setup=all
        leave_out=
        ;;
    --werror) werror=true ;;
    --help)
        sed -n '2,6s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    *)
        echo "test.sh: unknown option $argument (--help lists them)" >&2
        exit 1
        ;;
    esac
done

tools/packages.sh g++ binutils cmake libcriterion-dev libdlpack-dev python3-numpy dataset-fashion-mnist spin

tools/build_folder.sh

# build NAME MESON-OPTION...: configures and compiles build/NAME
build() {
    name=$1
    shift
    echo "building build/$name"
    log=build/$name.log
    if [ -f "build/$name/build.ninja" ]; then
        meson configure "build/$name" -Dwerror=$werror "$@" >"$log" 2>&1
    else
        meson setup "build/$name" -Dwerror=$werror "$@" >"$log" 2>&1
    fi || return 1
    meson compile -C "build/$name" >>"$log" 2>&1 && meson test -C "build/$name" --list >>"$log" 2>&1
}

# run NAME MESON-TEST-ARGUMENT...: runs tests of build/NAME and notes what came of them
run() {
    name=$1
    shift
    echo "running the tests in build/$name"
    # A failed test is told by the summary; meson's own report stays in the log.
    $without_randomisation meson test -C "build/$name" --setup $setup "$@" >>"build/$name.log" 2>&1 || true
}

# gcc 12's ThreadSanitizer does not start where the system spreads mappings over more than 28 bits.
without_randomisation=
failed_builds=
build_or_note() {
    build "$@" && return 0
    failed_builds="$failed_builds $1"
    tail -n 40 "build/$1.log"
    return 1
}

rm -f build/*/meson-logs/testlog*.json
if build_or_note test -Dbuildtype=debugoptimized -Dchecks=true; then
    run test
fi
if build_or_note asan -Dbuildtype=debugoptimized -Doptimization=1 -Db_sanitize=address,undefined -Dchecks=true \
    -Dexamples=false -Db_lundef=false; then
    run asan --suite unit --suite stress
fi
if build_or_note tsan -Dbuildtype=debugoptimized -Doptimization=1 -Db_sanitize=thread -Dexamples=false \
    -Db_lundef=false; then
    if setarch -R true 2>/dev/null; then
        without_randomisation='setarch -R'
    fi
    # shellcheck disable=SC2086  # two words, or none
    run tsan $leave_out --suite unit --suite stress
fi

# shellcheck disable=SC2086  # a list of names
exec python3 tools/summary.py build $failed_builds
