/* Kernels of plug-ins by the numbers of ops. A plug-in knows the names of kernels alone, and is asked once for each op and dtype. */
#include <base/atomic.h>
#include <interpreter/call/op.h>
#include <streams/plugin.h>

/* Ops whose kernels are remembered; twice as many as there are. */
#define OPS 512

/* Stands for "there is none". */
static const eddy_kernel none;

/* atomic: relaxed, since kernels are static; NULL: not asked yet. CUDA's: no other kind has a plug-in. */
static _Atomic(const eddy_kernel *) known[OPS][EDDY_DTYPE_COUNT];

const eddy_kernel *eddy_op_kernel_by_name(const char *name, eddy_dtype dtype,
                                          eddy_device_kind kind) {
    const eddy_plugin *plugin = eddy_plugin_of(kind, NULL, 0);
    return plugin ? plugin->kernel(name, dtype) : NULL;
}

static const eddy_kernel *ask(const eddy_op *op, eddy_dtype compute, eddy_device_kind kind) {
    const eddy_kernel *of_cpu = eddy_op_kernel_for(op, compute);
    return of_cpu ? eddy_op_kernel_by_name(of_cpu->name, compute, kind) : NULL;
}

const eddy_kernel *eddy_op_kernel_of_plugin(const eddy_op *op, eddy_dtype compute,
                                            eddy_device_kind kind) {
    if (op->is_registered)
        return NULL;
    /* Ops that programs alone have are without a number: their kernels are found when a program is made. */
    if (op->id == EDDY_OP_REGISTERED)
        return ask(op, compute, kind);
    EDDY_ASSERT(op->id < OPS && kind == EDDY_DEVICE_CUDA);
    const eddy_kernel *kernel = eddy_load_relaxed(&known[op->id][compute]);
    if (EDDY_UNLIKELY(!kernel)) {
        kernel = ask(op, compute, kind);
        kernel = kernel ? kernel : &none;
        eddy_store_relaxed(&known[op->id][compute], kernel);
    }
    return kernel == &none ? NULL : kernel;
}
