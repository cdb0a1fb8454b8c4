#!/bin/sh
# Checks Eddy on a machine with a GPU, from an unpacked kit (tools/gpu-kit.sh): gpu-check.sh [STEP...]
#
#   smoke     what device, driver and libraries there are
#   ops       ops and gradients on the device, compared with the CPU bit by bit; then the tests of ops, with all tensors there
#   programs  the same of programs, and of the interpreter
#   life      streams, memory, errors, exit and fork, as far as they need no driver that fails on request
#   sanitize  some of the ops under compute-sanitizer, if that is found
#   train     an example on the device and on the CPU: their losses
#   bench     the rows cuda_*: beside the driver, and cuBLASLt, called directly, and beside PyTorch, where these are found
#   nsys      a trace of an example by Nsight Systems, if that is found
#
# All of them, if none is named. Each takes 8 minutes at most. $OUT (or the current folder) gets the logs, and report.json, one object a
# line, to which each call adds. A step that fails does not keep the next ones from running. At the end stands a table. Status 1 if one has failed.
set -u
kit=$(cd "$(dirname "$0")" && pwd)
steps='smoke ops programs life sanitize train bench nsys'
for argument; do
    case " $steps --help -h " in
    *" $argument "*) ;;
    *)
        echo "gpu-check.sh: there is no step $argument (--help lists them)" >&2
        exit 2
        ;;
    esac
    case $argument in
    --help | -h)
        sed -n '2,15s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    esac
done
# shellcheck disable=SC2086  # a list of names
[ $# -gt 0 ] || set -- $steps
out=${OUT:-.}
mkdir -p "$out"
out=$(cd "$out" && pwd)
report=$out/report.json
libraries=$kit/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
step_seconds=480 # of a step
failed=0

# row STEP NAME VERDICT VALUE UNIT: a line of the report, and of the table
row() {
    printf '{"step": "%s", "name": "%s", "verdict": "%s", "value": "%s", "unit": "%s"}\n' "$@" >>"$report"
    printf '%-9s %-32s %-8s %s %s\n' "$@"
    [ "$3" != failed ] || failed=1
}

# left: seconds that the step still has, one at least
left() {
    spent=$(($(date +%s) - begun))
    if [ "$spent" -lt "$step_seconds" ]; then
        echo $((step_seconds - spent))
    else
        echo 1
    fi
}

# in_kit COMMAND...: with the kit's libraries, as long as the step may take
in_kit() {
    LD_LIBRARY_PATH=$libraries timeout "$(left)" "$@"
}

# run_test STEP NAME COMMAND...: a test program; its verdict is the number of its tests that pass, without those that only the fake driver can run
run_test() {
    of=$1
    name=$2
    shift 2
    log=$out/$of-$name.log
    in_kit "$@" --verbose >"$log" 2>&1
    status=$?
    counts=$(sed -n 's/.*Synthesis: Tested: \([0-9]*\) | Passing: \([0-9]*\).*/\2 of \1/p' "$log" | tail -n 1)
    skipped=$(grep -c '^\[SKIP\]' "$log")
    if [ "$status" -eq 0 ] && [ "${counts:-0 of 0}" = '0 of 0' ]; then
        row "$of" "$name" skipped 'no test' "of $skipped"
    elif [ "$status" -eq 0 ]; then
        row "$of" "$name" passed "${counts:-0}" "tests, $skipped skipped"
    else
        row "$of" "$name" failed "${counts:-status $status}" "tests, $log"
    fi
}

# ---- the steps ----

step_smoke() {
    if command -v nvidia-smi >/dev/null; then
        nvidia-smi >"$out/nvidia-smi.log" 2>&1
    fi
    if ! in_kit "$kit/bench/cuda/cuda_measure" >"$out/device.log" 2>"$out/device.err"; then
        row smoke cuda_measure failed "$(tr -d '"\n' <"$out/device.err")" ''
    fi
    while read -r name value; do
        row smoke "$name" seen "$value" ''
    done <"$out/device.log"
}

# run_cuda_tests STEP ROOM: the room's tests of CUDA devices
run_cuda_tests() {
    for program in "$kit/tests/test-$2-cuda"*; do
        run_test "$1" "$(basename "$program" | cut -c6-)" "$program"
    done
}

# run_suite STEP ROOM: the room's tests that no device is named in, with all tensors there
run_suite() {
    while read -r name share filter <&3; do
        case $name in
        "$2"-*) run_test "$1" "$name" env EDDY_DEVICE=cuda "EDDY_TEST_SHARE=$share" "$kit/tests/test-$name" --filter "$filter" ;;
        esac
    done 3<"$kit/tests/suite"
}

