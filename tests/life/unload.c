/* Opens libeddy at run time, closes it while work is in flight, and ends: the library stays mapped, nothing crashes. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    alarm(60);
    if (argc < 2)
        return 2;
    for (int round = 0; round < 3; round++) {
        void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (!library) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        void *(*scope_begin)(void) = NULL;
        void (*scope_end)(void *) = NULL;
        int (*thread_count)(void) = NULL;
        *(void **)&scope_begin = dlsym(library, "eddy_scope_begin");
        *(void **)&scope_end = dlsym(library, "eddy_scope_end");
        *(void **)&thread_count = dlsym(library, "eddy_thread_count");
        if (!scope_begin || !scope_end || !thread_count)
            return 1;
        void *scope = scope_begin();
        if (thread_count() < 1)
            return 1;
        scope_end(scope);
        dlclose(library);
    }
    return 0;
}
