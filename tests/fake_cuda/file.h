/* Whole files. */
#ifndef EDDY_TESTS_FAKE_CUDA_FILE_H
#define EDDY_TESTS_FAKE_CUDA_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* The bytes, with a 0 behind them, are the caller's; NULL: there is none. */
char *fake_file_read(const char *path, size_t *bytes);
/* There with all of its bytes, for whoever reads it meanwhile, or not at all. */
bool fake_file_write(const char *path, const char *bytes, size_t count);

#endif
