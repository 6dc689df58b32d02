/* Blocks with lengths and places of their own (uneven.c). */
#ifndef LWM_BLOCKS_H
#define LWM_BLOCKS_H

#include "collectives.h"

/* A block in the type of its rank. */
struct lwm_block {
    char *at;
    size_t count, bytes;
    MPI_Datatype type;
    struct lwm_type info;
};

/* Returns one number of a list of ints, or of MPI_Counts when `wide`. */
long long lwm_number(const void *list, bool wide, int i);
/* Tells the least number of elements that each rank takes of every other one, by a list of counts that all have (lwm_meets). Returns false. */
bool lwm_meets_least(struct lwm_call *call, const void *counts, bool wide, MPI_Datatype type);
/* Finds the i-th block; false when the host is to judge it. */
bool lwm_block_of(const struct lwm_blocks *blocks, int i, struct lwm_block *to);
/* Computes the lengths in bytes, their sum, and whether the blocks lie in a row as they are. */
bool lwm_measure(const struct lwm_blocks *blocks, int ranks, size_t *lengths, size_t *total, bool *row);

#endif
