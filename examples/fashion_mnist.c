/* Trains a network on 60,000 real images, op by op. `fashion_mnist --help` lists the options; README.md in this
 * folder explains the program. */
#include "images.h"
#include "network.h"
#include "progress.h"
#include "settings.h"
#include "trainer.h"

#include <eddy/eddy.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Says why an Eddy call failed, from the thread's error slot. */
static void complain(const char *doing) {
    eddy_error error = {0};
    eddy_status status = eddy_error_take(&error);
    fprintf(stderr, "fashion_mnist: %s: %s: %s\n", doing, eddy_status_text(status), error.message);
}

/* Images that are classified at a time: the network's activations for them have to fit into memory. */
#define TESTED_AT_ONCE 1000

static bool accuracy_of(const network *net, const struct images *tested, double *accuracy) {
    int64_t count = 0;
    for (int64_t first = 0; first < tested->count; first += TESTED_AT_ONCE) {
        int64_t length =
                    tested->count - first < TESTED_AT_ONCE ? tested->count - first : TESTED_AT_ONCE,
                part;
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *pixels = eddy_narrow(tested->pixels, 0, first, length);
        eddy_tensor *correct =
            network_correct(net, pixels, eddy_narrow(tested->labels, 0, first, length));
        bool is_read = eddy_read_i64(correct, &part, NULL) == EDDY_OK;
        eddy_scope_end(scope);
        if (!is_read)
            return false;
        count += part;
    }
    *accuracy = (double)count / (double)tested->count;
    return true;
}

static bool train(const struct settings *settings, const struct images *training,
                  const struct images *tested, FILE *losses) {
    network net;
    progress bar;
    struct trainer trainer;
    double accuracy = 0;
    progress_init(&bar, (int)settings->epochs, settings->epochs * training->count);
    bool is_fine = network_init(&net, settings->model, settings->dtype);
    is_fine = trainer_init(&trainer, settings, training, &net, &bar, losses) && is_fine;
    if (!is_fine)
        complain("cannot make the network");
    for (int64_t epoch = 0; is_fine && epoch < settings->epochs; epoch++) {
        double mean_loss;
        is_fine = trainer_epoch(&trainer, &mean_loss) && accuracy_of(&net, tested, &accuracy);
        if (is_fine)
            progress_epoch_end(&bar, mean_loss, accuracy);
        else {
            progress_interrupt(&bar);
            complain("training cannot go on");
        }
    }
    if (is_fine)
        trainer_explain(&trainer);
    trainer_fini(&trainer);
    network_fini(&net);
    if (is_fine)
        printf("test accuracy %.4f\n", accuracy);
    return is_fine;
}

static bool read_and_train(const struct settings *settings, FILE *losses) {
    char complaint[5120];
    struct images training = {0}, tested = {0};
    bool is_fine = images_read(settings->data, "train", &training, complaint, sizeof(complaint)) &&
                   images_read(settings->data, "t10k", &tested, complaint, sizeof(complaint));
    if (!is_fine) {
        fprintf(stderr, "fashion_mnist: %s\n", complaint);
    } else if (settings->batch > training.count) {
        fprintf(stderr, "fashion_mnist: --batch %lld is more than the %lld training images\n",
                (long long)settings->batch, (long long)training.count);
        is_fine = false;
    } else {
        is_fine = train(settings, &training, &tested, losses);
    }
    images_free(&training);
    images_free(&tested);
    return is_fine;
}

/* Runs with a runtime of the requested number of threads, current on this thread. */
static bool run(const struct settings *settings, FILE *losses) {
    eddy_runtime *runtime =
        eddy_runtime_create(EDDY_OPTIONS(runtime, .threads = settings->threads));
    if (!runtime || eddy_runtime_use(runtime) != EDDY_OK ||
        eddy_seed((uint64_t)settings->seed) != EDDY_OK) {
        complain("cannot start the runtime");
        eddy_runtime_release(&runtime);
        return false;
    }
    bool is_fine = read_and_train(settings, losses);
    eddy_runtime_use(NULL);
    eddy_runtime_release(&runtime);
    return is_fine;
}

int main(int argc, char **argv) {
    struct settings settings;
    settings_outcome outcome = settings_read(argc, argv, &settings);
    if (outcome != SETTINGS_TRAIN)
        return outcome == SETTINGS_WRONG;
    FILE *losses = NULL;
    if (settings.losses && !(losses = fopen(settings.losses, "w"))) {
        fprintf(stderr, "fashion_mnist: cannot write %s: %s\n", settings.losses, strerror(errno));
        return 1;
    }
    bool is_fine = run(&settings, losses);
    if (losses) {
        bool was_written = !ferror(losses);
        if (fclose(losses) || !was_written) {
            fprintf(stderr, "fashion_mnist: cannot write %s: %s\n", settings.losses,
                    strerror(errno));
            is_fine = false;
        }
    }
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "fashion_mnist: cannot write what is to be shown: %s\n",
                strerror(errno ? errno : ENOSPC));
        is_fine = false;
    }
    return !is_fine;
}
