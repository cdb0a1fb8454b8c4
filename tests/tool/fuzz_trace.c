/* Files that are no good traces, and what the tool reads in them: fuzz_trace SEED COUNT. Nothing breaks, and what is counted twice comes to the same. */
#include "tools/eddy/screen.h"
#include "tools/eddy/trace_gaps.h"
#include "tools/eddy/trace_path.h"
#include "tools/eddy/trace_ranges.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INPUT_BYTES_MOST 8192

static uint64_t state;
static uint64_t number_of_input, begin_state;
static char input[INPUT_BYTES_MOST];
static size_t input_bytes;

static const char *const seeds[] = {
    "[{\"ph\":\"M\",\"pid\":1,\"tid\":1,\"name\":\"thread_name\",\"args\":{\"name\":\"a\"}},"
    "{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":2,\"cat\":\"issue\",\"name\":\"add\","
    "\"args\":{\"n\":1}},"
    "{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":7,\"dur\":1,\"cat\":\"issue\",\"name\":\"mul\","
    "\"args\":{\"n\":2}},"
    "{\"ph\":\"X\",\"pid\":1,\"tid\":2,\"ts\":2,\"dur\":3.5,\"cat\":\"kernel\",\"name\":\"add\","
    "\"args\":{\"n\":1,\"live\":9,\"at\":\"a.c:1\"}},"
    "{\"ph\":\"X\",\"pid\":1,\"tid\":2,\"ts\":9,\"dur\":4,\"cat\":\"kernel\",\"name\":\"mul\","
    "\"args\":{\"n\":2}},"
    "{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":3,\"dur\":1,\"cat\":\"schedule\",\"name\":\"mul\","
    "\"args\":{\"n\":2,\"after\":[1,7]}}]",
    "{\"traceEvents\":[{\"ph\":\"B\",\"tid\":1,\"ts\":1,\"cat\":\"kernel\",\"name\":\"k\"},"
    "{\"ph\":\"B\",\"tid\":1,\"ts\":2,\"cat\":\"wait\",\"name\":\"w\"},{\"ph\":\"E\",\"tid\":1,"
    "\"ts\":3},{\"ph\":\"E\",\"tid\":1,\"ts\":1e1},{\"ph\":\"i\",\"ts\":4,\"cat\":\"allocator\","
    "\"name\":\"refuse\"}],\"other\":[1,null,true]}",
    "[{\"ph\":\"X\",\"tid\":3,\"ts\":0,\"dur\":1,\"cat\":\"wait\",\"name\":\"read\",\"args\":"
    "{\"for\":\"room: ring\"}},{\"ph\":\"X\",\"tid\":3,\"ts\":5,\"dur\":1,\"cat\":\"kernel\","
    "\"name\":\"\\u00e4\\n\",\"args\":{\"n\":-3,\"stream\":2}},{\"ph\":\"X\",\"tid\":3,\"ts\":7,"
    "\"dur\":1,\"cat\":\"device\",\"name\":\"x\"},{\"ph\":\"C\",\"ts\":1,\"name\":\"c\",\"args\":"
    "{\"a\":1.5}},{\"ph\":\"i\",\"ts\":9,\"cat\":\"trace\",\"name\":\"end\",\"args\":{\"why\":"
    "\"exit\",\"dropped\":0}}]",
    "[{\"ph\":\"X\",\"tid\":3,\"ts\":1,\"dur\":1,\"cat\":\"kernel\",\"name\":\"x\",\"args\":"
    "{\"n\":1,\"launch\":1,\"runtime\":2}},{\"ph\":\"X\",\"tid\":4,\"ts\":2,\"dur\":4,\"cat\":"
    "\"device\",\"name\":\"x\",\"args\":{\"n\":1,\"runtime\":2}},{\"ph\":\"X\",\"tid\":5,\"ts\":3,"
    "\"dur\":2,\"cat\":\"stream\",\"name\":\"y\",\"args\":{\"n\":2}},{\"ph\":\"X\",\"tid\":6,"
    "\"ts\":7,"
    "\"dur\":1,\"cat\":\"stream\",\"name\":\"y\",\"args\":{\"n\":3}}]",
};

static const char *const pieces[] = {
    "{",
    "[",
    "]",
    "}",
    ",",
    "\"",
    "null",
    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    "\\ud800",
    "\\u0000",
    "\x1b[2J",
    "\xc2\x9b",
    "\xff",
    "\xe2\x80\xae",
    "\"after\":[1,2,3,[4],{\"n\":5}],",
    "\"args\":[6],",
};

