/* What is said of the runs of a program. */
#ifndef TOOLS_EDDY_RUN_REPORT_H
#define TOOLS_EDDY_RUN_REPORT_H

#include "command.h"

#include <eddy/program.h>
#include <stdint.h>

typedef struct run_times {
    int64_t load_ns, first_ns;
    int64_t count, total_ns, least_ns; /* of those behind the first */
} run_times;

/* number: from 0 on. */
void run_times_add(run_times *times, int64_t number, int64_t took_ns);

/* False: an output could not be read, which is told. */
bool run_report(const tool_arguments *arguments, const eddy_program *program,
                const run_times *times, const eddy_program_binding_info *outputs,
                eddy_tensor **results, int64_t count);

#endif
