/* The grid in which the tests run kernels of CUDA devices. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <tests/fake_cuda/kernels/grid.h>
#include <tests/fake_cuda/kernels/grid_sum.h>
#include <unistd.h>

void eddy_grid_sum(const void *parameters);
void eddy_grid_apart(const void *parameters);
extern const unsigned eddy_grid_sum_bytes;

#define BLOCKS 3

static void check_sums(unsigned width, unsigned height, unsigned used) {
    unsigned threads = width * height;
    float *numbers = malloc(BLOCKS * threads * sizeof(float)), totals[BLOCKS] = {0};
    for (unsigned i = 0; i < BLOCKS * threads; i++)
        numbers[i] = (float)(i % 97);
    eddy_grid_sum_parameters p = {numbers, totals, used};
    const unsigned grid[3] = {BLOCKS, 1, 1}, block[3] = {width, height, 1};
    eddy_grid_run(eddy_grid_sum, &p, grid, block, threads * (unsigned)sizeof(float));
    for (unsigned b = 0; b < BLOCKS; b++) {
        float want = 0;
        for (unsigned i = 0; i < used; i++)
            want += numbers[b * threads + i];
        cr_assert_eq(totals[b], want, "block %u of %u threads: got %g, want %g", b, threads,
                     (double)totals[b], (double)want);
    }
    free(numbers);
}

Test(cuda_grid, threads_of_a_block_meet) {
    cr_assert_eq(eddy_grid_sum_bytes, sizeof(eddy_grid_sum_parameters));
    check_sums(32, 1, 32);
    check_sums(256, 1, 256);
    check_sums(32, 32, 1024);
    check_sums(16, 8, 128);
}

Test(cuda_grid, who_has_ended_is_not_waited_for) {
    check_sums(256, 1, 96);
    check_sums(100, 1, 64);
    check_sums(64, 16, 32);
}

static void *sum_often(void *unused) {
    (void)unused;
    for (int i = 0; i < 20; i++)
        check_sums(128, 2, 256);
    return NULL;
}

Test(cuda_grid, serves_several_threads_at_once) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, sum_often, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

Test(cuda_grid, threads_that_wait_at_different_places_are_an_error) {
    pid_t child = fork();
    if (child == 0) {
        eddy_grid_sum_parameters p = {NULL, NULL, 7};
        const unsigned grid[3] = {1, 1, 1}, block[3] = {64, 1, 1};
        if (!freopen("/dev/null", "w", stderr))
            _exit(1);
        eddy_grid_run(eddy_grid_apart, &p, grid, block, 0);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}
