/* Sections 2, 3, 4, 5, 6, 7 and 8 of PROTOCOL.md: submission, the three places, edges, retirement, release, reuse
 * of numbers. Two threads issue and hand a storage on; scheduler thread and workers share the engine role.
 *
 * Asserted: who touches a shared line owns it (D1); a use sees exactly the writes submitted before it; nothing is
 * used or freed twice after its release; the ring gives each record once, in order (S1, R1, R2); the role has one
 * holder (E1). Reached in every run, or the verifier reports an invalid end state: all retired, all freed, ring
 * empty (F2).
 *
 * PROGRAM chooses what the threads do, WORKERS how many run kernels. The scheduler thread's sleep is reduced to
 * waiting for is_woken: wake.pml has the whole of it. */
#include "primitives.pml"

#ifndef PROGRAM
#define PROGRAM 1
#endif
#ifndef WORKERS
#define WORKERS 1
#endif
#ifndef RING
#define RING 4
#endif
#ifndef STORAGES
#define STORAGES 2
#endif
#define OPS 5
#define PADDING 200
#define RELEASES_ONLY 201

typedef op_type {
    byte reads;            /* storages; a set */
    byte writes;           /* likewise */
    bool writes_twice;     /* its first written storage stands there twice */
    byte waits;            /* engine: instructions it has an unsatisfied edge from */
    byte expect[STORAGES]; /* ghost: writes submitted to the storage before this one */
};
typedef line_type {
    bool ready;
    byte op;
    byte lines;
    byte releases; /* storages */
};
op_type ops[OPS];
line_type ring[RING];

byte L;                    /* 0 free, else thread + 1 */
byte tail;                 /* lock: L; read without it for the stamp */
byte head;                 /* engine */
byte consumed;             /* head, published */
byte submitted[STORAGES];  /* lock: L */
byte retired[STORAGES];    /* engine */
byte pending;              /* releases that wait for a record; lock: L */
byte free_numbers;         /* lock: L */
byte freed_by_engine;      /* ring of numbers */
byte listed;               /* the lock-free list of releases */
byte stamp[STORAGES];      /* of a listed release */
bool is_woken;             /* something was pushed for the scheduler thread */

byte E;                    /* 0 free, 1 as the holder has seen it, 2 requested since */
bool has_engine;           /* ghost: somebody is in the role */
byte kept;                 /* engine: taken off the list, stamp not reached */
byte is_released;          /* engine: released, freed by its last user */
byte last_writer[STORAGES];
byte readers[STORAGES];
byte to_workers, completions, live;

/* Ghosts of the storages: the truth that the assertions compare with. */
byte alive, written_to;
byte being_read[STORAGES];
byte version[STORAGES];
byte writes_submitted[STORAGES];
byte references[STORAGES];
byte threads_done;
byte stamps_held;
bool handed_over;

#define LINE(position) ring[(position) % RING]
#define PADDING_LINES(n) (((tail % RING) + (n) > RING) -> (RING - tail % RING) : 0)
#ifdef BUG_RING_OVERRUN /* R2 without the line that is marked empty */
#define ROOM(n) (tail + PADDING_LINES(n) + (n) - consumed <= RING)
#else
#define ROOM(n) (tail + PADDING_LINES(n) + (n) + 1 - consumed <= RING)
#endif
#define IDLE(s) (submitted[s] == retired[s])
#define IDLE_OR_UNNAMED(o, s) (!HAS(ops[o].reads | ops[o].writes, s) || IDLE(s))
#define MENTIONS(o, s) (HAS(ops[o].reads, s) + HAS(ops[o].writes, s) + \
                        (ops[o].writes_twice && HAS(ops[o].writes, s)))

/* The kernel: it begins in one step and ends in a later one, so that what others do in between is seen. by_caller:
 * under L, where by D1 all must be idle. */
inline check_touch(o, by_caller)
{
    assert(HAS(alive, k));
    assert(by_caller == IDLE(k))
}

