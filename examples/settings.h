/* The training example's settings from the command line. */
#ifndef EXAMPLES_SETTINGS_H
#define EXAMPLES_SETTINGS_H

#include "network.h"

#include <stdbool.h>
#include <stdint.h>

struct settings {
    const char *data;   /* folder of the four files */
    const char *losses; /* file for the loss of each batch, or NULL */
    network_model model;
    eddy_dtype dtype;
    int64_t epochs;
    int64_t batch;
    int64_t threads; /* 0: as many as the machine allows */
    int64_t seed;
    int64_t
        damage_batch; /* number of the batch, counted from 0 over all epochs, that gets a bad label; -1: none */
    bool is_replayed;        /* steps are recorded and replayed */
    int64_t leave_out_batch; /* number of the batch that is not trained on; -1: none */
};

typedef enum settings_outcome { SETTINGS_TRAIN, SETTINGS_HELP, SETTINGS_WRONG } settings_outcome;

/* SETTINGS_HELP: the help was printed. SETTINGS_WRONG: one sentence was printed to stderr. */
settings_outcome settings_read(int argc, char **argv, struct settings *result);

#endif