static const char *const numbers[] = {
    "0",
    "2",
    "9",
    "9.0005",
    "9223372036854775807",
    "-9223372036854775809",
    "9223372036854774.999",
    "1e308",
    "-0.0005",
    "1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9",
    "1e-400",
    "1234567890123456789012345678901234567890123456789012345678901234567890",
};

static const char *const events[] = {
    "{\"ph\":\"X\",\"pid\":1,\"tid\":2,\"ts\":2.5,\"dur\":1,\"cat\":\"kernel\",\"args\":{\"n\":1}}"
    ",",
    "{\"ph\":\"X\",\"pid\":1,\"tid\":2,\"ts\":8,\"dur\":3,\"cat\":\"kernel\",\"args\":{\"n\":7}},",
    "{\"ph\":\"X\",\"tid\":2,\"ts\":9,\"dur\":9e15,\"cat\":\"kernel\",\"name\":\"add\",\"args\":{"
    "\"n\":3}},",
    "{\"ph\":\"X\",\"tid\":2,\"ts\":99,\"dur\":0,\"cat\":\"kernel\",\"name\":\"add\",\"args\":{"
    "\"n\":4}},",
    "{\"ph\":\"X\",\"ts\":0,\"cat\":\"schedule\",\"args\":{\"n\":4,\"after\":[4,2,1]}},",
    "{\"ph\":\"X\",\"ts\":0,\"cat\":\"schedule\",\"args\":{\"n\":2,\"after\":[1,2,3,4,5,6,7,8,9,1,"
    "2,3,4,5,6,"
    "7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9]}},",
    "{\"ph\":\"E\",\"tid\":1,\"ts\":8},",
    "{\"ph\":\"B\",\"tid\":1,\"ts\":8,\"cat\":\"kernel\"},",
};

#define LENGTH(array) (sizeof(array) / sizeof(*(array)))

/* Below `most`; xorshift64*. */
static size_t draw(size_t most) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (size_t)((state * UINT64_C(2685821657736338717)) >> 33) % most;
}

static void fail(const char *what) {
    fprintf(stderr, "input %llu, state %llu: %s\n%.*s\n", (unsigned long long)number_of_input,
            (unsigned long long)begin_state, what, (int)input_bytes, input);
    exit(1);
}

static void expect(bool holds, const char *what) {
    if (!holds)
        fail(what);
}

/* ---- inputs ---- */

/* A 0 follows the input. */
static void insert(size_t at, const char *text) {
    size_t length = strlen(text);
    if (input_bytes + length >= INPUT_BYTES_MOST)
        return;
    memmove(input + at + length, input + at, input_bytes - at + 1);
    memcpy(input + at, text, length);
    input_bytes += length;
}

static void erase(size_t at, size_t length) {
    memmove(input + at, input + at + length, input_bytes - at - length + 1);
    input_bytes -= length;
}

static void mutate(void) {
    char copy[64];
    size_t at = draw(input_bytes + 1), length = draw(sizeof(copy));
    length = length < input_bytes - at ? length : input_bytes - at;
    switch (draw(6)) {
    case 0:
        if (at < input_bytes)
            input[at] = (char)(input[at] ^ 1 << draw(8));
        break;
    case 1:
        erase(at, length);
        break;
    case 2:
        insert(at, pieces[draw(LENGTH(pieces))]);
        break;
    case 3: { /* a number becomes another one */
        const char *colon = memchr(input + at, ':', input_bytes - at);
        at = colon ? (size_t)(colon - input) + 1 : input_bytes;
        at += input[at] == '[';
        length = strspn(input + at, "0123456789.e-");
        if (length > 0) {
            erase(at, length);
            insert(at, numbers[draw(LENGTH(numbers))]);
        }
        break;
    }
    case 4:
        snprintf(copy, sizeof(copy), "%.*s", (int)length, input + at);
        insert(draw(input_bytes + 1), copy);
        break;
    default: { /* one more event */
        const char *brace = memchr(input + at, '{', input_bytes - at);
        if (brace)
            insert((size_t)(brace - input), events[draw(LENGTH(events))]);
    }
    }
}