inline begin_kernel(o, by_caller)
{
    k = 0;
    do
    :: k < STORAGES ->
        if
        :: MENTIONS(o, k) ->
            check_touch(o, by_caller);
            assert(!HAS(written_to, k));
            assert(version[k] == ops[o].expect[k]);
            if
            :: HAS(ops[o].writes, k) -> assert(being_read[k] == 0); ADD(written_to, k)
            :: else -> being_read[k]++
            fi
        :: else -> skip
        fi;
        k++
    :: else -> break
    od;
    k = 0
}

inline end_kernel(o, by_caller)
{
    k = 0;
    do
    :: k < STORAGES ->
        if
        :: MENTIONS(o, k) ->
            check_touch(o, by_caller);
            if
            :: HAS(ops[o].writes, k) -> version[k]++; DROP(written_to, k)
            :: else -> being_read[k]--
            fi
        :: else -> skip
        fi;
        k++
    :: else -> break
    od;
    k = 0
}

#ifdef BUG_STAMP_IGNORED
#define STAMP_REACHED(s) true
#else
#define STAMP_REACHED(s) (head >= stamp[s])
#endif
#define FREEABLE ((HAS(listed | kept, 0) && STAMP_REACHED(0)) || (HAS(listed | kept, 1) && STAMP_REACHED(1)))

/* Only equality of the counters is ever looked at, so equal counters are the same state. */
inline add_to_retired(s, mentions)
{
    retired[s] = retired[s] + mentions;
    if
    :: retired[s] == submitted[s] -> retired[s] = 0; submitted[s] = 0
    :: else -> skip
    fi
}

inline free_storage(s)
{
    assert(HAS(alive, s) && references[s] == 0);
    assert(!HAS(written_to, s) && being_read[s] == 0);
    assert(version[s] == writes_submitted[s] && IDLE(s));
    DROP(alive, s)
}

/* ---- the engine: every inline from here to `engine` runs in the role ---- */

inline engine_release(s)
{
    if
#ifdef BUG_RELEASE_IGNORES_USERS
    :: true -> free_storage(s); ADD(freed_by_engine, s)
#else
    :: last_writer[s] == NOBODY && readers[s] == 0 -> free_storage(s); ADD(freed_by_engine, s)
    :: else -> ADD(is_released, s)
#endif
    fi
}

inline forget(o)
{
    ops[o].reads = 0; ops[o].writes = 0; ops[o].writes_twice = 0; ops[o].waits = 0;
    ops[o].expect[0] = 0; ops[o].expect[1] = 0
}

/* Takes the instruction out of the graph: engine-private. */
inline unlink_op(o)
{
    k = 0;
    do
    :: k < STORAGES ->
        if
        :: last_writer[k] == o -> last_writer[k] = NOBODY
        :: else -> skip
        fi;
        DROP(readers[k], o);
        k++
    :: else -> break
    od;
    DROP(live, o);
    k = 0;
    do
    :: k < OPS ->
        if
        :: HAS(live, k) && HAS(ops[k].waits, o) ->
            DROP(ops[k].waits, o);
            if
            :: ops[k].waits == 0 -> ADD(to_workers, k)
            :: else -> skip
            fi
        :: else -> skip
        fi;
        k++
    :: else -> break
    od;
    k = 0
}

/* The last that the engine has to do with the storage for this instruction, unless the storage was released. */
inline retire_from(o, s)
{
    if
    :: MENTIONS(o, s) ->
#ifndef BUG_RETIRED_BEFORE_EFFECT
        add_to_retired(s, MENTIONS(o, s));
#endif
        if
        :: HAS(is_released, s) && last_writer[s] == NOBODY && readers[s] == 0 ->
            DROP(is_released, s); free_storage(s); ADD(freed_by_engine, s)
        :: else -> skip
        fi
    :: else -> skip
    fi
}

