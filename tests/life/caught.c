/* Faults that a sanitizer has to find: caught.py looks whether it does. Memory and threads are from the C library, as those of the tests are. */
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile int largest = INT_MAX, zero;

static void overflow(void) {
    largest = largest + 1;
}

static void use_after_free(void) {
    char *volatile block = malloc(16);
    free(block);
    block[zero] = 1;
}

static void beyond_a_block(void) {
    char *volatile block = malloc(16);
    block[16 + zero] = 1;
    free(block);
}

static void beyond_an_array(void) {
    volatile int array[4] = {0};
    array[4 + zero] = 1;
    largest = array[zero];
}

/* The last pointer to it is gone. */
static void leak(void) {
    char *volatile block = malloc(4096);
    block = NULL;
    (void)block;
}

static int shared;

static void *write_shared(void *context) {
    shared = *(int *)context;
    return NULL;
}

static void race(void) {
    pthread_t threads[2];
    int values[2] = {1, 2};
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, write_shared, &values[i]) != 0)
            exit(2);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

int main(int count, char **arguments) {
    static const struct {
        const char *name;
        void (*run)(void);
    } faults[] = {{"overflow", overflow},
                  {"use_after_free", use_after_free},
                  {"beyond_a_block", beyond_a_block},
                  {"beyond_an_array", beyond_an_array},
                  {"leak", leak},
                  {"race", race}};
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        if (count == 2 && strcmp(arguments[1], faults[i].name) == 0) {
            faults[i].run();
            return 0;
        }
    fprintf(stderr, "usage: caught FAULT\n");
    return 2;
}
