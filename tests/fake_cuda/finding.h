/* What a program does that the driver need not forgive: a line on stderr each, and status 97 when the process ends. */
#ifndef EDDY_TESTS_FAKE_CUDA_FINDING_H
#define EDDY_TESTS_FAKE_CUDA_FINDING_H

#define FAKE_FINDING_STATUS 97

/* Any thread, also with the lock held. Also for the fake libraries of products and convolutions. */
__attribute__((visibility("default"), format(printf, 1, 2))) void fake_finding(const char *format,
                                                                               ...);
/* The end of the process: memory was written that nobody may write. */
__attribute__((format(printf, 1, 2), noreturn)) void fake_abort(const char *format, ...);

/* For tests, by dlsym. */
__attribute__((visibility("default"))) int fake_cuda_findings(void);

#endif
