/* base/fork_gate.c: threads that are inside while they hold a library's lock, and forks that wait for them. Each thread has a slot of its own: shared slots
 * only add up. The deadline of a fork is left out.
 *
 * Asserted: no fork copies the process while a thread is inside. Reached in every run, or the verifier reports an invalid end state: all have finished, so
 * that nobody sleeps at a gate that is open. */
#include "primitives.pml"

#ifndef THREADS
#define THREADS 2
#endif
#ifndef FORKS
#define FORKS 1
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif

byte closed; /* forks under way */
bool is_inside[THREADS], sleeps[THREADS];
bool holds[THREADS]; /* ghost: between enter and leave */

proctype thread(byte self)
{
    byte round, forks;
    do
    :: round < ROUNDS ->
        do
        :: true ->
#ifdef BUG_LOOKS_BEFORE_IT_ENTERS
            forks = closed;
            is_inside[self] = true;
#else
            is_inside[self] = true;
            forks = closed;
#endif
            if
            :: forks == 0 -> break
            :: else ->
#ifndef BUG_STAYS_INSIDE
                is_inside[self] = false;
#endif
                FUTEX_WAIT(closed, forks, sleeps[self])
            fi
        od;
        holds[self] = true;
        holds[self] = false;
        is_inside[self] = false;
        round++
    :: else -> break
    od
}

proctype fork()
{
    byte i;
#ifdef BUG_CLOSES_BEHIND_THE_LOOK
    for (i : 0 .. THREADS - 1) { !is_inside[i] }
    closed++;
#else
    closed++;
    for (i : 0 .. THREADS - 1) { !is_inside[i] }
#endif
    for (i : 0 .. THREADS - 1) { assert(!holds[i]) }
#ifdef BUG_FORK_OPENS_FOR_ALL
    closed = 0;
#else
    closed--;
#endif
#ifndef BUG_WAKES_NOBODY
    for (i : 0 .. THREADS - 1) { FUTEX_WAKE(sleeps[i]) }
#endif
}

init
{
    byte i;
    atomic {
        for (i : 0 .. THREADS - 1) { run thread(i) }
        for (i : 1 .. FORKS) { run fork() }
    }
}
