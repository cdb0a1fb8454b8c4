#include <program/shape_class.h>

#include <base/dtype.h>
#include <base/memory.h>
#include <interpreter/call/describe.h>
#include <interpreter/handle/caller.h>
#include <interpreter/tape/autograd.h>
#include <stdio.h>
#include <string.h>

/* Of each input: the first one in its storage, dtype, device, rank, whether a gradient goes back to it, then dims and strides; then the kinds of the numbers. Which runtime
 * it belongs to decides too, and whether the tape is on. */
size_t eddy_signature_key_room(int64_t input_count, int64_t scalar_count) {
    return ((size_t)input_count * (2 + 2 * EDDY_RANK_MAX) + (size_t)scalar_count + 4) *
           sizeof(int64_t);
}

/* The first input that is in the same storage: one that is given twice is no other pair. */
static int64_t first_in_storage(eddy_list inputs, int64_t i) {
    int64_t first = 0;
    while (inputs.items[first]->storage != inputs.items[i]->storage)
        first++;
    return first;
}

/* Of the second word of an input. */
#define DEVICE_KIND_SHIFT 24
#define DEVICE_INDEX_SHIFT 32

static int64_t *add_input(int64_t *at, eddy_list inputs, int64_t i) {
    const eddy_tensor *tensor = inputs.items[i];
    bool has_gradient = tensor->autograd != 0;
    *at++ = first_in_storage(inputs, i);
    *at++ = tensor->dtype | (int64_t)tensor->rank << 8 | (int64_t)has_gradient << 16 |
            (int64_t)(uint8_t)tensor->device_kind << DEVICE_KIND_SHIFT |
            (int64_t)(uint8_t)tensor->device_index << DEVICE_INDEX_SHIFT;
    for (int32_t d = 0; d < tensor->rank; d++) {
        *at++ = tensor->axes[d].dim;
        *at++ = tensor->axes[d].dim > 1 ? tensor->axes[d].stride : 0;
    }
    return at;
}

size_t eddy_signature_key_make(void *memory, eddy_list inputs, eddy_scalars scalars) {
    int64_t *first = memory, *at = first;
    const eddy_caller *caller = eddy_caller_self;
    *at++ = inputs.count | scalars.count << 32;
    *at++ = caller->no_grad > 0;
    *at++ = inputs.count > 0 ? (int64_t)inputs.items[0]->runtime->id : 0;
    *at++ = caller->runtime ? (int64_t)caller->runtime->id : 0;
    for (int64_t i = 0; i < inputs.count; i++)
        at = add_input(at, inputs, i);
    for (int64_t i = 0; i < scalars.count; i++)
        *at++ = scalars.items[i].kind;
    return (size_t)(at - first) * sizeof(*first);
}

/* ---- keys that are foretold ---- */

#define HEAD_WORDS 4

static int64_t inputs_in(const int64_t *key) {
    return key[0] & UINT32_MAX;
}

static int32_t rank_in(const int64_t *input) {
    return (int32_t)(input[1] >> 8 & 0xff);
}

/* All but dims and strides. */
static bool is_like(const int64_t *a, const int64_t *b, size_t key_bytes) {
    size_t at = HEAD_WORDS;
    if (memcmp(a, b, HEAD_WORDS * sizeof(*a)) != 0)
        return false;
    for (int64_t i = 0; i < inputs_in(a); i++) {
        if (memcmp(a + at, b + at, 2 * sizeof(*a)) != 0)
            return false;
        at += 2 + 2 * (size_t)rank_in(a + at);
    }
    return memcmp(a + at, b + at, key_bytes - at * sizeof(*a)) == 0;
}

/* The word of the first dim that differs; 0: none does. */
static size_t find_size(const int64_t *a, const int64_t *b) {
    size_t at = HEAD_WORDS;
    for (int64_t i = 0; i < inputs_in(a); i++) {
        int32_t rank = rank_in(a + at);
        at += 2;
        for (int32_t d = 0; d < rank; d++, at += 2)
            if (a[at] != b[at])
                return at;
    }
    return 0;
}

static void read_layout(const int64_t *input, eddy_layout *layout) {
    *layout = (eddy_layout){.rank = rank_in(input)};
    for (int32_t d = 0; d < layout->rank; d++) {
        layout->dims[d] = input[2 + 2 * d];
        layout->strides[d] = input[3 + 2 * d];
    }
}

