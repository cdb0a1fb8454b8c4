/* Tensors as text, in numpy's style. The elements to show are copied first, so that no lend is open while text is
 * written. */
#include <eddy/print.h>

#include <base/dtype.h>
#include <base/log.h>
#include <base/memory.h>
#include <base/option.h>
#include <base/status.h>
#include <interpreter/call/recorder.h>
#include <interpreter/handle/tensor.h>
#include <math.h>
#include <string.h>

#define DEFAULT_PRECISION 4
#define DEFAULT_THRESHOLD 1000
#define DEFAULT_EDGE_ITEMS 3
#define DEFAULT_LINE_WIDTH 80
#define ELEMENT_SIZE 352 /* -DBL_MAX with 17 digits after the point */

/* ---- output ---- */

typedef struct sink {
    char *buffer; /* NULL with size 0: only counted */
    size_t size;
    int64_t length;
    FILE *file;
    bool is_log;
    char line[1024]; /* of the log, so far */
    size_t line_length;
    int32_t column;
} sink;

static void put_log(sink *s, char c) {
    if (c != '\n' && s->line_length < sizeof(s->line) - 1) {
        s->line[s->line_length++] = c;
        return;
    }
    s->line[s->line_length] = '\0';
    eddy_log_line("%s", s->line);
    s->line_length = 0;
    if (c != '\n')
        s->line[s->line_length++] = c;
}

static void put(sink *s, const char *text) {
    for (; *text; text++) {
        if (s->file)
            fputc(*text, s->file);
        else if (s->is_log)
            put_log(s, *text);
        else if ((uint64_t)s->length + 1 < s->size)
            s->buffer[s->length] = *text;
        s->length++;
        s->column = *text == '\n' ? 0 : s->column + 1;
    }
}

static void put_times(sink *s, const char *text, int32_t count) {
    for (int32_t i = 0; i < count; i++)
        put(s, text);
}

/* ---- format ---- */

typedef struct page {
    eddy_dtype dtype;
    size_t element_bytes;
    int32_t rank;
    int64_t dims[EDDY_RANK_MAX];
    int64_t strides[EDDY_RANK_MAX];
    int32_t edge_items;
    int32_t precision;
    int32_t line_width;
    bool is_cut; /* the middle of long axes is left out */
    bool is_exponential;
    int32_t digits;      /* after the point, in all numbers with exponents */
    int32_t left, right; /* columns before the point, and from it on */
    char *elements;      /* those shown, in order */
    int64_t shown;
} page;

static bool is_cut_at(const page *p, int32_t axis) {
    return p->is_cut && p->dims[axis] > 2 * (int64_t)p->edge_items;
}

static int64_t shown_along(const page *p, int32_t axis) {
    return is_cut_at(p, axis) ? 2 * (int64_t)p->edge_items : p->dims[axis];
}

/* The index of the k-th shown element of an axis. */
static int64_t index_of(const page *p, int32_t axis, int64_t k) {
    return is_cut_at(p, axis) && k >= p->edge_items ? p->dims[axis] - 2 * (int64_t)p->edge_items + k
                                                    : k;
}

static char *gather(const page *p, int32_t axis, const char *data, char *target) {
    if (axis == p->rank) {
        memcpy(target, data, p->element_bytes);
        return target + p->element_bytes;
    }
    for (int64_t k = 0; k < shown_along(p, axis); k++)
        target = gather(p, axis + 1,
                        data + index_of(p, axis, k) * p->strides[axis] * (int64_t)p->element_bytes,
                        target);
    return target;
}

/* How many elements from the k-th shown one of the last axis on follow one another in memory. */
static int64_t run_of(const page *p, int64_t k) {
    int32_t last = p->rank - 1;
    int64_t count = 1, first = index_of(p, last, k);
    while (p->strides[last] == 1 && k + count < shown_along(p, last) &&
           index_of(p, last, k + count) == first + count)
        count++;
    return count;
}

typedef struct reading {
    const page *page;
    eddy_vm *vm;
    eddy_storage_number storage;
    int64_t deadline;
    eddy_origin origin;
    char *target; /* of the next element */
} reading;

