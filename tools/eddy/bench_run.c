#include "bench_run.h"

#include "memory.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

#define LINE_BYTES_MOST (1 << 20)
#define LOOK_MS 100 /* between two looks whether the program has ended */

/* ---- the child ---- */

/* What would change what is measured; bench/process.py has the same list. */
static bool is_passed_on(const char *variable) {
    static const char *const cleared[] = {"EDDY_", "OMP_",  "GOMP_", "KMP_",       "OPENBLAS_",
                                          "BLIS_", "DNNL_", "MKL_",  "LD_PRELOAD="};
    for (size_t i = 0; i < sizeof(cleared) / sizeof(*cleared); i++)
        if (strncmp(variable, cleared[i], strlen(cleared[i])) == 0)
            return false;
    return true;
}

static void add_number(char **to, const char *name, int64_t number) {
    char text[64];
    snprintf(text, sizeof(text), "%s=%" PRId64, name, number);
    *to = tool_strdup(text);
}

/* Ends with NULL; nobody frees it, since the child becomes another program. */
static char **environment(const bench_run *run) {
    size_t count = 0, at = 0;
    while (environ[count])
        count++;
    char **made = tool_calloc(count + 16, sizeof(*made));
    for (size_t i = 0; i < count; i++)
        if (is_passed_on(environ[i]))
            made[at++] = environ[i];
    add_number(&made[at++], "OMP_NUM_THREADS", run->threads);
    add_number(&made[at++], "OPENBLAS_NUM_THREADS", 1);
    add_number(&made[at++], "BLIS_NUM_THREADS", 1);
    /* Two pools of threads that spin for long would slow each other down. */
    add_number(&made[at++], "GOMP_SPINCOUNT", 1000);
    add_number(&made[at++], "EDDY_THREADS", run->threads);
    for (int i = 0; i < 8 && run->variables[i]; i++)
        made[at++] = tool_strdup(run->variables[i]);
    return made;
}

/* To the first processor that the process may use. */
static void pin(void) {
    cpu_set_t all, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof(all), &all) != 0)
        return;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all)) {
            CPU_SET(cpu, &one);
            (void)sched_setaffinity(0, sizeof(one), &one);
            return;
        }
}

static void become(const bench_run *run, int output) {
    char samples[32];
    snprintf(samples, sizeof(samples), "%" PRId64, run->samples);
    char *const words[] = {(char *)run->program, (char *)run->rows, samples, NULL};
    int nothing = open("/dev/null", O_RDONLY);
    if (dup2(nothing, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 ||
        dup2(output, STDERR_FILENO) < 0)
        _exit(126);
    /* Not to go on when nobody reads what it says. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (run->is_pinned)
        pin();
    execve(run->program, words, environment(run));
    fprintf(stderr, "%s\n", strerror(errno));
    _exit(127);
}

/* ---- what it prints ---- */

typedef struct reading {
    char *line;
    size_t bytes, room;
    char last[256]; /* line that was no row: what it complained of */
    void (*take)(void *context, char *line);
    void *context;
} reading;

static void end_line(reading *r) {
    r->line[r->bytes] = '\0';
    if (r->line[0] == '{')
        r->take(r->context, r->line);
    else if (r->bytes > 0)
        snprintf(r->last, sizeof(r->last), "%s", r->line);
    r->bytes = 0;
}

static void take_bytes(reading *r, const char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (r->bytes + 1 >= r->room) {
            r->room = r->room ? 2 * r->room : 4096;
            r->line = tool_realloc(r->line, r->room, 1);
        }
        if (bytes[i] == '\n')
            end_line(r);
        else if (r->bytes < LINE_BYTES_MOST)
            r->line[r->bytes++] = bytes[i];
    }
}

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A process that the program has left behind may hold the other end open. */
typedef struct running {
    pid_t child;
    int status;
    bool has_ended; /* and status is known */
} running;

static bool has_ended(running *program) {
    program->has_ended = waitpid(program->child, &program->status, WNOHANG) == program->child;
    return program->has_ended;
}

/* Until the other end is closed, or nothing is left there of a program that has ended; false: it took too long. */
static bool read_all(reading *r, int from, running *program) {
    char bytes[4096];
    int64_t end_ms = now_ms() + INT64_C(1000) * BENCH_RUN_SECONDS;
    while (now_ms() < end_ms) {
        struct pollfd waited = {.fd = from, .events = POLLIN};
        int count_ready = poll(&waited, 1, LOOK_MS);
        if (count_ready == 0 && has_ended(program))
            return true;
        if (count_ready <= 0)
            continue;
        ssize_t count = read(from, bytes, sizeof(bytes));
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return true;
        take_bytes(r, bytes, (size_t)count);
    }
    return false;
}

/* ---- a run ---- */

static bool explain(const reading *r, int status, bool is_over, char *why, int size) {
    if (!is_over)
        snprintf(why, (size_t)size, "it took more than %d s", BENCH_RUN_SECONDS);
    else if (WIFSIGNALED(status))
        snprintf(why, (size_t)size, "ended by signal %d%s%s", WTERMSIG(status),
                 r->last[0] ? ": " : "", r->last);
    else if (WEXITSTATUS(status) != 0)
        snprintf(why, (size_t)size, "%s", r->last[0] ? r->last : "ended with an error");
    else
        return true;
    return false;
}

bool bench_run_program(const bench_run *run, void (*take)(void *context, char *line), void *context,
                       char *why, int size) {
    int ends[2];
    /* What stands there already would be the child's, too. */
    fflush(NULL);
    if (pipe2(ends, O_CLOEXEC) != 0) {
        snprintf(why, (size_t)size, "%s", strerror(errno));
        return false;
    }
    running program = {.child = fork()};
    if (program.child == 0)
        become(run, ends[1]);
    close(ends[1]);
    if (program.child < 0) {
        snprintf(why, (size_t)size, "%s", strerror(errno));
        close(ends[0]);
        return false;
    }
    reading r = {.take = take, .context = context};
    bool is_over = read_all(&r, ends[0], &program);
    if (!is_over)
        kill(program.child, SIGKILL);
    while (!program.has_ended && waitpid(program.child, &program.status, 0) < 0 && errno == EINTR)
        continue;
    close(ends[0]);
    free(r.line);
    return explain(&r, program.status, is_over, why, size);
}
