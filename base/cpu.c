#include <base/cpu.h>

#include <base/assert.h>
#include <base/atomic.h>
#include <base/cgroup.h>
#include <base/environment.h>
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* A mask for more processors than a cpu_set_t holds would need memory; such machines count as 1024. */
static int32_t affinity_count(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        return CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online < 1 ? 1 : online > CPU_SETSIZE ? CPU_SETSIZE : (int32_t)online;
}

int32_t eddy_cpu_count(void) {
    int errno_before = errno;
    int64_t count = affinity_count();
    int64_t quota = eddy_cgroup_cpu_quota("");
    if (quota >= 0 && (quota + 999) / 1000 < count)
        count = (quota + 999) / 1000;
    errno = errno_before;
    return count < 1 ? 1 : (int32_t)count;
}

#if defined(__x86_64__)

static bool has_all(uint32_t word, uint32_t bits) {
    return (word & bits) == bits;
}

/* The registers that the system saves on a task switch: without that the instructions fault. */
static uint64_t enabled_state(void) {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static eddy_isa detect(void) {
    uint32_t a, b, c, d, extended_c = 0, leaf7_b = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d))
        return EDDY_ISA_PORTABLE;
    if (!has_all(c, bit_SSE3 | bit_SSSE3 | bit_SSE4_1 | bit_SSE4_2 | bit_POPCNT | bit_CMPXCHG16B))
        return EDDY_ISA_PORTABLE;
    uint32_t leaf1_c = c;
    if (__get_cpuid(0x80000001u, &a, &b, &c, &d))
        extended_c = c;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d))
        leaf7_b = b;
    if (!has_all(leaf1_c, bit_OSXSAVE | bit_AVX | bit_FMA | bit_F16C | bit_MOVBE) ||
        !has_all(extended_c, bit_LZCNT) || !has_all(leaf7_b, bit_AVX2 | bit_BMI | bit_BMI2) ||
        !has_all((uint32_t)enabled_state(), 0x06u))
        return EDDY_ISA_V2;
    if (!has_all(leaf7_b,
                 bit_AVX512F | bit_AVX512BW | bit_AVX512CD | bit_AVX512DQ | bit_AVX512VL) ||
        !has_all((uint32_t)enabled_state(), 0xe6u))
        return EDDY_ISA_V3;
    return EDDY_ISA_V4;
}

void eddy_cpu_name(char *name, size_t size) {
    EDDY_ASSERT(size > 0);
    uint32_t words[12];
    char text[sizeof(words) + 1] = "";
    uint32_t a, b, c, d;
    if (__get_cpuid(0x80000000u, &a, &b, &c, &d) && a >= 0x80000004u) {
        for (uint32_t leaf = 0; leaf < 3; leaf++)
            __get_cpuid(0x80000002u + leaf, &words[4 * leaf], &words[4 * leaf + 1],
                        &words[4 * leaf + 2], &words[4 * leaf + 3]);
        memcpy(text, words, sizeof(words));
    }
    const char *at = text + strspn(text, " ");
    size_t length = strlen(at);
    if (length >= size)
        length = size - 1;
    memcpy(name, at, length);
    name[length] = '\0';
}

#else

void eddy_cpu_name(char *name, size_t size) {
    EDDY_ASSERT(size > 0);
    name[0] = '\0';
}

static eddy_isa detect(void) {
    return EDDY_ISA_PORTABLE;
}

#endif

eddy_isa eddy_isa_machine(void) {
    static _Atomic int32_t
        known; /* atomic: relaxed; level + 1, 0 while unknown; every writer writes the same */
    int32_t level = eddy_load_relaxed(&known) - 1;
    if (level < 0) {
        level = (int32_t)detect();
        eddy_store_relaxed(&known, level + 1);
    }
    return (eddy_isa)level;
}

static _Atomic int32_t chosen; /* atomic: acq_rel; level + 1, 0 until it is set */

eddy_isa eddy_isa_choose(eddy_isa isa) {
    eddy_isa machine = eddy_isa_machine();
    int32_t settled = 0;
    int32_t level = (int32_t)(isa < machine ? isa : machine) + 1;
    return (eddy_isa)((eddy_cas_acq_rel(&chosen, &settled, level) ? level : settled) - 1);
}

eddy_isa eddy_isa_chosen(void) {
    int32_t level = eddy_load_acquire(&chosen);
    if (level != 0)
        return (eddy_isa)(level - 1);
    const char *name = eddy_environment_string("EDDY_ISA");
    return eddy_isa_choose(name ? eddy_isa_find(name) : EDDY_ISA_COUNT);
}

static const char *const names[] = {
#define EDDY_ISA_ROW(enumerator, name) #name,
    EDDY_ISA_LIST(EDDY_ISA_ROW)
#undef EDDY_ISA_ROW
};

const char *eddy_isa_name(eddy_isa isa) {
    return (unsigned)isa < EDDY_ISA_COUNT ? names[isa] : "?";
}

#define EDDY_ISA_TEXT_(text) #text
#define EDDY_ISA_TEXT(text) EDDY_ISA_TEXT_(text)

eddy_isa eddy_isa_served_by(eddy_isa isa) {
    static const char *const serving[] = {
#define EDDY_ISA_ROW(enumerator, name) EDDY_ISA_TEXT(EDDY_ISA_FOR_##enumerator),
        EDDY_ISA_LIST(EDDY_ISA_ROW)
#undef EDDY_ISA_ROW
    };
    return eddy_isa_find(serving[isa]);
}

eddy_isa eddy_isa_find(const char *name) {
    int32_t isa = 0;
    while (isa < (int32_t)EDDY_ISA_COUNT && strcmp(name, names[isa]) != 0)
        isa++;
    return (eddy_isa)isa;
}
