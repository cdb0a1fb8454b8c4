#include <tests/fake_cuda/blas/object.h>
#include <tests/fake_cuda/finding.h>

#define OBJECTS 16384

pthread_mutex_t fake_blas_lock = PTHREAD_MUTEX_INITIALIZER;
static fake_blas_object objects[OBJECTS]; /* lock: fake_blas_lock */
static int count;                         /* lock: fake_blas_lock */

fake_blas_object *fake_blas_object_create(fake_kind kind, void **handle) {
    for (uint32_t i = 0; i < OBJECTS; i++) {
        fake_blas_object *object = &objects[i];
        if (object->kind)
            continue;
        *object = (fake_blas_object){.kind = kind, .generation = object->generation + 1};
        *handle = fake_handle(kind, object->generation, i);
        count++;
        return object;
    }
    return NULL;
}

fake_blas_object *fake_blas_object_of(const void *handle, fake_kind kind, const char *entry) {
    uint64_t generation;
    uint32_t index;
    if (fake_handle_read(handle, kind, &generation, &index) && index < OBJECTS &&
        objects[index].kind == kind && objects[index].generation == generation)
        return &objects[index];
    fake_finding("handle: %s is given %p, which is none of its kind", entry, handle);
    return NULL;
}

void fake_blas_object_destroy(fake_blas_object *object) {
    object->kind = 0;
    count--;
}

int fake_blas_objects(void) {
    pthread_mutex_lock(&fake_blas_lock);
    int live = count;
    pthread_mutex_unlock(&fake_blas_lock);
    return live;
}
