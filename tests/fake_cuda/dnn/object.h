/* What the library's handles stand for: one table. An object that is used after its end, or as another kind, is told from others (handle.h). */
#ifndef EDDY_TESTS_FAKE_CUDA_DNN_OBJECT_H
#define EDDY_TESTS_FAKE_CUDA_DNN_OBJECT_H

#include <pthread.h>
#include <stdbool.h>
#include <tests/fake_cuda/dnn/entries.h>
#include <tests/fake_cuda/dnn/question.h>
#include <tests/fake_cuda/handle.h>

/* Attributes of a descriptor, and elements of each, at most. */
#define FAKE_DNN_VALUES 7
#define FAKE_DNN_ELEMENTS 16

typedef union fake_dnn_element {
    int64_t integer;
    int number; /* of an enum */
    bool is;
    float f32;
    double f64;
    void *address; /* also a descriptor's or a context's */
} fake_dnn_element;

typedef struct fake_dnn_value {
    bool is_set;
    eddy_dnn_type type;
    int64_t count;
    fake_dnn_element elements[FAKE_DNN_ELEMENTS];
} fake_dnn_value;

typedef struct fake_dnn_object {
    fake_kind kind; /* 0: the place is free */
    uint64_t generation;
    int users; /* descriptors that it was given to, and that are there */
    /* Of a context. */
    eddy_cu_module module;
    eddy_cu_function convolve, compute;
    eddy_cu_stream stream;
    /* Of a descriptor. */
    eddy_dnn_kind dnn_kind;
    bool is_final;
    fake_dnn_value values[FAKE_DNN_VALUES]; /* in the order of attribute.c */
    fake_dnn_question
        *question; /* what it is about, once it is final: from a convolution or a graph on */
    fake_dnn_engine engine; /* of a plan, of what a list was read to */
} fake_dnn_object;

/* Protects the table. */
extern pthread_mutex_t fake_dnn_lock;

/* All with the lock. NULL: there is no place; else an object that is all zero. */
fake_dnn_object *fake_dnn_object_create(fake_kind kind, void **handle);
/* NULL, and a finding that names `entry`: it is none, of this kind, or none any more. */
fake_dnn_object *fake_dnn_object_of(const void *handle, fake_kind kind, const char *entry);
/* The same of a descriptor of a kind that is final. */
fake_dnn_object *fake_dnn_final_of(const void *handle, eddy_dnn_kind kind, const char *entry);
void fake_dnn_object_destroy(fake_dnn_object *object);

/* For tests, by dlsym: objects that are there; plans that are being made, as far as they take time (option.h). */
__attribute__((visibility("default"))) int fake_dnn_objects(void);
__attribute__((visibility("default"))) int fake_dnn_plans_under_way(void);

#endif
