/* Random programs, in which waits are there or missing: the fake finds a race exactly where one follows from the order of the calls. */
#include <tests/fake_cuda/program.h>

#define STREAMS 4
#define OPS 60 /* each is a bit of a mask */
#define UNIT 64
#define UNITS 40 /* of a block */

static uint64_t random_state;

static unsigned draw(unsigned below) {
    uint64_t x = random_state += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (unsigned)((x ^ x >> 31) >> 32) % below;
}

typedef struct range {
    unsigned begin, end; /* of the block, in units */
    bool is_write;
} range;

typedef struct operation {
    unsigned stream;
    range ranges[2];
    uint64_t before; /* the operations that come before it */
} operation;

static operation operations[OPS];
static int operation_count;
static eddy_cu_stream streams[STREAMS];
/* The operations before what comes next on a stream, and that the host has seen complete. */
static uint64_t before[STREAMS], host;
static bool has_race;
static unsigned char read_bytes[OPS][UNITS * UNIT]; /* each read has its own memory of the host */

static range draw_range(bool is_write) {
    /* Short ones more often. */
    unsigned begin = draw(UNITS), length = 1 + draw(draw(4) ? 3 : UNITS);
    return (range){begin, begin + length < UNITS ? begin + length : UNITS, is_write};
}

static bool conflict(range x, range y) {
    return (x.is_write || y.is_write) && x.begin < y.end && y.begin < x.end;
}

static bool races(const operation *x, const operation *y) {
    for (int i = 0; i < 4; i++)
        if (conflict(x->ranges[i / 2], y->ranges[i % 2]))
            return true;
    return false;
}

static void note(operation made) {
    made.before = before[made.stream] | host;
    for (int i = 0; i < operation_count; i++)
        if (!(made.before >> i & 1) && races(&operations[i], &made))
            has_race = true;
    before[made.stream] = made.before | 1ull << operation_count;
    operations[operation_count++] = made;
}

static eddy_cu_address at(unsigned unit) {
    return block + unit * UNIT;
}

static void touch(unsigned stream, unsigned kind) {
    operation made = {.stream = stream, .ranges = {draw_range(kind != 0)}};
    range first = made.ranges[0];
    size_t bytes = (first.end - first.begin) * UNIT;
    if (kind == 0) {
        WORKS(
            cu.copy_to_host(read_bytes[operation_count], at(first.begin), bytes, streams[stream]));
    } else if (kind == 1) {
        WORKS(cu.fill_bytes(at(first.begin), 1, bytes, streams[stream]));
    } else if (kind == 2) {
        WORKS(launch_store(streams[stream], at(first.begin), bytes / 8, 1));
    } else {
        range second = draw_range(false);
        if (second.end - second.begin > first.end - first.begin)
            second.end = second.begin + (first.end - first.begin);
        else
            made.ranges[0].end = first.begin + (second.end - second.begin);
        made.ranges[1] = second;
        if (conflict(made.ranges[0], second))
            return;
        WORKS(cu.copy_on_device(at(first.begin), at(second.begin),
                                (second.end - second.begin) * UNIT, streams[stream]));
    }
    note(made);
}

static void wait_here(unsigned stream, unsigned other_stream) {
    order(streams[other_stream], streams[stream]);
    before[stream] |= before[other_stream] | host;
}

static void look_at(unsigned stream) {
    if (draw(2)) {
        wait_for(streams[stream]);
    } else {
        /* A word for each: they are written like all memory. */
        uint64_t *word = pinned + stream, value = ++ticket;
        WORKS(cu.stream_write(streams[stream], (uintptr_t)word, value, 0));
        while (__atomic_load_n(word, __ATOMIC_ACQUIRE) < value)
            sched_yield();
    }
    host |= before[stream];
}

/* Waits for whatever the next operation could race with. */
static void wait_for_all(unsigned stream) {
    for (unsigned s = 0; s < STREAMS; s++)
        if (s != stream)
            wait_here(stream, s);
}

static bool is_careful;

static void random_program(void) {
    random_state = (uint64_t)atol(getenv("FAKE_CUDA_SEED"));
    is_careful = draw(2);
    unsigned waits = draw(3);
    WORKS(open_all());
    memset(pinned, 0, BYTES);
    for (int s = 0; s < STREAMS; s++)
        WORKS(cu.stream_create(&streams[s], EDDY_CU_STREAM_NON_BLOCKING, 0));
    WORKS(cu.fill_bytes(block, 0, UNITS * UNIT, a));
    wait_for(a);
    int most = 2 + (int)draw(OPS - 2);
    while (operation_count < most) {
        unsigned stream = draw(STREAMS);
        if (is_careful)
            wait_for_all(stream);
        else
            for (unsigned w = 0; w < waits; w++)
                wait_here(stream, draw(STREAMS));
        if (draw(8) == 0)
            look_at(stream);
        touch(stream, draw(4));
    }
    MUST(!is_careful || !has_race);
    if ((findings() > 0) != has_race) {
        fprintf(stderr, "%d findings, and %s\n", findings(), has_race ? "a race" : "no race");
        _exit(1);
    }
    for (int s = 0; s < STREAMS; s++) {
        wait_for(streams[s]);
        WORKS(cu.stream_destroy(streams[s]));
    }
    close_all();
}

Test(random, races_are_found_where_they_are) {
    int with = 0, without = 0;
    for (int seed = 1; seed <= 3 * seed_count(); seed++) {
        outcome of = run(random_program, seed, false);
        cr_assert(of.status == 0 || of.status == 97, "seed %d: %d %s", seed, of.status, of.text);
        with += of.status == 97;
        without += of.status == 0;
    }
    cr_assert_gt(with, seed_count() / 2);
    cr_assert_gt(without, seed_count() / 2);
}
