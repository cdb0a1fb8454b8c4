#include "trace_model.h"

#include "memory.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- lists ---- */

/* A new item, zero; NULL: there is no room, or no memory. */
static void *add(trace_list *list, size_t item_bytes) {
    if (list->count == list->most) {
        list->left_out++;
        return NULL;
    }
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 256;
        void *items = realloc(list->items, room * item_bytes);
        if (!items) {
            list->most = list->count;
            list->left_out++;
            return NULL;
        }
        list->items = items;
        list->room = room;
    }
    return memset((char *)list->items + list->count++ * item_bytes, 0, item_bytes);
}

/* ---- groups ---- */

static uint32_t class_of(int64_t ns) {
    if (ns < 16)
        return ns < 0 ? 0 : (uint32_t)ns;
    int doubling = 63 - __builtin_clzll((uint64_t)ns);
    return (uint32_t)(doubling - 3) * 16 + (uint32_t)(ns >> (doubling - 4) & 15);
}

/* The middle of a class. */
static int64_t ns_of(uint32_t class) {
    if (class < 16)
        return class;
    int doubling = (int)(class / 16) + 3;
    int64_t least = (INT64_C(16) + class % 16) << (doubling - 4);
    return least + (INT64_C(1) << (doubling - 4)) / 2;
}

static trace_group *group_of(trace_groups *of, uint32_t number) {
    uint32_t room = of->room ? of->room : 64;
    while (room <= number)
        room *= 2;
    if (room > of->room) {
        of->groups = tool_realloc(of->groups, room, sizeof(*of->groups));
        memset(of->groups + of->room, 0, (room - of->room) * sizeof(*of->groups));
        of->room = room;
    }
    trace_group *group = &of->groups[number];
    if (!group->classes)
        group->classes = tool_calloc(MODEL_CLASSES, sizeof(*group->classes));
    return group;
}

static int64_t saturated_sum(int64_t a, int64_t b) {
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? (b < 0 ? INT64_MIN : INT64_MAX) : sum;
}

static void count(trace_groups *to, const char *text, int64_t ns) {
    trace_group *group = group_of(to, text_table_number(&to->texts, text));
    group->count++;
    group->total_ns = saturated_sum(group->total_ns, ns);
    group->most_ns = ns > group->most_ns ? ns : group->most_ns;
    uint32_t class = class_of(ns);
    group->classes[class < MODEL_CLASSES ? class : MODEL_CLASSES - 1]++;
}

int64_t trace_group_percentile(const trace_group *group, double share) {
    double seen = 0;
    for (uint32_t c = 0; c < MODEL_CLASSES; c++) {
        seen += group->classes[c];
        if (seen >= share * (double)group->count)
            return ns_of(c) < group->most_ns ? ns_of(c) : group->most_ns;
    }
    return group->most_ns;
}

static void free_groups(trace_groups *groups) {
    for (uint32_t i = 0; i < groups->room; i++)
        free(groups->groups[i].classes);
    free(groups->groups);
    text_table_free(&groups->texts);
}

/* ---- rows ---- */

/* The last one that was asked for is mostly the one. */
static trace_row *row_of(trace_model *model, const trace_event *event, uint32_t *number) {
    trace_row *rows = model->rows.items;
    uint32_t row = model->last_row;
    if (row >= model->rows.count || rows[row].process != event->process ||
        rows[row].thread != event->thread)
        for (row = 0; row < model->rows.count; row++)
            if (rows[row].process == event->process && rows[row].thread == event->thread)
                break;
    if (row == model->rows.count) {
        trace_row *made = add(&model->rows, sizeof(*made));
        rows = model->rows.items;
        if (model->rows.count == 0)
            return NULL;
        row = (uint32_t)model->rows.count - 1;
        if (made) {
            made->process = event->process;
            made->thread = event->thread;
        }
        rows[row].is_rest = model->rows.count == model->rows.most;
    }
    *number = model->last_row = row;
    return &rows[row];
}

void trace_row_name(const trace_model *model, uint32_t number, char *buffer, size_t size) {
    const trace_row *row = (const trace_row *)model->rows.items + number;
    if (number >= model->rows.count)
        snprintf(buffer, size, "?");
    else if (row->is_rest)
        snprintf(buffer, size, "(others)");
    else if (row->name)
        snprintf(buffer, size, "%s", text_table_text(&model->texts, row->name));
    else
        snprintf(buffer, size, "thread %" PRId64 " of process %" PRId64, row->thread, row->process);
}

/* ---- events ---- */

static void take_kernel(trace_model *model, const trace_event *event, uint32_t row, int64_t end_ns,
                        trace_kernel_kind kind) {
    uint32_t op = text_table_number(&model->texts, event->name);
    uint32_t place = text_table_number(&model->texts, event->place);
    trace_kernel *kernel = add(&model->kernels, sizeof(*kernel));
    if (kernel)
        *kernel = (trace_kernel){event->at_ns, end_ns, event->n, row, op, place, kind};
    /* What an op takes on a device is in the row of its stream. */
    if (kind == TRACE_KERNEL_ON_THREAD || kind == TRACE_KERNEL_ON_DEVICE)
        count(&model->by_op, event->name, event->took_ns);
    if (event->place[0])
        count(&model->by_place, event->place, event->took_ns);
    if (event->live > model->most_live) {
        model->most_live = event->live;
        model->most_live_op = op;
        model->most_live_place = place;
        model->most_live_ns = event->at_ns;
    }
}

