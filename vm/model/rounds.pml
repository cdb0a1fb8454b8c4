/* DEVICES.md section 6: a run that is launched in rounds. Models hand_over, give_tickets, end_arrived, eddy_device_release_held and reap_queue (vm/device.c), is_at_rest and launch_others (vm/shortage.c), launch_call and eddy_launch_end
 * (vm/launch.c), and the edges of a run and of an event behind it (vm/graph.c). What passes between the threads is ticket.pml's; a launch is one step here.
 *
 * OPS instructions come on two queues, one of them the run. The others touch its operand, or have operands of their own and look at the word of the last of these, or are an event of the run's stream.
 * The run takes the one block of memory, and so may those that do not touch its operand. It has ROUNDS rounds at most, each of ROUND_CALLS calls that change the operand in place and may
 * fail. The device may be lost at any moment.
 *
 * Asserted: what arrives is complete, or the device lost; a ticket that is marked, and a word that is looked at, is that of the instruction it is meant for (W3); a round begins once the last one has ended and all that is ahead of the run, in memory that
 * is the run's, and reads nothing that has failed; only the first one stalls, and nothing fails while a round that has memory is behind it; what touches the operand, and the event, come after the run; its poison is as its kernels have left it; in the end all rows are free, and the
 * block. What never ends is an invalid end state. */
#include "primitives.pml"

#ifndef OPS
#define OPS 3
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef ROUND_CALLS
#define ROUND_CALLS 1
#endif
#ifndef WINDOW
#define WINDOW 3
#endif
#ifdef BUG_AS_MANY_WORDS_AS_ROWS
#define WORDS WINDOW
#else
#define WORDS (2 * WINDOW)
#endif

#define CALL 0  /* of other storages */
#define TOUCH 1 /* a call that covers the operand of the run */
#define EVENT 2
#define RUN 3

/* What a word says. */
#define RAN 0
#define DID_NOT_RUN 1
#define FAILED 2

#define HEALTHY 0
#define SKIPPED 1 /* its bytes are as they were */
#define TORN 2

typedef op_type {
    byte kind, queue;
    byte waits_for;     /* edges that are not satisfied: a set of instructions, like all sets here */
    byte ahead;         /* of what touches the operand: what touches it ahead */
    byte source;        /* of a CALL: whose word it looks at, + 1 */
    byte source_ticket;
    byte first, ticket; /* of its last dispatch; the run is known by the last one of a round */
    bool takes;         /* the block */
    bool is_launched, is_failed; /* of its last dispatch; the latter: without memory, or with the device */
};
op_type ops[OPS];
byte issued, run_number = NOBODY, last_call = NOBODY;
byte ready, started, arrived, ended; /* sets; the first: also those held beyond the window */
byte complete;                /* a set: on the device, what was dispatched last; ghost but for what is waited for there */
byte ticket, oldest = 1;
bool is_open[WINDOW];
byte row_of[WINDOW];              /* ghost: the instruction */
byte word[WORDS], word_of[WORDS]; /* the latter: ghost, the ticket */
byte completed[2];
byte running;                     /* dispatched and not ended */
byte stalled = NOBODY, owner = NOBODY; /* in the launcher; of the block */
bool is_last_try, may_resume, is_lost;
bool is_short;                    /* of what is held only the run is dispatched */
byte taken;                       /* a set, for a bug: taken back from the launcher, with the tickets of before */
byte ended_rounds, run_rounds;    /* the latter: ghost, on the device */
bool goes_on;                     /* what a round has copied to the host */
byte run_health, poison;          /* of the operand: as the run knows it, and as the storage says */
byte truth;                       /* ghost: as its kernels have left it */
bool is_changed;                  /* ghost: a call of the run has begun */

chan held = [OPS] of {byte};
chan dispatched = [OPS] of {byte};
chan launched[2] = [OPS] of {byte};
chan on_device[2] = [OPS * (ROUND_CALLS + 1)] of {byte, byte}; /* instruction, ticket */
chan completions = [OPS] of {byte};

