#include <base/cgroup.h>
#include <base/cpu.h>
#include <criterion/criterion.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

Test(cpu, count_follows_the_affinity_mask) {
    cr_assert_geq(eddy_cpu_count(), 1);
    cpu_set_t all, one;
    sched_getaffinity(0, sizeof(all), &all);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    cr_assert_leq(eddy_cpu_count(), CPU_COUNT(&all));
    sched_setaffinity(0, sizeof(one), &one);
    cr_assert_eq(eddy_cpu_count(), 1);
}

Test(cpu, isa_levels_have_names) {
    cr_assert_str_eq(eddy_isa_name(EDDY_ISA_V3), "v3");
    cr_assert_eq(eddy_isa_find("portable"), EDDY_ISA_PORTABLE);
    cr_assert_eq(eddy_isa_find("v4"), EDDY_ISA_V4);
    cr_assert_eq(eddy_isa_find("v5"), EDDY_ISA_COUNT);
    cr_assert_str_eq(eddy_isa_name(EDDY_ISA_COUNT), "?");
    cr_assert_lt(eddy_isa_machine(), EDDY_ISA_COUNT);
#if defined(__x86_64__)
    cr_assert_eq(eddy_isa_machine() >= EDDY_ISA_V3, __builtin_cpu_supports("avx2") &&
                                                        __builtin_cpu_supports("fma") &&
                                                        __builtin_cpu_supports("bmi2"));
    cr_assert_eq(eddy_isa_machine() >= EDDY_ISA_V4,
                 __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                     __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512cd"));
#endif
}

Test(cpu, levels_are_served_by_what_was_built) {
    for (int isa = 0; isa < EDDY_ISA_COUNT; isa++) {
        eddy_isa serving = eddy_isa_served_by((eddy_isa)isa);
        cr_assert_lt(serving, EDDY_ISA_COUNT);
        cr_assert_eq(eddy_isa_served_by(serving), serving, "it has kernels of its own");
        cr_assert((int)serving <= isa || serving == eddy_isa_served_by(EDDY_ISA_PORTABLE));
    }
}

Test(cpu, the_variable_lowers_the_level) {
    setenv("EDDY_ISA", "portable", 1);
    cr_assert_eq(eddy_isa_chosen(), EDDY_ISA_PORTABLE);
    setenv("EDDY_ISA", "v4", 1);
    cr_assert_eq(eddy_isa_chosen(), EDDY_ISA_PORTABLE, "read once");
    cr_assert_eq(eddy_isa_choose(EDDY_ISA_V4), EDDY_ISA_PORTABLE, "settled");
}

Test(cpu, unknown_or_too_high_levels_count_as_the_machines) {
    setenv("EDDY_ISA", "v99", 1);
    cr_assert_eq(eddy_isa_chosen(), eddy_isa_machine());
}

Test(cpu, a_choice_goes_before_the_variable) {
    setenv("EDDY_ISA", "v4", 1);
    cr_assert_eq(eddy_isa_choose(EDDY_ISA_PORTABLE), EDDY_ISA_PORTABLE);
    cr_assert_eq(eddy_isa_chosen(), EDDY_ISA_PORTABLE);
}

/* A false root with /proc and /sys in a folder of its own, removed at exit. */
static char false_root[64];

static void remove_root(void) {
    char command[128];
    snprintf(command, sizeof(command), "rm -rf '%s'", false_root);
    if (system(command) != 0)
        fprintf(stderr, "%s is left behind\n", false_root);
}

static void make_root(void) {
    strcpy(false_root, "/tmp/eddy-cgroup-XXXXXX");
    cr_assert_not_null(mkdtemp(false_root));
    atexit(remove_root);
}

static void write_file(const char *path, const char *text) {
    char full[512];
    snprintf(full, sizeof(full), "%s/%s", false_root, path);
    for (char *slash = full + strlen(false_root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(full, 0700);
        *slash = '/';
    }
    FILE *file = fopen(full, "w");
    cr_assert_not_null(file, "%s", full);
    fputs(text, file);
    fclose(file);
}

Test(cgroup, v2_limits_are_the_least_on_the_way_up, .init = make_root) {
    write_file("proc/self/cgroup", "0::/a/b\n");
    write_file("sys/fs/cgroup/a/b/memory.max", "max\n");
    write_file("sys/fs/cgroup/a/memory.max", "5000\n");
    write_file("sys/fs/cgroup/memory.max", "7000\n");
    write_file("sys/fs/cgroup/a/b/cpu.max", "150000 100000\n");
    write_file("sys/fs/cgroup/a/cpu.max", "max 100000\n");
    cr_assert_eq(eddy_cgroup_memory_available(false_root), 5000);
    cr_assert_eq(eddy_cgroup_cpu_quota(false_root), 1500);
}

Test(cgroup, v1_limits_live_under_their_controllers, .init = make_root) {
    write_file("proc/self/cgroup",
               "5:cpu,cpuacct:/x\n4:memory:/x\n3:cpuset:/\n1:name=systemd:/x\n");
    write_file("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "123456\n");
    write_file("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    write_file("sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "50000\n");
    write_file("sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us", "100000\n");
    write_file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    write_file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    cr_assert_eq(eddy_cgroup_memory_available(false_root), 123456);
    cr_assert_eq(eddy_cgroup_cpu_quota(false_root), 500);
}

Test(cgroup, what_a_group_holds_is_not_left_but_for_file_pages, .init = make_root) {
    write_file("proc/self/cgroup", "0::/a/b\n");
    write_file("sys/fs/cgroup/a/b/memory.max", "9000\n");
    write_file("sys/fs/cgroup/a/b/memory.current", "1000\n");
    write_file("sys/fs/cgroup/a/memory.max", "10000\n");
    write_file("sys/fs/cgroup/a/memory.current", "7000\n");
    write_file("sys/fs/cgroup/a/memory.stat",
               "anon 3000\nfile 4000\nworkingset_active_file 9\nactive_file 1500\n"
               "inactive_file 500\n");
    cr_assert_eq(eddy_cgroup_memory_available(false_root), 5000);
    write_file("sys/fs/cgroup/a/memory.current", "70000\n");
    cr_assert_eq(eddy_cgroup_memory_available(false_root), 0);
    write_file("proc/self/cgroup", "4:memory:/x\n");
    write_file("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "5000\n");
    write_file("sys/fs/cgroup/memory/x/memory.usage_in_bytes", "3000\n");
    write_file("sys/fs/cgroup/memory/x/memory.stat",
               "active_file 1\ntotal_active_file 200\ntotal_inactive_file 300\n");
    cr_assert_eq(eddy_cgroup_memory_available(false_root), 2500);
}

Test(cgroup, a_group_outside_the_mount_still_finds_the_top, .init = make_root) {
    write_file("proc/self/cgroup", "0::/docker/abc\n");
    write_file("sys/fs/cgroup/memory.max", "777\n");
    cr_assert_eq(eddy_cgroup_memory_available(false_root), 777);
}

Test(cgroup, nothing_to_read_means_no_limit, .init = make_root) {
    cr_assert_eq(eddy_cgroup_memory_available(false_root), -1);
    cr_assert_eq(eddy_cgroup_cpu_quota(false_root), -1);
    cr_assert_eq(eddy_cgroup_machine_memory(false_root), -1);
    write_file("proc/self/cgroup", "0::/\nnonsense\n::\n");
    cr_assert_eq(eddy_cgroup_memory_available(false_root), -1);
}

Test(cgroup, meminfo_is_read_in_bytes, .init = make_root) {
    write_file("proc/meminfo", "MemTotal:       16 kB\nMemFree:  8 kB\nMemAvailable:   12 kB\n");
    cr_assert_eq(eddy_cgroup_machine_memory(false_root), 12 * 1024);
}

Test(cpu, the_name_is_cut_off_to_the_room_that_there_is) {
    char whole[64], cut[64];
    eddy_cpu_name(whole, sizeof(whole));
    size_t length = strlen(whole);
    for (size_t size = 1; size <= sizeof(cut); size++) {
        memset(cut, 'x', sizeof(cut));
        eddy_cpu_name(cut, size);
        cr_assert_eq(strlen(cut), length < size ? length : size - 1);
        cr_assert_eq(memcmp(cut, whole, strlen(cut)), 0);
        cr_assert(size == sizeof(cut) || cut[size] == 'x', "beyond the room");
    }
}