static eddy_status read_run(reading *r, int64_t first, int64_t count) {
    int64_t most = EDDY_READ_SMALL_BYTES / (int64_t)r->page->element_bytes;
    while (count > 0) {
        int64_t taken = count < most ? count : most;
        size_t bytes = (size_t)taken * r->page->element_bytes;
        eddy_vm_wait wait = {eddy_clock_left(r->deadline), r->origin};
        eddy_status status = eddy_vm_read_small(
            r->vm, r->storage, first * (int64_t)r->page->element_bytes, bytes, r->target, &wait);
        if (status != EDDY_OK)
            return status;
        r->target += bytes;
        first += taken;
        count -= taken;
    }
    return EDDY_OK;
}

static eddy_status read_shown(reading *r, int32_t axis, int64_t first) {
    const page *p = r->page;
    if (axis == p->rank)
        return read_run(r, first, 1);
    eddy_status status = EDDY_OK;
    for (int64_t k = 0, count = 1; k < shown_along(p, axis) && status == EDDY_OK; k += count) {
        int64_t at = first + index_of(p, axis, k) * p->strides[axis];
        if (axis == p->rank - 1) {
            count = run_of(p, k);
            status = read_run(r, at, count);
        } else {
            status = read_shown(r, axis + 1, at);
        }
    }
    return status;
}

/* A lend copies all of a device's storage, so much while one element is asked for and comes. */
#define LENT_MEANWHILE ((int64_t)32 << 10)

static bool is_read_in_parts(const page *p, const eddy_tensor *tensor) {
    int64_t bytes = tensor->root->count * eddy_dtype_size((eddy_dtype)tensor->root->dtype);
    return eddy_tensor_device(tensor).kind != EDDY_DEVICE_CPU && p->shown > 0 &&
           p->shown < bytes / LENT_MEANWHILE;
}

static eddy_status read_in_parts(const page *p, const eddy_tensor *tensor, int64_t deadline,
                                 eddy_origin origin) {
    reading r = {.page = p,
                 .vm = tensor->runtime->vm,
                 .storage = tensor->storage,
                 .deadline = deadline,
                 .origin = origin,
                 .target = p->elements};
    return read_shown(&r, 0, tensor->offset);
}

static eddy_status read_lent(const page *p, const eddy_tensor *tensor, int64_t deadline,
                             eddy_origin origin) {
    eddy_vm_wait wait = {eddy_clock_left(deadline), origin};
    void *data;
    eddy_vm_lend *lend;
    eddy_vm *vm = tensor->runtime->vm;
    eddy_status status = eddy_vm_lend_begin(vm, tensor->storage, false, &wait, &data, &lend);
    if (status != EDDY_OK)
        return status;
    if (p->shown > 0)
        gather(p, 0, (char *)data + tensor->offset * (int64_t)p->element_bytes, p->elements);
    eddy_vm_lend_end(vm, lend, false);
    return EDDY_OK;
}

static eddy_status copy_shown(page *p, eddy_tensor *tensor, int64_t deadline, eddy_origin origin) {
    size_t bytes = (size_t)p->shown * p->element_bytes;
    p->elements = eddy_memory_acquire(bytes, EDDY_MEMORY_TEXT);
    if (!p->elements)
        return eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory for %lld elements",
                         (long long)p->shown);
    eddy_recorder_read_other(eddy_caller_self, tensor, origin);
    eddy_status status = is_read_in_parts(p, tensor) ? read_in_parts(p, tensor, deadline, origin)
                                                     : read_lent(p, tensor, deadline, origin);
    if (status != EDDY_OK)
        eddy_memory_release(p->elements, bytes, EDDY_MEMORY_TEXT);
    return status;
}

/* ---- elements ---- */

/* Removes trailing zeros of a number's digits, but keeps the point: "1.5000" -> "1.5", "2.0000" -> "2." */
static void trim_zeros(char *text) {
    char *end = text + strlen(text);
    while (end[-1] == '0')
        *--end = '\0';
}

static void write_float(const page *p, double value, char *text) {
    if (isnan(value)) {
        strcpy(text, "nan");
    } else if (isinf(value)) {
        strcpy(text, value < 0 ? "-inf" : "inf");
    } else {
        snprintf(text, ELEMENT_SIZE, p->is_exponential ? "%#.*e" : "%#.*f", (int)p->digits, value);
        if (!p->is_exponential)
            trim_zeros(text);
    }
}

