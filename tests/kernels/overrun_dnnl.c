/* Preloaded behind fenced_dnnl.c, it stands for a library that reads beyond an operand: it reads the byte behind the first one of each primitive. */
#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>
#include <stddef.h>

#if DNNL_VERSION_MAJOR < 3
typedef const dnnl_memory_desc_t *operand_desc;
#else
typedef const_dnnl_memory_desc_t operand_desc;
#endif
typedef dnnl_status_t execute_fn(const_dnnl_primitive_t primitive, dnnl_stream_t stream, int count,
                                 const dnnl_exec_arg_t *arguments);

dnnl_status_t dnnl_primitive_execute(const_dnnl_primitive_t primitive, dnnl_stream_t stream,
                                     int count, const dnnl_exec_arg_t *arguments) {
    execute_fn *execute = (execute_fn *)dlsym(RTLD_NEXT, "dnnl_primitive_execute");
    void *data = NULL;
    operand_desc desc = NULL;
    dnnl_memory_get_data_handle(arguments->memory, &data);
    dnnl_memory_get_memory_desc(arguments->memory, &desc);
    (void)((volatile const char *)data)[dnnl_memory_desc_get_size(desc)];
    return execute(primitive, stream, count, arguments);
}
