/* DLPack's structs (dlpack.h of version 1.0; the unversioned one has been the same since 0.2), declared here because Debian 12 has
 * version 0.6 only. Their layout never changes within a major version. */
#ifndef EDDY_EXCHANGE_DLPACK_ABI_H
#define EDDY_EXCHANGE_DLPACK_ABI_H

#include <stdint.h>

enum { kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3, kDLCUDAManaged = 13 };
enum { kDLInt = 0, kDLUInt = 1, kDLFloat = 2, kDLBfloat = 4, kDLBool = 6 };
#define DLPACK_FLAG_BITMASK_READ_ONLY 1u
#define DLPACK_FLAG_BITMASK_IS_COPIED 2u

typedef struct DLPackVersion {
    uint32_t major, minor;
} DLPackVersion;

typedef struct DLDevice {
    int32_t device_type, device_id;
} DLDevice;

typedef struct DLDataType {
    uint8_t code, bits;
    uint16_t lanes;
} DLDataType;

typedef struct DLTensor {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape;
    int64_t *strides; /* elements; NULL: row-major without gaps */
    uint64_t byte_offset;
} DLTensor;

struct DLManagedTensor {
    DLTensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self); /* may be NULL */
};

struct DLManagedTensorVersioned {
    DLPackVersion version;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self); /* may be NULL */
    uint64_t flags;
    DLTensor dl_tensor;
};

_Static_assert(sizeof(void *) != 8 ||
                   (sizeof(DLTensor) == 48 && sizeof(struct DLManagedTensor) == 64 &&
                    sizeof(struct DLManagedTensorVersioned) == 80),
               "as other libraries lay them out");

#endif
