/*
 * What mpi/src/abi says, against a real mpi.h: compiled with that MPI's compiler, once a file of ours. Handles of Open MPI are
 * names, which the linker checks.
 */
#include <mpi.h>
#include <stdio.h>

static int wrong;
#define SAME(ours, theirs) \
    do { \
        if ((long long)(ours) != (long long)(theirs)) wrong++, printf("%s is %lld and not %lld\n", #theirs, (long long)(theirs), (long long)(ours)); \
    } while (0)

/* Our file's types have the names of the real ones. */
#define MPI_Comm ours_Comm
#define MPI_Datatype ours_Datatype
#define MPI_Op ours_Op
#define MPI_Group ours_Group
#define MPI_Errhandler ours_Errhandler
#define MPI_Info ours_Info
#define MPI_Request ours_Request
#define MPI_Aint ours_Aint
#define MPI_Count ours_Count
#undef MPI_Fint
#define MPI_Fint ours_Fint
#define MPI_Status ours_Status
#include LWM_ABI_FILE
#undef MPI_Comm
#undef MPI_Datatype
#undef MPI_Op
#undef MPI_Group
#undef MPI_Errhandler
#undef MPI_Info
#undef MPI_Request
#undef MPI_Aint
#undef MPI_Count
#undef MPI_Fint
#undef MPI_Status

int main(void)
{
    SAME(sizeof(ours_Comm), sizeof(MPI_Comm));
    SAME(sizeof(ours_Datatype), sizeof(MPI_Datatype));
    SAME(sizeof(ours_Op), sizeof(MPI_Op));
    SAME(sizeof(ours_Request), sizeof(MPI_Request));
    SAME(sizeof(ours_Aint), sizeof(MPI_Aint));
    SAME(sizeof(ours_Count), sizeof(MPI_Count));
    SAME(sizeof(ours_Status), sizeof(MPI_Status));
    SAME(LWM_IN_PLACE, MPI_IN_PLACE);
    SAME(LWM_STATUS_IGNORE, MPI_STATUS_IGNORE);
    SAME(LWM_STATUS_IGNORE, MPI_STATUSES_IGNORE);
    SAME(LWM_ANY_TAG, MPI_ANY_TAG);
    SAME(LWM_UNDEFINED, MPI_UNDEFINED);
    SAME(LWM_ANY_SOURCE, MPI_ANY_SOURCE);
    SAME(LWM_ROOT, MPI_ROOT);
    SAME(LWM_PROC_NULL, MPI_PROC_NULL);
    SAME(LWM_ERR_ARG, MPI_ERR_ARG);
    SAME(LWM_ERR_OTHER, MPI_ERR_OTHER);
    SAME(LWM_COMBINER_DUP, MPI_COMBINER_DUP);
    SAME(LWM_COMBINER_CONTIGUOUS, MPI_COMBINER_CONTIGUOUS);
    SAME(LWM_COMBINER_SUBARRAY, MPI_COMBINER_SUBARRAY);
    SAME(LWM_ORDER_C, MPI_ORDER_C);
    SAME(LWM_LONGEST_VERSION, MPI_MAX_LIBRARY_VERSION_STRING);
#ifdef LWM_HANDLES_BY_NAME
#define HANDLE(ours, theirs) SAME(&ours, theirs)
#else
#define HANDLE(ours, theirs) SAME(ours, theirs)
#endif
    HANDLE(LWM_COMM_WORLD, MPI_COMM_WORLD);
    HANDLE(LWM_COMM_SELF, MPI_COMM_SELF);
    HANDLE(LWM_COMM_NULL, MPI_COMM_NULL);
    HANDLE(LWM_ERRORS_RETURN, MPI_ERRORS_RETURN);
    HANDLE(LWM_REQUEST_NULL, MPI_REQUEST_NULL);
    HANDLE(LWM_INFO_NULL, MPI_INFO_NULL);
    HANDLE(LWM_DATATYPE_NULL, MPI_DATATYPE_NULL);
    HANDLE(LWM_BYTE, MPI_BYTE);
    HANDLE(LWM_CHAR, MPI_CHAR);
    HANDLE(LWM_INT, MPI_INT);
    HANDLE(LWM_LONG_LONG, MPI_LONG_LONG);
    HANDLE(LWM_DOUBLE, MPI_DOUBLE);
    HANDLE(LWM_SUM, MPI_SUM);
    HANDLE(LWM_MIN, MPI_MIN);
    HANDLE(LWM_MAX, MPI_MAX);
    if (!wrong) printf("abi: as in mpi.h\n");
    return wrong != 0;
}
