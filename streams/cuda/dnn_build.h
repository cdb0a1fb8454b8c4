/* Descriptors of the library (streams/cuda/dnn.h), made one after another: what is made of others comes behind them, and all of them stay as long as what is made of them, since the library does not
 * say that they may go. What has failed once makes nothing more, so that who builds looks at the status at the end. */
#ifndef EDDY_STREAMS_CUDA_DNN_BUILD_H
#define EDDY_STREAMS_CUDA_DNN_BUILD_H

#include <kernels/cuda/dnn.h>
#include <stddef.h>
#include <streams/cuda/dnn.h>

/* The most that anything is built of. */
#define EDDY_CUDA_DNN_PARTS 48
#define EDDY_CUDA_DNN_OPERATIONS 16

typedef struct eddy_cuda_dnn_build {
    eddy_dnn_descriptor parts[EDDY_CUDA_DNN_PARTS]; /* in the order in which they were made */
    eddy_dnn_descriptor operations[EDDY_CUDA_DNN_OPERATIONS]; /* those of them that are */
    int count, operation_count;
    eddy_dnn_status status; /* the first failure */
} eddy_cuda_dnn_build;

typedef struct eddy_cuda_dnn_setting {
    eddy_dnn_attribute attribute;
    eddy_dnn_type type;
    int64_t count;
    const void *elements;
} eddy_cuda_dnn_setting;

/* A descriptor that is not final. Of a failure *made is NULL. */
eddy_dnn_status eddy_cuda_dnn_create(eddy_dnn_kind kind, eddy_dnn_descriptor *made);
/* One that is final. Whatever fails, what was made is in *made, which was NULL. */
eddy_dnn_status eddy_cuda_dnn_make(eddy_dnn_kind kind, const eddy_cuda_dnn_setting *settings,
                                   size_t count, eddy_dnn_descriptor *made);
/* As a part. NULL: it has failed, or something before it. */
eddy_dnn_descriptor eddy_cuda_dnn_add(eddy_cuda_dnn_build *build, eddy_dnn_kind kind,
                                      const eddy_cuda_dnn_setting *settings, size_t count);
/* The same of an operation, of which the graph consists. */
void eddy_cuda_dnn_add_operation(eddy_cuda_dnn_build *build, eddy_dnn_kind kind,
                                 const eddy_cuda_dnn_setting *settings, size_t count);

typedef enum eddy_cuda_dnn_place {
    EDDY_CUDA_DNN_IN_MEMORY, /* of the device */
    EDDY_CUDA_DNN_NOWHERE,   /* between two operations of a graph */
    EDDY_CUDA_DNN_BY_VALUE,  /* one number, which the host has when the plan is executed */
} eddy_cuda_dnn_place;

/* A tensor that is known by its number. `alignment`: bytes that divide its address. */
eddy_dnn_descriptor eddy_cuda_dnn_add_tensor(eddy_cuda_dnn_build *build, eddy_cuda_dnn_place place,
                                             int64_t number, int type,
                                             const eddy_cuda_dnn_tensor *tensor, int64_t alignment);

/* Ends *descriptor, which is NULL then. NULL does nothing. */
void eddy_cuda_dnn_forget(eddy_dnn_descriptor *descriptor);
/* Zeroed and half-made ones too. */
void eddy_cuda_dnn_build_fini(eddy_cuda_dnn_build *build);

/* kind, where it goes or the build, settings */
#define EDDY_CUDA_DNN_SETTINGS(...)                                                                \
    (const eddy_cuda_dnn_setting[]){__VA_ARGS__},                                                  \
        sizeof((const eddy_cuda_dnn_setting[]){__VA_ARGS__}) / sizeof(eddy_cuda_dnn_setting)
#define EDDY_CUDA_DNN_MAKE(kind, made, ...)                                                        \
    eddy_cuda_dnn_make(kind, EDDY_CUDA_DNN_SETTINGS(__VA_ARGS__), made)
#define EDDY_CUDA_DNN_ADD_OPERATION(build, kind, ...)                                              \
    eddy_cuda_dnn_add_operation(build, kind, EDDY_CUDA_DNN_SETTINGS(__VA_ARGS__))
#define EDDY_CUDA_DNN_ADD(build, kind, ...)                                                        \
    eddy_cuda_dnn_add(build, kind, EDDY_CUDA_DNN_SETTINGS(__VA_ARGS__))

#endif
