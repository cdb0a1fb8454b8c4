/* Names of registered ops, from many threads. */
#include <criterion/criterion.h>
#include <eddy/op.h>
#include <functional/registry.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 4, EACH = 200 };

static eddy_status run(const eddy_op_call *call) {
    (void)call;
    return EDDY_OK;
}

static eddy_status register_op(const char *name) {
    eddy_operand_description operand = {.name = "x", .is_mut = true};
    eddy_op_kernel kernel = {.device = EDDY_DEVICE_CPU, .run = run};
    eddy_op_description description = {.size = sizeof(description),
                                       .name = name,
                                       .operands = &operand,
                                       .operand_count = 1,
                                       .kernels = &kernel,
                                       .kernel_count = 1};
    return eddy_op_register(&description);
}

/* NULL when all went well. */
static void *register_many(void *context) {
    int thread = *(const int *)context;
    for (int i = 0; i < EACH; i++) {
        char name[32];
        snprintf(name, sizeof(name), "test.n%d_%d", thread, i);
        if (register_op(name) != EDDY_OK || !eddy_op_find(name) || eddy_op_find("test.none"))
            return context;
    }
    return NULL;
}

Test(registry, many_threads_may_register_and_look_up_at_once) {
    pthread_t threads[THREADS];
    int numbers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        cr_assert_eq(pthread_create(&threads[i], NULL, register_many, &numbers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *result = NULL;
        pthread_join(threads[i], &result);
        cr_assert_null(result);
    }
    for (int i = 0; i < THREADS; i++)
        for (int n = 0; n < EACH; n++) {
            char name[32];
            snprintf(name, sizeof(name), "test.n%d_%d", i, n);
            const eddy_op *op = eddy_op_find(name);
            cr_assert(op && strcmp(op->name, name) == 0 && op->is_registered);
        }
}

Test(registry, a_name_is_given_once) {
    cr_assert_eq(register_op("test.once"), EDDY_OK);
    cr_assert_eq(register_op("test.once"), EDDY_INVALID_ARGUMENT);
    eddy_op op = {.name = "add"};
    cr_assert_eq(eddy_registry_add(&op), EDDY_REGISTRY_TAKEN);
}