static void write_element(const page *p, const char *element, char *text) {
    switch (eddy_dtype_category_of(p->dtype)) {
    case EDDY_CATEGORY_BOOL:
        strcpy(text, *element ? "True" : "False");
        break;
    case EDDY_CATEGORY_INT:
        snprintf(text, ELEMENT_SIZE, "%lld", (long long)eddy_dtype_load_i64(p->dtype, element));
        break;
    case EDDY_CATEGORY_FLOAT:
        write_float(p, eddy_dtype_load_f64(p->dtype, element), text);
        break;
    }
}

/* Columns up to the point, or all of them if there is none. */
static int32_t left_part(const char *text) {
    return (int32_t)strcspn(text, ".");
}

/* Digits that the number needs after its point, the precision at most. */
static int32_t digits_of(const page *p, double value) {
    char text[ELEMENT_SIZE];
    snprintf(text, sizeof(text), "%#.*e", (int)p->precision, value);
    const char *point = strchr(text, '.') + 1;
    size_t digits = strspn(point, "0123456789");
    while (digits > 0 && point[digits - 1] == '0')
        digits--;
    return (int32_t)digits;
}

/* numpy's rule: exponents where numbers are very large, very small, or far apart. */
static void choose_exponents(page *p) {
    double least = INFINITY, most = 0;
    for (int64_t i = 0; i < p->shown && eddy_dtype_category_of(p->dtype) == EDDY_CATEGORY_FLOAT;
         i++) {
        double value =
            fabs(eddy_dtype_load_f64(p->dtype, p->elements + (size_t)i * p->element_bytes));
        if (!isfinite(value) || value == 0)
            continue;
        least = fmin(least, value);
        most = fmax(most, value);
    }
    p->is_exponential = most > 0 && (most >= 1e8 || least < 1e-4 || most / least > 1000);
    p->digits = p->is_exponential ? 0 : p->precision;
    for (int64_t i = 0; i < p->shown && p->is_exponential; i++) {
        double value = eddy_dtype_load_f64(p->dtype, p->elements + (size_t)i * p->element_bytes);
        int32_t digits = isfinite(value) ? digits_of(p, value) : 0;
        p->digits = digits > p->digits ? digits : p->digits;
    }
}

static void choose_form(page *p) {
    choose_exponents(p);
    for (int64_t i = 0; i < p->shown; i++) {
        char text[ELEMENT_SIZE];
        write_element(p, p->elements + (size_t)i * p->element_bytes, text);
        int32_t left = left_part(text), right = (int32_t)strlen(text) - left;
        if (right == 0 && eddy_dtype_category_of(p->dtype) == EDDY_CATEGORY_FLOAT)
            continue; /* nan and inf do not widen the columns */
        p->left = left > p->left ? left : p->left;
        p->right = right > p->right ? right : p->right;
    }
}

static void put_element(sink *s, const page *p, const char *element) {
    char text[ELEMENT_SIZE];
    write_element(p, element, text);
    int32_t left = left_part(text), right = (int32_t)strlen(text) - left;
    if (right == 0)
        left -= p->right;
    put_times(s, " ", p->left - left);
    put(s, text);
    if (right > 0)
        put_times(s, " ", p->right - right);
}

/* ---- brackets ---- */

static void put_separator(sink *s, const page *p, int32_t axis) {
    if (axis < p->rank - 1) {
        put(s, ",");
        put_times(s, "\n", p->rank - 1 - axis);
        put_times(s, " ", axis + 1);
        return;
    }
    put(s, ",");
    if (s->column + 1 + p->left + p->right + (p->rank - axis) > p->line_width) {
        put(s, "\n");
        put_times(s, " ", axis + 1);
    } else {
        put(s, " ");
    }
}

static const char *put_axis(sink *s, const page *p, int32_t axis, const char *element) {
    if (axis == p->rank) {
        put_element(s, p, element);
        return element + p->element_bytes;
    }
    put(s, "[");
    int64_t shown = shown_along(p, axis);
    for (int64_t k = 0; k < shown; k++) {
        if (k > 0)
            put_separator(s, p, axis);
        if (k == p->edge_items && is_cut_at(p, axis)) {
            put(s, "...");
            put_separator(s, p, axis);
        }
        element = put_axis(s, p, axis + 1, element);
    }
    put(s, "]");
    return element;
}

/* ---- the whole ---- */

