/* DEVICES.md sections 3 and 4: wait lists with vector clocks, and memory given back with tickets. Models eddy_device_dispatch (wait list,
 * clocks: vm/device.c), launch (waits, memory) and the edges of vm/graph.c that are satisfied by dispatch.
 *
 * TICKETS instructions come one after another, each on any queue, with edges from any earlier ones of other queues (those of its own queue
 * need none). The device begins them in any order that its queues and the wait lists allow. An instruction that is not launched is a ticket
 * alone, and waits all the same. For larger bounds, CLOCKS_ONLY leaves these and memory out, and with ONE_USER memory goes back with the launch that has taken it.
 *
 * Asserted: when an instruction begins, all that it must come after is complete: its sources, what is ahead in its queue, and what these
 * came after. If it has memory that was given with a ticket, all that has used that memory belongs to it. And the clock of a queue is joined whenever it is
 * still as the launch left it that is waited for: changed[r] <= t is neither too weak nor too strong. BUG_JOINS_ARE_IN_VAIN is no bug: it
 * asserts what must turn out wrong, that no wait is left out for a queue that was never waited for. */
#include "primitives.pml"

#ifndef TICKETS
#define TICKETS 5
#endif
#ifndef QUEUES
#define QUEUES 3
#endif
#define CLOCK(q, r) clock[(q) * QUEUES + (r)]
#define MAX(a, b) ((a) >= (b) -> (a) : (b))

/* By ticket; 0 is none. Sets of tickets have a bit for each. */
byte queue_of[TICKETS + 1], ahead[TICKETS + 1], wait_list[TICKETS + 1];
bool is_launched[TICKETS + 1];
byte needs[TICKETS + 1];                /* ghost: all that it comes after */
byte clock_at[(TICKETS + 1) * QUEUES];  /* ghost: the clock of its queue behind its waits */
byte clock[QUEUES * QUEUES], changed[QUEUES], last[QUEUES];
#ifdef BUG_JOINS_ARE_IN_VAIN
byte waited_for[QUEUES];                /* ghost: sets of queues */
#endif
byte given_by, given_in;                /* a block of the pool; 0: nobody had it yet */
byte writer, last_users;                /* of that block, while it is taken; the latter: a set */
byte used;                              /* ghost: all that has used it, and what that came after */
byte dispatched, complete;              /* the latter: a set */

/* The engine: an edge from s. If s has ended, which may show later than its completion, there is nothing to wait for. */
inline take_edge(t, q, s)
{
    needs[t] = needs[t] | needs[s] | BIT(s);
    if
    :: HAS(complete, s)
    :: true ->
#ifdef BUG_FIRST_OF_QUEUE_KEPT
        highest[queue_of[s]] = (highest[queue_of[s]] == 0 -> s : highest[queue_of[s]])
#else
        highest[queue_of[s]] = s /* they come in the order of tickets */
#endif
    fi
}

inline wait_for(t, q, r, source)
{
    if
#ifdef BUG_NEVER_WAITED_FOR_IS_LEFT_OUT
    :: CLOCK(q, r) == 0 -> CLOCK(q, r) = source; changed[q] = t
    :: CLOCK(q, r) != 0 && CLOCK(q, r) < source ->
#else
    :: CLOCK(q, r) >= source ->
#ifdef BUG_JOINS_ARE_IN_VAIN
        assert(HAS(waited_for[q], r));
#endif
        skip
    :: CLOCK(q, r) < source ->
#endif
        ADD(wait_list[t], source);
#ifdef BUG_JOINS_ARE_IN_VAIN
        ADD(waited_for[q], r);
#endif
        CLOCK(q, r) = source;
        changed[q] = t;
        i = 0; is_as_left = true;
        do
        :: i < QUEUES ->
            if
            :: CLOCK(r, i) != clock_at[source * QUEUES + i] -> is_as_left = false
            :: else -> skip
            fi;
            i++
        :: else -> break
        od;
        if
#if defined(BUG_NEWER_CLOCK_IS_JOINED)
        :: true ->
#elif defined(BUG_ONLY_OLDER_CLOCK_IS_JOINED)
        :: changed[r] < source ->
#else
        :: changed[r] <= source ->
#endif
            i = 0;
            do
            :: i < QUEUES -> CLOCK(q, i) = MAX(CLOCK(q, i), CLOCK(r, i)); i++
            :: else -> break
            od
        :: else -> assert(!is_as_left)
        fi;
        i = 0; is_as_left = false
    fi
}

