/* streams/team.c: permits. As many threads are in kernels as there are permits; who finds none sleeps, and who gives one back
 * wakes somebody where works are queued. In every run all works are done, or the verifier reports an invalid end state.
 *
 * A caller takes and gives back a permit of its own beside the workers; a pusher adds works. Steps are sequentially consistent. */
#include "primitives.pml"

#ifndef PERMITS
#define PERMITS 1
#endif
#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef WORKS
#define WORKS 2
#endif
#ifndef TURNS
#define TURNS 2
#endif

byte queued, done, kernels;
bool epoch_is_new[WORKERS]; /* raised since that worker read it */
bool sleeps[WORKERS];

/* Raises the epoch, and wakes one who sleeps. */
inline announce()
{
    atomic {
        byte w;
        for (w : 0 .. WORKERS - 1) { epoch_is_new[w] = true }
        if
        :: sleeps[0] -> sleeps[0] = false
        :: sleeps[1] -> sleeps[1] = false
        :: !sleeps[0] && !sleeps[1]
        fi
    }
}

inline permit_take()
{
    atomic {
        if
        :: kernels < PERMITS -> kernels++; has_permit = true
        :: else -> has_permit = false
        fi
    }
}

active [WORKERS] proctype worker()
{
    bool has_permit, looks;
    byte me = _pid;
    do
    :: epoch_is_new[me] = false;
        looks = queued > 0;
        has_permit = false;
        if
        :: atomic { looks -> looks = false };
            permit_take()
        :: !looks
        fi;
again:  if
        :: atomic { has_permit && queued > 0 -> queued-- };
            assert(kernels <= PERMITS);
            done++;
            /* It looks again at once: nobody need be told. */
            atomic { kernels--; has_permit = false }
        :: else ->
            if
            :: atomic { has_permit && queued == 0 -> skip };
                atomic { kernels--; has_permit = false } /* who adds a work meanwhile raises its epoch too */
            :: has_permit && queued > 0 -> goto again /* it has been queued since: the lock tells */
            :: !has_permit
            fi;
            atomic {
                if
                :: !epoch_is_new[me] -> sleeps[me] = true
                :: else -> skip
                fi };
end:        !sleeps[me]
        fi
    od
}

active proctype caller()
{
    bool has_permit, is_any;
    byte left = TURNS;
    do
    :: left > 0 ->
        permit_take();
        if
        :: has_permit ->
            assert(kernels <= PERMITS);
#ifdef BUG_LOOKS_BEFORE_GIVING_BACK
            is_any = queued > 0;
#endif
            kernels--;
#ifndef BUG_LOOKS_BEFORE_GIVING_BACK
            is_any = queued > 0;
#endif
#ifndef BUG_GIVES_BACK_IN_SILENCE
            if
            :: is_any -> announce()
            :: !is_any
            fi
#endif
        :: !has_permit
        fi;
        atomic { left--; has_permit = false; is_any = false }
    :: left == 0 -> break
    od
}

active proctype pusher()
{
    byte left = WORKS;
    do
    :: left > 0 ->
        queued++;
        announce();
        left--
    :: left == 0 -> break
    od
}

active proctype observer()
{
    done == WORKS
}
