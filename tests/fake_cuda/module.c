#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tests/fake_cuda/call.h>
#include <tests/fake_cuda/finding.h>
#include <tests/fake_cuda/handle.h>
#include <tests/fake_cuda/image.h>
#include <tests/fake_cuda/module.h>
#include <tests/fake_cuda/option.h>
#include <tests/fake_cuda/stream.h>
#include <unistd.h>

#define MODULES 256
#define FUNCTIONS 65536

typedef struct module {
    fake_device *device; /* NULL: the place is free */
    void *library;       /* of its functions */
    uint64_t generation;
    fake_clock users; /* the last launches on each stream */
} module;

/* A function of a module: what the handle means. */
typedef struct place {
    const fake_function *function;
    uint32_t module;
    uint64_t generation; /* of the module */
} place;

/* ---- the library of kernels ---- */

static void *library;        /* const after init */
static fake_function *known; /* lock: the fake's */
static void (*grid_run)(void (*kernel)(const void *), const void *parameters,
                        const unsigned grid[3], const unsigned block[3], unsigned shared_bytes);

static void open_library(void) {
    library = dlopen(fake_options_read()->kernels, RTLD_NOW | RTLD_LOCAL);
    if (library)
        *(void **)&grid_run = dlsym(library, "eddy_grid_run");
    if (!grid_run)
        fprintf(stderr, "fake_cuda: no kernels: %s\n", dlerror());
}

static const void *symbol_of(void *from, const char *name, const char *suffix) {
    char symbol[512];
    int length = snprintf(symbol, sizeof(symbol), "%s%s", name, suffix);
    return length < (int)sizeof(symbol) ? dlsym(from, symbol) : NULL;
}

static const fake_function *look_up(void *from, const char *name) {
    for (const fake_function *function = known; function; function = function->next)
        if (function->library == from && strcmp(function->name, name) == 0)
            return function;
    const unsigned *bytes = grid_run ? symbol_of(from, name, "_bytes") : NULL;
    const void *run = bytes ? symbol_of(from, name, "") : NULL;
    fake_function *made = run ? malloc(sizeof(*made)) : NULL;
    char *copy = made ? strdup(name) : NULL;
    if (!copy) {
        free(made);
        return NULL;
    }
    *made = (fake_function){.next = known,
                            .name = copy,
                            .library = from,
                            .bytes = *bytes,
                            .element_bytes = symbol_of(from, name, "_element_bytes")};
    *(const void **)&made->run = run;
    *(const void **)&made->touches = symbol_of(from, name, "_touches");
    known = made;
    return made;
}

void fake_module_run(const fake_function *function, const void *parameters, const unsigned grid[3],
                     const unsigned block[3], unsigned shared_bytes) {
    grid_run(function->run, parameters, grid, block, shared_bytes);
}

/* ---- images ---- */

static bool write_object(const fake_image *image, char *path) {
    int file = mkstemp(path);
    if (file < 0)
        return false;
    bool is_written = write(file, image + 1, image->bytes) == (ssize_t)image->bytes;
    (void)close(file);
    return is_written;
}

/* The library of an image's functions: the object that it is, which stays for good, or that of all kernels. NULL, with *result: it is of no use on the device. */
static void *open_image(const void *data, eddy_cu_result *result) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const fake_image *image = data;
    char path[] = "/tmp/fake_cuda_imageXXXXXX";
    int capability = fake_options_read()->capability;
    pthread_once(&once, open_library);
    *result = EDDY_CU_NO_BINARY;
    if (strncmp(data, FAKE_IMAGE_MAGIC, sizeof(image->magic)) != 0)
        return library;
    if (image->is_text ? image->architecture > capability : image->architecture != capability)
        return NULL;
    void *object = write_object(image, path) ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!object)
        fprintf(stderr, "fake_cuda: no object in an image: %s\n", dlerror());
    (void)unlink(path);
    return object;
}

/* ---- modules ---- */

static module modules[MODULES]; /* lock: the fake's */
static place places[FUNCTIONS]; /* lock: the fake's; handles begin at place 0, generation 1 */
static uint32_t place_count;    /* lock: the fake's */

