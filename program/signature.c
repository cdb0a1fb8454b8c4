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

bool eddy_signature_key_is_like(const void *first, const void *second, size_t key_bytes) {
    const int64_t *a = first, *b = second;
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

/* Calls visit with each word of a dim, from `at` on, until it is true; 0: it never is. */
static size_t find_dim_word(const int64_t *key, size_t from,
                            bool visit(size_t word, const void *context), const void *context) {
    size_t at = HEAD_WORDS;
    for (int64_t i = 0; i < inputs_in(key); i++) {
        int32_t rank = rank_in(key + at);
        at += 2;
        for (int32_t d = 0; d < rank; d++, at += 2)
            if (at >= from && visit(at, context))
                return at;
    }
    return 0;
}

typedef struct known_keys {
    const void *const *keys;
    size_t first; /* the word of the first size */
} known_keys;

static int64_t word_of(const void *const *keys, int32_t k, size_t word) {
    return ((const int64_t *)keys[k])[word];
}

static eddy_sizes sizes_at(const void *const *keys, int32_t k, const eddy_key_sizes *at) {
    eddy_sizes sizes = {{0}};
    for (int32_t i = 0; i < at->count; i++)
        sizes.of[i] = word_of(keys, k, at->words[i]);
    return sizes;
}

static bool differs_in_two(size_t word, const void *context) {
    const known_keys *known = context;
    return word_of(known->keys, 0, word) != word_of(known->keys, 1, word);
}

static bool differs_in_four(size_t word, const void *context) {
    const known_keys *known = context;
    for (int32_t k = 1; k < 4; k++)
        if (word_of(known->keys, 0, word) != word_of(known->keys, k, word))
            return true;
    return false;
}

/* Four keys are enough for it and the first one. */
static bool is_second_size(size_t word, const void *context) {
    const known_keys *known = context;
    eddy_key_sizes at = {2, {known->first, word}};
    eddy_sizes sizes[4];
    eddy_affine affine;
    for (int32_t k = 0; k < 4; k++)
        sizes[k] = sizes_at(known->keys, k, &at);
    return eddy_affine_of(sizes, 2, sizes[0], &affine);
}

static void read_layout(const int64_t *input, eddy_layout *layout) {
    *layout = (eddy_layout){.rank = rank_in(input)};
    for (int32_t d = 0; d < layout->rank; d++) {
        layout->dims[d] = input[2 + 2 * d];
        layout->strides[d] = input[3 + 2 * d];
    }
}

static bool has_foretold_dims(const void *const *keys, const int64_t *key,
                              const eddy_affine *affine) {
    size_t at = HEAD_WORDS;
    for (int64_t i = 0; i < inputs_in(key); i++) {
        eddy_layout known[EDDY_KNOWN_MOST], layout, foretold = {0};
        for (int32_t k = 0; k < affine->count; k++)
            read_layout((const int64_t *)keys[k] + at, &known[k]);
        read_layout(key + at, &layout);
        if (!eddy_affine_layout(affine, known, &foretold) ||
            !eddy_layout_is_equal(&foretold, &layout))
            return false;
        at += 2 + 2 * (size_t)layout.rank;
    }
    return true;
}

bool eddy_signature_key_is_foretold(const void *const *keys, const eddy_key_sizes *at,
                                    const void *key, size_t key_bytes, eddy_sizes *sizes) {
    eddy_sizes known[EDDY_KNOWN_MOST];
    eddy_affine affine;
    if (!eddy_signature_key_is_like(keys[0], key, key_bytes))
        return false;
    for (int32_t k = 0; k < 2 * at->count; k++)
        known[k] = sizes_at(keys, k, at);
    *sizes = sizes_at(&key, 0, at);
    return eddy_affine_of(known, at->count, *sizes, &affine) &&
           has_foretold_dims(keys, key, &affine);
}

bool eddy_signature_keys_have_sizes(const void *const *keys, int32_t size_count, size_t key_bytes,
                                    eddy_key_sizes *at) {
    eddy_sizes sizes;
    known_keys known = {keys, 0};
    *at = (eddy_key_sizes){.count = size_count};
    for (int32_t k = 1; k < 2 * size_count; k++)
        if (!eddy_signature_key_is_like(keys[0], keys[k], key_bytes))
            return false;
    known.first =
        find_dim_word(keys[0], 0, size_count == 1 ? differs_in_two : differs_in_four, &known);
    at->words[0] = known.first;
    if (size_count == 2 && known.first > 0)
        at->words[1] = find_dim_word(keys[0], known.first + 1, is_second_size, &known);
    return at->words[size_count - 1] > 0 &&
           eddy_signature_key_is_foretold(keys, at, keys[2 * size_count - 1], key_bytes, &sizes);
}

/* ---- keys as text ---- */

/* "", "n", "2n", "- 3mn" behind what is there. */
static void add_term(eddy_text *text, bool *is_first, int64_t number, const char *of) {
    if (number == 0)
        return;
    if (!*is_first)
        eddy_text_add(text, number < 0 ? " - " : " + ");
    else if (number < 0)
        eddy_text_add(text, "-");
    uint64_t size = number < 0 ? -(uint64_t)number : (uint64_t)number;
    if (size != 1 || !of[0])
        eddy_text_add(text, "%llu", (unsigned long long)size);
    eddy_text_add(text, "%s", of);
    *is_first = false;
}

/* What the keys say of a number where all sizes are those, though none may be as small. */
static bool tell_at(const void *const *keys, const eddy_key_sizes *at, size_t word, int64_t m,
                    int64_t n, int64_t *told) {
    eddy_sizes known[EDDY_KNOWN_MOST];
    int64_t numbers[EDDY_KNOWN_MOST];
    eddy_affine affine;
    for (int32_t k = 0; k < 2 * at->count; k++) {
        known[k] = sizes_at(keys, k, at);
        numbers[k] = word_of(keys, k, word);
    }
    return eddy_affine_of(known, at->count, (eddy_sizes){{m, n}}, &affine) &&
           eddy_affine_number(&affine, numbers, told);
}

/* "3", "n", "2n - 1", of two sizes "m", "4 + mn"; "3..." where it does not change by whole numbers. */
static void add_number(eddy_text *text, const void *const *keys, const eddy_key_sizes *at,
                       size_t word) {
    int64_t rest, by_m, by_n = 0, by_both = 0;
    bool is_first = true, is_whole = tell_at(keys, at, word, 0, 0, &rest) &&
                                     tell_at(keys, at, word, 1, 0, &by_m) &&
                                     (at->count == 1 || (tell_at(keys, at, word, 0, 1, &by_n) &&
                                                         tell_at(keys, at, word, 1, 1, &by_both)));
    if (!is_whole) {
        eddy_text_add(text, "%lld...", (long long)word_of(keys, 0, word));
        return;
    }
    by_m -= rest;
    by_n -= at->count == 1 ? 0 : rest;
    by_both -= at->count == 1 ? 0 : rest + by_m + by_n;
    add_term(text, &is_first, by_both, "mn");
    add_term(text, &is_first, by_m, at->count == 1 ? "n" : "m");
    add_term(text, &is_first, by_n, "n");
    add_term(text, &is_first, rest, "");
    if (is_first)
        eddy_text_add(text, "0");
}

void eddy_signature_key_describe(const void *const *keys, const eddy_key_sizes *sizes, char *buffer,
                                 size_t size) {
    const int64_t *first = keys[0];
    size_t at = HEAD_WORDS;
    eddy_text text = {buffer, size, 0};
    buffer[0] = 0;
    for (int64_t i = 0; i < inputs_in(first); i++) {
        int32_t rank = rank_in(first + at);
        eddy_text_add(&text, "%s%s[", i > 0 ? ", " : "",
                      eddy_dtype_name((eddy_dtype)(first[at + 1] & 0xff)));
        at += 2;
        for (int32_t d = 0; d < rank; d++, at += 2) {
            eddy_text_add(&text, d > 0 ? ", " : "");
            add_number(&text, keys, sizes, at);
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
