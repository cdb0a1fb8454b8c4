#include "settings.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: fashion_mnist [options]\n"
    "Trains a network on Fashion-MNIST.\n"
    "  --data DIR      folder of the four .gz files (/usr/share/datasets/fashion-mnist)\n"
    "  --model NAME    mlp: linear layers, 784-256-128-10; cnn: two convolutions and a\n"
    "                  linear layer (mlp)\n"
    "  --dtype NAME    of what layers compute, f32 or bf16; parameters stay f32 (f32)\n"
    "  --epochs N      passes over the training images (5)\n"
    "  --batch N       images per step (128)\n"
    "  --threads N     threads that compute (all); the numbers do not depend on it\n"
    "  --seed N        of weights and order (1)\n"
    "  --replay        records the step of training and replays it: the same numbers\n"
    "  --losses FILE   writes the loss of each batch, a hexadecimal float per line\n";

/* Options with a number: name, offset in settings, least, most. The last two options are for tests. */
static const struct {
    const char *name;
    size_t offset;
    int64_t least, most;
} numbers[] = {
    {"--epochs", offsetof(struct settings, epochs), 1, 100000},
    {"--batch", offsetof(struct settings, batch), 1, 1000000},
    {"--threads", offsetof(struct settings, threads), 1, 1024},
    {"--seed", offsetof(struct settings, seed), 0, INT64_MAX},
    {"--damage-batch", offsetof(struct settings, damage_batch), 0, INT64_MAX},
    {"--leave-out-batch", offsetof(struct settings, leave_out_batch), 0, INT64_MAX},
};

static int read_number(const char *text, int64_t least, int64_t most, int64_t *value) {
    char *end;
    errno = 0;
    long long parsed = strtoll(text, &end, 10);
    if (errno || end == text || *end || parsed < least || parsed > most)
        return -1;
    *value = parsed;
    return 0;
}

/* Reads one of two words; *is_second tells which. Returns 0, or -1 with a sentence on stderr. */
static int read_choice(const char *name, const char *text, const char *first, const char *second,
                       bool *is_second) {
    *is_second = !strcmp(text, second);
    if (!*is_second && strcmp(text, first)) {
        fprintf(stderr, "fashion_mnist: %s is %s or %s, not %s\n", name, first, second, text);
        return -1;
    }
    return 0;
}

static int read_word(const char *name, const char *text, struct settings *result) {
    bool is_second;
    if (!strcmp(name, "--data"))
        result->data = text;
    else if (!strcmp(name, "--losses"))
        result->losses = text;
    else if (!strcmp(name, "--model")) {
        if (read_choice(name, text, "mlp", "cnn", &is_second))
            return -1;
        result->model = is_second ? NETWORK_CNN : NETWORK_MLP;
    } else {
        if (read_choice(name, text, "f32", "bf16", &is_second))
            return -1;
        result->dtype = is_second ? EDDY_BF16 : EDDY_F32;
    }
    return 0;
}

static bool is_word(const char *name) {
    return !strcmp(name, "--data") || !strcmp(name, "--losses") || !strcmp(name, "--model") ||
           !strcmp(name, "--dtype");
}

/* Reads one option and its value. Returns 0; or -1 with a sentence on stderr. */
static int read_option(const char *name, const char *text, struct settings *result) {
    size_t number_count = sizeof(numbers) / sizeof(numbers[0]), i = 0;
    while (i < number_count && strcmp(name, numbers[i].name))
        i++;
    if (i == number_count && !is_word(name)) {
        fprintf(stderr, "fashion_mnist: unknown option %s (--help lists them)\n", name);
        return -1;
    }
    if (!text) {
        fprintf(stderr, "fashion_mnist: %s needs a value\n", name);
        return -1;
    }
    if (i == number_count)
        return read_word(name, text, result);
    if (read_number(text, numbers[i].least, numbers[i].most,
                    (int64_t *)((char *)result + numbers[i].offset))) {
        fprintf(stderr, "fashion_mnist: %s needs a whole number from %lld to %lld, not %s\n", name,
                (long long)numbers[i].least, (long long)numbers[i].most, text);
        return -1;
    }
    return 0;
}

settings_outcome settings_read(int argc, char **argv, struct settings *result) {
    *result = (struct settings){.data = "/usr/share/datasets/fashion-mnist",
                                .dtype = EDDY_F32,
                                .epochs = 5,
                                .batch = 128,
                                .seed = 1,
                                .damage_batch = -1,
                                .leave_out_batch = -1};
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help")) {
            fputs(help, stdout);
            return SETTINGS_HELP;
        }
        if (!strcmp(argv[i], "--replay")) {
            result->is_replayed = true;
            continue;
        }
        if (read_option(argv[i], argv[i + 1], result))
            return SETTINGS_WRONG;
        i++; /* its value */
    }
    return SETTINGS_TRAIN;
}
