#include <base/dtype.h>
#include <kernels/cpu/cast_block.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/move/move_block.h>
#include <string.h>

/* Elements converted at a time between two strided sides: both buffers stay in the first-level cache. */
#define PIECE 512

#define INLINE static inline __attribute__((always_inline))

INLINE void move_each(size_t bytes, char *target, int64_t target_stride, const char *source,
                      int64_t source_stride, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        memcpy(target + i * target_stride * (int64_t)bytes,
               source + i * source_stride * (int64_t)bytes, bytes);
}

INLINE void move_strided(size_t bytes, char *target, int64_t target_stride, const char *source,
                         int64_t source_stride, int64_t count) {
    if (source_stride == 0)
        move_each(bytes, target, target_stride, source, 0, count);
    else if (target_stride == 1 && source_stride == -1)
        move_each(bytes, target, 1, source, -1, count);
    else if (target_stride == 1)
        move_each(bytes, target, 1, source, source_stride, count);
    else if (source_stride == 1)
        move_each(bytes, target, target_stride, source, 1, count);
    else
        move_each(bytes, target, target_stride, source, source_stride, count);
}

#define MOVE(bytes)                                                                                \
    static void move_##bytes(char *restrict target, int64_t target_stride,                         \
                             const char *restrict source, int64_t source_stride, int64_t count) {  \
        move_strided(bytes, target, target_stride, source, source_stride, count);                  \
    }

MOVE(1)
MOVE(2)
MOVE(4)
MOVE(8)

/* The C library's long copies are slow if the target lies less than a cache line after the source, modulo a page (4K
 * aliasing). Each load then waits for a store whose address only appears to be the same, and "rep movsb" falls to 3 GB/s
 * on some CPUs. */
#define COPY_PAGE 4096
#define COPY_LINE 64

static void copy_bytes(char *target, const char *source, size_t bytes) {
    size_t after = ((uintptr_t)target - (uintptr_t)source) % COPY_PAGE;
    if (bytes <= EDDY_CHUNK_SHORT || after == 0 || after >= COPY_LINE)
        memcpy(target, source, bytes);
    else
        eddy_cpu_move_blocks()->copy(target, source, bytes);
}

/* For elements of 4 or 8 bytes. */
static void reverse(size_t bytes, void *target, const void *source, int64_t count) {
    const eddy_move_blocks *blocks = eddy_cpu_move_blocks();
    (bytes == 4 ? blocks->reverse_32 : blocks->reverse_64)(target, source, count);
}

static void move_elements(size_t bytes, void *target, int64_t target_stride, const void *source,
                          int64_t source_stride, int64_t count) {
    if (target_stride == 1 && source_stride == 1) {
        copy_bytes(target, source, bytes * (size_t)count);
        return;
    }
    if (target_stride == 1 && source_stride == -1 && bytes >= 4) {
        reverse(bytes, target, source, count);
        return;
    }
    switch (bytes) {
    case 1:
        move_1(target, target_stride, source, source_stride, count);
        break;
    case 2:
        move_2(target, target_stride, source, source_stride, count);
        break;
    case 4:
        move_4(target, target_stride, source, source_stride, count);
        break;
    default:
        move_8(target, target_stride, source, source_stride, count);
        break;
    }
}

void eddy_chunk_convert(eddy_dtype to, void *target, int64_t target_stride, eddy_dtype from,
                        const void *source, int64_t source_stride, int64_t count) {
    if (count == 0)
        return;
    size_t to_bytes = (size_t)eddy_dtype_size(to), from_bytes = (size_t)eddy_dtype_size(from);
    if (to == from) {
        move_elements(to_bytes, target, target_stride, source, source_stride, count);
        return;
    }
    eddy_cast_fn *cast = eddy_cpu_cast_blocks()->cast[to][from];
    if (target_stride == 1 && source_stride == 1) {
        cast(target, source, count);
        return;
    }
    _Alignas(64) char gathered[PIECE * 8], converted[PIECE * 8];
    for (int64_t done = 0; done < count; done += PIECE) {
        int64_t piece = count - done < PIECE ? count - done : PIECE;
        const char *in = (const char *)source + done * source_stride * (int64_t)from_bytes;
        char *out = (char *)target + done * target_stride * (int64_t)to_bytes;
        if (source_stride != 1) {
            move_elements(from_bytes, gathered, 1, in, source_stride, piece);
            in = gathered;
        }
        if (target_stride == 1) {
            cast(out, in, piece);
        } else {
            cast(converted, in, piece);
            move_elements(to_bytes, out, target_stride, converted, 1, piece);
        }
    }
}

/* Up to this many bytes are filled element by element. */
#define FILL_SHORT 128

static bool is_one_byte(const unsigned char *value, int64_t bytes) {
    return memcmp(value, value + 1, (size_t)bytes - 1) == 0;
}

void eddy_chunk_fill(void *target, int64_t stride, int64_t bytes, const void *value,
                     int64_t count) {
    if (stride != 1) {
        move_elements((size_t)bytes, target, stride, value, 0, count);
        return;
    }
    size_t all = (size_t)(count * bytes);
    if (is_one_byte(value, bytes)) {
        memset(target, *(const unsigned char *)value, all);
    } else if (all <= FILL_SHORT) {
        move_elements((size_t)bytes, target, 1, value, 0, count);
    } else {
        _Alignas(EDDY_MOVE_LINE) char line[EDDY_MOVE_LINE];
        move_elements((size_t)bytes, line, 1, value, 0, EDDY_MOVE_LINE / bytes);
        eddy_cpu_move_blocks()->fill(target, line, all);
    }
}