/* More within each other than are kept. */
static void insert_begins(void) {
    const char *bracket = memchr(input, '[', input_bytes);
    for (size_t left = bracket ? RANGES_OPEN_MOST - 8 + draw(16) : 0; left > 0; left--)
        insert((size_t)(bracket - input) + 1, "{\"ph\":\"B\",\"tid\":1,\"ts\":1},");
}

static void make_input(void) {
    const char *seed = seeds[draw(LENGTH(seeds))];
    input_bytes = strlen(seed);
    memcpy(input, seed, input_bytes + 1);
    for (size_t left = draw(6); left > 0; left--)
        mutate();
    if (draw(256) == 0)
        insert_begins();
    if (draw(16) == 0)
        input_bytes = draw(input_bytes + 1);
}

typedef struct memory {
    size_t at, most; /* most: bytes at once */
} memory;

static int read_memory(trace_source *source, unsigned char *to, int most) {
    memory *from = source->context;
    size_t count = from->most < (size_t)most ? from->most : (size_t)most;
    count = count < input_bytes - from->at ? count : input_bytes - from->at;
    memcpy(to, input + from->at, count);
    from->at += count;
    return (int)count;
}

static bool read_input(trace_model *model, size_t most) {
    memory from = {.most = most};
    trace_source source = {.name = "input", .context = &from, .read = read_memory};
    return trace_model_read_source(model, &source);
}

/* ---- what has to hold ---- */

typedef struct total {
    int64_t count, ns;
} total;

/* Of all groups, or of the one. */
static total sum(const trace_groups *of, const char *name) {
    total all = {0};
    for (uint32_t g = 0; g < of->room && g < of->texts.count; g++)
        if (!name || strcmp(text_table_text(&of->texts, g), name) == 0) {
            all.count += of->groups[g].count;
            if (__builtin_add_overflow(all.ns, of->groups[g].total_ns, &all.ns))
                all.ns = INT64_MAX;
        }
    return all;
}

/* Small inputs: all are in the list. */
static void sum_kinds(const trace_model *model, total *kinds) {
    const trace_kernel *kernels = model->kernels.items;
    for (size_t k = 0; k < model->kernels.count; k++)
        kinds[kernels[k].kind].count++;
}

static void check_groups(const trace_model *model) {
    total kernels = sum(&model->by_phase, "kernel"), ops = sum(&model->by_op, NULL),
          threads = sum(&model->by_thread, NULL), devices = sum(&model->by_phase, "device"),
          streams = sum(&model->by_stream, NULL);
    total kinds[TRACE_KERNEL_ON_STREAM + 1] = {0};
    sum_kinds(model, kinds);
    int64_t launches = kinds[TRACE_KERNEL_LAUNCH].count;
    expect(threads.count == kernels.count && threads.ns == kernels.ns,
           "threads are not the kernels");
    expect(kinds[TRACE_KERNEL_ON_THREAD].count + launches == kernels.count &&
               kinds[TRACE_KERNEL_ON_DEVICE].count == devices.count,
           "kernels are lost");
    expect(ops.count == kernels.count - launches + devices.count, "ops are not");
    expect(launches + devices.count > 0 || ops.ns == kernels.ns, "their time is not");
    expect(streams.count == ops.count && streams.ns == ops.ns, "streams are not");
    expect(sum(&model->by_phase, NULL).count <= model->event_count, "more ranges than events");
    for (uint32_t g = 0; g < model->by_op.room && g < model->by_op.texts.count; g++) {
        const trace_group *group = &model->by_op.groups[g];
        if (group->count == 0)
            continue;
        int64_t median = trace_group_percentile(group, 0.5);
        int64_t high = trace_group_percentile(group, 0.99);
        expect(0 <= median && median <= high && high <= group->most_ns &&
                   group->most_ns <= group->total_ns,
               "percentiles");
    }
}

/* Not by the tool's own way: no C0, DEL, C1, and each byte in a sequence of UTF-8. */
static bool is_clean(const char *text) {
    const unsigned char *c = (const unsigned char *)text;
    while (*c) {
        int more = *c < 0x80 ? 0 : *c < 0xc2 ? -1 : *c < 0xe0 ? 1 : *c < 0xf0 ? 2 : 3;
        if (*c < 0x20 || *c == 0x7f || more < 0 || (*c == 0xc2 && c[1] < 0xa0))
            return false;
        for (c++; more > 0; more--, c++)
            if ((*c & 0xc0) != 0x80)
                return false;
    }
    return true;
}

