/*
 * Operators that the program makes: the arguments of MPI_Op_create are remembered, and lineweave calls the function as
 * the host would.
 *
 * The function gets the type's handle as well; it is kept for the call under way, which runs in the calling thread.
 */
#include "lwm.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

typedef void narrow_fn(void *, void *, int *, MPI_Datatype *);
typedef void wide_fn(void *, void *, MPI_Count *, MPI_Datatype *);

struct own {
    MPI_Op handle;
    narrow_fn *narrow;
    wide_fn *wide;
    bool fortran;
    lw_op op;
    struct own *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct own *all;
static __thread MPI_Datatype current;

static void combine(const void *in, void *inout, size_t len, size_t size, void *arg)
{
    struct own *own = arg;
    MPI_Datatype type = current;
    if (own->wide) {
        MPI_Count count = (MPI_Count)len;
        own->wide((void *)in, inout, &count, &type);
        return;
    }
    for (size_t done = 0; done < len;) {
        /* Fortran's function gets the number by which Fortran knows the type. */
        void *handle = &type;
#ifdef LWM_OPENMPI
        MPI_Fint known = own->fortran ? lwm_host.Type_c2f(type) : 0;
        if (own->fortran) handle = &known;
#endif
        int count = len - done < INT_MAX ? (int)(len - done) : INT_MAX;
        own->narrow((char *)in + done * size, (char *)inout + done * size, &count, handle);
        done += (size_t)count;
    }
}

/* Remembers an operator. One that cannot be remembered is treated as one that was never seen: its calls pass. All ranks
 * make the same ones. */
static void remember(MPI_Op handle, narrow_fn *narrow, wide_fn *wide, bool fortran, int commutes)
{
    struct own *own = calloc(1, sizeof *own);
    if (!own) return;
    own->handle = handle;
    own->narrow = narrow;
    own->wide = wide;
    own->fortran = fortran;
    if (lw_op_create(combine, commutes, own, &own->op) != LW_OK) {
        free(own);
        return;
    }
    pthread_mutex_lock(&lock);
    own->next = all;
    all = own;
    pthread_mutex_unlock(&lock);
}

lw_op lwm_own_op(MPI_Op op, MPI_Datatype type)
{
    lw_op found = -1;
    pthread_mutex_lock(&lock);
    for (struct own *own = all; own && found < 0; own = own->next) {
        if (own->handle == op) found = own->op;
    }
    pthread_mutex_unlock(&lock);
    current = type;
    return found;
}

int lwm_create_op(void (*function)(void *, void *, int *, MPI_Datatype *), int commutes, MPI_Op *op, bool fortran)
{
    static int (*next)(narrow_fn *, int, MPI_Op *);
    if (!next) *(void **)&next = lwm_next("Op_create");
    int result = next(function, commutes, op);
    if (result == 0 && (lwm_open || lwm_active)) remember(*op, function, NULL, fortran, commutes);
    return result;
}

int MPI_Op_create(narrow_fn *function, int commutes, MPI_Op *op)
{
#ifdef LWM_OPENMPI
    bool fortran = lwm_is_fortran(__builtin_return_address(0));
#else
    bool fortran = false;
#endif
    return lwm_create_op(function, commutes, op, fortran);
}

#ifdef LWM_LARGE_FORMS
int MPI_Op_create_c(wide_fn *function, int commutes, MPI_Op *op)
{
    static __typeof__(&MPI_Op_create_c) next;
    if (!next) *(void **)&next = lwm_next("Op_create_c");
    int result = next(function, commutes, op);
    if (result == 0 && (lwm_open || lwm_active)) remember(*op, NULL, function, false, commutes);
    return result;
}
#endif

int MPI_Op_free(MPI_Op *op)
{
    static __typeof__(&MPI_Op_free) next;
    if (!next) *(void **)&next = lwm_next("Op_free");
    MPI_Op handle = op ? *op : (MPI_Op)0;
    int result = next(op);
    if (result != 0) return result;
    pthread_mutex_lock(&lock);
    struct own **at = &all;
    while (*at && (*at)->handle != handle) at = &(*at)->next;
    struct own *gone = *at;
    if (gone) *at = gone->next;
    pthread_mutex_unlock(&lock);
    if (gone) {
        lw_op_free(gone->op);
        free(gone);
    }
    return result;
}
