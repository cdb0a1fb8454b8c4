#include <base/atomic.h>
#include <vm/price.h>

#define PRICE_COUNT 256
/* Times change: now and then some calls are run the way that was slower so far. Such a probe comes after so many calls; each that changes
 * nothing doubles the distance to the next. A probe with helpers has more calls: a helper that slept at the first is awake at the next. */
#define LOOK_AGAIN 32
#define LOOK_MOST 2048
/* The share of its time that probes may cost, for calls that are not so dear that probes would show. */
#define LOOK_NS 20000000
#define LOOK_MOST_DEAR 128
#define LOOK_ALONE 2
#define LOOK_HELPED 4
/* The weights of a measurement that is longer than the known time, and of a shorter one: other load can only add time. */
#define LONGER_WEIGHT 16
#define SHORTER_WEIGHT 2

struct eddy_price {
    _Atomic uintptr_t key; /* atomic: relaxed, like all fields: each is a hint by itself */
    _Atomic uint32_t alone_ns, helped_ns; /* smoothed; 0 while unknown */
    _Atomic uint32_t calls;               /* since the last probe ended */
    _Atomic uint32_t look_after;          /* the number of calls before the next probe */
    _Atomic bool is_worth; /* whether helpers pay, by the last probe; at first: yes */
};

static eddy_price prices[PRICE_COUNT];

eddy_price *eddy_price_find(const void *what, uint32_t cost_ns) {
    uintptr_t key = (uintptr_t)what * 31 + cost_ns;
    eddy_price *price = &prices[(key ^ key >> 8 ^ key >> 16) % PRICE_COUNT];
    if (eddy_load_relaxed(&price->key) != key) {
        eddy_store_relaxed(&price->key, key);
        eddy_store_relaxed(&price->calls, 0u);
        eddy_store_relaxed(&price->alone_ns, 0u);
        eddy_store_relaxed(&price->helped_ns, 0u);
        eddy_store_relaxed(&price->look_after, (uint32_t)LOOK_AGAIN);
        eddy_store_relaxed(&price->is_worth, true);
    }
    return price;
}

/* A helper uses a second processor as long: with one helper, the gain equals that cost if the call takes two thirds. */
static bool is_worth_asking(uint32_t alone_ns, uint32_t helped_ns) {
    return (uint64_t)helped_ns * 10 < (uint64_t)alone_ns * 7;
}

static uint32_t look_most(uint32_t alone_ns) {
    uint32_t most = LOOK_NS / (alone_ns > 0 ? alone_ns : 1);
    return most < LOOK_MOST_DEAR ? LOOK_MOST_DEAR : most < LOOK_MOST ? most : LOOK_MOST;
}

static void end_look(eddy_price *price) {
    uint32_t alone_ns = eddy_load_relaxed(&price->alone_ns), most = look_most(alone_ns);
    bool is_worth = is_worth_asking(alone_ns, eddy_load_relaxed(&price->helped_ns));
    uint32_t after = eddy_load_relaxed(&price->look_after) * 2;
    if (is_worth != eddy_load_relaxed(&price->is_worth))
        after = LOOK_AGAIN;
    eddy_store_relaxed(&price->look_after, after < most ? after : most);
    eddy_store_relaxed(&price->is_worth, is_worth);
    eddy_store_relaxed(&price->calls, 0u);
}

bool eddy_price_asks_helpers(eddy_price *price) {
    uint32_t call = eddy_add_relaxed(&price->calls, 1u),
             look_after = eddy_load_relaxed(&price->look_after);
    bool is_worth = eddy_load_relaxed(&price->is_worth);
    if (call >= look_after + (is_worth ? LOOK_ALONE : LOOK_HELPED)) {
        end_look(price);
        return eddy_load_relaxed(&price->is_worth);
    }
    return is_worth != (call >= look_after);
}

void eddy_price_note(eddy_price *price, bool has_asked, int64_t ns) {
    _Atomic uint32_t *field = has_asked ? &price->helped_ns : &price->alone_ns;
    int64_t known = eddy_load_relaxed(field), took = ns < 1 ? 1 : ns > UINT32_MAX ? UINT32_MAX : ns;
    if (known > 0)
        took = known + (took - known) / (took < known ? SHORTER_WEIGHT : LONGER_WEIGHT);
    eddy_store_relaxed(field, (uint32_t)took);
}

int64_t eddy_price_alone_ns(const eddy_price *price) {
    return eddy_load_relaxed(&price->alone_ns);
}

bool eddy_price_is_whole(const eddy_price *price) {
    uint32_t alone = eddy_load_relaxed(&price->alone_ns),
             helped = eddy_load_relaxed(&price->helped_ns);
    return alone > 0 && helped > 0 && !is_worth_asking(alone, helped);
}
