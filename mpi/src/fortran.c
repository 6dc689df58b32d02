/*
 * Calls from Fortran under Open MPI.
 *
 * Its Fortran libraries turn handles, truth values, MPI_IN_PLACE and MPI_BOTTOM into C's and call the PMPI_ functions (entries.c). Where there is no
 * table of entries, those functions are defined here: what calls from one of the Fortran libraries is a program's call, and all else goes to the host.
 * (Fortran of MPICH and Intel MPI calls the MPI_ functions.)
 */
#define _GNU_SOURCE
#include "lwm.h"

#ifdef LWM_OPENMPI
#include "shapes.h"

#include <link.h>
#include <string.h>

/* Address ranges of the Fortran libraries' code. They are loaded with the program. */
#define RANGES 8
static struct { uintptr_t from, to; } ranges[RANGES];
static int many = -1;

static int look_at(struct dl_phdr_info *info, size_t size, void *found)
{
    (void)size;
    int *n = found;
    const char *file = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
    file = file ? file + 1 : "";
    if (strncmp(file, "libmpi_mpifh", 12) != 0 && strncmp(file, "libmpi_usempi", 13) != 0) return 0;
    for (int i = 0; i < info->dlpi_phnum && *n < RANGES; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
        ranges[*n].from = info->dlpi_addr + part->p_vaddr;
        ranges[*n].to = ranges[*n].from + part->p_memsz;
        ++*n;
    }
    return 0;
}

bool lwm_is_fortran(const void *caller)
{
    int n = __atomic_load_n(&many, __ATOMIC_ACQUIRE);
    if (LWM_UNLIKELY(n < 0)) {
        /* Threads that look at the same time find the same. */
        n = 0;
        dl_iterate_phdr(look_at, &n);
        __atomic_store_n(&many, n, __ATOMIC_RELEASE);
    }
    for (int i = 0; i < n; i++) {
        if ((uintptr_t)caller >= ranges[i].from && (uintptr_t)caller < ranges[i].to) return true;
    }
    return false;
}

#ifndef __x86_64__
#define F(name, parameters, arguments) \
    int MPI_##name parameters; \
    int PMPI_##name parameters \
    { \
        static __typeof__(&MPI_##name) host; \
        if (lwm_is_fortran(__builtin_return_address(0))) return MPI_##name arguments; \
        if (LWM_UNLIKELY(!host)) *(void **)&host = lwm_pmpi(#name); \
        return host arguments; \
    }

/* A collective that blocks, is started, or is prepared. */
#define C(name, started, again, kind, parameters, order, arguments...) \
    F(name, (parameters, MPI_Comm c), (arguments, c)) \
    F(started, (parameters, MPI_Comm c, MPI_Request *q), (arguments, c, q)) \
    F(again, (parameters, MPI_Comm c, MPI_Info i, MPI_Request *q), (arguments, c, i, q))
#define COUNT int
#define PLACE int
#include "collectives.def"

F(Init, (int *argc, char ***argv), (argc, argv))
F(Init_thread, (int *argc, char ***argv, int level, int *got), (argc, argv, level, got))
F(Finalize, (void), ())
F(Comm_free, (MPI_Comm *c), (c))
F(Comm_disconnect, (MPI_Comm *c), (c))
F(Comm_dup, (MPI_Comm c, MPI_Comm *m), (c, m))
F(Comm_dup_with_info, (MPI_Comm c, MPI_Info i, MPI_Comm *m), (c, i, m))
F(Comm_idup, (MPI_Comm c, MPI_Comm *m, MPI_Request *q), (c, m, q))
F(Comm_create, (MPI_Comm c, MPI_Group g, MPI_Comm *m), (c, g, m))
F(Comm_create_group, (MPI_Comm c, MPI_Group g, int tag, MPI_Comm *m), (c, g, tag, m))
F(Comm_split, (MPI_Comm c, int color, int key, MPI_Comm *m), (c, color, key, m))
F(Comm_split_type, (MPI_Comm c, int type, int key, MPI_Info i, MPI_Comm *m), (c, type, key, i, m))
F(Cart_create, (MPI_Comm c, int n, const int *s, const int *p, int r, MPI_Comm *m), (c, n, s, p, r, m))
F(Cart_sub, (MPI_Comm c, const int *s, MPI_Comm *m), (c, s, m))
F(Graph_create, (MPI_Comm c, int n, const int *s, const int *e, int r, MPI_Comm *m), (c, n, s, e, r, m))
F(Intercomm_merge, (MPI_Comm c, int high, MPI_Comm *m), (c, high, m))
F(Barrier, (MPI_Comm c), (c))
F(Ibarrier, (MPI_Comm c, MPI_Request *q), (c, q))
F(Barrier_init, (MPI_Comm c, MPI_Info i, MPI_Request *q), (c, i, q))
F(Wait, (MPI_Request *q, MPI_Status *s), (q, s))
F(Test, (MPI_Request *q, int *f, MPI_Status *s), (q, f, s))
F(Waitall, (int n, MPI_Request *q, MPI_Status *s), (n, q, s))
F(Testall, (int n, MPI_Request *q, int *f, MPI_Status *s), (n, q, f, s))
F(Waitany, (int n, MPI_Request *q, int *i, MPI_Status *s), (n, q, i, s))
F(Testany, (int n, MPI_Request *q, int *i, int *f, MPI_Status *s), (n, q, i, f, s))
F(Waitsome, (int n, MPI_Request *q, int *m, int *w, MPI_Status *s), (n, q, m, w, s))
F(Testsome, (int n, MPI_Request *q, int *m, int *w, MPI_Status *s), (n, q, m, w, s))
F(Start, (MPI_Request *q), (q))
F(Startall, (int n, MPI_Request *q), (n, q))
F(Request_free, (MPI_Request *q), (q))
F(Request_get_status, (MPI_Request q, int *f, MPI_Status *s), (q, f, s))
F(Op_free, (MPI_Op *op), (op))

int PMPI_Op_create(void (*function)(void *, void *, int *, MPI_Datatype *), int commutes, MPI_Op *op)
{
    return lwm_create_op(function, commutes, op, lwm_is_fortran(__builtin_return_address(0)));
}
#endif
#endif
