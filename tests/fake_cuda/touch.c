#include <kernels/cuda/parameters.h>
#include <string.h>
#include <tests/fake_cuda/finding.h>
#include <tests/fake_cuda/host.h>
#include <tests/fake_cuda/touch.h>

#define ROW_BYTES 512
#define OPERANDS EDDY_CUDA_ELEMENTWISE_OPERANDS

static void add(fake_piece *piece, uintptr_t begin, uintptr_t end, bool is_write) {
    if (piece->touch_count == FAKE_TOUCHES)
        fake_abort("%s touches more ranges than there is room for", piece->what);
    if (begin < end)
        piece->touches[piece->touch_count++] = (fake_touch){begin, end, is_write};
}

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* ---- what Eddy's kernels begin with ---- */

/* In a graph it counts from a ticket that the stream has written. */
static void touch_gate(const fake_stream *stream, fake_piece *piece, const eddy_cuda_gate *gate) {
    uintptr_t marks = (uintptr_t)gate->marks, word = (uintptr_t)gate->word,
              base = (uintptr_t)gate->base;
    uint64_t ticket = gate->ticket;
    if (base) {
        if (stream->written_to != base)
            fake_finding("%s counts from a ticket that its stream has not written", piece->what);
        ticket += stream->written;
        word += ticket % EDDY_CUDA_WORDS * sizeof(eddy_cuda_word);
        add(piece, base, base + sizeof(uint64_t), false);
    }
    if (marks) {
        uintptr_t own = marks + ticket % EDDY_CUDA_WORDS * sizeof(uint64_t);
        for (int s = 0; s < EDDY_CUDA_SOURCES && gate->behind[s]; s++) {
            uintptr_t source =
                marks + (ticket - gate->behind[s]) % EDDY_CUDA_WORDS * sizeof(uint64_t);
            add(piece, source, source + sizeof(uint64_t), false);
        }
        add(piece, own, own + sizeof(uint64_t), true);
    }
    if (gate->word)
        add(piece, word, word + sizeof(eddy_cuda_word), true);
}

/* ---- elementwise kernels: the last operand is the output ---- */

static int output_of(void *const data[OPERANDS]) {
    int output = OPERANDS - 1;
    while (output > 0 && !data[output])
        output--;
    return output;
}

/* 1 where the library of the kernels does not say: the touch is too short then. */
static uintptr_t element_bytes(const fake_piece *piece, int operand) {
    const unsigned char *bytes = piece->function->element_bytes;
    return bytes && bytes[operand] ? bytes[operand] : 1;
}

static void touch_dense(fake_piece *piece, const eddy_cuda_dense *dense) {
    int output = output_of(dense->data);
    for (int i = 0; i <= output && dense->count > 0; i++) {
        bool is_one = i < output && dense->broadcast >> i & 1;
        uintptr_t begin = (uintptr_t)dense->data[i];
        uintptr_t count = is_one ? 1 : (uintptr_t)dense->count;
        if (begin)
            add(piece, begin, begin + count * element_bytes(piece, i), i == output);
    }
}

static void touch_strided(fake_piece *piece, const eddy_cuda_strided *strided) {
    int rank = strided->rank < 0 || strided->rank > EDDY_CUDA_RANK_MAX ? 0 : strided->rank;
    int64_t last[EDDY_CUDA_RANK_MAX], inner = 1; /* greatest index of each dim */
    for (int d = rank - 1; d >= 0; d--) {
        int64_t size = strided->dims[d].divisor ? strided->dims[d].divisor : 1;
        /* By the outermost nobody divides. */
        last[d] = d > 0 ? size - 1 : ((int64_t)strided->count + inner - 1) / inner - 1;
        inner *= size;
    }
    int output = output_of(strided->data);
    for (int i = 0; i <= output && strided->count > 0; i++) {
        uintptr_t begin = (uintptr_t)strided->data[i], end = begin + element_bytes(piece, i);
        for (int d = 0; d < rank; d++) {
            int64_t reach = last[d] * strided->strides[i][d];
            *(reach < 0 ? &begin : &end) += (uintptr_t)reach;
        }
        if (strided->data[i])
            add(piece, begin, end, i == output);
    }
}

/* ---- others ---- */

/* Each pointer is taken to read to the end of its row. */
static void touch_words(const fake_device *device, fake_piece *piece, size_t from) {
    const uint64_t *words = (const uint64_t *)(const void *)piece->parameters;
    for (size_t w = from / sizeof(*words); w < piece->function->bytes / sizeof(*words); w++) {
        uintptr_t begin = words[w], end = begin / ROW_BYTES * ROW_BYTES + ROW_BYTES, block_end;
        if (!fake_memory_covers(&device->memory, begin, begin, &block_end) &&
            !fake_host_covers(begin, begin, &block_end))
            continue;
        add(piece, begin, end < block_end ? end : block_end, false);
    }
}

static void add_reported(void *context, const void *begin, size_t bytes, int is_write) {
    add(context, (uintptr_t)begin, (uintptr_t)begin + bytes, is_write != 0);
}

void fake_touch_kernel(const fake_stream *stream, fake_piece *piece) {
    const fake_device *device = stream->device;
    const char *name = piece->function->name;
    size_t bytes = piece->function->bytes;
    const void *parameters = piece->parameters;
    bool has_gate = strncmp(name, "eddy_", 5) == 0 && bytes >= sizeof(eddy_cuda_gate);
    if (has_gate)
        touch_gate(stream, piece, parameters);
    if (piece->function->touches)
        piece->function->touches(parameters, add_reported, piece);
    else if (has_gate && bytes == sizeof(eddy_cuda_dense) && ends_with(name, "_dense"))
        touch_dense(piece, parameters);
    else if (has_gate && bytes == sizeof(eddy_cuda_strided) && ends_with(name, "_strided"))
        touch_strided(piece, parameters);
    else
        touch_words(device, piece, has_gate ? sizeof(eddy_cuda_gate) : 0);
}
