/* The collectives (moves.c, folds.c, uneven.c): true when carried out, with the result in the call. */
#ifndef LWM_COLLECTIVES_H
#define LWM_COLLECTIVES_H

#include "agree.h"

/* A buffer as MPI describes it. */
struct lwm_buffer {
    void *at;
    MPI_Count count;
    MPI_Datatype type;
};
bool lwm_barrier(struct lwm_call *call, MPI_Comm comm);
/* Carries out a bcast (of one buffer, given twice), gather, scatter, allgather or alltoall, by kind; root 0 where there is none. */
bool lwm_move(struct lwm_call *call, enum lwm_kind kind, struct lwm_buffer send, struct lwm_buffer recv, int root, MPI_Comm comm);

/* Describes the type of a buffer, and the bytes in it. False when the host is to judge it. */
bool lwm_describe(const struct lwm_buffer *buffer, struct lwm_type *info, size_t *bytes);
/* What a rank does in such a call. */
struct lwm_move {
    bool gives, takes;                  /* by buffers of their own: */
    bool give_in_place, take_in_place;  /* its own block already lies in the other buffer */
    struct lwm_type from, to;           /* types of the buffers, where it gives or takes */
    size_t give, take;                  /* blocks in each */
    size_t bytes;                       /* of a block */
};
/* Finds that out; false when the host is to judge the arguments. */
bool lwm_move_of(enum lwm_kind kind, const struct lwm_comm *comm, const struct lwm_buffer *send, const struct lwm_buffer *recv, int root,
                 struct lwm_move *move);

/* A call that combines, as MPI describes it. */
struct lwm_fold {
    const void *send;
    void *recv;
    MPI_Count count;      /* 0 in a reduce_scatter */
    MPI_Datatype type;
    MPI_Op op;
    int root;             /* 0 where there is none */
    const void *counts;   /* of a reduce_scatter: a number for each rank */
    bool wide;            /* these are MPI_Counts */
};
/* Carries out a reduce, allreduce, reduce_scatter_block, reduce_scatter, scan or exscan, by kind. */
bool lwm_fold(struct lwm_call *call, enum lwm_kind kind, struct lwm_fold given, MPI_Comm comm);
/* What a rank does in such a call. */
struct lwm_folding {
    struct lwm_type info;
    lw_op op;
    bool takes, in_place;
    size_t own, total;    /* elements: of this rank's result, and those that each rank gives */
    size_t bytes;         /* of the call, by which it is compared */
    size_t read, written; /* bytes of this rank's buffers */
};
/* Finds that out, with the lengths of a reduce_scatter's blocks; returns the reason to leave the call to the host, or LWM_WHY_NONE. With
 * `own_ops`, operators of the program's can be used. */
enum lwm_reason lwm_fold_of(enum lwm_kind kind, const struct lwm_comm *comm, const struct lwm_fold *given, bool own_ops, size_t *lengths,
                            struct lwm_folding *folding);

/* One block for each rank: counts and places are ints or larger, with one type for all or one each. */
struct lwm_blocks {
    char *at;
    const void *counts, *places;
    bool wide;                    /* MPI_Count and MPI_Aint, not int */
    MPI_Datatype type;
    const MPI_Datatype *types;    /* null: `type` for all, and places in its extents; else places in bytes */
};
/* Carries out a gatherv or (root 0) an allgatherv, by kind. */
bool lwm_gatherv(struct lwm_call *call, enum lwm_kind kind, struct lwm_buffer send, struct lwm_blocks recv, int root, MPI_Comm comm);
bool lwm_scatterv(struct lwm_call *call, struct lwm_blocks send, struct lwm_buffer recv, int root, MPI_Comm comm);
bool lwm_alltoallv(struct lwm_call *call, enum lwm_kind kind, struct lwm_blocks send, struct lwm_blocks recv, MPI_Comm comm);

/* ---- calls that give and take in one place (same.c): each returns whether a call does so, and the host refuses it
 * ---- */

bool lwm_same_open(void);
void lwm_same_close(void);
/* Returns whether the host combines this type by this operator. */
bool lwm_same_combines(MPI_Datatype type, MPI_Op op);
/* For collectives that combine; `count` of a reduce_scatter is of all blocks. */
bool lwm_same_fold(enum lwm_kind kind, const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op);
/* For gather and scatter at the root, allgather and alltoall. */
bool lwm_same_move(enum lwm_kind kind, int rank, struct lwm_buffer send, struct lwm_buffer recv);
/* For gatherv and scatterv at the root, and allgatherv. */
bool lwm_same_block(enum lwm_kind kind, int rank, struct lwm_buffer one, const struct lwm_blocks *all);
/* For alltoallv and alltoallw. */
bool lwm_same_blocks(enum lwm_kind kind, const struct lwm_blocks *give, const struct lwm_blocks *take);

#endif