static bool has_foretold_dims(const int64_t *const keys[3], const eddy_affine *affine) {
    size_t at = HEAD_WORDS;
    for (int64_t i = 0; i < inputs_in(keys[0]); i++) {
        eddy_layout layouts[3], foretold = {0};
        for (int k = 0; k < 3; k++)
            read_layout(keys[k] + at, &layouts[k]);
        if (!eddy_affine_layout(affine, &layouts[0], &layouts[1], &foretold) ||
            !eddy_layout_is_equal(&foretold, &layouts[2]))
            return false;
        at += 2 + 2 * (size_t)layouts[0].rank;
    }
    return true;
}

bool eddy_signature_key_is_foretold(const void *first, const void *second, const void *third,
                                    size_t key_bytes, eddy_affine *affine) {
    const int64_t *a = first, *b = second, *c = third;
    if (!is_like(a, b, key_bytes) || !is_like(a, c, key_bytes))
        return false;
    size_t size = find_size(a, b);
    if (size == 0)
        return false;
    *affine = (eddy_affine){{a[size], b[size]}, c[size]};
    return has_foretold_dims((const int64_t *const[]){a, b, c}, affine);
}

/* A number that is on the line through two: "3", "n", "2n - 1"; "2..." where it does not rise by whole numbers. */
static void add_number(eddy_text *text, const eddy_affine *affine, int64_t first, int64_t second) {
    int64_t steps = affine->sizes[1] - affine->sizes[0], rise = second - first;
    int64_t slope = rise / steps, rest = first - slope * affine->sizes[0];
    if (rise % steps != 0 || rise == 0) {
        eddy_text_add(text, "%lld%s", (long long)first, rise == 0 ? "" : "...");
        return;
    }
    if (slope != 1)
        eddy_text_add(text, "%lld", (long long)slope);
    eddy_text_add(text, "n");
    if (rest != 0)
        eddy_text_add(text, " %c %lld", rest < 0 ? '-' : '+', (long long)(rest < 0 ? -rest : rest));
}

void eddy_signature_key_describe(const void *first, const void *second, char *buffer, size_t size) {
    const int64_t *a = first, *b = second;
    size_t at = find_size(a, b);
    eddy_affine affine = {{a[at], b[at]}, a[at]};
    eddy_text text = {buffer, size, 0};
    buffer[0] = 0;
    at = HEAD_WORDS;
    for (int64_t i = 0; i < inputs_in(a); i++) {
        int32_t rank = rank_in(a + at);
        eddy_text_add(&text, "%s%s[", i > 0 ? ", " : "",
                      eddy_dtype_name((eddy_dtype)(a[at + 1] & 0xff)));
        at += 2;
        for (int32_t d = 0; d < rank; d++, at += 2) {
            eddy_text_add(&text, d > 0 ? ", " : "");
            add_number(&text, &affine, a[at], b[at]);
        }
        eddy_text_add(&text, "]");
    }
    eddy_text_end(&text);
}

/* ---- signatures ---- */

/* "f32[4, 3], i64[] with input1 = 2". */
static char *describe(eddy_list inputs, const char *with) {
    char text[640], shape[EDDY_RANK_MAX * 22];
    eddy_text all = {text, sizeof(text), 0};
    text[0] = 0;
    for (int64_t i = 0; i < inputs.count; i++) {
        eddy_tensor_describe(inputs.items[i], shape, sizeof(shape));
        eddy_text_add(&all, "%s%s", i > 0 ? ", " : "", shape);
    }
    if (with[0])
        eddy_text_add(&all, " with %s", with);
    eddy_text_end(&all);
    size_t bytes = strlen(text) + 1;
    char *copy = eddy_memory_acquire(bytes, EDDY_MEMORY_PROGRAM);
    if (copy)
        memcpy(copy, text, bytes);
    return copy;
}

/* ---- what tells signatures with one text apart ---- */

#define GRADIENT_BIT (INT64_C(1) << 16)

