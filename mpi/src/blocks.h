/* Blocks with lengths and places of their own (uneven.c). */
#ifndef LWM_BLOCKS_H
#define LWM_BLOCKS_H

#include "collectives.h"

/* A block, as its rank's type sees it. */
struct lwm_block {
    char *at;
    size_t count, bytes;
    MPI_Datatype type;
    struct lwm_type info;
};

/* One of a list of ints, or of MPI_Counts when `wide`. */
long long lwm_number(const void *list, bool wide, int i);
/* The i-th block; false when the host is to judge it. */
bool lwm_block_of(const struct lwm_blocks *blocks, int i, struct lwm_block *to);
/* Lengths in bytes, their sum, and whether the blocks lie in a row as they are. */
bool lwm_measure(const struct lwm_blocks *blocks, int ranks, size_t *lengths, size_t *total, bool *row);

#endif
