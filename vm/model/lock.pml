/* The submission lock: one word, 0 free, 1 held, 2 held with sleepers. Spinning is left out: it only retries the
 * first step. A release tries once and never sleeps. */
#include "primitives.pml"

#define LOCKERS 3
#ifndef ROUNDS
#define ROUNDS 2
#endif

byte word;
byte holders; /* ghost */
bool sleeps[LOCKERS];

inline critical_section()
{
    holders++;
    assert(holders == 1);
    holders--
}

inline unlock()
{
    atomic { old = word; word = 0 };
    if
#ifdef BUG_UNLOCK_WAKES_NOBODY
    :: atomic { old == 2 -> old = 0 }
#else
    :: atomic { old == 2 -> old = 0;
        /* futex wake, one */
        if
        :: sleeps[0] -> FUTEX_WAKE(sleeps[0])
        :: sleeps[1] -> FUTEX_WAKE(sleeps[1])
        :: sleeps[2] -> FUTEX_WAKE(sleeps[2])
        :: else -> skip
        fi }
#endif
    :: atomic { old != 2 -> old = 0 }
    fi
}

active [LOCKERS] proctype locker()
{
    byte old, round;
    do
    :: round < ROUNDS ->
        if
        :: atomic { word == 0 -> word = 1 }
        :: word != 0 ->
            do
#ifdef BUG_SLEEPER_TAKES_ONE /* forgets that others may sleep */
            :: atomic { old = word; word = (old == 0 -> 1 : 2) };
#else
            :: atomic { old = word; word = 2 };
#endif
                if
                :: atomic { old == 0 -> break }
                :: atomic { old != 0 -> old = 0 }
                fi;
                FUTEX_WAIT(word, 2, sleeps[_pid])
            od
        fi;
        critical_section();
        unlock();
        round++
    :: else -> break
    od
}

active proctype releaser()
{
    byte old, round;
    do
    :: round < ROUNDS ->
        if
#ifdef BUG_TRY_OVERWRITES /* a test and a store instead of one cas */
        :: word == 0 -> word = 1; critical_section(); unlock()
#else
        :: atomic { word == 0 -> word = 1 }; critical_section(); unlock()
#endif
        :: word != 0 -> skip
        fi;
        round++
    :: else -> break
    od
}
