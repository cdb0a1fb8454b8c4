#include <functional/equation.h>

#include <base/status.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct reader {
    const char *at;
    char *reason;
    size_t size;
} reader;

static eddy_status refuse(const reader *r, eddy_status status, const char *format, ...)
    EDDY_PRINTF(3, 4);

static eddy_status refuse(const reader *r, eddy_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(r->reason, r->size, format, arguments);
    va_end(arguments);
    return status;
}

static int label_of(char letter) {
    if (letter >= 'A' && letter <= 'Z')
        return EDDY_EQUATION_LETTERS + letter - 'A';
    if (letter >= 'a' && letter <= 'z')
        return EDDY_EQUATION_LETTERS + 26 + letter - 'a';
    return -1;
}

/* The letters of a term up to ',', '-' or the end; *dots is the number before the ellipsis, -1 without one. */
static eddy_status read_letters(reader *r, eddy_equation_term *term, int32_t *dots) {
    term->rank = 0;
    *dots = -1;
    for (; *r->at && *r->at != ',' && *r->at != '-'; r->at++) {
        if (*r->at == ' ')
            continue;
        if (strncmp(r->at, "...", 3) == 0 && *dots < 0) {
            *dots = term->rank;
            r->at += 2;
            continue;
        }
        int label = label_of(*r->at);
        if (label < 0)
            return refuse(r, EDDY_INVALID_ARGUMENT, "'%c' is no label", *r->at);
        if (term->rank == EDDY_RANK_MAX)
            return refuse(r, EDDY_INVALID_ARGUMENT, "a term has more than %d labels",
                          EDDY_RANK_MAX);
        term->labels[term->rank++] = (uint8_t)label;
    }
    return EDDY_OK;
}

/* Replaces the dots by labels for `count` axes, the last of those of the longest ellipsis. */
static void insert_ellipsis(eddy_equation_term *term, int32_t dots, int32_t count) {
    memmove(term->labels + dots + count, term->labels + dots, (size_t)(term->rank - dots));
    for (int32_t i = 0; i < count; i++)
        term->labels[dots + i] = (uint8_t)(EDDY_RANK_MAX - count + i);
    term->rank += count;
}

/* Terms before "->". */
static int64_t count_terms(const char *text) {
    int64_t terms = 1;
    for (; *text && *text != '-'; text++)
        terms += *text == ',';
    return terms;
}

static eddy_status read_operands(reader *r, eddy_equation *equation, const int32_t *ranks,
                                 int64_t count, int32_t *longest) {
    int64_t terms = count_terms(r->at);
    if (terms != count)
        return refuse(r, EDDY_INVALID_ARGUMENT,
                      "the equation has %lld term%s, there %s %lld operand%s", (long long)terms,
                      terms == 1 ? "" : "s", count == 1 ? "is" : "are", (long long)count,
                      count == 1 ? "" : "s");
    for (int64_t i = 0; i < count; i++) {
        eddy_equation_term *term = &equation->operands[i];
        int32_t dots;
        eddy_status status = read_letters(r, term, &dots);
        if (status != EDDY_OK)
            return status;
        int32_t left = ranks[i] - term->rank;
        if (dots < 0 ? left != 0 : left < 0)
            return refuse(r, EDDY_SHAPE_MISMATCH, "operand %lld has %d axes, its term %d labels",
                          (long long)i, (int)ranks[i], (int)term->rank);
        if (dots >= 0) {
            insert_ellipsis(term, dots, left);
            *longest = left > *longest ? left : *longest;
        }
        if (*r->at == ',')
            r->at++;
    }
    return EDDY_OK;
}

static void count_labels(const eddy_equation *equation, int64_t count, int32_t *counts) {
    memset(counts, 0, EDDY_EQUATION_LABELS * sizeof(counts[0]));
    for (int64_t i = 0; i < count; i++)
        for (int32_t d = 0; d < equation->operands[i].rank; d++)
            counts[equation->operands[i].labels[d]]++;
}

/* The axes of ellipses, then letters that occur once. */
static eddy_status imply_output(reader *r, eddy_equation *equation, const int32_t *counts) {
    eddy_equation_term *output = &equation->output;
    output->rank = 0;
    for (int label = 0; label < EDDY_EQUATION_LABELS; label++) {
        if (label < EDDY_EQUATION_LETTERS ? counts[label] == 0 : counts[label] != 1)
            continue;
        if (output->rank == EDDY_RANK_MAX)
            return refuse(r, EDDY_SHAPE_MISMATCH, "the result would have more than %d axes",
                          EDDY_RANK_MAX);
        output->labels[output->rank++] = (uint8_t)label;
    }
    return EDDY_OK;
}

static eddy_status read_output(reader *r, eddy_equation *equation, const int32_t *counts,
                               int32_t longest) {
    eddy_equation_term *output = &equation->output;
    int32_t dots;
    eddy_status status = read_letters(r, output, &dots);
    if (status != EDDY_OK)
        return status;
    if (*r->at)
        return refuse(r, EDDY_INVALID_ARGUMENT, "'%c' stands in the output", *r->at);
    for (int32_t d = 0; d < output->rank; d++) {
        if (counts[output->labels[d]] == 0)
            return refuse(r, EDDY_INVALID_ARGUMENT, "a label of the output stands in no operand");
        if (memchr(output->labels, output->labels[d], (size_t)d))
            return refuse(r, EDDY_INVALID_ARGUMENT, "a label stands twice in the output");
    }
    if (dots >= 0 && output->rank + longest > EDDY_RANK_MAX)
        return refuse(r, EDDY_SHAPE_MISMATCH, "the result would have more than %d axes",
                      EDDY_RANK_MAX);
    if (dots >= 0)
        insert_ellipsis(output, dots, longest);
    return EDDY_OK;
}

eddy_status eddy_equation_read(eddy_equation *equation, const char *text, const int32_t *ranks,
                               int64_t count, char *reason, size_t size) {
    reader r = {.at = text, .reason = reason, .size = size};
    int32_t longest = 0, counts[EDDY_EQUATION_LABELS];
    EDDY_ASSERT(count <= EDDY_EQUATION_OPERANDS);
    eddy_status status = read_operands(&r, equation, ranks, count, &longest);
    if (status != EDDY_OK)
        return status;
    count_labels(equation, count, counts);
    if (*r.at == 0)
        return imply_output(&r, equation, counts);
    if (strncmp(r.at, "->", 2) != 0)
        return refuse(&r, EDDY_INVALID_ARGUMENT, "'%c' is no label", *r.at);
    r.at += 2;
    return read_output(&r, equation, counts, longest);
}
