/* Eddy: an eager tensor runtime for C. This header includes all the others.
 *
 * A call of an op may return before the op has run; reads wait for it. Start with <eddy/tensor.h>. */
#ifndef EDDY_EDDY_H
#define EDDY_EDDY_H

#include <eddy/call.h>
#include <eddy/call_sites.h>
#include <eddy/choice.h>
#include <eddy/compose.h>
#include <eddy/control.h>
#include <eddy/device.h>
#include <eddy/device_memory.h>
#include <eddy/dlpack.h>
#include <eddy/dtype.h>
#include <eddy/export.h>
#include <eddy/file.h>
#include <eddy/function.h>
#include <eddy/generator.h>
#include <eddy/grad.h>
#include <eddy/host.h>
#include <eddy/lend.h>
#include <eddy/log.h>
#include <eddy/op.h>
#include <eddy/options.h>
#include <eddy/output_ring.h>
#include <eddy/print.h>
#include <eddy/program.h>
#include <eddy/recorded.h>
#include <eddy/runtime.h>
#include <eddy/scalar.h>
#include <eddy/shape.h>
#include <eddy/status.h>
#include <eddy/stream.h>
#include <eddy/tensor.h>
#include <eddy/tensor_store.h>
#include <eddy/trace.h>
#include <eddy/version.h>
#include <eddy/view.h>

#include <eddy/ops.h>

#endif
