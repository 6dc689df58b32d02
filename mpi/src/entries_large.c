/*
 * Functions MPI_x_c of a library that was preloaded for another MPI than the process has, where that MPI has no such functions. Programs that
 * open their MPI late, as mpi4py does, check whether these exist and find the preloaded ones. They call MPI_x, with counts as ints.
 *
 * Handles of any interface fit into a register, and so do counts; only lists of counts and places are converted. Lists of started calls stay for
 * good, since the end of such a call is not known here. A count that is no int ends the program with one line.
 */
#define _GNU_SOURCE
#include "lwm.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 11 };
typedef int any(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

/* The MPI that the process has. */
static void *host;

static void *narrowed(const void *list, int many)
{
    const long long *from = list;
    int *to = malloc(sizeof *to * (size_t)many);
    for (int i = 0; i < many; i++) {
        if (!to || from[i] > INT_MAX || from[i] < INT_MIN) {
            fprintf(stderr, "lineweave: a count of %lld is more than the MPI that is loaded can take\n", to ? from[i] : -1ll);
            abort();
        }
        to[i] = (int)from[i];
    }
    return to;
}

/* Calls `name`, whose argument number `comm` is the communicator; arguments with a bit in `lists` are narrowed. */
static int call(const char *name, int comm, unsigned lists, bool over, uintptr_t a[MOST])
{
    int (*size_of)(uintptr_t, int *), many = 0;
    any *target;
    *(void **)&size_of = dlsym(host, "MPI_Comm_size");
    *(void **)&target = dlsym(host, name);
    if (!target || !size_of || size_of(a[comm], &many) != 0) return 1;
    uintptr_t given[MOST];
    memcpy(given, a, sizeof given);
    for (int i = 0; i < MOST; i++) {
        if (lists >> i & 1 && given[i]) given[i] = (uintptr_t)narrowed((const void *)given[i], many);
    }
    int result = target(given[0], given[1], given[2], given[3], given[4], given[5], given[6], given[7], given[8], given[9], given[10]);
    for (int i = 0; over && i < MOST; i++) {
        if (given[i] != a[i]) free((void *)given[i]);
    }
    return result;
}

/* A collective, its started form, and its persistent form. */
#define EACH(L) \
    L(Gatherv, gatherv, 8, 1 << 4 | 1 << 5) \
    L(Scatterv, scatterv, 8, 1 << 1 | 1 << 2) \
    L(Allgatherv, allgatherv, 7, 1 << 4 | 1 << 5) \
    L(Alltoallv, alltoallv, 8, 1 << 1 | 1 << 2 | 1 << 5 | 1 << 6) \
    L(Alltoallw, alltoallw, 8, 1 << 1 | 1 << 2 | 1 << 5 | 1 << 6) \
    L(Reduce_scatter, reduce_scatter, 5, 1 << 2)
#define WITH_ARGUMENTS(function, text, comm, lists, over) \
    static int function(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f, uintptr_t g, uintptr_t h, uintptr_t i, uintptr_t j, \
                        uintptr_t k) \
    { \
        return call(text, comm, lists, over, (uintptr_t[MOST]){a, b, c, d, e, f, g, h, i, j, k}); \
    }
#define DEFINE(name, small, comm, lists) \
    WITH_ARGUMENTS(large_##name, "MPI_" #name, comm, lists, true) \
    WITH_ARGUMENTS(started_##name, "MPI_I" #small, comm, lists, false) \
    WITH_ARGUMENTS(again_##name, "MPI_" #name "_init", comm, lists, false)
EACH(DEFINE)

void *lwm_large_as_small(const char *name, void *library)
{
    static const struct { const char *name; any *function; } all[] = {
#define ROW(name, small, comm, lists) {#name "_c", large_##name}, {"I" #small "_c", started_##name}, {#name "_init_c", again_##name},
        EACH(ROW)
    };
    char plain[80];
    size_t length = strlen(name);
    if (length < 6 || length >= sizeof plain || strcmp(name + length - 2, "_c") != 0) return NULL;
    host = library;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (strcmp(all[i].name, name + strlen("MPI_")) == 0) return (void *)all[i].function;
    }
    memcpy(plain, name, length - 2);
    plain[length - 2] = 0;
    return dlsym(library, plain);
}
