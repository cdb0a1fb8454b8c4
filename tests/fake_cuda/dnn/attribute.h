/* The attributes of descriptors. With the lock, all of it. */
#ifndef EDDY_TESTS_FAKE_CUDA_DNN_ATTRIBUTE_H
#define EDDY_TESTS_FAKE_CUDA_DNN_ATTRIBUTE_H

#include <tests/fake_cuda/dnn/object.h>

/* Whether there are descriptors of the kind. */
bool fake_dnn_kind_is(eddy_dnn_kind kind);
/* The value of an attribute that the kind has. */
const fake_dnn_value *fake_dnn_value_of(const fake_dnn_object *object,
                                        eddy_dnn_attribute attribute);
/* NULL, or what is wrong. */
const char *fake_dnn_attribute_set(fake_dnn_object *object, eddy_dnn_attribute attribute,
                                   eddy_dnn_type type, int64_t count, const void *elements);
#define FAKE_DNN_NONE (-1)
/* The number of an attribute that is not set; NONE: all are that have to be. */
eddy_dnn_attribute fake_dnn_attribute_unset(const fake_dnn_object *object);
/* Gives what the descriptor was given up: it ends. */
void fake_dnn_attributes_leave(fake_dnn_object *object);

#endif