#define IS_RUN(o) (ops[o].kind == RUN)
#define TOUCHES(o) (ops[o].kind == TOUCH || IS_RUN(o))
#define TICKETS_OF(o) (IS_RUN(o) -> ROUND_CALLS + 1 : 1)
#define HAS_WINDOW(o) (ticket + TICKETS_OF(o) < oldest + WINDOW)
#ifdef BUG_DISPATCH_OF_A_RUN_LETS_GO
#define LETS_GO(o, behind) (!IS_RUN(behind))
#else
#define LETS_GO(o, behind) (!IS_RUN(o) && !IS_RUN(behind))
#endif

/* ---- the program ---- */

inline choose(o)
{
    if
    :: run_number == NOBODY -> ops[o].kind = RUN; run_number = o
    :: run_number != NOBODY -> ops[o].kind = EVENT; ops[o].queue = ops[run_number].queue
    :: run_number != NOBODY || o < OPS - 1 -> ops[o].kind = TOUCH
    :: run_number != NOBODY || o < OPS - 1 -> ops[o].kind = CALL
    :: run_number != NOBODY || o < OPS - 1 -> ops[o].kind = CALL; ops[o].takes = true
    fi;
    if
    :: o > 0 && ops[o].kind != EVENT -> ops[o].queue = 1
    :: skip
    fi
}

/* ---- the engine ---- */

inline link(o)
{
    i = 0;
    do
    :: i < o ->
        if
        :: TOUCHES(i) && TOUCHES(o) ->
            ADD(ops[o].ahead, i);
            if
            :: !HAS(ended, i) && !(HAS(started, i) && LETS_GO(i, o)) -> ADD(ops[o].waits_for, i)
            :: else -> skip
            fi
#ifndef BUG_AN_EVENT_PASSES_THE_RUN
        :: IS_RUN(i) && ops[o].kind == EVENT && !HAS(ended, i) -> ADD(ops[o].waits_for, i)
#endif
        :: else -> skip
        fi;
        i++
    :: else -> break
    od;
    i = 0;
    if
    :: ops[o].kind == CALL && last_call != NOBODY ->
        ops[o].source = last_call + 1;
        ops[o].waits_for = (HAS(started, last_call) -> 0 : BIT(last_call))
    :: else -> skip
    fi;
    last_call = (ops[o].kind == CALL -> o : last_call)
}

inline satisfy(o, by_dispatch)
{
    j = 0;
    do
    :: j < issued ->
        if
        :: !by_dispatch || LETS_GO(o, j) -> DROP(ops[j].waits_for, o)
        :: else -> skip
        fi;
        j++
    :: else -> break
    od;
    j = 0
}

inline open_rows(o)
{
    ops[o].first = ticket + 1;
    j = TICKETS_OF(o);
    do
    :: j > 0 ->
        ticket++; j--;
#ifdef BUG_CALLS_HAVE_NO_ROWS
        if
        :: j == 0 -> is_open[ticket % WINDOW] = true; row_of[ticket % WINDOW] = o
        :: else -> skip
        fi
#else
        assert(!is_open[ticket % WINDOW]);
        is_open[ticket % WINDOW] = true; row_of[ticket % WINDOW] = o
#endif
    :: else -> break
    od;
#ifdef BUG_EACH_CALL_IS_MARKED
    ops[o].ticket = ops[o].first
#else
    ops[o].ticket = ticket
#endif
}

inline hand_over(o)
{
    if
    :: HAS(taken, o) -> DROP(taken, o)
    :: else -> open_rows(o)
    fi;
    if
    :: ops[o].source != 0 && !HAS(ended, ops[o].source - 1) -> ops[o].source_ticket = ops[ops[o].source - 1].ticket
    :: else -> ops[o].source = 0
    fi;
    running++;
    DROP(complete, o);
    if
    :: !HAS(started, o) -> ADD(started, o); satisfy(o, true)
    :: else -> skip
    fi;
    dispatched!o
}

