#include <stdlib.h>
#include <tests/fake_cuda/dnn/object.h>
#include <tests/fake_cuda/finding.h>

#define OBJECTS 32768

pthread_mutex_t fake_dnn_lock = PTHREAD_MUTEX_INITIALIZER;
static fake_dnn_object objects[OBJECTS]; /* lock: fake_dnn_lock */
static int count;                        /* lock: fake_dnn_lock */
static uint32_t next;                    /* lock: fake_dnn_lock; where to look for a place first */

fake_dnn_object *fake_dnn_object_create(fake_kind kind, void **handle) {
    for (uint32_t i = 0; i < OBJECTS; i++, next++) {
        uint32_t index = next % OBJECTS;
        fake_dnn_object *object = &objects[index];
        if (object->kind)
            continue;
        *object = (fake_dnn_object){.kind = kind, .generation = object->generation + 1};
        *handle = fake_handle(kind, object->generation, index);
        count++;
        return object;
    }
    return NULL;
}

fake_dnn_object *fake_dnn_object_of(const void *handle, fake_kind kind, const char *entry) {
    uint64_t generation;
    uint32_t index;
    if (fake_handle_read(handle, kind, &generation, &index) && index < OBJECTS &&
        objects[index].kind == kind && objects[index].generation == generation)
        return &objects[index];
    fake_finding("handle: %s is given %p, which is none of its kind", entry, handle);
    return NULL;
}

fake_dnn_object *fake_dnn_final_of(const void *handle, eddy_dnn_kind kind, const char *entry) {
    fake_dnn_object *object = fake_dnn_object_of(handle, FAKE_DNN_DESCRIPTOR, entry);
    if (!object || (object->dnn_kind == kind && object->is_final))
        return object;
    fake_finding("descriptor: %s is given one of kind %d that is not final, or not of kind %d",
                 entry, object->dnn_kind, kind);
    return NULL;
}

void fake_dnn_object_destroy(fake_dnn_object *object) {
    free(object->question);
    object->question = NULL;
    object->kind = 0;
    count--;
}

int fake_dnn_objects(void) {
    pthread_mutex_lock(&fake_dnn_lock);
    int live = count;
    pthread_mutex_unlock(&fake_dnn_lock);
    return live;
}