/* Writes before reads; an instruction takes no edge from itself. */
inline link_op(o)
{
    k = 0;
    do
    :: k < STORAGES ->
        if
        :: HAS(ops[o].writes, k) ->
            if
            :: last_writer[k] != NOBODY -> ADD(ops[o].waits, last_writer[k])
            :: else -> skip
            fi;
#ifndef BUG_WRITE_PASSES_READERS
            ops[o].waits = ops[o].waits | readers[k];
#endif
            last_writer[k] = o;
            readers[k] = 0;
            if
#ifdef BUG_SECOND_MENTION_WAITS_FOR_FIRST /* "a write takes an edge from the last writer", itself included */
            :: ops[o].writes_twice -> ADD(ops[o].waits, o)
#endif
            :: else -> skip
            fi
        :: else -> skip
        fi;
        k++
    :: else -> break
    od;
    k = 0;
    do
    :: k < STORAGES ->
        if
        :: HAS(ops[o].reads, k) ->
            if
            :: last_writer[k] != NOBODY && last_writer[k] != o -> ADD(ops[o].waits, last_writer[k])
            :: else -> skip
            fi;
            ADD(readers[k], o)
        :: else -> skip
        fi;
        k++
    :: else -> break
    od;
    k = 0
}

/* Positions count modulo the ring while nobody holds a stamp and the lines below are read: fewer states. */
inline forget_positions()
{
    if
    :: head >= RING && tail >= RING && stamps_held == 0 -> head = head - RING; consumed = head; tail = tail - RING
    :: else -> skip
    fi
}

inline finish_record()
{
    k = LINE(head).lines;
    LINE(head).op = 0; LINE(head).lines = 0; LINE(head).releases = 0; /* not `ready`: that is the issuers' */
    head = head + k;
    o = 0; k = 0
}

inline take_record()
{
    o = LINE(head).op;
    assert(LINE(head).lines >= 1);
    assert(o < OPS || o == PADDING || o == RELEASES_ONLY);
    /* Releases in spare room: every use stands in an earlier record; this one's storages nobody has released. */
    s = 0;
    do
    :: s < STORAGES ->
        if
        :: HAS(LINE(head).releases, s) -> engine_release(s)
        :: else -> skip
        fi;
        s++
    :: else -> break
    od;
    s = 0;
    if
    :: o < OPS -> link_op(o); assert(!HAS(live, o)); ADD(live, o)
    :: else -> skip
    fi;
#ifdef BUG_RETIRED_BEFORE_EFFECT
    if
    :: o < OPS -> add_to_retired(0, MENTIONS(o, 0)); add_to_retired(1, MENTIONS(o, 1))
    :: else -> skip
    fi
#endif
}

/* Work in any order of the sources, until there is none. */
inline work()
{
    do
    :: atomic { LINE(head).ready -> take_record();
        if
        :: o < OPS && ops[o].waits == 0 -> begin_kernel(o, false) /* engine: straight from the line */
        :: o < OPS ->
            if
            :: ops[o].waits == 0 -> ADD(to_workers, o)
            :: else -> skip
            fi;
            finish_record(); o = NOBODY
        :: o >= OPS -> finish_record(); o = NOBODY
        fi };
        if
        :: atomic { o != NOBODY -> end_kernel(o, false); unlink_op(o); retire_from(o, 0) };
            atomic { retire_from(o, 1); forget(o); finish_record(); consumed = head; forget_positions() }
        :: atomic { o == NOBODY -> o = 0; consumed = head; forget_positions() }
        fi
    :: atomic { completions != 0 -> o = 0;
        do
        :: !HAS(completions, o) -> o++
        :: else -> break
        od;
        DROP(completions, o);
        unlink_op(o); retire_from(o, 0) };
        atomic { retire_from(o, 1); forget(o); o = 0 }
    :: atomic { (listed | kept) != 0 && FREEABLE ->
        kept = kept | listed;
        listed = 0;
        s = 0;
        do
        :: s < STORAGES ->
            if
            :: HAS(kept, s) && STAMP_REACHED(s) ->
                DROP(kept, s); stamp[s] = 0; stamps_held--; engine_release(s)
            :: else -> skip
            fi;
            s++
        :: else -> break
        od;
        s = 0 }
    :: atomic { !LINE(head).ready && completions == 0 && !FREEABLE -> break }
    od
}

/* request(), the decision included; takes_role: local. */
inline request()
{
    if
    :: E == 0 -> E = 1; assert(!has_engine); has_engine = true; takes_role = true
    :: else -> E = 2
    fi
}

