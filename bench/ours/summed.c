/* The rows observe_summary and observe_summary_memory: seconds and megabytes that `eddy trace summary` takes for ten million events, as a program of calls leaves them. The file goes to TMPDIR, else
 * /tmp, and has 1.2 GB. */
#include <bench/sample.h>
#include <eddy/version.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define INSTRUCTIONS 2000000
#define THREADS 4

static char path[256];

static void fail(const char *what) {
    fprintf(stderr, "summed: ");
    perror(what);
    unlink(path);
    exit(1);
}

/* What each instruction passes: five events, as trace/json.c writes them. */
static void write_events(FILE *to, int n) {
    static const char *const ops[] = {"linear",  "relu", "matmul", "add",       "layer_norm",
                                      "softmax", "sum",  "mul",    "adam_step", "cat"};
    static const struct {
        const char *phase;
        int begin_ns, took_ns;
    } phases[] = {
        {"issue", 0, 90}, {"schedule", 120, 60}, {"dispatch", 200, 40}, {"release", 1500, 30}};
    const char *op = ops[n % 10];
    long long at = 600LL * n;
    for (int p = 0; p < 4; p++) {
        fprintf(to,
                "{\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"ts\":%lld.%03lld,\"dur\":0.%03d,\"cat\":\"%"
                "s\",\"name\":\"%s\",\"args\":{\"n\":%d",
                p ? 2 : 1, (at + phases[p].begin_ns) / 1000, (at + phases[p].begin_ns) % 1000,
                phases[p].took_ns, phases[p].phase, op, n);
        if (p == 1 && n > THREADS)
            fprintf(to, ",\"after\":[%d,%d]", n - 1, n - THREADS);
        fputs("}},\n", to);
    }
    fprintf(to,
            "{\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"ts\":%lld.%03lld,\"dur\":%d.%03d,\"cat\":"
            "\"kernel\",\"name\":\"%s\",\"args\":{\"n\":%d,\"bytes\":%d,\"of\":\"f32[64, "
            "256]\",\"live\":%d}},\n",
            10 + n % THREADS, (at + 300) / 1000, (at + 300) % 1000, 1 + n % 3, n % 1000, op, n,
            65536, 1 << 20);
}

static void write_trace(void) {
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof(path), "%.200s/eddy_summed_%d.json", folder && *folder ? folder : "/tmp",
             (int)getpid());
    FILE *to = fopen(path, "we");
    if (!to)
        fail(path);
    fputs("[\n", to);
    for (int n = 1; n <= INSTRUCTIONS; n++)
        write_events(to, n);
    fputs("{\"ph\":\"i\",\"pid\":1,\"tid\":1,\"ts\":0,\"s\":\"g\",\"cat\":\"trace\",\"name\":"
          "\"end\",\"args\":{\"why\":\"stopped\",\"dropped\":0}}]\n",
          to);
    if (fclose(to) != 0)
        fail(path);
}

/* Seconds; *megabytes: the most that it had. */
static double summarise(double *megabytes) {
    struct rusage used;
    int status;
    double began = bench_now_ns();
    pid_t child = fork();
    if (child == 0) {
        int nothing = open("/dev/null", O_WRONLY);
        if (nothing >= 0 && dup2(nothing, STDOUT_FILENO) >= 0)
            execl(TOOL, "eddy", "trace", "summary", path, (char *)NULL);
        _exit(127);
    }
    if (child < 0 || wait4(child, &status, 0, &used) != child)
        fail("eddy trace summary");
    if (status != 0) {
        fprintf(stderr, "summed: eddy trace summary has failed\n");
        unlink(path);
        exit(1);
    }
    *megabytes = (double)used.ru_maxrss * 1024 / 1e6;
    return (bench_now_ns() - began) / 1e9;
}

int main(int argc, char **argv) {
    const char *rows = argc > 1 ? argv[1] : "";
    bench_samples seconds = {.count = 0}, memory = {.count = 0};
    if (strncmp(rows, "observe_summary", strlen("observe_summary"))) {
        fprintf(stderr, "summed: no such row: %s\n", rows);
        return 2;
    }
    write_trace();
    int count = bench_sample_count(argc, argv, 2);
    for (int i = 0; i < count && i < 3; i++) {
        double megabytes;
        bench_samples_push(&seconds, summarise(&megabytes));
        bench_samples_push(&memory, megabytes);
    }
    unlink(path);
    if (!strncmp(rows, "observe_summary,", 16) || !strcmp(rows, "observe_summary"))
        bench_print_row("observe_summary", "s", eddy_version_text(), NULL, &seconds);
    if (strstr(rows, "observe_summary_memory"))
        bench_print_row("observe_summary_memory", "MB", eddy_version_text(), NULL, &memory);
    return 0;
}
