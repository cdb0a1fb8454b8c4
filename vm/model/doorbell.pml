/* What one thread sleeps on while its list is empty, and others append to (streams/doorbell.h, streams/launcher.c). Who appends to a list that was empty rings. The first one that finds
 * the sleeper asleep says that it is not, and wakes it; others need no call of the system. Spinning is left out. */
#include "primitives.pml"

#define RINGERS 2
#ifndef ROUNDS
#define ROUNDS 2
#endif
#define ALL (RINGERS * ROUNDS)

byte rings; /* compared for equality */
bool is_asleep;
byte listed; /* one appends, one takes all: a step each (base/lifo.h) */
bool sleeps;

active [RINGERS] proctype ringer()
{
    byte round;
    bool was;
    do
    :: round < ROUNDS ->
        round++;
        d_step { was = listed == 0; listed++ };
        if
#ifdef BUG_RINGS_FOR_THE_FIRST_ALONE /* as if what is taken once were never empty again */
        :: was && rings == 0 ->
#else
        :: was ->
#endif
            rings++;
            d_step { was = is_asleep };
            if
            :: was ->
                d_step { was = is_asleep; is_asleep = false };
                if
                :: was -> FUTEX_WAKE(sleeps)
                :: else -> skip
                fi
            :: else -> skip
            fi
        :: else -> skip
        fi
    :: else -> break
    od
}

active proctype sleeper()
{
    byte seen, taken;
    do
    :: taken == ALL -> break
    :: else ->
#ifndef BUG_HEARS_TOO_LATE
        seen = rings;
#endif
        if
        :: d_step { listed > 0 -> taken = taken + listed; listed = 0 }
        :: listed == 0 ->
#ifdef BUG_HEARS_TOO_LATE /* what is appended and rung for in between is missed */
            seen = rings;
#endif
#ifdef BUG_LOOKS_BEFORE_IT_SAYS_SO
            if
            :: rings == seen -> is_asleep = true; FUTEX_WAIT(is_asleep, true, sleeps)
            :: else -> skip
            fi;
#else
            is_asleep = true;
            if
#ifdef BUG_SLEEPS_ON_RINGS /* who rang before `seen` may take the word back, and wake nobody, between the look and the sleep */
            :: rings == seen -> FUTEX_WAIT(rings, seen, sleeps)
#else
            :: rings == seen -> FUTEX_WAIT(is_asleep, true, sleeps)
#endif
            :: else -> skip
            fi;
#endif
            is_asleep = false
        fi
    od
}
