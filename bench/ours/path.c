#include <bench/ours/path.h>
#include <eddy/runtime.h>
#include <stdio.h>
#include <stdlib.h>

path_counts path_now(void) {
    eddy_counters counters = {.size = sizeof(counters)};
    if (eddy_counters_read(&counters) != EDDY_OK) {
        fprintf(stderr, "bench: no counters\n");
        exit(1);
    }
    return (path_counts){counters.caller_run, counters.scheduler_run, counters.worker_run};
}

void path_format(path_counts before, path_counts after, char text[PATH_BYTES]) {
    const struct {
        const char *name;
        int64_t count;
    } places[] = {{"caller", after.caller - before.caller},
                  {"scheduler", after.scheduler - before.scheduler},
                  {"worker", after.worker - before.worker}};
    int64_t all = places[0].count + places[1].count + places[2].count;
    int length = 0;
    text[0] = 0;
    for (int i = 0; i < 3; i++) {
        double share = all ? 100.0 * (double)places[i].count / (double)all : 0;
        /* Shares below half a percent are instructions such as the wait at the end. */
        if (share < 0.5)
            continue;
        if (share >= 99.5)
            length += snprintf(text + length, (size_t)(PATH_BYTES - length), "%s", places[i].name);
        else
            length += snprintf(text + length, (size_t)(PATH_BYTES - length), "%s%s %.0f %%",
                               length ? ", " : "", places[i].name, share);
    }
}
