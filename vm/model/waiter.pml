/* Section 9: the waiter's word, timeouts, recycling of the block, a lend whose asker has gone (W1, W2), and the nudge that sends a
 * sleeper back to helping.
 *
 * Asserted: a block is used by the wait that took it alone; what a wait returns is its own result, complete; a
 * block goes back to the pool once. Reached in every run: all blocks in the pool, all lends ended. */
#include "primitives.pml"

#define THREADS 2
#define BLOCKS 2
#ifndef WAITS
#define WAITS 2 /* a thread */
#endif
#define PENDING 0
#define DONE 1
#define ABANDONED 2
#define SLEEPING 3

typedef block_type {
    byte word;
    byte result; /* of the wait it belongs to: its number */
    byte holder; /* ghost: number of the wait, 0 in the pool */
};
block_type blocks[BLOCKS];
byte pool = 3; /* a set */
byte sleeps_on[THREADS] = NOBODY;
chan instructions = [BLOCKS] of { byte, byte, bool, bool }; /* block, number of the wait, is_lend, is_patient */
bool kernels[BLOCKS]; /* queued with the team, wanted by the wait that has the block */
byte threads_done, lends_open;

inline take_block()
{
    atomic {
        pool != 0;
        b = 0;
        do
        :: !HAS(pool, b) -> b++
        :: else -> break
        od;
        DROP(pool, b);
        blocks[b].word = PENDING;
        blocks[b].result = 0;
        blocks[b].holder = number
    }
}

/* A futex wake: the block may be another wait's by now, whose thread then wakes in vain. */
inline wake(b)
{
    if
    :: sleeps_on[0] == b -> sleeps_on[0] = NOBODY
    :: else -> skip
    fi;
    if
    :: sleeps_on[1] == b -> sleeps_on[1] = NOBODY
    :: else -> skip
    fi
}

inline recycle_block(b)
{
    atomic {
        assert(blocks[b].holder != 0 && !HAS(pool, b));
        blocks[b].holder = 0;
        ADD(pool, b)
    }
}

active [THREADS] proctype waiting_thread()
{
    byte b, number, round;
    bool is_lend, is_patient, is_abandoned;
    do
    :: round < WAITS ->
        atomic {
            round++;
            number = 1 + _pid * WAITS + round;
            if :: is_lend = true :: is_lend = false fi;
            if :: is_patient = true :: is_patient = false fi /* without a timeout: helps with kernels */
        };
        take_block();
        instructions ! b, number, is_lend, is_patient;
        do
        :: atomic { blocks[b].word == DONE -> break }
        :: atomic { is_patient && kernels[b] -> kernels[b] = false } /* helps */
        :: atomic { blocks[b].word == PENDING && !(is_patient && kernels[b]) -> skip }; /* nothing to help with */
            atomic {
                if
                :: blocks[b].word == PENDING -> blocks[b].word = SLEEPING
                :: else -> skip
                fi
            };
#ifndef BUG_SLEEPS_WITHOUT_ANOTHER_LOOK
            if
            :: atomic { is_patient && kernels[b] -> kernels[b] = false }
            :: atomic { !(is_patient && kernels[b]) -> skip }
            fi
#endif
        :: atomic { blocks[b].word == SLEEPING -> sleeps_on[_pid] = b };
            if
            :: atomic { sleeps_on[_pid] == NOBODY -> /* woken, perhaps in vain: looks again */
#ifdef BUG_WOKEN_MEANS_DONE
                break
#else
                skip
#endif
                }
            :: atomic { !is_patient && sleeps_on[_pid] != NOBODY -> sleeps_on[_pid] = NOBODY }; /* the time is over */
                atomic {
                    if
                    :: blocks[b].word == PENDING || blocks[b].word == SLEEPING ->
                        blocks[b].word = ABANDONED;
                        is_abandoned = true
                    :: else -> skip /* the exchange gave DONE: in time after all */
                    fi
                };
                break
            fi
        od;
        if
        :: atomic { is_abandoned -> is_abandoned = false };
#ifdef BUG_BOTH_RECYCLE
            recycle_block(b)
#endif
        :: !is_abandoned ->
            atomic {
                assert(blocks[b].holder == number);
                assert(blocks[b].result == number);
                if
                :: is_lend -> assert(lends_open > 0); lends_open-- /* ends what it was lent */
                :: else -> skip
                fi
            };
            recycle_block(b)
        fi;
        atomic { b = 0; number = 0; is_lend = false; is_patient = false }
    :: round == WAITS -> break
    od;
    threads_done++
}

/* Retires instructions in any order of their being ready; here, of their coming. */
active proctype engine()
{
    byte b, number, old;
    bool is_lend, is_patient;
end:
    do
    :: instructions ? b, number, is_lend, is_patient;
        if
        :: is_lend -> lends_open++
        :: !is_lend
        fi;
        if
        :: skip
        :: is_patient -> /* a kernel is in its way, and every worker is busy for good: only the waiting thread can run it */
            kernels[b] = true;
            atomic { /* nudges */
                if
                :: blocks[b].word == SLEEPING -> blocks[b].word = PENDING; wake(b)
                :: else -> skip
                fi
            };
            !kernels[b]
        fi;
#ifdef BUG_RESULT_AFTER_DONE
        atomic { old = blocks[b].word; blocks[b].word = DONE };
        atomic { assert(blocks[b].holder == number); blocks[b].result = number };
#else
        atomic { assert(blocks[b].holder == number); blocks[b].result = number };
#ifdef BUG_DONE_BY_TEST_AND_STORE
        old = blocks[b].word;
        if
        :: old != ABANDONED -> blocks[b].word = DONE
        :: old == ABANDONED
        fi;
#else
        atomic { old = blocks[b].word; blocks[b].word = DONE };
#endif
#endif
        if
        :: old == PENDING -> skip
        :: atomic { old == SLEEPING -> wake(b) }
        :: old == ABANDONED ->
#ifndef BUG_ABANDONED_LEND_STAYS_OPEN
            if
            :: atomic { is_lend -> assert(lends_open > 0); lends_open-- }
            :: !is_lend
            fi;
#endif
            recycle_block(b)
        fi;
        atomic { old = 0; b = 0; number = 0; is_lend = false; is_patient = false }
    od
}

active proctype observer()
{
    threads_done == THREADS && pool == 3 && lends_open == 0 && empty(instructions)
}