step_ops() {
    run_cuda_tests ops functional
    run_test ops functional-cuda_attention-rounded env EDDY_ALLOW_ROUNDED_WEIGHTS=1 "$kit/tests/test-functional-cuda_attention"
    run_suite ops functional
}

step_programs() {
    run_cuda_tests programs program
    run_suite programs program
    run_suite programs interpreter
}

# What the fake driver alone can do is skipped by the tests themselves, or left out: calls and work that fail on request, streams that are none; so is what needs two devices. A device is lost by a kernel
# that traps.
step_life() {
    if in_kit "$kit/bin/cuda_lost" >"$out/lost.log" 2>&1; then
        row life trap passed "$(sed -n 's/^lost: //p' "$out/lost.log" | tr -d '"')" ''
    else
        row life trap failed "$(tail -n 1 "$out/lost.log" | tr -d '"')" ''
    fi
    run_test life interpreter "$kit/tests/test-interpreter-cuda"
    run_test life across "$kit/tests/test-interpreter-cuda_across"
    run_test life streams "$kit/tests/test-streams-cuda" --filter 'cuda/*'
    run_test life conformance "$kit/tests/test-streams-cuda" --filter 'cuda_conformance/*'
    run_test life copies "$kit/tests/test-interpreter-cuda_copies" \
        --filter 'cuda_copies/@(what_goes_there_comes_back|maps_are_written_back|many_are_under_way_at_once|pinned_memory_is_bounded_counted_and_trimmed|a_runtime_ends_after_its_copies)'
    run_test life dlpack "$kit/tests/test-exchange-cuda_dlpack" \
        --filter 'cuda_dlpack/@(the_consumers_stream_comes_after_what_was_issued|without_a_stream_the_elements_are_there|reads_in_flight_come_before_the_consumers_writes|no_call_with_a_stream_waits_for_the_device|layouts_and_offsets_are_understood|pinned_and_managed_memory_is_the_hosts|a_runtime_may_end_before_the_deleters_ran|one_thread_is_enough)'
}

# Few tests of each kind of kernel, as each takes a sanitizer some seconds: the device of tensors that name none, the test, a filter.
sanitized='cuda elementwise elementwise/@(logic_takes_any_dtype_and_bits_take_no_floats|gradients_are_the_slopes)
cpu cuda cuda/casts_have_the_bits_of_the_cpu
cpu cuda_reduce cuda_reduce/@(the_largest_element_has_the_gradient|targets_are_written_in_place)
cpu cuda_softmax cuda_softmax/@(long_lines_are_cut_into_chunks|targets_are_parts_of_other_tensors)
cpu cuda_sort cuda_sort/@(many_lines_and_a_long_one|targets_are_written_where_they_lie)
cpu cuda_scatter cuda_scatter/@(scatter_and_scatter_add|the_lowest_position_of_many_is_named)
cpu cuda_attention cuda_attention/@(special_numbers|gradients_go_through)
cpu cuda_late cuda_late/@(nonzero_of_any_shape_and_layout|unique_of_equals_that_differ_in_bits)
cpu cuda_product cuda_product/@(linear|that_lies_column_by_column)'

step_sanitize() {
    if ! command -v compute-sanitizer >/dev/null; then
        row sanitize compute-sanitizer skipped 'not found' ''
        return
    fi
    while read -r device noun filter <&3; do
        for tool in ${GPU_CHECK_TOOLS:-memcheck racecheck initcheck synccheck}; do
            run_test sanitize "$noun-$tool" env "EDDY_DEVICE=$device" compute-sanitizer --tool "$tool" --target-processes all --error-exitcode 9 \
                "$kit/tests/test-functional-$noun" --filter "$filter"
        done
    done 3<<END
$sanitized
END
}

# Products differ in their last bits, and so do losses, more with each step.
step_train() {
    for device in cpu cuda; do
        log=$out/train-$device.log
        if in_kit env EDDY_DEVICE=$device "$kit/bin/char_transformer" --steps "${GPU_CHECK_STEPS:-100}" --sample 0 \
            --checkpoint "$out/weights-$device" --losses "$out/losses-$device" "$kit/text" >"$log" 2>&1; then
            row train "last loss on $device" measured "$(tail -n 1 "$out/losses-$device")" ''
        else
            row train "$device" failed "$(tail -n 1 "$log" | tr -d '"')" ''
        fi
    done
    rm -f "$out/weights-cpu" "$out/weights-cuda"
}

