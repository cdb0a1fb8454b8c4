/* A library without an entry, under the names of cuBLASLt and cuDNN: it lies beside the fake driver, so that no process with that loads NVIDIA's, which would take the fake for a GPU. */
typedef int eddy_no_entry;
