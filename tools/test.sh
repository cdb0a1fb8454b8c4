#!/bin/sh
# Builds and runs the tests: without sanitizers, under AddressSanitizer with UndefinedBehaviorSanitizer, and under
# ThreadSanitizer. The last line is "N passed, N failed"; the exit status is 0 if none failed.
#
#   --long      also runs the long suites
#   --werror    compiler warnings are errors
set -eu
cd "$(dirname "$0")/.."

setup=normal
# With --suite, meson ignores the suites that the setup excludes: this option excludes the long tests.
leave_out='--no-suite long'
# What is run under sanitizers, and in the build without them not once more.
sanitized='unit stress far cuda'
not_again='--no-suite again'
werror=false
for argument; do
    case $argument in
    --long)
        setup=all
        leave_out=
        not_again=
        instruction_sets=portable,v2,v3,v4
        ;;
    --werror) werror=true ;;
    --help | -h)
        sed -n '2,6s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    *)
        echo "test.sh: unknown option $argument (--help lists them)" >&2
        exit 1
        ;;
    esac
done

# Later releases have a clang-format with other results: there the form is not checked.
form=
if grep -qs '^VERSION_ID="12"' /etc/os-release; then
    form=clang-format-14
fi
# shellcheck disable=SC2086  # one name, or none
tools/packages.sh g++ binutils cmake libcriterion-dev libdlpack-dev python3-numpy dataset-fashion-mnist spin $form
tools/clang.sh
tools/cuda_headers.sh >/dev/null

# build NAME TARGET SUITES MESON-OPTION...: configures build/NAME, and compiles the target, or all by default, and what the suites need
build() {
    name=$1
    target=$2
    suites=$3
    shift 3
    if [ -f "build/$name/build.ninja" ]; then
        meson configure "build/$name" -Dwerror=$werror "$@" >"build/$name.log" 2>&1 || {
            tail -n 40 "build/$name.log" >&2
            return 1
        }
    fi
    # shellcheck disable=SC2086  # one name, or none
    tools/build.sh "$name" 1000 -Dwerror=$werror "$@" -- $target || return 1
    # shellcheck disable=SC2046,SC2086  # lists of names
    tools/build.sh "$name" 1000 -- $(tools/test_programs.py "build/$name" $suites)
}

# Many tests wait a part of their time, so that one more than processors run at once.
processes=$(($(nproc) + 1))

# run NAME MESON-TEST-ARGUMENT...: runs tests of build/NAME; meson records the results
run() {
    name=$1
    shift
    # The summary reports failed tests; meson's own report stays in the log.
    # shellcheck disable=SC2086  # two words, or none
    $without_randomisation tools/progress.py "build/$name" "build/$name.log" \
        meson test -C "build/$name" --no-rebuild --setup $setup --num-processes $processes "$@" || true
}

# One instruction set is enough for sanitizers, since the copies of a loop share one source, and compiling them takes most of a build.
# Without them, what every processor has and what this one has at best.
has() {
    for flag; do
        grep -qw "$flag" /proc/cpuinfo || return 1
    done
}
one_isa=portable
best_isa=v2
if has avx2 bmi1 bmi2 f16c fma abm movbe; then
    one_isa=v3
    best_isa=v3
    ! has avx512f avx512bw avx512cd avx512dq avx512vl || best_isa=v4
fi

# What nvcc makes is run on request, as code for this processor. That it makes it is seen in one build. Nor do kernels that are compiled for the
# host have a sanitizer: one build makes them.
without_cuda="-Dcuda=disabled -Dhost_kernels=$PWD/build/test/tests/fake_cuda/kernels"

# Lines for a sanitizer's reports; names of variables take a fifth of the time to compile.
lines='-Dc_args=-g1 -Dcpp_args=-g1'
# UndefinedBehaviorSanitizer's own reports need 20 MB of data with pointers. Each process would relocate these and search them for leaks.
traps="-Dc_args=['-g1','-fsanitize-undefined-trap-on-error'] -Dcpp_args=-g1"

# ThreadSanitizer does not start if the system randomises addresses of mappings by more than 28 bits, in gcc 12 and clang 14.
without_randomisation=
failed_builds=
build_or_note() {
    build "$@" && return 0
    failed_builds="$failed_builds $1"
    return 1
}

rm -f build/*/meson-logs/testlog*.json
# Includes the bench's programs, since no other build would detect that one no longer compiles.
# shellcheck disable=SC2086  # two options
if build_or_note test '' "$leave_out $not_again" $lines -Dbuildtype=debugoptimized -Dchecks=true -Dbench=true -Dgpu_quick=true -Disa="${instruction_sets:-portable,$best_isa}"; then
    # shellcheck disable=SC2086  # lists of words
    run test $leave_out $not_again
    # What nvcc makes of the kernels, where it is found: some six minutes to build, and eight to run.
    if [ $setup = all ] && ninja -C build/test -t query tests/fake_cuda/ptx/libeddy_cuda_kernels.so >/dev/null 2>&1; then
        if build_or_note test tests/fake_cuda/ptx/libeddy_cuda_kernels.so "$leave_out ptx"; then
            setup=ptx
            run test --suite ptx
            setup=all
        fi
    fi
fi
# shellcheck disable=SC2086  # two options
if build_or_note asan libeddy.a "$leave_out $sanitized" $traps -Dbuildtype=debugoptimized -Doptimization=1 -Db_sanitize=address,undefined -Dchecks=true \
    -Dexamples=false -Db_lundef=false -Disa=$one_isa $without_cuda; then
    # shellcheck disable=SC2046,SC2086  # lists of words
    run asan $leave_out $(printf -- '--suite %s ' $sanitized)
fi
# ThreadSanitizer of clang 14 takes less of the processors' time than that of gcc 12, and the library is to compile with both.
export CC=clang CXX=clang++
# shellcheck disable=SC2086  # two options
if build_or_note tsan libeddy.a "$leave_out $sanitized" $lines -Dbuildtype=debugoptimized -Doptimization=1 -Db_sanitize=thread -Dexamples=false \
    -Db_lundef=false -Disa=$one_isa $without_cuda; then
    if setarch -R true 2>/dev/null; then
        without_randomisation='setarch -R'
    fi
    # shellcheck disable=SC2046,SC2086  # lists of words
    run tsan $leave_out $(printf -- '--suite %s ' $sanitized)
fi

# shellcheck disable=SC2086  # a list of names
exec python3 tools/summary.py build $failed_builds