# Of the bench's table, whose columns two blanks part at least: a line for each row, of its name, Eddy's figure and those beside it, the goal with its verdict.
# "-": Eddy has none.
# shellcheck disable=SC2016  # these are awk's
figures='
    function figure(text) { return text ~ /^not measured: / ? "-" : text }
    function flush() { if (name != "") print name "|" value "|" goal }
    /^cuda_/ {
        flush()
        name = $1
        value = figure($4)
        if (value != "-") value = value " " $2
        goal = match($0, /<= .*(met|missed|\?)\??( |$)/) ? substr($0, RSTART, RLENGTH) : ""
        sub(/ $/, "", goal)
    }
    /^  / && $2 ~ /^[A-Za-z]/ && value != "-" { value = value ", " $2 " " figure($3) }
    END { flush() }'

# Rows that Eddy has no figure for have failed, and are counted. A goal that is missed is no failure.
step_bench() {
    if ! command -v python3 >/dev/null; then
        row bench python3 skipped 'not found' ''
        return
    fi
    set -f
    set --
    for name in ${GPU_CHECK_ROWS:-cuda_*}; do
        set -- "$@" --only "$name"
    done
    set +f
    timeout "$(left)" python3 -B "$kit/bench/run.py" --build "$kit" --rounds 1 --samples 9 --retries 0 "$@" \
        >"$out/bench.log" 2>"$out/bench.err" || row bench run.py failed "$out/bench.err" ''
    awk -F '  +' "$figures" "$out/bench.log" >"$out/figures"
    missing=0
    while IFS='|' read -r name value goal; do
        if [ "$value" = - ]; then
            missing=$((missing + 1))
        else
            row bench "$name" measured "$value" "$goal"
        fi
    done <"$out/figures"
    [ "$missing" -eq 0 ] || row bench 'rows without a figure' failed "$missing" "rows, $out/bench.log"
    [ -s "$out/figures" ] || row bench 'no row' failed "$(grep '^skipped' "$out/bench.log" | tr -d '"')" "$out/bench.log"
}

step_nsys() {
    if ! command -v nsys >/dev/null; then
        row nsys nsys skipped 'not found' ''
        return
    fi
    if in_kit env EDDY_DEVICE=cuda nsys profile --force-overwrite true -o "$out/trace" \
        "$kit/bin/char_transformer" --steps 20 --sample 0 --checkpoint "$out/weights" "$kit/text" >"$out/nsys.log" 2>&1; then
        row nsys trace made "$out/trace.nsys-rep" ''
    else
        row nsys trace failed "$out/nsys.log" ''
    fi
    rm -f "$out/weights"
}

# What this call adds to the report, by step and verdict.
table() {
    echo
    tail -n +"$((lines_before + 1))" "$report" | awk -F'"' '
        !($4 in seen) { steps[++count] = $4; seen[$4] = 1 }
        { verdicts[$4, $12]++ }
        END {
            printf "%-9s %7s %7s %7s %7s\n", "step", "passed", "failed", "skipped", "others"
            for (i = 1; i <= count; i++) {
                s = steps[i]
                all = 0
                for (v in verdicts) { split(v, of, SUBSEP); if (of[1] == s) all += verdicts[v] }
                passed = verdicts[s, "passed"] + 0; lost = verdicts[s, "failed"] + 0; skipped = verdicts[s, "skipped"] + 0
                printf "%-9s %7d %7d %7d %7d\n", s, passed, lost, skipped, all - passed - lost - skipped
            }
        }'
}

[ -f "$report" ] || : >"$report"
lines_before=$(wc -l <"$report")
row kit commit seen "$(cat "$kit/commit" 2>/dev/null)" ''
for step; do
    begun=$(date +%s)
    case $step in
    smoke) step_smoke ;;
    ops) step_ops ;;
    programs) step_programs ;;
    life) step_life ;;
    sanitize) step_sanitize ;;
    train) step_train ;;
    bench) step_bench ;;
    nsys) step_nsys ;;
    esac
    row "$step" seconds measured "$(($(date +%s) - begun))" s
done
table
exit $failed