#define IS_RUN_HELD (held??[eval(run_number)])

/* As far as there is room. */
inline release_held()
{
    do
    :: is_short ->
        if
        :: IS_RUN_HELD && HAS_WINDOW(run_number) -> held??eval(run_number); hand_over(run_number)
        :: !(IS_RUN_HELD && HAS_WINDOW(run_number)) -> break
        fi
    :: !is_short && nempty(held) ->
        held?<k>;
        if
        :: HAS_WINDOW(k) -> held?k; hand_over(k)
        :: else -> break
        fi
    :: !is_short && empty(held) -> break
    od;
    k = 0
}

inline dispatch(o)
{
    if
    :: is_short || len(held) > 0 || !HAS_WINDOW(o) -> held!!o; release_held()
    :: else -> hand_over(o)
    fi
}

inline run_ready()
{
    i = 0;
    do
    :: i < issued ->
        if
        :: !HAS(ready, i) && ops[i].waits_for == 0 -> ADD(ready, i); dispatch(i); i = 0
        :: else -> i++
        fi
    :: else -> break
    od;
    i = 0
}

/* Nothing of it is read again. */
inline retire(o)
{
    ADD(ended, o);
#ifndef BUG_SHORT_FOR_EVER
    is_short = false;
#endif
    owner = (owner == o -> NOBODY : owner);
    last_call = (last_call == o -> NOBODY : last_call);
    satisfy(o, false);
    ops[o].queue = 0; ops[o].ahead = 0; ops[o].source = 0; ops[o].source_ticket = 0; ops[o].takes = false;
    ops[o].first = 0; ops[o].ticket = 0; ops[o].is_launched = false; ops[o].is_failed = false
}

/* What became of the round's calls, and whether there is another one. */
inline end_round(o)
{
    assert(run_rounds == ended_rounds + 1);
    j = ops[o].first;
    do
    :: j < ops[o].first + ROUND_CALLS ->
        assert(word_of[j % WORDS] == j);
        run_health = (run_health == HEALTHY && word[j % WORDS] == FAILED -> TORN : run_health);
        j++
    :: else -> break
    od;
    j = 0;
    ended_rounds++;
    is_over = !goes_on;
#ifdef BUG_MEMORY_GOES_WITH_A_ROUND
    owner = NOBODY;
#endif
    poison = (is_over -> run_health : poison);
    assert(!is_over || (poison == HEALTHY) == (truth == HEALTHY))
}

inline fail_run()
{
#ifdef BUG_THE_LAST_LAUNCH_ALONE_COUNTS
    poison = (ops[o].is_launched -> TORN : (poison == HEALTHY -> SKIPPED : poison));
#else
    poison = ((ops[o].is_launched || ended_rounds > 0) -> TORN : (poison == HEALTHY -> SKIPPED : poison));
#endif
    assert(poison == TORN || !is_changed)
}

inline end_op(o)
{
    from = ops[o].first; to = ops[o].first + TICKETS_OF(o) - 1;
    is_over = true;
    if
    :: IS_RUN(o) && !ops[o].is_failed -> end_round(o)
    :: IS_RUN(o) && ops[o].is_failed -> fail_run()
    :: ops[o].kind == TOUCH -> poison = (ops[o].is_failed || word[to % WORDS] != RAN -> TORN : HEALTHY)
    :: ops[o].kind == EVENT -> assert(HAS(ended, run_number))
    :: ops[o].kind == CALL
    fi;
    if
    :: is_over -> retire(o)
    :: else -> dispatch(o)
    fi;
    running--
}

inline close_rows()
{
#ifdef BUG_ROWS_OF_CALLS_STAY_OPEN
    from = to;
#endif
    do
    :: from <= to -> is_open[from % WINDOW] = false; row_of[from % WINDOW] = 0; from++
    :: else -> break
    od;
    do
    :: oldest <= ticket && !is_open[oldest % WINDOW] -> oldest++
    :: else -> break
    od;
    from = 0; to = 0; is_over = false
}

