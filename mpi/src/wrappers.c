/*
 * The entry points that programs call, each in the form with ints and in the one with MPI_Count.
 */
#include "shapes.h"
#include "started.h"

#define NEXT(name) \
    static __typeof__(&FORM(name)) next; \
    if (LWM_UNLIKELY(!next)) *(void **)&next = lwm_next(NAME(name));
#define NEXT_CALL(name, arguments) ({ NEXT(name) next arguments; })
#define LWM_TEXT(x) #x

#define FORM(name) MPI_##name
#define NAME(name) LWM_TEXT(name)
#define COUNT int
#define PLACE int
#define WIDE false
#include "collectives.inc"
#include "started.inc"
#include "passed.inc"
#undef FORM
#undef NAME
#undef COUNT
#undef PLACE
#undef WIDE

/* Open MPI 5 has no large forms. Programs see whether they are there, so they must not be where the host has none. */
#ifdef LWM_LARGE_FORMS
#define FORM(name) MPI_##name##_c
#define NAME(name) LWM_TEXT(name##_c)
#define COUNT MPI_Count
#define PLACE MPI_Aint
#define WIDE true
#include "collectives.inc"
#include "started.inc"
#include "passed.inc"
#undef FORM
#undef NAME
#undef COUNT
#undef PLACE
#undef WIDE
#endif

#define FORM(name) MPI_##name
#define NAME(name) LWM_TEXT(name)

int MPI_Barrier(MPI_Comm comm)
{
    struct lwm_comm *known = __atomic_load_n(&lwm_slots[lwm_slot(comm)], __ATOMIC_ACQUIRE);
    if (LWM_LIKELY(known && known->handle == comm && known->plain_barriers)) {
        known->plain_barriers--;
        if (LWM_LIKELY(lw_barrier(known->team) == LW_OK)) return 0;
        struct lwm_call call = {.comm = known, .kind = LWM_BARRIER};
        lwm_done(&call, LW_ERR_FAILED);
        return call.result;
    }
    if (known && known->handle == comm && known->hot[LWM_BARRIER].left > 1) {
        return lwm_passed_again(known, LWM_BARRIER, NEXT_CALL(Barrier, (comm)));
    }
    struct lwm_call call;
    if (lwm_barrier(&call, comm)) return call.result;
    NEXT(Barrier)
    return lwm_passed(&call, next(comm));
}

int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request)
{
    struct lwm_order order = {.kind = LWM_BARRIER};
    int result;
    if (lwm_start(&order, comm, request, &result)) return result;
    NEXT(Ibarrier)
    return lwm_agree_started(&order, request, next(comm, request));
}

int MPI_Barrier_init(MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    struct lwm_order order = {.kind = LWM_BARRIER, .again = true};
    int result;
    if (lwm_start(&order, comm, request, &result)) return result;
    NEXT(Barrier_init)
    return lwm_agree_prepared(&order, next(comm, info, request));
}

/* Functions that free a communicator. Its started calls are completed here and not by the record's callback: a host may hold a lock during
 * the callback that its other threads need, and ranks that wait for each other under such locks wait for ever. */
#define LEAVE(name) \
    int MPI_##name(MPI_Comm *comm) \
    { \
        NEXT(name) \
        if (comm) lwm_comm_finish(*comm); \
        return next(comm); \
    }
LEAVE(Comm_free)
LEAVE(Comm_disconnect)

/* Functions that make communicators, called by all ranks of another one or by some. */
#define MAKE(name, parameters, arguments...) \
    int MPI_##name(MPI_Comm comm, parameters, MPI_Comm *made) \
    { \
        NEXT(name) \
        return lwm_all_made(comm, next(comm, arguments, made), made); \
    }
#define AND ,
int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *made)
{
    NEXT(Comm_dup)
    return lwm_duplicated(comm, next(comm, made), made);
}

int MPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *made)
{
    NEXT(Comm_dup_with_info)
    return lwm_duplicated(comm, next(comm, info, made), made);
}
MAKE(Comm_create, MPI_Group group, group)
MAKE(Comm_split, int color AND int key, color, key)
MAKE(Comm_split_type, int type AND int key AND MPI_Info info, type, key, info)
MAKE(Cart_create, int n AND const int *sizes AND const int *periods AND int reorder, n, sizes, periods, reorder)
MAKE(Cart_sub, const int *remain, remain)
MAKE(Graph_create, int n AND const int *index AND const int *edges AND int reorder, n, index, edges, reorder)
#undef MAKE
#undef AND

int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *made)
{
    NEXT(Comm_create_group)
    return lwm_group_made(comm, group, tag, next(comm, group, tag, made), made);
}

int MPI_Intercomm_merge(MPI_Comm comm, int high, MPI_Comm *made)
{
    NEXT(Intercomm_merge)
    return lwm_duplicated(comm, next(comm, high, made), made);
}

/* This call is started, as a collective of the communicator like others. */
int MPI_Comm_idup(MPI_Comm handle, MPI_Comm *made, MPI_Request *request)
{
    NEXT(Comm_idup)
    struct lwm_comm *unnumbered, *comm = lwm_comm_counted(handle, LWM_UNNUMBERED, &unnumbered);
    return lwm_agree_saw(comm, next(handle, made, request));
}

/* Some hosts look first and move messages afterwards, and rely on a barrier in between to have moved earlier messages; lineweave's barrier
 * moves none of theirs. So if the answer is "not over", the question is repeated once. */
int MPI_Win_test(MPI_Win win, int *flag)
{
    static __typeof__(&MPI_Win_test) next;
    if (LWM_UNLIKELY(!next)) *(void **)&next = lwm_next("Win_test");
    int result = next(win, flag);
    return result == 0 && flag && !*flag ? next(win, flag) : result;
}