static void add_strides(eddy_text *text, int64_t i, const int64_t *input) {
    eddy_text_add(text, "; input%lld has the strides [", (long long)i);
    for (int32_t d = 0; d < rank_in(input); d++)
        eddy_text_add(text, "%s%lld", d ? ", " : "", (long long)input[3 + 2 * d]);
    eddy_text_add(text, "]");
}

static bool any_stride(const int64_t *differs, int32_t rank) {
    for (int32_t d = 0; d < rank; d++)
        if (differs[3 + 2 * d] != 0)
            return true;
    return false;
}

static void add_device(eddy_text *text, int64_t i, int64_t word) {
    char name[32];
    eddy_device device = {(eddy_device_kind)(word >> DEVICE_KIND_SHIFT & 0xff),
                          (int32_t)(word >> DEVICE_INDEX_SHIFT & 0xff)};
    eddy_device_format(device, name, sizeof(name));
    eddy_text_add(text, "; input%lld is on %s", (long long)i, name);
}

/* What is the same for all is left out, and so is what most calls are: no gradient, memory of its own. */
static void add_input_apart(eddy_text *text, int64_t i, const int64_t *a, const int64_t *differs) {
    if (differs[0] != 0 && a[0] != i)
        eddy_text_add(text, "; input%lld shares memory with input%lld", (long long)i,
                      (long long)a[0]);
    if (differs[1] & a[1] & GRADIENT_BIT)
        eddy_text_add(text, "; a gradient goes back to input%lld", (long long)i);
    if (differs[1] >> DEVICE_KIND_SHIFT)
        add_device(text, i, a[1]);
    if (any_stride(differs, rank_in(a)))
        add_strides(text, i, a);
}

static void add_numbers(eddy_text *text, const int64_t *kinds, int64_t count) {
    static const char *const names[] = {"bool", "int", "float"};
    eddy_text_add(text, count > 0 ? "; with the numbers" : "; without numbers");
    for (int64_t i = 0; i < count; i++)
        eddy_text_add(text, " %s", names[kinds[i]]);
}

/* differs: the bits in which keys with the same inputs, but for what the text does not say, are not all alike. */
static void add_apart(eddy_text *text, const int64_t *a, const int64_t *differs,
                      bool differs_in_numbers) {
    size_t at = HEAD_WORDS;
    if (differs[1] & a[1])
        eddy_text_add(text, "; no gradients");
    if (differs[2] != 0 || differs[3] != 0)
        eddy_text_add(text, "; runtime %lld", (long long)(differs[3] != 0 ? a[3] : a[2]));
    for (int64_t i = 0; i < inputs_in(a); i++) {
        add_input_apart(text, i, a + at, differs + at);
        at += 2 + 2 * (size_t)rank_in(a + at);
    }
    if (differs_in_numbers)
        add_numbers(text, a + at, a[0] >> 32);
}

/* Of two texts that were cut the inputs may differ. */
static bool has_ranks(const int64_t *a, const int64_t *b) {
    size_t at = HEAD_WORDS;
    if (inputs_in(a) != inputs_in(b))
        return false;
    for (int64_t i = 0; i < inputs_in(a); i++) {
        if (rank_in(a + at) != rank_in(b + at))
            return false;
        at += 2 + 2 * (size_t)rank_in(a + at);
    }
    return true;
}

static bool is_alike(const eddy_signature *a, const eddy_signature *b) {
    return a != b && strcmp(a->text, b->text) == 0 && has_ranks(a->key, b->key);
}

/* Words of a key before its numbers. */
static size_t input_words(const int64_t *key) {
    size_t at = HEAD_WORDS;
    for (int64_t i = 0; i < inputs_in(key); i++)
        at += 2 + 2 * (size_t)rank_in(key + at);
    return at;
}

static bool has_numbers(const int64_t *a, const int64_t *b) {
    size_t at = input_words(a);
    return a[0] == b[0] && memcmp(a + at, b + at, (size_t)(a[0] >> 32) * sizeof(*a)) == 0;
}

