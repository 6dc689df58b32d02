/*
 * Ways in which an MPI carries a collective out within one launch: what the MPI's control variables are set to, by its tools interface. MPICH looks
 * at its variables at each call, Open MPI where a communicator is made: there each way has one of its own.
 */
#ifndef LWM_WAYS_H
#define LWM_WAYS_H
#include "calls.h"

int MPI_T_init_thread(int, int *);
int MPI_T_cvar_get_index(const char *, int *);
int MPI_T_cvar_handle_alloc(int, void *, void **, int *);
int MPI_T_cvar_read(void *, void *);
int MPI_T_cvar_write(void *, const void *);
int MPI_Comm_dup(MPI_Comm, MPI_Comm *);

enum { MOST_WAYS = 32, MOST_VARIABLES = 8 };
static struct way {
    enum kind kind;
    size_t least;
    MPI_Comm comm;
    int variables;
    struct { void *handle; long usual, value; } set[MOST_VARIABLES];
} ways[MOST_WAYS];
/* Number 0 is as the MPI does by default, of all kinds. */
static int ways_held = 1, current;

/* Returns a variable of one number, and the number: of its type's few bytes, so that the others have to be 0. */
static void *variable(const char *name, long *value)
{
    static int started;
    int index, count = 0, provided;
    void *handle;
    if (!started++) MPI_T_init_thread(0, &provided);
    *value = 0;
    if (MPI_T_cvar_get_index(name, &index) || MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) || count != 1 || MPI_T_cvar_read(handle, value)) {
        fprintf(stderr, "channel: the MPI has no variable %s of one number\n", name);
        MPI_Abort(world, 2);
    }
    return handle;
}

/* Has the calls that follow carried out in this way, by all ranks. */
static void take(int which)
{
    if (!ways[0].comm) ways[0].comm = world;
    for (int i = 0; i < ways[current].variables; i++) MPI_T_cvar_write(ways[current].set[i].handle, &ways[current].set[i].usual);
    for (int i = 0; i < ways[which].variables; i++) MPI_T_cvar_write(ways[which].set[i].handle, &ways[which].set[i].value);
    world = ways[which].comm ? ways[which].comm : ways[0].comm;
    current = which;
}

/* Reads `KIND:LEAST:NAME=VALUE,..`, LEAST being the shortest length for it. */
static void add_way(char *text)
{
    struct way *way = &ways[ways_held];
    char *kind = strsep(&text, ":"), *least = strsep(&text, ":"), *name;
    if (ways_held == MOST_WAYS || !text) MPI_Abort(world, 2);
    while (way->kind < KINDS && strcmp(names[way->kind], kind) != 0) way->kind++;
    way->least = strtoull(least, NULL, 10);
    while ((name = strsep(&text, ",")) && way->variables < MOST_VARIABLES) {
        char *value = strchr(name, '=');
        int i = way->variables++;
        if (!value) MPI_Abort(world, 2);
        *value = 0;
        way->set[i].handle = variable(name, &way->set[i].usual);
        way->set[i].value = strtol(value + 1, NULL, 10);
    }
#if defined(LWM_OPENMPI)
    take(ways_held);
    MPI_Comm_dup(world, &way->comm);
    take(0);
#endif
    ways_held++;
}

/* Fills `numbers` with those of a kind's ways for this length, the default first, and returns how many there are. */
static int ways_of(enum kind kind, size_t bytes, int *numbers)
{
    int count = 0;
    for (int w = 0; w < ways_held; w++) if (w == 0 || (ways[w].kind == kind && bytes >= ways[w].least)) numbers[count++] = w;
    return count;
}

/* Begins a line of a way's case: that of the default has no number. */
static void begin_line(const char *before, const char *name, int way, size_t bytes)
{
    if (rank > 0) return;
    if (way) printf("%s%s~%d %zu", before, name, way, bytes);
    else printf("%s%s %zu", before, name, bytes);
}

static void end_line(void)
{
    if (rank > 0) return;
    printf("\n");
    fflush(stdout);
}

#endif