inline hold_role()
{
    do
    :: atomic { !takes_role -> break }
    :: takes_role -> work();
        if
#ifdef BUG_ROLE_DROPPED_BLINDLY
        :: atomic { E = 0; has_engine = false; takes_role = false }
#else
        :: atomic { E == 1 -> E = 0; has_engine = false; takes_role = false }
        :: atomic { E == 2 -> E = 1 } /* the cas failed: seen is the newer count */
#endif
        fi
    od
}

active proctype scheduler()
{
    byte k, s, o;
    bool takes_role;
end:
    do
    :: atomic { is_woken -> is_woken = false; request() }; hold_role()
    od
}

active [WORKERS] proctype worker()
{
    byte k, s, o, mine;
    bool takes_role;
end:
    do
    :: atomic { to_workers != 0 -> mine = 0;
        do
        :: !HAS(to_workers, mine) -> mine++
        :: else -> break
        od;
        DROP(to_workers, mine);
        begin_kernel(mine, false) };
        atomic { end_kernel(mine, false); ADD(completions, mine); mine = 0 };
        atomic { request() };
        hold_role()
    od
}

/* ---- the issuers ---- */

#ifdef BUG_SUBMISSION_UNLOCKED
#define LOCK(n) ROOM(n)
#define UNLOCK() skip
#else
#define LOCK(n) L == 0 && ROOM(n) -> L = _pid + 1
#define UNLOCK() L = 0
#endif

inline publish_lines(what, n)
{
    d_step {
#ifndef BUG_NO_EMPTY_MARK
        LINE(tail + n).ready = false;
#endif
        LINE(tail).op = what;
        LINE(tail).lines = n;
        LINE(tail).releases = (what == PADDING -> 0 : pending);
        pending = (what == PADDING -> pending : 0);
        if
        :: n > 1 && what != PADDING -> LINE(tail + 1).ready = true /* argument bytes; any value */
        :: else -> skip
        fi
    }
    LINE(tail).ready = true;
    atomic { tail = tail + n; is_woken = true }
}

inline publish(what, n)
{
    if
    :: atomic { PADDING_LINES(n) != 0 -> pad = PADDING_LINES(n) }; publish_lines(PADDING, pad); pad = 0
    :: PADDING_LINES(n) == 0 -> skip
    fi;
    publish_lines(what, n)
}

/* rd, wr: sets of storages; n: lines. */
inline submit(id, rd, wr, twice, n)
{
    atomic {
        LOCK(n);
        ops[id].reads = rd;
        ops[id].writes = wr;
        ops[id].writes_twice = twice;
        k = 0;
        do
        :: k < STORAGES ->
            ops[id].expect[k] = writes_submitted[k];
            if
            :: HAS(wr, k) -> writes_submitted[k]++
            :: else -> skip
            fi;
            k++
        :: else -> break
        od;
        k = 0
    }
    if
    :: atomic { IDLE_OR_UNNAMED(id, 0) && IDLE_OR_UNNAMED(id, 1) ->
        begin_kernel(id, true) };
#ifdef BUG_CALLER_RUNS_UNLOCKED
        UNLOCK();
        atomic { LOCK(0); end_kernel(id, true); forget(id) }
#else
        atomic { end_kernel(id, true); forget(id) }
#endif
    :: atomic {
        k = 0;
        do
        :: k < STORAGES -> submitted[k] = submitted[k] + MENTIONS(id, k); k++
        :: else -> break
        od;
        k = 0 };
        publish(id, n)
    fi;
    UNLOCK()
}

/* Under L of a submission in the code; apart here, the number being the thread's alone until it is named. */
inline take_number(number)
{
    atomic {
        L == 0 && (free_numbers | freed_by_engine) != 0;
        free_numbers = free_numbers | freed_by_engine;
        freed_by_engine = 0;
        number = 0;
        do
        :: !HAS(free_numbers, number) -> number++
        :: else -> break
        od;
        DROP(free_numbers, number);
        assert(!HAS(alive, number) && IDLE(number));
        ADD(alive, number);
        version[number] = 0;
        writes_submitted[number] = 0;
        references[number] = 1
    }
}

