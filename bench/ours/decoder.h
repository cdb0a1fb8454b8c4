/* The network of the transformer rows, and its inputs. */
#ifndef BENCH_OURS_DECODER_H
#define BENCH_OURS_DECODER_H

#include <eddy/eddy.h>
#include <examples/transformer.h>

/* i64[count] in [0, below), the same in each run. Ends the program on failure. */
eddy_tensor *decoder_integers(int64_t count, int64_t below, uint32_t *random);
/* A transformer of the rows' size. Ends the program on failure. */
void decoder_init(transformer *net);
/* i64[rows, columns] in [0, vocabulary). Ends the program on failure. */
eddy_tensor *decoder_numbers(int64_t rows, int64_t columns);

#endif