static void check_texts(const trace_model *model) {
    const text_table *tables[] = {&model->texts, &model->by_op.texts, &model->by_place.texts,
                                  &model->by_thread.texts};
    for (size_t t = 0; t < LENGTH(tables); t++)
        for (uint32_t i = 0; i < tables[t]->count; i++)
            expect(is_clean(tables[t]->texts[i]), "a text is not clean");
    expect(is_clean(model->why), "why is not clean");
}

/* Gaps and kernels of a row are all of its time. */
static void check_gaps(const trace_order *order) {
    static trace_gap_sum sums[MODEL_ROWS_MOST * TRACE_GAP_COUNT];
    size_t count = order->model->rows.count * TRACE_GAP_COUNT;
    memset(sums, 0, count * sizeof(*sums));
    trace_gaps_sum(order, sums);
    for (uint32_t row = 0; row < order->model->rows.count; row++) {
        int64_t idle_ns = 0, busy_ns = 0, first_ns = -1, last_ns = 0;
        for (int g = 0; g < TRACE_GAP_COUNT; g++)
            idle_ns += sums[row * TRACE_GAP_COUNT + (uint32_t)g].total_ns;
        for (size_t k = 0; k < order->kernel_count; k++) {
            const trace_kernel *kernel = &order->kernels[k];
            if (kernel->row != row)
                continue;
            if (first_ns < 0)
                first_ns = last_ns = kernel->begin_ns;
            expect(kernel->begin_ns >= first_ns, "kernels are not sorted");
            int64_t from = kernel->begin_ns > last_ns ? kernel->begin_ns : last_ns;
            busy_ns += kernel->end_ns > from ? kernel->end_ns - from : 0;
            last_ns = kernel->end_ns > last_ns ? kernel->end_ns : last_ns;
        }
        expect(first_ns < 0 ? idle_ns == 0 : idle_ns + busy_ns == last_ns - first_ns,
               "gaps and kernels are not the row's time");
    }
}

static void check_path(const trace_order *order) {
    trace_path path;
    int64_t count = 0;
    trace_path_find(&path, order);
    expect(path.kernel_ns + path.call_ns + path.edge_ns + path.thread_ns ==
               path.end_ns - path.begin_ns,
           "the path's parts are not its time");
    expect(path.call_ns >= 0 && path.edge_ns >= 0 && path.thread_ns >= 0, "less than no time");
    for (size_t i = 0; i < path.step_count; i++)
        count += path.steps[i].count;
    bool has_any = false;
    for (size_t k = 0; k < order->kernel_count; k++)
        has_any |= order->kernels[k].kind != TRACE_KERNEL_ON_STREAM;
    expect(count == path.kernel_count && (size_t)count <= order->kernel_count &&
               (count > 0) == has_any,
           "kernels of the path");
    trace_path_fini(&path);
}

/* What the pieces are that the file comes in makes no difference. */
static void check_again(const trace_model *model, bool is_read) {
    trace_model again;
    bool is_again = read_input(&again, 1 + draw(64));
    expect(is_again == is_read, "it is a trace only in pieces of one size");
    expect(again.file.event_count == model->file.event_count &&
               again.event_count == model->event_count && again.end_ns == model->end_ns &&
               again.rows.count == model->rows.count && again.edges.count == model->edges.count &&
               sum(&again.by_op, NULL).ns == sum(&model->by_op, NULL).ns,
           "pieces make a difference");
    trace_model_free(&again);
}

static bool try_input(void) {
    trace_model model;
    trace_order order;
    bool is_read = read_input(&model, INPUT_BYTES_MOST);
    expect(is_read || model.file.error[0], "no reason is given");
    check_groups(&model);
    check_texts(&model);
    if (number_of_input % 16 == 0)
        check_again(&model, is_read);
    trace_order_init(&order, &model);
    check_gaps(&order);
    check_path(&order);
    trace_order_fini(&order);
    trace_model_free(&model);
    return is_read;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: fuzz_trace SEED COUNT\n");
        return 2;
    }
    unsigned long long seed = strtoull(argv[1], NULL, 10), count = strtoull(argv[2], NULL, 10);
    unsigned long long read = 0;
    state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    for (number_of_input = 0; number_of_input < count; number_of_input++) {
        begin_state = state;
        make_input();
        read += try_input();
    }
    printf("seed %llu: %llu inputs, %llu of them traces\n", seed, count, read);
    /* Where nearly all or nearly none are, the rest was not tried. */
    return 10 * read < count || 10 * read > 9 * count;
}