static module *module_of(eddy_cu_module handle, const fake_device *device) {
    uint64_t generation;
    uint32_t index;
    if (!fake_handle_read(handle, FAKE_MODULE, &generation, &index) || index >= MODULES)
        return NULL;
    module *found = &modules[index];
    return found->device == device && found->generation == generation ? found : NULL;
}

static place *place_of(eddy_cu_function handle) {
    uint64_t generation;
    uint32_t index;
    bool is_place =
        fake_handle_read(handle, FAKE_FUNCTION, &generation, &index) && index < place_count;
    return is_place ? &places[index] : NULL;
}

const fake_function *fake_module_function(eddy_cu_function handle, const fake_device *device) {
    const place *found = place_of(handle);
    const module *of = found ? &modules[found->module] : NULL;
    return of && of->device == device && of->generation == found->generation ? found->function
                                                                             : NULL;
}

void fake_module_use(eddy_cu_function handle, uint32_t stream, uint64_t number) {
    modules[place_of(handle)->module].users.at[stream] = number;
}

void fake_module_drop(const fake_device *device) {
    for (int m = 0; m < MODULES; m++)
        if (modules[m].device == device)
            modules[m].device = NULL;
}

eddy_cu_result cuModuleLoadData(eddy_cu_module *handle, const void *image) {
    FAKE_BEGIN(cuModuleLoadData, FAKE_NEEDS_CONTEXT);
    if (!handle || !image)
        return fake_call_end(&call, EDDY_CU_INVALID_VALUE);
    eddy_cu_result result;
    bool is_own = strncmp(image, FAKE_IMAGE_MAGIC, sizeof(FAKE_IMAGE_MAGIC)) == 0;
    void *functions = open_image(image, &result);
    if (is_own && !functions)
        return fake_call_end(&call, result);
    for (uint32_t m = 0; m < MODULES; m++) {
        if (modules[m].device)
            continue;
        modules[m] = (module){
            .device = call.device, .library = functions, .generation = modules[m].generation + 1};
        *handle = fake_handle(FAKE_MODULE, modules[m].generation, m);
        return fake_call_end(&call, 0);
    }
    return fake_call_end(&call, EDDY_CU_OUT_OF_MEMORY);
}

static bool is_in_use(const module *of) {
    for (uint32_t s = 0; s < FAKE_STREAMS; s++)
        if (!fake_clock_covers(&fake_host_clock, s, of->users.at[s]))
            return true;
    return false;
}

eddy_cu_result cuModuleUnload(eddy_cu_module handle) {
    FAKE_BEGIN(cuModuleUnload, FAKE_NEEDS_CONTEXT);
    module *found = module_of(handle, call.device);
    if (!found)
        return fake_call_end(&call, EDDY_CU_INVALID_HANDLE);
    if (is_in_use(found))
        fake_finding("unload in use: of a module, while kernels of it are not known to be over");
    found->device = NULL;
    return fake_call_end(&call, 0);
}

eddy_cu_result cuModuleGetFunction(eddy_cu_function *handle, eddy_cu_module module_handle,
                                   const char *name) {
    FAKE_BEGIN(cuModuleGetFunction, FAKE_NEEDS_CONTEXT);
    if (!handle || !name || !*name)
        return fake_call_end(&call, EDDY_CU_INVALID_VALUE);
    const module *found = module_of(module_handle, call.device);
    if (!found)
        return fake_call_end(&call, EDDY_CU_INVALID_HANDLE);
    const fake_function *function = look_up(found->library, name);
    if (!function)
        return fake_call_end(&call, EDDY_CU_NOT_FOUND);
    place wanted = {function, (uint32_t)(found - modules), found->generation};
    uint32_t p = 0;
    while (p < place_count &&
           (places[p].function != function || places[p].module != wanted.module ||
            places[p].generation != wanted.generation))
        p++;
    if (p == FUNCTIONS)
        return fake_call_end(&call, EDDY_CU_OUT_OF_MEMORY);
    places[p] = wanted;
    place_count = p == place_count ? p + 1 : place_count;
    *handle = fake_handle(FAKE_FUNCTION, 1, p);
    return fake_call_end(&call, 0);
}