/* What touches the operand ends in the order of the program. */
inline end_arrived()
{
    o = 0;
    do
    :: o < issued ->
        if
        :: HAS(arrived, o) && (IS_RUN(o) || (ops[o].ahead & ~ended) == 0) -> DROP(arrived, o); end_op(o); close_rows(); o = 0
        :: else -> o++
        fi
    :: else -> break
    od;
    o = 0
}

/* Only what the launcher has is left. */
#ifdef BUG_AT_REST_COUNTS_TICKETS
#define WITH_LAUNCHER (ticket + 1 - ops[stalled].first)
#else
#define WITH_LAUNCHER (len(dispatched) + 1)
#endif
#define IS_AT_REST (running == WITH_LAUNCHER && empty(completions))

/* The run's next round is behind what is stalled, or waits for the window: all else is held until the run, or another instruction, has ended. */
#ifdef BUG_NOTHING_IS_TAKEN_BACK
#define MAY_TAKE_BACK false
#else
#define MAY_TAKE_BACK HAS_BEHIND
#endif
#define HAS_BEHIND (run_number != NOBODY && ended_rounds > 0 && (dispatched??[eval(run_number)] || held??[eval(run_number)]))

inline take_back(o)
{
    running--;
#ifdef BUG_TICKETS_ARE_KEPT
    ADD(taken, o);
#else
    from = ops[o].first; to = ops[o].first + TICKETS_OF(o) - 1;
#ifndef BUG_ROWS_OF_WHAT_IS_TAKEN_BACK_STAY_OPEN
    close_rows();
#endif
    from = 0; to = 0;
#endif
    held!!o
}

inline launch_others()
{
    i = stalled;
    take_back(i);
    stalled = NOBODY;
    do
    :: nempty(dispatched) -> dispatched?i; take_back(i)
    :: empty(dispatched) -> break
    od;
    i = 0;
    is_short = true;
    release_held()
}

active proctype engine()
{
    byte o, i, j, k, from, to;
    bool is_over;
    do
    :: atomic { issued < OPS ->
        choose(issued);
        issued++;
        link(issued - 1);
        run_ready() }
    :: atomic { completions?o ->
        ADD(arrived, o);
        end_arrived();
        release_held();
        run_ready() }
    :: atomic { stalled != NOBODY && !may_resume && owner == NOBODY -> may_resume = true }
    :: atomic { stalled != NOBODY && !may_resume && owner != NOBODY && IS_AT_REST && MAY_TAKE_BACK -> launch_others() }
    :: atomic { stalled != NOBODY && !may_resume && owner != NOBODY && issued == OPS && IS_AT_REST && !MAY_TAKE_BACK -> may_resume = true; is_last_try = true }
    :: atomic { ended == BIT(OPS) - 1 -> break }
    od;
    assert(oldest == ticket + 1 && owner == NOBODY)
}

/* ---- the launcher ---- */

#define TAKES(o) (IS_RUN(o) || ops[o].takes)

inline launch(o)
{
    j = ops[o].first;
    do
    :: j < ops[o].first + TICKETS_OF(o) ->
        word_of[j % WORDS] = j;
        word[j % WORDS] = (ops[o].is_launched -> RAN : DID_NOT_RUN);
        assert(row_of[j % WINDOW] == o);
        if
        :: is_lost
        :: !is_lost && j + 1 < ops[o].first + TICKETS_OF(o) && run_health != HEALTHY -> word[j % WORDS] = DID_NOT_RUN
        :: else -> on_device[ops[o].queue]!o, j
        fi;
        j++
    :: else -> break
    od;
    launched[ops[o].queue]!o;
    j = 0
}

