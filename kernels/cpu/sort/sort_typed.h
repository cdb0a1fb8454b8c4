/* Functions of sort_width.h for one width. The including file defines what a record is:
 *
 *     key, record         types
 *     is_less(&a, &b)     for two records
 *     key_of(&record)
 *     record_of(key, i)   the record of element i
 *     load_keys           eddy_sort_keys_narrow or _wide */
#ifndef EDDY_KERNELS_CPU_SORT_TYPED_H
#define EDDY_KERNELS_CPU_SORT_TYPED_H

#include <base/assert.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/sort/sort_width.h>
#include <kernels/cpu/walk.h>
#include <string.h>

/* Up to this many records are sorted by insertion. */
#define FEW 48

static void load(const eddy_sort_order *order, void *into, const void *elements, int64_t stride,
                 int64_t first, int64_t count) {
    record *restrict records = into;
    key keys[EDDY_SORT_PIECE];
    for (int64_t done = 0; done < count; done += EDDY_SORT_PIECE) {
        int64_t piece = eddy_min_i64(EDDY_SORT_PIECE, count - done), index = first + done;
        load_keys(order, keys, eddy_chunk_at(elements, order->dtype, done * stride), stride, piece);
        for (int64_t i = 0; i < piece; i++)
            records[index + i] = record_of(keys[i], index + i);
    }
}

/* ---- a run ---- */

static void insert(record *records, int64_t count) {
    for (int64_t i = 1; i < count; i++) {
        record moved = records[i];
        int64_t to = i;
        for (; to > 0 && is_less(&moved, &records[to - 1]); to--)
            records[to] = records[to - 1];
        records[to] = moved;
    }
}

/* Byte `b` of a record's key. */
static inline int digit(const record *of, int32_t b) {
    return (int)(key_of(of) >> (8 * b) & 255);
}

/* Turns the counts of the records with each digit into the positions where these records begin. */
static void begin_places(int64_t places[256]) {
    int64_t place = 0;
    for (int d = 0; d < 256; d++) {
        int64_t with = places[d];
        places[d] = place;
        place += with;
    }
}

/* Radix sort, least significant byte first. Each pass is stable, so equal keys stay in the order of their indices. Bytes
 * that are equal in all keys are skipped. */
static void radix(record *records, record *spare, int64_t count, int32_t key_bytes) {
    int64_t places[sizeof(key)][256];
    memset(places, 0, sizeof(places[0]) * (size_t)key_bytes);
    for (int64_t i = 0; i < count; i++)
        for (int32_t b = 0; b < key_bytes; b++)
            places[b][digit(&records[i], b)]++;
    record *from = records, *to = spare;
    for (int32_t b = 0; b < key_bytes; b++) {
        if (places[b][digit(&from[0], b)] == count)
            continue;
        begin_places(places[b]);
        for (int64_t i = 0; i < count; i++)
            to[places[b][digit(&from[i], b)]++] = from[i];
        record *swapped = from;
        from = to;
        to = swapped;
    }
    if (from != records)
        memcpy(records, from, sizeof(record) * (size_t)count);
}

static void sort(void *records, void *spare, int64_t count, int32_t key_bytes) {
    if (count <= FEW)
        insert(records, count);
    else
        radix(records, spare, count, key_bytes);
}

/* ---- two runs ---- */

/* a[i] and b[begin - i] are the first records at or after position `begin` of the merge, found by bisection (the merge
 * path of Odeh, Green, Mwassi, Shmueli and Birk, 2012). Returns i. */
static int64_t merge_path(const record *a, int64_t a_count, const record *b, int64_t b_count,
                          int64_t begin) {
    int64_t i = begin > b_count ? begin - b_count : 0, above = begin < a_count ? begin : a_count;
    while (i < above) {
        int64_t middle = i + (above - i) / 2;
        if (is_less(&a[middle], &b[begin - 1 - middle]))
            i = middle + 1;
        else
            above = middle;
    }
    return i;
}

static void merge(void *into, const void *first, int64_t a_count, const void *second,
                  int64_t b_count, int64_t begin, int64_t end) {
    record *to = into;
    const record *a = first, *b = second;
    int64_t i = merge_path(a, a_count, b, b_count, begin);
    for (int64_t j = begin - i, o = begin; o < end; o++) {
        bool is_first = j >= b_count || (i < a_count && is_less(&a[i], &b[j]));
        to[o - begin] = is_first ? a[i++] : b[j++];
    }
}

/* ---- the least ---- */

/* Places `sunk` at `at`, or below it, in a heap with its largest record on top. */
static void sink(record *heap, int64_t count, int64_t at, record sunk) {
    for (int64_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && is_less(&heap[child], &heap[child + 1]))
            child++;
        if (!is_less(&sunk, &heap[child]))
            break;
        heap[at] = heap[child];
    }
    heap[at] = sunk;
}

static void heapify(record *heap, int64_t count) {
    for (int64_t at = count / 2 - 1; at >= 0; at--)
        sink(heap, count, at, heap[at]);
}

static void unheap(record *heap, int64_t count) {
    for (int64_t left = count - 1; left > 0; left--) {
        record last = heap[left];
        heap[left] = heap[0];
        sink(heap, left, 0, last);
    }
}

/* Indices increase, so a record with an equal key is not less than the one in the heap. */
static void least(const eddy_sort_order *order, void *records, int64_t kept, const void *elements,
                  int64_t stride, int64_t count) {
    record *heap = records;
    key keys[EDDY_SORT_PIECE];
    heapify(heap, kept);
    for (int64_t done = kept; done < count; done += EDDY_SORT_PIECE) {
        int64_t piece = eddy_min_i64(EDDY_SORT_PIECE, count - done);
        load_keys(order, keys, eddy_chunk_at(elements, order->dtype, done * stride), stride, piece);
        key top = key_of(&heap[0]);
        for (int64_t i = 0; i < piece; i++)
            if (EDDY_UNLIKELY(keys[i] < top)) {
                sink(heap, kept, 0, record_of(keys[i], done + i));
                top = key_of(&heap[0]);
            }
    }
    unheap(heap, kept);
}

#endif