static void take_span(trace_model *model, const trace_event *event, uint32_t number) {
    char name[TRACE_TEXT_BYTES + 32];
    int64_t end_ns = saturated_sum(event->at_ns, event->took_ns);
    const char *category = event->category[0] ? event->category : "(none)";
    /* The same kernels once more, in the row of their stream. */
    if (strcmp(category, "stream") == 0 && event->n) {
        take_kernel(model, event, number, end_ns, TRACE_KERNEL_ON_STREAM);
        return;
    }
    count(&model->by_phase, category, event->took_ns);
    if (strcmp(category, "kernel") == 0) {
        take_kernel(model, event, number, end_ns,
                    event->launch ? TRACE_KERNEL_LAUNCH : TRACE_KERNEL_ON_THREAD);
        trace_row_name(model, number, name, sizeof(name));
        count(&model->by_thread, name, event->took_ns);
        if (event->launch || event->part)
            return;
        if (event->on[0])
            snprintf(name, sizeof(name), "%s", event->on);
        else if (event->runtime > 1)
            snprintf(name, sizeof(name), "stream %" PRId64 " of runtime %" PRId64, event->stream,
                     event->runtime);
        else
            snprintf(name, sizeof(name), "stream %" PRId64, event->stream);
        count(&model->by_stream, name, event->took_ns);
    } else if (strcmp(category, "device") == 0) {
        take_kernel(model, event, number, end_ns, TRACE_KERNEL_ON_DEVICE);
        trace_row_name(model, number, name, sizeof(name));
        count(&model->by_stream, name, event->took_ns);
    } else if (strcmp(category, "issue") == 0 && event->n) {
        trace_call *call = add(&model->calls, sizeof(*call));
        if (call)
            *call = (trace_call){event->n, event->at_ns, number};
    } else if (strcmp(category, "schedule") == 0) {
        for (int i = 0; i < event->after_count; i++) {
            trace_edge *edge = add(&model->edges, sizeof(*edge));
            if (edge)
                *edge = (trace_edge){event->n, event->after[i]};
        }
    } else if (strcmp(category, "wait") == 0) {
        trace_wait *wait = add(&model->waits, sizeof(*wait));
        if (wait)
            *wait = (trace_wait){event->at_ns,
                                 end_ns,
                                 number,
                                 text_table_number(&model->texts, event->name),
                                 text_table_number(&model->texts, event->reason),
                                 text_table_number(&model->texts, event->place)};
    }
}

static void take_moment(trace_model *model, const trace_event *event) {
    if (strcmp(event->category, "trace") == 0 && strcmp(event->name, "end") == 0) {
        snprintf(model->why, sizeof(model->why), "%s", event->label);
        model->dropped = event->dropped;
    } else if (strcmp(event->category, "allocator") == 0 && strcmp(event->name, "refuse") == 0) {
        int64_t *refusal = add(&model->refusals, sizeof(*refusal));
        if (refusal)
            *refusal = event->at_ns;
    }
}

static void take(void *context, const trace_event *event) {
    trace_model *model = context;
    uint32_t number;
    if (!event->kind)
        return;
    trace_row *row = row_of(model, event, &number);
    if (!row)
        return;
    if (event->kind == 'M') {
        if (strcmp(event->name, "thread_name") == 0 && !row->is_rest)
            row->name = text_table_number(&model->texts, event->label);
        return;
    }
    model->event_count++;
    if (!event->has_time || event->at_ns < 0)
        return;
    int64_t end_ns = saturated_sum(event->at_ns, event->kind == 'X' ? event->took_ns : 0);
    if (model->end_ns < model->begin_ns || event->at_ns < model->begin_ns)
        model->begin_ns = event->at_ns;
    model->end_ns = end_ns > model->end_ns ? end_ns : model->end_ns;
    if (event->kind == 'X')
        take_span(model, event, number);
    else if (event->kind == 'i' || event->kind == 'I')
        take_moment(model, event);
}

/* ---- all of it ---- */

#define GROUPS(model)                                                                              \
    {                                                                                              \
        &(model)->by_op, &(model)->by_phase, &(model)->by_thread, &(model)->by_stream,             \
            &(model)->by_place                                                                     \
    }
enum { GROUP_KINDS = 5 };

static void begin(trace_model *model) {
    *model = (trace_model){.begin_ns = 0, .end_ns = -1};
    model->kernels.most = MODEL_KERNELS_MOST;
    model->calls.most = MODEL_CALLS_MOST;
    model->edges.most = MODEL_EDGES_MOST;
    model->waits.most = MODEL_WAITS_MOST;
    model->rows.most = MODEL_ROWS_MOST;
    model->refusals.most = MODEL_WAITS_MOST;
    trace_groups *groups[] = GROUPS(model);
    for (int i = 0; i < GROUP_KINDS; i++)
        groups[i]->texts.most = MODEL_GROUPS_MOST;
}

bool trace_model_read(trace_model *model, const char *path) {
    begin(model);
    return trace_read(path, take, model, &model->file);
}

bool trace_model_read_source(trace_model *model, trace_source *source) {
    begin(model);
    return trace_read_source(source, take, model, &model->file);
}

int64_t trace_model_duration(const trace_model *model) {
    return model->end_ns > model->begin_ns ? model->end_ns - model->begin_ns : 0;
}

void trace_model_free(trace_model *model) {
    trace_list *lists[] = {&model->kernels, &model->calls, &model->edges,
                           &model->waits,   &model->rows,  &model->refusals};
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
        free(lists[i]->items);
    trace_groups *groups[] = GROUPS(model);
    for (int i = 0; i < GROUP_KINDS; i++)
        free_groups(groups[i]);
    text_table_free(&model->texts);
    *model = (trace_model){0};
}