/* Of the last users: whether they are in several queues, and the one with which the block is given back. */
inline find_last_users()
{
    giver = 0; is_apart = false; i = 1;
    do
    :: i <= TICKETS ->
        if
        :: HAS(last_users, i) ->
            is_apart = is_apart || (giver != 0 && queue_of[i] != queue_of[giver]);
#ifdef BUG_GIVEN_WITH_THE_LOWEST_TICKET
            giver = (giver == 0 -> i : giver)
#else
            giver = i
#endif
        :: else -> skip
        fi;
        i++
    :: else -> break
    od;
#ifdef BUG_GIVEN_FROM_SEVERAL_QUEUES
    is_apart = false;
#endif
    i = 0
}

/* The launcher. Its pool gives a block to the next launch of the queue at once, to others when the giver's ticket is complete. What has taken it writes it; others that come after
 * that read it, or write it after all that have read it. Given back it is with the last of those that no other comes after, or later, if these are in one queue. */
inline use_memory(t, q)
{
    if
    :: skip
#ifdef BUG_MEMORY_PASSES_BETWEEN_QUEUES
    :: last_users == 0 ->
#else
    :: last_users == 0 && (given_by == 0 || given_in == q || HAS(complete, given_by)) ->
#endif
        needs[t] = needs[t] | used;
        writer = t; last_users = BIT(t)
#ifndef ONE_USER
    :: last_users != 0 && HAS(needs[t], writer) -> DROP(last_users, writer); ADD(last_users, t)
    :: last_users != 0 && (last_users & ~needs[t]) == 0 -> writer = t; last_users = BIT(t)
#endif
    fi;
    used = used | (HAS(last_users, t) -> needs[t] | BIT(t) : 0);
    find_last_users();
    if
#ifdef ONE_USER
    :: giver == 0
#else
    :: skip
#endif
    :: giver != 0 && !is_apart -> given_by = giver; given_in = queue_of[giver]; last_users = 0; writer = 0
    fi;
    giver = 0; is_apart = false
}

/* The queue's number is the least unused one, or one in use: which is which does not matter. */
inline choose_queue(q)
{
    q = 0;
    do
    :: q < QUEUES - 1 && last[q] != 0 -> q++
    :: break
    od
}

active proctype engine()
{
    byte t, q, s, i;
    byte highest[QUEUES];
    bool is_as_left, is_apart;
    byte giver;
    do
    :: atomic { dispatched < TICKETS ->
        t = dispatched + 1;
        choose_queue(q);
        queue_of[t] = q;
        ahead[t] = last[q];
        needs[t] = (last[q] == 0 -> 0 : needs[last[q]] | BIT(last[q]));
        s = 1;
        do
        :: s < t ->
            if
            :: queue_of[s] != q -> take_edge(t, q, s)
            :: skip
            fi;
            s++
        :: else -> break
        od;
        s = 0;
        do
        :: s < QUEUES ->
            if
            :: highest[s] != 0 -> wait_for(t, q, s, highest[s]); highest[s] = 0
            :: else -> skip
            fi;
            s++
        :: else -> break
        od;
        do
        :: i < QUEUES -> clock_at[t * QUEUES + i] = CLOCK(q, i); i++
        :: else -> break
        od;
        if
        :: is_launched[t] = true;
#ifndef CLOCKS_ONLY
            use_memory(t, q)
        :: is_launched[t] = false;
#endif
#ifdef BUG_NOT_LAUNCHED_DOES_NOT_WAIT
            wait_list[t] = 0;
#endif
            skip
        fi;
        last[q] = t;
        dispatched++;
        t = 0; q = 0; s = 0; i = 0 }
    :: dispatched == TICKETS -> break
    od
}

#define MAY_BEGIN(t) \
    (dispatched >= (t) && !HAS(complete, t) && (ahead[t] == 0 || HAS(complete, ahead[t])) && (wait_list[t] & ~complete) == 0)

/* A launch begins and is complete in one step: that it begins late says the same as that it takes long. */
active proctype device()
{
    byte t;
    do
    :: atomic {
        if
        :: MAY_BEGIN(1) -> t = 1
        :: MAY_BEGIN(2) -> t = 2
        :: MAY_BEGIN(3) -> t = 3
#if TICKETS > 3
        :: MAY_BEGIN(4) -> t = 4
#endif
#if TICKETS > 4
        :: MAY_BEGIN(5) -> t = 5
#endif
#if TICKETS > 5
        :: MAY_BEGIN(6) -> t = 6
#endif
        fi;
        assert(!is_launched[t] || (needs[t] & ~complete) == 0);
        ADD(complete, t);
        wait_list[t] = 0; is_launched[t] = false;
        t = 0 }
    :: complete == BIT(TICKETS + 1) - 2 -> break
    od
}