inline try(o)
{
    ops[o].is_failed = is_lost;
    if
    :: !is_lost && TAKES(o) && owner != NOBODY && owner != o && !is_last_try ->
        assert(!IS_RUN(o) || ended_rounds == 0);
        stalled = o
    :: else ->
        ops[o].is_failed = is_lost || (TAKES(o) && owner != NOBODY && owner != o);
        assert(is_lost || !ops[o].is_failed || !HAS_BEHIND);
        ops[o].is_launched = !ops[o].is_failed;
        owner = (ops[o].is_launched && TAKES(o) -> o : owner);
        run_health = (IS_RUN(o) && ended_rounds == 0 -> poison : run_health);
        is_last_try = false;
        launch(o)
    fi
}

active proctype launcher()
{
    byte o, j;
end:
    do
    :: atomic { stalled == NOBODY && nempty(dispatched) -> dispatched?o; try(o); o = 0 }
    :: atomic { stalled != NOBODY && may_resume -> o = stalled; stalled = NOBODY; may_resume = false; try(o); o = 0 }
    od
}

/* ---- the device ---- */

inline run_call(o, t)
{
    assert((ops[o].ahead & ~ended) == 0 && run_rounds == ended_rounds && owner == o && truth == HEALTHY);
    is_changed = true;
    if
    :: word[t % WORDS] = RAN
    :: word[t % WORDS] = FAILED; truth = TORN
    fi
}

/* A call of a round looks at the one ahead of it in the round. */
inline run_item(o, t)
{
    if
    :: IS_RUN(o) && t < ops[o].first + ROUND_CALLS ->
        if
        :: t > ops[o].first && word[(t - 1) % WORDS] != RAN -> word[t % WORDS] = DID_NOT_RUN
        :: else -> run_call(o, t)
        fi
    :: IS_RUN(o) && t == ops[o].first + ROUND_CALLS ->
        if
        :: ops[o].is_launched -> run_rounds++
        :: else -> skip
        fi;
        if
        :: goes_on = false
        :: run_rounds < ROUNDS -> goes_on = true
        fi
    :: ops[o].kind == TOUCH && ops[o].is_launched ->
        assert(run_number == NOBODY || !HAS(ops[o].ahead, run_number) || HAS(ended, run_number));
        if
        :: truth = HEALTHY
        :: truth = TORN; word[t % WORDS] = FAILED
        fi
    :: ops[o].kind == CALL -> assert(ops[o].source == 0 || word_of[ops[o].source_ticket % WORDS] == ops[o].source_ticket)
    :: else -> skip
    fi
}

#define WAITED_FOR(o) (ops[o].ahead | (ops[o].source == 0 -> 0 : BIT(ops[o].source - 1)))

proctype device_queue(byte q)
{
    byte o, t;
end:
    do
    :: atomic { !is_lost && nempty(on_device[q]) ->
        on_device[q]?o, t;
        (is_lost || (WAITED_FOR(o) & ~ended & ~complete) == 0);
        if
        :: !is_lost ->
            run_item(o, t);
            if
            :: t == ops[o].first + TICKETS_OF(o) - 1 -> ADD(complete, o); completed[q] = t
#ifdef BUG_EACH_CALL_IS_MARKED
            :: t < ops[o].first + TICKETS_OF(o) - 1 -> completed[q] = t
#endif
            :: else -> skip
            fi
        :: is_lost
        fi;
        o = 0; t = 0 }
    od
}

/* Or never: what a loss would free is stuck. */
active proctype loser()
{
    if
    :: is_lost = true
    :: true
    fi
}

/* ---- the reaper ---- */

inline reap(q)
{
    atomic { nempty(launched[q]) ->
        launched[q]?<o>;
        (is_lost || ops[o].ticket <= completed[q]);
        launched[q]?o;
        ops[o].is_failed = ops[o].is_failed || ops[o].ticket > completed[q];
        assert(is_lost || HAS(complete, o));
        completions!o;
        o = 0 }
}

proctype reaper(byte q)
{
    byte o;
end:
    do
    :: reap(q)
    od
}

init
{
    atomic { run device_queue(0); run device_queue(1); run reaper(0); run reaper(1) }
}
