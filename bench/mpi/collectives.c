/*
 * Times collectives of an MPI, as `lineweave bench mpi` starts it: with and without lineweave before it.
 *
 *   collectives BUFFERS WINDOW_MS COLLECTIVE,.. BYTES,..
 *
 * BUFFERS is `reuse`, the same buffers each time, `fresh`, a walk
 * over 16 MiB and at least four sets as an application does, or `worked`. Each answer is checked first. Then batches follow each other,
 * a barrier before each; a batch's time a call is the slowest rank's. Rank 0 prints a line a case: collective, bytes, and
 * the batches' ns a call.
 *
 * With `worked` the buffers are the same each time, and each rank works between two calls: it reads what it took, changes memory of its own,
 * and writes what it gives next. A call lasts from the arrival of the last rank to the leaving of the last, and a batch's time is the median of
 * its calls'.
 */
#define _GNU_SOURCE
#include "calls.h"

/* Memory that a rank changes between two calls: more than a first-level cache holds, and no more than a second-level one. */
static char own[256 << 10];
/* What was read last, so that reading is not left out. */
static volatile char seen;

/* Calls of a batch at most, and batches. */
enum { MOST_WORKED = 100, WORKED_BATCHES = 20 };

/* Calls between other work. */
static double batch_worked(enum kind kind, struct set set, size_t bytes, int calls)
{
    static double at[2 * MOST_WORKED], last[2 * MOST_WORKED];
    static unsigned turn;
    MPI_Barrier(world);
    for (int i = 0; i < calls; i++) {
        char read = 0;
        for (size_t j = 0, out = taken(kind, bytes); j < out; j += 64) read ^= set.out[j];
        seen = read;
        for (size_t j = 0; j < sizeof own; j += 64) own[j] += (char)i;
        /* Numbers of ordinary size, as sums of what is not one may take longer. */
        double *in = (double *)set.in;
        turn++;
        for (size_t j = 0, n = given(kind, bytes) / 8; j < n; j++) in[j] = (double)(turn % 8);
        at[i] = now_ns();
        call(kind, set, bytes);
        at[calls + i] = now_ns();
    }
    MPI_Allreduce(at, last, 2 * calls, real, maximum, world);
    for (int i = 0; i < calls; i++) last[i] = last[calls + i] - last[i];
    return median(last, calls);
}

/* A batch's time a call, at the slowest rank. */
static double batch(enum kind kind, const struct set *sets, int many, int *next, size_t bytes, int calls)
{
    MPI_Barrier(world);
    double start = now_ns();
    for (int i = 0; i < calls; i++) {
        call(kind, sets[*next], bytes);
        if (++*next == many) *next = 0;
    }
    double mine = (now_ns() - start) / calls, slowest;
    MPI_Allreduce(&mine, &slowest, 1, real, maximum, world);
    return slowest;
}

enum ways { REUSE, FRESH, WORKED };

/* Times of calls in which lineweave forms its team, and chooses the plans of a case, beside the program. */
enum { TEAM_NS = 100000000, PLANS_NS = 30000000 };

/* Makes calls until they have taken so long. */
static void pass(double ns, enum kind kind, const struct set *sets, int many, int *next, size_t bytes, int some)
{
    for (double spent = 0; spent < ns; spent += batch(kind, sets, many, next, bytes, some) * some) continue;
}

static void measure(enum kind kind, size_t bytes, enum ways ways, double window_ns)
{
    size_t in = given(kind, bytes), out = taken(kind, bytes), a_set = in + out + 128;
    int many = ways == FRESH ? (int)((16 << 20) / a_set) + 4 : 1, next = 0;
    if (many > 4096) many = 4096;
    struct set *sets = malloc(sizeof *sets * (size_t)many);
    for (int i = 0; sets && i < many; i++) sets[i] = make_set(in, out);
    if (!sets) MPI_Abort(world, 4);
    check(kind, sets[0], bytes);
    pass(PLANS_NS, kind, sets, many, &next, bytes, 64);
    /* Warm: enough calls for any library to settle on what it does, but not much more than half a second: lineweave has compared itself with
     * the MPI twice by then, and Intel MPI is slow until its cells have all been used once. */
    int warm = bytes < 17 << 10 ? 4600 : bytes < 900 << 10 ? (int)((75 << 20) / bytes) : 85;
    double once = 0, spent = 0;
    for (int done = 0, some; done < warm && spent < 5e8; done += some) {
        some = done == 0 ? 64 : 800;
        if (some > warm - done) some = warm - done;
        spent += batch(kind, sets, many, &next, bytes, some) * some;
    }
    /* As many as make a batch of a ms, by the fastest of some, since one interruption would make batches of few calls. */
    for (int i = 0; i < 3; i++) {
        double one = batch(kind, sets, many, &next, bytes, bytes >= 1 << 18 ? 4 : 20);
        once = i == 0 || one < once ? one : once;
    }
    int calls = (int)(1e6 / once);
    calls = calls < 2 ? 2 : calls > 10000 ? 10000 : calls;
    if (ways == WORKED && calls > MOST_WORKED) calls = MOST_WORKED;
    if (rank == 0) printf("%s %zu", names[kind], bytes);
    spent = 0;
    for (int i = 0; ways == WORKED ? i < WORKED_BATCHES : i < 200 && (i < 5 || spent < window_ns); i++) {
        double one = ways == WORKED ? batch_worked(kind, sets[0], bytes, calls) : batch(kind, sets, many, &next, bytes, calls);
        spent += one * calls;
        if (rank == 0) printf(" %.1f", one);
    }
    if (rank == 0) {
        printf("\n");
        fflush(stdout);
    }
    for (int i = 0; i < many; i++) {
        free(sets[i].in);
        free(sets[i].out);
    }
    free(sets);
}

int main(int argc, char **argv)
{
    start_mpi(&argc, &argv);
    if (argc != 5) {
        fprintf(stderr, "collectives: expected reuse, fresh or worked, a window in ms, collectives, sizes\n");
        MPI_Abort(world, 2);
    }
    enum ways ways = strcmp(argv[1], "fresh") == 0 ? FRESH : strcmp(argv[1], "worked") == 0 ? WORKED : REUSE;
    double window_ns = atof(argv[2]) * 1e6;
    struct set none = {NULL, NULL};
    int next = 0;
    pass(TEAM_NS, BARRIER, &none, 1, &next, 0, 1000);
    for (int kind = 0; kind < KINDS; kind++) {
        char *found = strstr(argv[3], names[kind]);
        /* `reduce` is part of `allreduce`. */
        while (found && found > argv[3] && found[-1] != ',') found = strstr(found + 1, names[kind]);
        if (!found) continue;
        char *list = strdup(argv[4]), *rest = list, *text;
        for (int first = 1; (text = strsep(&rest, ",")); first = 0) {
            size_t bytes = strtoull(text, NULL, 10);
            if (kind == BARRIER) {
                if (first) measure(kind, 0, ways == WORKED ? WORKED : REUSE, window_ns);
            } else if (!folds(kind) || bytes % 8 == 0) {
                measure(kind, bytes, ways, window_ns);
            }
        }
        free(list);
    }
    MPI_Finalize();
    return 0;
}
