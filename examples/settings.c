#include "settings.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] = "usage: fashion_mnist [options]\n"
                           "Trains a network on Fashion-MNIST.\n"
                           "  --data DIR      folder of the four .gz files (/usr/share/datasets/fashion-mnist)\n"
                           "  --model NAME    mlp: linear layers, 784-256-128-10; cnn: two convolutions and a\n"
                           "                  linear layer (mlp)\n"
                           "  --epochs N      passes over the training images (5)\n"
                           "  --batch N       images per step (128)\n"
                           "  --threads N     threads that compute (all); the numbers do not depend on it\n"
                           "  --seed N        of weights and order (1)\n"
                           "  --losses FILE   writes the loss of each batch, a hexadecimal float per line\n";

/* Options with a number: name, place in settings, least, most. The last two are for tests. */
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

static int read_model(const char *text, network_model *model) {
    if (strcmp(text, "mlp") && strcmp(text, "cnn")) {
        fprintf(stderr, "fashion_mnist: --model is mlp or cnn, not %s\n", text);
        return -1;
    }
    *model = strcmp(text, "cnn") ? NETWORK_MLP : NETWORK_CNN;
    return 0;
}

/* Reads one option and its value. Returns 0; or -1 with a sentence on stderr. */
static int read_option(const char *name, const char *text, struct settings *result) {
    size_t number_count = sizeof(numbers) / sizeof(numbers[0]), i = 0;
    while (i < number_count && strcmp(name, numbers[i].name))
        i++;
    if (i == number_count && strcmp(name, "--data") && strcmp(name, "--losses") && strcmp(name, "--model")) {
        fprintf(stderr, "fashion_mnist: unknown option %s (--help lists them)\n", name);
        return -1;
    }
    if (!text) {
        fprintf(stderr, "fashion_mnist: %s needs a value\n", name);
        return -1;
    }
    if (!strcmp(name, "--model"))
        return read_model(text, &result->model);
    if (i == number_count) {
        *(strcmp(name, "--data") ? &result->losses : &result->data) = text;
        return 0;
    }
    if (read_number(text, numbers[i].least, numbers[i].most, (int64_t *)((char *)result + numbers[i].offset))) {
        fprintf(stderr, "fashion_mnist: %s needs a whole number from %lld to %lld, not %s\n", name,
                (long long)numbers[i].least, (long long)numbers[i].most, text);
        return -1;
    }
    return 0;
}

settings_outcome settings_read(int argc, char **argv, struct settings *result) {
    *result = (struct settings){.data = "/usr/share/datasets/fashion-mnist",
                                .epochs = 5,
                                .batch = 128,
                                .seed = 1,
                                .damage_batch = -1,
                                .leave_out_batch = -1};
    for (int i = 1; i < argc; i += 2) {
        if (!strcmp(argv[i], "--help")) {
            fputs(help, stdout);
            return SETTINGS_HELP;
        }
        if (read_option(argv[i], argv[i + 1], result))
            return SETTINGS_WRONG;
    }
    return SETTINGS_TRAIN;
}