inline release(number)
{
    if
    :: atomic { L == 0 -> L = _pid + 1 };
        if
        :: atomic { IDLE(number) -> free_storage(number); ADD(free_numbers, number) }
        :: atomic { !IDLE(number) -> ADD(pending, number) }
#if PROGRAM != 1 || defined(LONG) /* the array is full, or the release does not wait for company */
        :: atomic { !IDLE(number) && ROOM(1) -> ADD(pending, number) }; publish(RELEASES_ONLY, 1)
#endif
        :: atomic { !IDLE(number) && !ROOM(1) -> stamp[number] = tail; stamps_held++ };
            atomic { ADD(listed, number); is_woken = true }
        fi;
        L = 0
    :: atomic { L != 0 -> stamp[number] = tail; stamps_held++ };
        atomic { ADD(listed, number); is_woken = true }
    fi
}

inline drop_reference(number)
{
    if
    :: atomic { references[number] > 1 -> references[number]-- }
    :: atomic { references[number] == 1 -> references[number] = 0 }; release(number)
    fi
}

/* What any wait does first. */
inline publish_pending()
{
    if
#ifndef BUG_PENDING_FORGOTTEN
    :: atomic { pending != 0; LOCK(1) }; publish(RELEASES_ONLY, 1); UNLOCK()
    :: atomic { pending == 0 && L == 0 -> skip }
#else
    :: true
#endif
    fi
}

byte shared_number; /* what the first thread hands to the second, with a reference */

proctype first_thread()
{
    byte k, pad, x, y;
    take_number(x);
#if PROGRAM == 1 /* an in-place write races with the other thread's use and release */
    submit(0, 0, BIT(x), false, 1);
    atomic { references[x]++; shared_number = x; handed_over = true };
    submit(1, BIT(x), BIT(x), false, 1);
    drop_reference(x);
#elif PROGRAM == 2 /* written twice by one call, then handed on whole; makes again while the other releases */
    submit(0, 0, BIT(x), true, 1);
    atomic { shared_number = x; handed_over = true };
#ifdef LONG
    take_number(y);
    submit(1, 0, BIT(y), false, 2);
    drop_reference(y);
#endif
#elif PROGRAM == 3 /* makes, hands on, and sleeps: the last release is the other's, into an idle VM */
    submit(0, 0, BIT(x), false, 1);
    take_number(y);
    submit(1, BIT(x), BIT(y), false, 2);
    atomic { references[y]++; shared_number = y; handed_over = true };
    drop_reference(x);
    drop_reference(y);
#else /* laps: records of one and two lines, padding, stale bytes */
    submit(0, 0, BIT(x), false, 2);
    submit(1, BIT(x), 0, false, 2);
    atomic { shared_number = x; handed_over = true };
#endif
    publish_pending();
    threads_done++
}

proctype second_thread()
{
    byte k, pad, x, y;
    handed_over;
    x = shared_number;
#if PROGRAM == 1
    take_number(y);
    submit(2, BIT(x), BIT(y), false, 2);
    drop_reference(x);
    drop_reference(y);
#elif PROGRAM == 2
    submit(2, BIT(x), 0, false, 1);
    submit(3, 0, BIT(x), false, 1);
    drop_reference(x);
#elif PROGRAM == 3
    drop_reference(x);
    take_number(y);
    submit(2, 0, BIT(y), false, 1);
    drop_reference(y);
#else
    submit(2, BIT(x), 0, false, 2);
    submit(3, 0, BIT(x), false, 1);
    submit(4, BIT(x), 0, false, 2);
    drop_reference(x);
#endif
    publish_pending();
    threads_done++
}

init
{
    byte i;
    atomic {
        free_numbers = BIT(0) | BIT(1);
        i = 0;
        do
        :: i < STORAGES -> last_writer[i] = NOBODY; i++
        :: else -> break
        od;
        i = 0;
        run first_thread();
        run second_thread()
    }
    threads_done == 2 && alive == 0 && live == 0 && head == tail && E == 0 && pending == 0
}