static eddy_status check_options(const eddy_format_options *options, eddy_origin origin) {
    if (!options ||
        (options->precision >= 0 && options->precision <= 17 && options->threshold >= 0 &&
         options->edge_items >= 0 && options->line_width >= 0))
        return EDDY_OK;
    return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "an option is out of range");
}

static void page_init(page *p, const eddy_tensor *tensor, const eddy_format_options *options) {
    static const eddy_format_options none = {0};
    const eddy_format_options *o = options ? options : &none;
    *p = (page){.dtype = (eddy_dtype)tensor->dtype, .rank = tensor->rank};
    p->element_bytes = eddy_dtype_bytes(p->dtype);
    p->precision = o->has_precision ? o->precision : DEFAULT_PRECISION;
    p->edge_items = o->edge_items ? o->edge_items : DEFAULT_EDGE_ITEMS;
    p->line_width = o->line_width ? o->line_width : DEFAULT_LINE_WIDTH;
    p->is_cut = tensor->count > (o->threshold ? o->threshold : DEFAULT_THRESHOLD);
    p->shown = 1;
    for (int32_t d = 0; d < p->rank; d++) {
        p->dims[d] = tensor->axes[d].dim;
        p->strides[d] = tensor->axes[d].stride;
        p->shown *= shown_along(p, d);
    }
}

static eddy_status format(sink *s, eddy_tensor *tensor, const eddy_format_options *options,
                          eddy_origin origin) {
    eddy_caller *caller = eddy_caller_get();
    int64_t deadline = EDDY_OPTION_DEADLINE(options);
    if (!eddy_caller_may_call(caller))
        return eddy_caller_refuse(caller, origin);
    eddy_status status = eddy_tensor_check(tensor, "tensor", origin);
    if (status == EDDY_OK)
        status = check_options(options, origin);
    if (status == EDDY_OK && !eddy_runtime_is_running(tensor->runtime))
        status = eddy_runtime_refuse(tensor->runtime, origin, "");
    if (status == EDDY_OK)
        status = eddy_tensor_await_shape_until(tensor, deadline, origin);
    if (status != EDDY_OK)
        return status;
    page p;
    page_init(&p, tensor, options);
    status = copy_shown(&p, tensor, deadline, origin);
    if (status != EDDY_OK)
        return status;
    choose_form(&p);
    if (p.shown == 0)
        put(s, "[]");
    else
        put_axis(s, &p, 0, p.elements);
    if (!options || !options->omits_tail) {
        char text[EDDY_RANK_MAX * 22];
        eddy_tensor_describe(tensor, text, sizeof(text));
        put(s, "  ");
        put(s, text);
    }
    eddy_memory_release(p.elements, (size_t)p.shown * p.element_bytes, EDDY_MEMORY_TEXT);
    return EDDY_OK;
}

int64_t eddy_format(eddy_tensor *tensor, char *buffer, size_t size,
                    const eddy_format_options *options) {
    eddy_origin origin = EDDY_ORIGIN("format");
    sink s = {.buffer = buffer, .size = buffer ? size : 0};
    if (format(&s, tensor, options, origin) != EDDY_OK)
        return -1;
    if (s.size > 0)
        s.buffer[(uint64_t)s.length < s.size ? (size_t)s.length : s.size - 1] = '\0';
    return s.length;
}

/* Prints, and on failure writes the reason: for a tensor that failed before, that in the slot. The slot is not changed. */
static eddy_status print_or_tell(sink *s, eddy_tensor *tensor, eddy_origin origin) {
    eddy_error before, mine;
    bool had_error = eddy_error_peek(&before);
    if (had_error && tensor)
        eddy_error_take(NULL);
    eddy_status status = format(s, tensor, NULL, origin);
    if (status != EDDY_OK && eddy_error_peek(&mine)) {
        put(s, "error: ");
        put(s, mine.message);
    }
    if (had_error && tensor) {
        before.more += status != EDDY_OK;
        eddy_error_restore(&before);
    }
    return status;
}

eddy_status eddy_print(eddy_tensor *tensor, FILE *file) {
    eddy_origin origin = EDDY_ORIGIN("print");
    sink s = {.file = file, .is_log = !file};
    eddy_status status = print_or_tell(&s, tensor, origin);
    put(&s, "\n");
    if (status != EDDY_OK)
        return status;
    return file && ferror(file) ? eddy_fail(EDDY_IO, origin, "the file cannot be written")
                                : EDDY_OK;
}