void eddy_signature_tell_apart(const eddy_signature *signature, const eddy_signature *first,
                               char *text, size_t size) {
    eddy_text apart = {text, size, 0};
    bool differs_in_numbers = false;
    const int64_t *key = signature->key;
    size_t words = input_words(key), bytes = words * sizeof(*key);
    int64_t *differs = eddy_memory_acquire_zeroed(bytes, EDDY_MEMORY_PROGRAM);
    text[0] = 0;
    if (!differs)
        return;
    for (const eddy_signature *at = first; at; at = at->next) {
        const int64_t *other = at->key;
        if (!is_alike(at, signature))
            continue;
        for (size_t w = 0; w < words; w++)
            differs[w] |= key[w] ^ other[w];
        differs_in_numbers |= !has_numbers(key, other);
    }
    add_apart(&apart, key, differs, differs_in_numbers);
    eddy_memory_release(differs, bytes, EDDY_MEMORY_PROGRAM);
    eddy_text_end(&apart);
}

eddy_signature *eddy_signature_create(const void *key, size_t key_bytes, eddy_list inputs,
                                      const char *with) {
    eddy_signature *signature = eddy_memory_acquire_zeroed(sizeof(*signature), EDDY_MEMORY_PROGRAM);
    if (!signature)
        return NULL;
    signature->key_bytes = key_bytes;
    signature->key = eddy_memory_acquire(key_bytes, EDDY_MEMORY_PROGRAM);
    signature->text = describe(inputs, with);
    signature->input_count = inputs.count;
    size_t bytes = (size_t)inputs.count * sizeof(*signature->inputs);
    signature->inputs = eddy_memory_acquire_zeroed(bytes + 1, EDDY_MEMORY_PROGRAM);
    if (!signature->key || !signature->text || !signature->inputs) {
        eddy_signature_destroy(signature);
        return NULL;
    }
    memcpy(signature->key, key, key_bytes);
    signature->digest = eddy_hash_128(key, key_bytes);
    return signature;
}

void eddy_signature_destroy(eddy_signature *signature) {
    eddy_guard_fini(&signature->guards);
    eddy_program_release(&signature->program);
    eddy_program_release(&signature->source);
    eddy_shape_class_release(signature->class);
    eddy_memory_release(signature->key, signature->key_bytes, EDDY_MEMORY_PROGRAM);
    if (signature->text)
        eddy_memory_release(signature->text, strlen(signature->text) + 1, EDDY_MEMORY_PROGRAM);
    eddy_memory_release(signature->inputs,
                        (size_t)signature->input_count * sizeof(*signature->inputs) + 1,
                        EDDY_MEMORY_PROGRAM);
    eddy_memory_release(signature, sizeof(*signature), EDDY_MEMORY_PROGRAM);
}

/* 0 after a shutdown, where nothing is recorded or replayed. */
static uint32_t generation_of(const eddy_tensor *tensor) {
    return eddy_runtime_is_running(tensor->runtime)
               ? eddy_vm_storage_generation(tensor->runtime->vm, tensor->storage)
               : 0;
}

static bool is_at(const eddy_signature_input *noted, const eddy_tensor *tensor) {
    return noted->storage == tensor->storage && noted->offset == tensor->offset &&
           noted->generation == generation_of(tensor);
}

void eddy_signature_note(eddy_signature *signature, eddy_list inputs, bool has_program) {
    for (int64_t i = 0; i < inputs.count; i++) {
        const eddy_tensor *tensor = inputs.items[i];
        eddy_signature_input *noted = &signature->inputs[i];
        noted->is_fixed = has_program && is_at(noted, tensor);
        noted->storage = tensor->storage;
        noted->offset = tensor->offset;
        noted->generation = generation_of(tensor);
        noted->view_leaves = eddy_load_relaxed(&tensor->root->view_leaves);
    }
}

bool eddy_signature_has_inputs(const eddy_signature_input *noted, eddy_list inputs) {
    for (int64_t i = 0; i < inputs.count; i++)
        if (noted[i].is_fixed &&
            (!is_at(&noted[i], inputs.items[i]) ||
             noted[i].view_leaves != eddy_load_relaxed(&inputs.items[i]->root->view_leaves)))
            return false;
    return true;
}

bool eddy_signature_fits_tape(const eddy_program *program, uint64_t changes) {
    if (!program->uses_tape && eddy_caller_self->no_grad > 0)
        return true;
    if (!eddy_program_has_wants(program) || !eddy_kept_before_holds(&program->befores))
        return false;
    return changes == eddy_autograd_changes() ||
           (!program->sees_beyond && eddy_tape_seen_holds(&program->seen_of_tape));
}
