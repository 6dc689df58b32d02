/* Types that the tests under MPI make; where `large`, by functions with large counts, if the MPI has them. */
#ifndef PARTS_H
#define PARTS_H

#include <mpi.h>
#include <stdbool.h>

/* A part of an array of three dimensions in C's order, made in one of the ways that programs make it. */
static inline MPI_Datatype part_of(const int *sizes, const int *parts, const int *starts, bool fortran, bool large)
{
    MPI_Datatype type;
    int lists[3][3], order = fortran ? MPI_ORDER_FORTRAN : MPI_ORDER_C;
    for (int d = 0; d < 3; d++) {
        int at = fortran ? 2 - d : d;
        lists[0][at] = sizes[d];
        lists[1][at] = parts[d];
        lists[2][at] = starts[d];
    }
#if MPI_VERSION >= 4
    MPI_Count counts[3][3];
    for (int i = 0; i < 9; i++) counts[i / 3][i % 3] = lists[i / 3][i % 3];
    if (large) MPI_Type_create_subarray_c(3, counts[0], counts[1], counts[2], order, MPI_INT, &type);
    else
#endif
    MPI_Type_create_subarray(3, lists[0], lists[1], lists[2], order, MPI_INT, &type);
    (void)large;
    MPI_Type_commit(&type);
    return type;
}

static inline MPI_Datatype three_of(bool large)
{
    MPI_Datatype type;
#if MPI_VERSION >= 4
    if (large) MPI_Type_contiguous_c(3, MPI_INT, &type);
    else
#endif
    MPI_Type_contiguous(3, MPI_INT, &type);
    (void)large;
    MPI_Type_commit(&type);
    return type;
}

#endif
