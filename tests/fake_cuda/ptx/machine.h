/* What the instructions of PTX do that translate.py has turned into C++: by the PTX ISA 9.0, of NVIDIA. Where it leaves a result open, what a device is known to do, or
 * else what a program must not rely on. */
#ifndef EDDY_TESTS_FAKE_CUDA_PTX_MACHINE_H
#define EDDY_TESTS_FAKE_CUDA_PTX_MACHINE_H

#include <fenv.h>
#include <math.h>
#include <memory>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tests/fake_cuda/kernels/grid.h>
#include <unordered_map>

/* ---- values ---- */

template <class to, class from> static inline to ptx_bits(from value) {
    static_assert(sizeof(to) == sizeof(from), "registers of one size");
    to bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* Arithmetic has one NaN of f32; that of f64 keeps an operand's, as this processor does. */
static inline float ptx_result(float value) {
    return value != value ? ptx_bits<float>(0x7fffffffu) : value;
}
static inline double ptx_result(double value) {
    return value;
}

template <class real> static inline real ptx_fma(real a, real b, real c) {
    return ptx_result(sizeof(real) == sizeof(float) ? (real)fmaf((float)a, (float)b, (float)c)
                                                    : (real)fma((double)a, (double)b, (double)c));
}
__attribute__((noinline)) static float ptx_fma_to_zero(float a, float b, float c) {
    const int before = fegetround();
    fesetround(FE_TOWARDZERO);
    /* Computed where they stand. */
    volatile float x = a, y = b, z = c;
    volatile float result = fmaf(x, y, z);
    fesetround(before);
    return ptx_result(result);
}

/* Of what is approximate an ulp is missing or too much, by the bits of the operands. */
template <class real> static inline real ptx_approximate(real exact, real operand) {
    if (exact == 0 || exact - exact != 0)
        return ptx_result(exact);
    uint64_t bits = 0;
    memcpy(&bits, &operand, sizeof(operand));
    const uint64_t choice = (bits * UINT64_C(0x9e3779b97f4a7c15)) >> 62;
    if (choice == 0)
        return exact;
    return sizeof(real) == sizeof(float)
               ? (real)nextafterf((float)exact, choice == 1 ? INFINITY : -INFINITY)
               : (real)nextafter((double)exact, choice == 1 ? INFINITY : -INFINITY);
}
static inline float ptx_flushed(float value) {
    return fabsf(value) < 0x1p-126f ? copysignf(0, value) : value;
}

/* The lesser of two; of a number and a NaN the number; of two zeros the negative one. */
template <class real> static inline real ptx_min_real(real a, real b) {
    if (a != a || b != b)
        return ptx_result(a != a ? b : a);
    return a < b || (a == b && signbit(a)) ? a : b;
}
template <class real> static inline real ptx_max_real(real a, real b) {
    if (a != a || b != b)
        return ptx_result(a != a ? b : a);
    return a > b || (a == b && !signbit(a)) ? a : b;
}

/* The sign of the first, the magnitude of the second. */
static inline float ptx_copysign(float sign, float magnitude) {
    return ptx_bits<float>((ptx_bits<uint32_t>(sign) & 0x80000000u) |
                           (ptx_bits<uint32_t>(magnitude) & 0x7fffffffu));
}
static inline double ptx_copysign(double sign, double magnitude) {
    const uint64_t top = UINT64_C(1) << 63;
    return ptx_bits<double>((ptx_bits<uint64_t>(sign) & top) |
                            (ptx_bits<uint64_t>(magnitude) & ~top));
}

/* To an integer, which `value` is already; beyond its range the nearest one, of a NaN 0. */
template <class integer, class real> static inline integer ptx_to_integer(real value) {
    const bool is_signed = (integer)-1 < 0;
    const int bits = (int)sizeof(integer) * 8 - is_signed;
    const real end = (real)ldexp(1.0, bits);
    if (value != value)
        return 0;
    if (value >= end)
        return (integer)(~UINT64_C(0) >> (64 - bits));
    if (value < (is_signed ? -end : (real)0))
        return is_signed ? (integer)(UINT64_C(1) << bits) : (integer)0;
    return (integer)value;
}

/* Integers wrap; a division by 0 has a result that nothing is to rely on. */
template <class integer> static inline integer ptx_div(integer a, integer b) {
    if (b == 0)
        return (integer)UINT64_C(0xdbdbdbdbdbdbdbdb);
    if ((integer)-1 < 0 && b == (integer)-1)
        return (integer)(0 - (uint64_t)a);
    return (integer)(a / b);
}
template <class integer> static inline integer ptx_rem(integer a, integer b) {
    if (b == 0)
        return (integer)UINT64_C(0xdbdbdbdbdbdbdbdb);
    return (integer)-1 < 0 && b == (integer)-1 ? (integer)0 : (integer)(a % b);
}

/* By more than there are bits: as by so many. */
template <class integer> static inline integer ptx_shl(integer a, uint32_t count) {
    return count >= sizeof(integer) * 8 ? (integer)0 : (integer)((uint64_t)a << count);
}
template <class integer> static inline integer ptx_shr(integer a, uint32_t count) {
    const uint32_t bits = sizeof(integer) * 8;
    if (count >= bits)
        return (integer)-1 < 0 && a < 0 ? (integer)-1 : (integer)0;
    return (integer)(a >> count);
}
static inline uint32_t ptx_shf_l_wrap(uint32_t low, uint32_t high, uint32_t count) {
    return (uint32_t)((((uint64_t)high << 32 | low) << (count & 31)) >> 32);
}
static inline uint32_t ptx_shf_r_clamp(uint32_t low, uint32_t high, uint32_t count) {
    return (uint32_t)(((uint64_t)high << 32 | low) >> (count < 32 ? count : 32));
}

/* `length` bits of `from` at `position` of `into`. */
template <class integer>
static inline integer ptx_bfi(integer from, integer into, uint32_t position, uint32_t length) {
    const uint32_t bits = sizeof(integer) * 8;
    position &= 255, length &= 255;
    if (position >= bits || length == 0)
        return into;
    const uint32_t taken = length < bits - position ? length : bits - position;
    const integer mask = (integer)((~(integer)0 >> (bits - taken)) << position);
    return (integer)((into & ~mask) | ((integer)(from << position) & mask));
}

/* Each nibble of the selection names a byte of the eight, and asks by its top bit for the byte's sign instead. */
static inline uint32_t ptx_prmt(uint32_t a, uint32_t b, uint32_t selection) {
    const uint64_t all = (uint64_t)b << 32 | a;
    uint32_t result = 0;
    for (int i = 0; i < 4; i++) {
        const uint32_t chosen = selection >> (4 * i) & 15;
        uint32_t byte = (uint32_t)(all >> (8 * (chosen & 7))) & 0xff;
        if (chosen & 8)
            byte = byte & 0x80 ? 0xff : 0;
        result |= byte << (8 * i);
    }
    return result;
}

template <class integer>
static inline integer ptx_add_carry(integer a, integer b, uint32_t with, uint32_t *carry) {
    const unsigned __int128 sum = (unsigned __int128)a + b + with;
    *carry = (uint32_t)(sum >> (sizeof(integer) * 8)) & 1;
    return (integer)sum;
}
template <class integer>
static inline integer ptx_sub_borrow(integer a, integer b, uint32_t with, uint32_t *borrow) {
    *borrow = (unsigned __int128)a < (unsigned __int128)b + with;
    return (integer)(a - b - with);
}

/* ---- memory: a device ends a kernel that accesses it at an address which is no multiple of what it accesses ---- */

/* Addresses of a block's memory: what the kernel declares begins at 0, what the launch asks for here. */
#define PTX_SHARED_OF_LAUNCH (1u << 20)
/* What a block has in all, unless the driver is asked for more. */
#define PTX_SHARED_BYTES (48u << 10)

/* A thread runs one block at a time. */
inline thread_local unsigned char ptx_shared[PTX_SHARED_BYTES] __attribute__((aligned(16)));

[[noreturn]] inline void ptx_die(const char *kernel, const char *why, uint64_t at) {
    fprintf(stderr, "ptx: %s, thread %u, %u, %u of block %u, %u, %u: %s: %#llx\n", kernel,
            threadIdx.x, threadIdx.y, threadIdx.z, blockIdx.x, blockIdx.y, blockIdx.z, why,
            (unsigned long long)at);
    abort();
}

static inline void ptx_check_aligned(const char *kernel, uint64_t at, uint32_t bytes) {
    if (at % bytes)
        ptx_die(kernel, "misaligned address", at);
}

/* ---- races: what two threads do in a launch without having met between, whatever the order in which they run here ---- */

enum ptx_access { PTX_READ, PTX_WRITE, PTX_ATOMIC };

/* What was done last with a byte; epochs are one more than those of the grid, since 0 is never. */
struct ptx_history {
    uint64_t written, read;
    uint32_t writer, reader, writer_warp_epoch, reader_warp_epoch;
    bool is_atomic;
    bool has_other_blocks, has_other_warps,
        has_other_lanes; /* that read it, in the launch, in the epoch, in the warp's */
};

static inline bool ptx_is_of_another_block(const eddy_grid_moment &now, uint64_t epoch) {
    return epoch > now.launch_epoch && epoch <= now.block_epoch;
}

/* Whether what a thread did is not over for sure where this one is now. */
static inline bool ptx_is_beside(const eddy_grid_moment &now, uint64_t epoch, uint32_t thread,
                                 uint32_t warp_epoch) {
    if (ptx_is_of_another_block(now, epoch))
        return true;
    return epoch == now.epoch + 1 && thread != now.thread &&
           (thread / 32 != now.thread / 32 || warp_epoch == now.warp_epoch);
}

static inline void ptx_note_read(ptx_history *byte, const eddy_grid_moment &now) {
    const bool is_same_epoch = byte->read == now.epoch + 1;
    const bool is_same_warp = byte->reader / 32 == now.thread / 32;
    const bool is_same_warp_epoch =
        is_same_epoch && is_same_warp && byte->reader_warp_epoch == now.warp_epoch;
    byte->has_other_blocks = ptx_is_of_another_block(now, byte->read) ||
                             (byte->has_other_blocks && byte->read > now.launch_epoch);
    byte->has_other_warps = is_same_epoch && (byte->has_other_warps || !is_same_warp);
    byte->has_other_lanes =
        is_same_warp_epoch && (byte->has_other_lanes || byte->reader != now.thread);
    byte->read = now.epoch + 1;
    byte->reader = now.thread;
    byte->reader_warp_epoch = now.warp_epoch;
}

static inline bool ptx_is_read_beside(const ptx_history *byte, const eddy_grid_moment &now) {
    const bool is_same_warp_epoch =
        byte->reader / 32 == now.thread / 32 && byte->reader_warp_epoch == now.warp_epoch;
    if (byte->has_other_blocks && byte->read > now.launch_epoch)
        return true;
    if (ptx_is_beside(now, byte->read, byte->reader, byte->reader_warp_epoch))
        return true;
    return byte->read == now.epoch + 1 &&
           (byte->has_other_warps || (is_same_warp_epoch && byte->has_other_lanes));
}

static inline void ptx_note(const char *kernel, ptx_history *byte, ptx_access how, uint64_t at,
                            const eddy_grid_moment &now) {
    const bool is_written_beside =
        ptx_is_beside(now, byte->written, byte->writer, byte->writer_warp_epoch) &&
        !(how == PTX_ATOMIC && byte->is_atomic);
    if (how == PTX_READ) {
        if (is_written_beside)
            ptx_die(kernel, "race: read while another thread writes", at);
        ptx_note_read(byte, now);
        return;
    }
    if (is_written_beside)
        ptx_die(kernel, "race: written by two threads", at);
    if (ptx_is_read_beside(byte, now))
        ptx_die(kernel, "race: written while another thread reads", at);
    byte->written = now.epoch + 1;
    byte->writer = now.thread;
    byte->writer_warp_epoch = now.warp_epoch;
    byte->is_atomic = how == PTX_ATOMIC;
}

/* ---- a block's memory ---- */

/* Of declared memory, and of the launch's: they stay for as long as the process. */
inline thread_local ptx_history *ptx_histories[2];

static inline ptx_history *ptx_history_of(bool is_of_launch) {
    if (!ptx_histories[is_of_launch])
        ptx_histories[is_of_launch] = (ptx_history *)calloc(PTX_SHARED_BYTES, sizeof(ptx_history));
    return ptx_histories[is_of_launch];
}

/* Of a byte that no thread of the block has written a read finds noise. */
#define PTX_NOISE 0xdb

/* The kernel declares `declared` bytes. */
template <class type>
static inline type *ptx_at_shared(const char *kernel, uint32_t declared, uint32_t at,
                                  unsigned count, ptx_access how) {
    const uint32_t bytes = (uint32_t)sizeof(type) * count;
    ptx_check_aligned(kernel, at, bytes);
    const bool is_of_launch = at >= PTX_SHARED_OF_LAUNCH;
    unsigned char *const base = is_of_launch ? (unsigned char *)eddy_grid_shared() : ptx_shared;
    const size_t size = is_of_launch ? eddy_grid_shared_bytes() : declared;
    const uint32_t place = is_of_launch ? at - PTX_SHARED_OF_LAUNCH : at;
    if (place > size || bytes > size - place)
        ptx_die(kernel, "beyond its shared memory", at);
    if (declared + eddy_grid_shared_bytes() > PTX_SHARED_BYTES)
        ptx_die(kernel, "more shared memory than a block has", eddy_grid_shared_bytes());
    /* Each block has memory of its own. */
    eddy_grid_moment now = eddy_grid_now();
    now.launch_epoch = now.block_epoch;
    ptx_history *const history = ptx_history_of(is_of_launch) + place;
    for (uint32_t i = 0; i < bytes; i++) {
        if (how == PTX_READ && history[i].written <= now.block_epoch)
            base[place + i] = PTX_NOISE;
        ptx_note(kernel, &history[i], how, at + i, now);
    }
    return (type *)(base + place);
}

/* ---- the device's memory ---- */

#define PTX_PAGE_BYTES 4096u

/* What a launch does there, by pages. */
struct ptx_launch {
    uint64_t epoch;
    std::unordered_map<uint64_t, std::unique_ptr<ptx_history[]>> pages;
};

static inline ptx_history *ptx_history_at(uint64_t at, const eddy_grid_moment &now) {
    static thread_local ptx_launch launch;
    if (launch.epoch != now.launch_epoch + 1)
        launch.pages.clear();
    launch.epoch = now.launch_epoch + 1;
    std::unique_ptr<ptx_history[]> &page = launch.pages[at / PTX_PAGE_BYTES];
    if (!page)
        page.reset(new ptx_history[PTX_PAGE_BYTES]());
    return &page[at % PTX_PAGE_BYTES];
}

/* `count` elements of `type` in one access: of the device's memory, or a thread's own. */
template <class type>
static inline type *ptx_at(const char *kernel, uint64_t at, unsigned count, ptx_access how) {
    const uint32_t bytes = (uint32_t)sizeof(type) * count;
    ptx_check_aligned(kernel, at, bytes);
    const eddy_grid_moment now = eddy_grid_now();
    ptx_history *const history = ptx_history_at(at, now);
    for (uint32_t i = 0; i < bytes; i++)
        ptx_note(kernel, &history[i], how, at + i, now);
    return (type *)at;
}
template <class type>
static inline type *ptx_at_local(const char *kernel, uint64_t at, unsigned count) {
    ptx_check_aligned(kernel, at, (uint32_t)sizeof(type) * count);
    return (type *)at;
}
/* Parameters are the host's, and less aligned. */
template <class type> static inline type ptx_parameter(uint64_t at, unsigned index) {
    type value;
    memcpy(&value, (const unsigned char *)at + index * sizeof(type), sizeof(value));
    return value;
}

/* ---- threads that meet ---- */

enum ptx_shuffle { PTX_UP, PTX_DOWN, PTX_BFLY, PTX_IDX };

/* All of a warp that have not ended take part, which a mask has to say. */
static inline void ptx_check_mask(const char *kernel, uint32_t mask) {
    if (mask != 0xffffffffu)
        ptx_die(kernel, "a mask without all lanes", mask);
}
static inline uint32_t ptx_shfl(const char *kernel, ptx_shuffle how, uint32_t mine, uint32_t by,
                                uint32_t segments, uint32_t mask, bool *is_there) {
    ptx_check_mask(kernel, mask);
    const uint32_t own = eddy_grid_lane(), segment = segments >> 8 & 31;
    const uint32_t last = (own & segment) | (segments & 31 & ~segment), first = own & segment;
    by &= 31;
    int32_t lane = (int32_t)(how == PTX_UP     ? own - by
                             : how == PTX_DOWN ? own + by
                             : how == PTX_BFLY ? own ^ by
                                               : first | (by & ~segment));
    *is_there = how == PTX_UP ? lane >= (int32_t)last : lane <= (int32_t)last;
    return (uint32_t)eddy_grid_exchange(mine, *is_there ? (uint32_t)lane : own);
}
static inline uint32_t ptx_match_any(const char *kernel, uint64_t mine, uint32_t mask) {
    ptx_check_mask(kernel, mask);
    return __match_any_sync(mask, mine);
}

/* ---- kernels ---- */

/* What is not as it has to be: as many bytes of parameters as the host's compiler says there are; the translation alone under the kernel's name, though the library has the one that was compiled
 * for the host as well. */
struct ptx_kernel {
    ptx_kernel(const char *name, unsigned bytes, unsigned bytes_of_host, eddy_grid_kernel *found,
               eddy_grid_kernel *translated) {
        if (bytes != bytes_of_host)
            ptx_die(name, "the host's parameters have another size", bytes_of_host);
        if (found != translated)
            ptx_die(name, "another kernel has its name", (uint64_t)found);
    }
};

#endif
