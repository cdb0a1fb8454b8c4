/* One array as numpy writes it, in a file of its own or as a part of one. */
#ifndef EDDY_EXCHANGE_NPY_H
#define EDDY_EXCHANGE_NPY_H

#include <interpreter/host/file.h>

EDDY_MUST_USE eddy_status eddy_npy_write(eddy_file *file, eddy_tensor *tensor);
/* NULL with the error recorded. Bytes after the array are not read. */
eddy_tensor *eddy_npy_read(eddy_file *file);

#endif
