/* Section 12: two VMs share the limit on memory. What starves in one waits while kernels of the other run, and fails once nobody's does.
 * Models take_completions and tell_others (vm/engine.c), and eddy_starved_relieve, waits_for_others, set_hungry, eddy_starved_tell_others and
 * eddy_starved_part (vm/starved.c).
 *
 * PROGRAM 1: the second of two kernels of VM 0 gives up what VM 1 starves for: that does not fail. 2: both run kernels that keep what they have, and both
 * starve for more: both fail. 3: a kernel of VM 0 never ends, and VM 0 is abandoned. 4: as 1, but it is a release that gives up what the only kernel of VM 0 has
 * read, and that VM 0 has not seen when the kernel ends. In each all that starves ends one way or the other,
 * or the verifier reports an invalid end state.
 *
 * Steps are sequentially consistent, as the operations on these words are. Who sleeps waits for was_told or a completion: wake.pml has
 * the sleep. */
#include "primitives.pml"

#ifndef PROGRAM
#define PROGRAM 1
#endif
#define VMS 2
#define LIMIT 2

byte used = LIMIT;            /* memory, in the one pool of all pools */
bool is_starved[VMS];         /* wants `wanted` */
byte wanted = (PROGRAM == 2 -> 1 : LIMIT);
bool is_next[VMS], runs[VMS], has_completed[VMS]; /* a kernel: waits for another, is at workers, on its way back */
bool has_running[VMS], is_hungry[VMS], was_told[VMS];
byte hungry_count;
bool sharing_lock;
bool has_parted[VMS];
bool has_release[VMS]; /* a caller's, which the engine has not taken */
bool has_failed[VMS], has_run[VMS];

inline lock_sharing() { atomic { !sharing_lock -> sharing_lock = true } }

inline set_hungry(me, value)
{
    atomic { was = is_hungry[me]; is_hungry[me] = value };
    if
    :: was != value -> hungry_count = (value -> hungry_count + 1 : hungry_count - 1)
    :: was == value
    fi;
    was = false
}

inline tell_others(me)
{
    if
    :: hungry_count == 0
    :: hungry_count > 0 ->
        lock_sharing();
        if
        :: atomic { is_hungry[1 - me] && !has_parted[1 - me] -> was_told[1 - me] = true }
        :: !is_hungry[1 - me] || has_parted[1 - me]
        fi;
        sharing_lock = false
    fi
}

inline retry(me)
{
    atomic {
        if
        :: used + wanted <= LIMIT -> used = used + wanted; is_starved[me] = false; has_run[me] = true
        :: else -> skip
        fi
    }
}

inline others_run(me)
{
    lock_sharing();
    are_others = !has_parted[1 - me] && has_running[1 - me];
    sharing_lock = false
}

inline fail_oldest(me)
{
    retry(me);
    atomic {
        if
        :: is_starved[me] -> is_starved[me] = false; has_failed[me] = true; assert(PROGRAM != 1 && PROGRAM != 4)
        :: else -> skip
        fi
    }
}

/* Nothing of its own runs. */
inline relieve(me)
{
    retry(me);
    if
    :: !is_starved[me] -> set_hungry(me, false)
    :: is_starved[me] ->
#ifdef BUG_LOOKS_BEFORE_SAYING
        others_run(me);
        set_hungry(me, true);
#elif defined(BUG_WAITS_FOR_NOBODY)
        skip;
#else
        set_hungry(me, true);
        others_run(me);
#endif
        if
        :: atomic { are_others -> are_others = false }
        :: !are_others -> set_hungry(me, false); fail_oldest(me)
        fi
    fi
}

/* Of an instruction that retires; or what waited for it begins. */
inline give_up_or_go_on(me)
{
    atomic {
        if
        :: is_next[me] -> is_next[me] = false; runs[me] = true; has_running[me] = true
        :: !is_next[me] && PROGRAM == 1 -> used = used - LIMIT
        :: else -> skip
        fi
    }
}

inline take_releases(me)
{
    atomic {
        if
        :: has_release[me] -> has_release[me] = false; used = used - LIMIT
        :: else -> skip
        fi
    }
}

inline say_nothing_runs(me)
{
    if
    :: atomic { !runs[me] && !has_completed[me] -> has_running[me] = false }
    :: runs[me] || has_completed[me]
    fi
}

active [VMS] proctype engine()
{
    bool was, are_others, has_moved;
end:
    do
    :: atomic { has_completed[_pid] -> has_completed[_pid] = false };
#ifdef BUG_SAYS_SO_BEFORE_GIVING_UP
        say_nothing_runs(_pid);
        give_up_or_go_on(_pid);
#else
        give_up_or_go_on(_pid);
#ifndef BUG_SAYS_SO_BEFORE_RELEASES
        take_releases(_pid);
#endif
        say_nothing_runs(_pid);
#endif
        has_moved = true;
#ifndef BUG_TELLS_NOBODY
        tell_others(_pid);
#endif
#ifdef BUG_SAYS_SO_BEFORE_RELEASES
        take_releases(_pid);
        tell_others(_pid);
#endif
        skip
    :: atomic { is_starved[_pid] && !runs[_pid] && !has_completed[_pid] && (!is_hungry[_pid] || was_told[_pid] || has_moved) ->
        was_told[_pid] = false; has_moved = false };
        relieve(_pid)
    od
}

active [VMS] proctype worker()
{
end:
    do
    :: atomic { runs[_pid - VMS] && !(PROGRAM == 3 && _pid == VMS) ->
        runs[_pid - VMS] = false; has_completed[_pid - VMS] = true }
    od
}

active proctype closer()
{
#if PROGRAM == 3 /* its time is over: eddy_starved_part */
    bool was;
    set_hungry(0, false);
    lock_sharing();
    has_parted[0] = true;
    sharing_lock = false;
#ifndef BUG_PARTS_IN_SILENCE
    tell_others(0);
#endif
#endif
    skip
}

init
{
    atomic {
        runs[0] = true; has_running[0] = true;
        is_next[0] = (PROGRAM == 1);
        has_release[0] = (PROGRAM == 4);
        runs[1] = (PROGRAM == 2); has_running[1] = runs[1];
        is_starved[0] = (PROGRAM == 2);
        is_starved[1] = true
    };
    !is_starved[0] && !is_starved[1] && (is_hungry[0] + is_hungry[1] == hungry_count)
}
