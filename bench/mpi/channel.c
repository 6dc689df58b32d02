/*
 * Times an MPI's own channel and its collectives one call at a time, as `lineweave lab mpi` starts it.
 *
 *   channel WINDOW_MS TASK:BYTES,.. TASK:BYTES,.. ...
 *
 * `turns:FILE:JOB:JOBS` has this launch, one of JOBS, measure in turns with the others (turns.h); `jobs:0,2` names those that take part in the next task, which
 * has one length then. A task is a collective, or
 *
 *   pingpong   half of a round trip between ranks 0 and 1
 *   once       a message from rank 0 to rank 1, timed as a collective is
 *   pairsN     the same between N pairs of ranks at once
 *   ringN      MPI_Sendrecv of N ranks, to the next and from the one before
 *   passing    pingpong, and
 *   turnN      ringN, where a rank sends what it received: the sender has written it, as where a collective sends on
 *   send       MPI_Send at its sender, the first of a few
 *   stream     one message of many that follow each other
 *   foldN      MPI_Reduce_local of doubles by N ranks at once
 *   copyN      a copy within their own memory by N ranks at once
 *   code-C     the code of the library in which the other ranks of collective C wait for each rank that is late in turn: for each pair a 0,
 *              and then 1 if the other rank does not wait, or its return addresses in the library
 *
 * Rank 0 prints `mpi RANKS NODES CPUS VERSION`, then a line a case: task, bytes, and the batches' ns a call. Before each call of a collective
 * ranks meet at a barrier of this program, which is the same whatever barrier the MPI is told to use. Where each has a CPU, they then wait for
 * a time that is a multiple of some microseconds, and a call's time is from the last rank's beginning to the last one's leaving. Ranks that share
 * CPUs cannot begin together: there it is from the last one's arrival at the meeting, so that the turns that ranks take are part of it. A
 * batch's time is the median of its calls'. Ranks that a task leaves out sleep.
 */
#define _GNU_SOURCE
#include "turns.h"
#include "waits.h"
#include <sched.h>

int MPI_Iprobe(int, int, MPI_Comm, int *, MPI_Status *);
int MPI_Sendrecv(const void *, int, MPI_Datatype, int, int, void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);
int MPI_Reduce_local(const void *, void *, int, MPI_Datatype, MPI_Op);
int MPI_Get_library_version(char *, int *);
int MPI_Get_processor_name(char *, int *);

enum { WAKE = 2, MOST_CALLS = 64, LEAST_BATCHES = 9, MOST_BATCHES = 100, FEW = 8, NAME = 256 };
/* Batches of a case in turns with other jobs: all have to make as many. */
enum { BATCHES_IN_TURNS = 15 };
/* Ranks begin a call at a multiple of this, in ns, this much after the barrier at least. */
static const double PERIOD = 4000, MARGIN = 1000;
/* A rank waits for others for so long, in ns, before it calls the MPI. */
static const double PATIENCE = 2e6;
/* A case is called before it is timed for so long, in ns, alone or in turns, and so often at most: libraries set up what they use in the
 * first calls. */
static const double WARM = 2e7, WARM_IN_TURNS = 5e6;
enum { MOST_WARM = 2000 };

/* Whether each rank has a CPU. */
static int apart;
static double window_ns;

/* Waits without using the CPU until rank 0 has finished what this rank has no part in. */
static void sleep_through(void)
{
    for (int there = 0; !there; usleep(500)) MPI_Iprobe(0, WAKE, world, &there, LWM_STATUS_IGNORE);
    MPI_Recv(NULL, 0, byte, 0, WAKE, world, LWM_STATUS_IGNORE);
}

static void wake(int from)
{
    for (int r = from; rank == 0 && r < ranks; r++) MPI_Send(NULL, 0, byte, r, WAKE, world);
}

/* What a task exchanges. */
enum message { PINGPONG, RING, PASSING, TURN, SEND, STREAM, FOLD, COPY };

/* Does it `calls` times and returns the ns of one, of which rank 0's counts. */
static double repeat(enum message message, int partners, struct set *kept, size_t bytes, int calls)
{
    struct set set = *kept;
    int n = (int)bytes, other = rank ^ 1, next = (rank + 1) % partners, before = (rank + partners - 1) % partners;
    double start = now_ns();
    for (int i = 0; i < calls; i++) {
        switch (message) {
        case PASSING:
        case PINGPONG:
            if (rank % 2 == 0) MPI_Send(set.in, n, byte, other, PAYLOAD, world);
            MPI_Recv(set.out, n, byte, other, PAYLOAD, world, LWM_STATUS_IGNORE);
            if (rank % 2) MPI_Send(message == PASSING ? set.out : set.in, n, byte, other, PAYLOAD, world);
            break;
        case TURN:
        case RING:
            MPI_Sendrecv(set.in, n, byte, next, PAYLOAD, set.out, n, byte, before, PAYLOAD, world, LWM_STATUS_IGNORE);
            break;
        case FOLD: MPI_Reduce_local(set.in, set.out, n / 8, real, sum); break;
        case COPY:
            memcpy(set.out, set.in, bytes);
            __asm__ volatile("" : : "r"(set.out) : "memory");
            break;
        default:
            if (rank == 0) MPI_Send(set.in, n, byte, 1, PAYLOAD, world);
            else MPI_Recv(set.out, n, byte, 0, PAYLOAD, world, LWM_STATUS_IGNORE);
        }
        if (message == PASSING || message == TURN) set = (struct set){set.out, set.in};
    }
    /* The next batch goes on with them: a batch may be a single call. */
    *kept = set;
    double sent = now_ns();
    if (message == SEND || message == STREAM) {
        /* The receiver has all of them when it answers. */
        if (rank == 0) MPI_Recv(NULL, 0, byte, 1, PAYLOAD, world, LWM_STATUS_IGNORE);
        else MPI_Send(NULL, 0, byte, 0, PAYLOAD, world);
    }
    double end = message == SEND ? sent : now_ns();
    return (end - start) / calls / (message == PINGPONG || message == PASSING ? 2 : 1);
}

/* Returns rank 0's number to all of the first `partners` ranks. Messages, since the collectives are what is forced. */
static int agreed(int partners, int number)
{
    double said = number;
    for (int r = 1; rank == 0 && r < partners; r++) MPI_Send(&said, 1, real, r, PAYLOAD, world);
    if (rank > 0) MPI_Recv(&said, 1, real, 0, PAYLOAD, world, LWM_STATUS_IGNORE);
    return (int)said;
}

static void exchange(const char *name, enum message message, int partners, size_t bytes)
{
    if (partners > ranks) return;
    if (rank >= partners) {
        sleep_through();
        return;
    }
    struct set set = make_set(bytes, bytes);
    double once = 0;
    for (int i = 0; i < 4; i++) {
        double one = repeat(message, partners, &set, bytes, FEW);
        once = i == 0 || one < once ? one : once;
    }
    /* A batch of some 100 us: other work disturbs few of them. */
    int calls = message == SEND ? FEW : once > 1e5 ? 1 : once < 200 ? 500 : (int)(1e5 / once);
    calls = agreed(partners, calls);
    int batches = agreed(partners, (int)(window_ns / (once * calls)));
    batches = batches < LEAST_BATCHES ? LEAST_BATCHES : batches > MOST_BATCHES ? MOST_BATCHES : batches;
    begin_line("", name, bytes);
    for (int i = 0; i < batches; i++) {
        double one = repeat(message, partners, &set, bytes, calls);
        if (rank == 0) printf(" %.1f", one);
    }
    end_line();
    give_back(set);
    wake(partners);
}

/* Memory that the ranks share: their meeting point, and times of each. */
static struct {
    _Alignas(64) atomic_int arrived;
    _Alignas(64) atomic_int meetings;
    double times[][2 * MOST_CALLS];
} *shared;

/* Maps a file beside the program, which is removed again. */
static void share_memory(const char *program)
{
    char path[4096];
    size_t bytes = sizeof *shared + (size_t)ranks * sizeof *shared->times;
    snprintf(path, sizeof path, "%s.%d", program, agreed(ranks, (int)getpid()));
    /* Rank 0 makes it before the others open it. */
    if (rank > 0) MPI_Barrier(world);
    int file = open(path, rank == 0 ? O_RDWR | O_CREAT | O_EXCL : O_RDWR, 0600);
    int made = file >= 0 && (rank > 0 || ftruncate(file, (off_t)bytes) == 0);
    shared = made ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    if (shared == MAP_FAILED) {
        perror(path);
        MPI_Abort(world, 2);
    }
    if (rank == 0) MPI_Barrier(world);
    close(file);
    MPI_Barrier(world);
    if (rank == 0) unlink(path);
}

/* Returns when all ranks have called it. Ranks that wait for long call the MPI: another's call may need that to end. */
static void meet(void)
{
    int before = atomic_load(&shared->meetings), there;
    if (atomic_fetch_add(&shared->arrived, 1) == ranks - 1) {
        atomic_store(&shared->arrived, 0);
        atomic_store(&shared->meetings, before + 1);
    }
    for (double since = now_ns(); atomic_load(&shared->meetings) == before;) {
        if (!apart) sched_yield();
        if (now_ns() - since > PATIENCE) MPI_Iprobe(0, WAKE, world, &there, LWM_STATUS_IGNORE);
    }
}

/* Has all ranks begin a call together. Returns the time from which it counts. */
static double begin(void)
{
    double arrived = now_ns();
    meet();
    if (!apart) return arrived;
    double from = now_ns() + MARGIN, at = from - (double)((long long)from % (long long)PERIOD) + PERIOD;
    while (now_ns() < at) continue;
    return now_ns();
}

/* Sets each of `n` values to the largest of all ranks. */
static void latest(double *values, int n)
{
    memcpy(shared->times[rank], values, (size_t)n * sizeof *values);
    meet();
    for (int r = 0; r < ranks; r++) for (int i = 0; i < n; i++) if (shared->times[r][i] > values[i]) values[i] = shared->times[r][i];
    meet();
}

/* A collective; or, of no kind, one message. */
static void call_or_send(enum kind kind, struct set set, size_t bytes)
{
    if (kind != KINDS) call(kind, set, bytes);
    else if (rank == 0) MPI_Send(set.in, (int)bytes, byte, 1, PAYLOAD, world);
    else if (rank == 1) MPI_Recv(set.out, (int)bytes, byte, 0, PAYLOAD, world, LWM_STATUS_IGNORE);
}

/* The median of calls that are each made when all ranks are there. */
static double one_by_one(enum kind kind, struct set set, size_t bytes, int calls)
{
    static double at[2 * MOST_CALLS];
    for (int i = 0; i < calls; i++) {
        at[i] = begin();
        call_or_send(kind, set, bytes);
        at[calls + i] = now_ns();
    }
    latest(at, 2 * calls);
    for (int i = 0; i < calls; i++) at[i] = at[calls + i] - at[i];
    return median(at, calls);
}

/* Calls for so many ns. Returns how many calls a batch is to have. */
static int warm(enum kind kind, struct set set, size_t bytes, double time)
{
    double spent = 0, once = 0;
    for (int done = 0; done < MOST_WARM && spent < time; done += FEW) {
        double start = now_ns(), slowest;
        for (int i = 0; i < FEW; i++) call_or_send(kind, set, bytes);
        slowest = now_ns() - start;
        latest(&slowest, 1);
        spent += slowest;
        once = slowest / FEW;
    }
    return once > 1e6 ? 1 : once > 1e5 ? 4 : once > 1e4 ? 16 : MOST_CALLS;
}

/* Times a collective. Where jobs take turns, each batch is a turn, and the first one begins with what prepares the case. */
static void collective(enum kind kind, size_t bytes)
{
    static double times[MOST_BATCHES];
    int batches = 0, least = turns ? BATCHES_IN_TURNS : LEAST_BATCHES, most = turns ? BATCHES_IN_TURNS : MOST_BATCHES;
    begin_turn();
    struct set set = make_set(given(kind, bytes), taken(kind, bytes));
    if (kind != KINDS) check(kind, set, bytes);
    int calls = warm(kind, set, bytes, turns ? WARM_IN_TURNS : WARM);
    for (double spent = 0; batches < most && (batches < least || spent < window_ns); batches++) {
        if (batches > 0) {
            end_turn(0, meet);
            begin_turn();
        }
        double start = now_ns(), took;
        /* Another job may have used the caches. */
        if (turns) call_or_send(kind, set, bytes);
        times[batches] = one_by_one(kind, set, bytes, calls);
        took = now_ns() - start;
        latest(&took, 1);
        spent += took;
    }
    begin_line("", kind == KINDS ? "once" : names[kind], bytes);
    for (int i = 0; rank == 0 && i < batches; i++) printf(" %.1f", times[i]);
    end_line();
    give_back(set);
    end_turn(1, meet);
}

/* Nodes that the ranks are on. */
static int nodes(void)
{
    char full[1024] = {0}, *all = calloc((size_t)ranks, NAME);
    int length, count = 0;
    if (!all) MPI_Abort(world, 4);
    MPI_Get_processor_name(full, &length);
    memcpy(all, full, NAME - 1);
    if (rank > 0) MPI_Send(all, NAME, byte, 0, PAYLOAD, world);
    for (int i = 0; rank == 0 && i < ranks; i++) {
        int seen = 0;
        if (i > 0) MPI_Recv(all + i * NAME, NAME, byte, i, PAYLOAD, world, LWM_STATUS_IGNORE);
        for (int j = 0; j < i; j++) seen |= memcmp(all + i * NAME, all + j * NAME, NAME) == 0;
        count += !seen;
    }
    free(all);
    return agreed(ranks, count);
}

static void task(const char *name, size_t bytes)
{
    static const struct { const char *name; enum message message; int each, least; } messages[] = {
        {"pingpong", PINGPONG, 0, 2}, {"passing", PASSING, 0, 2}, {"turn", TURN, 1, 2}, {"pairs", PINGPONG, 2, 4}, {"ring", RING, 1, 2}, {"send", SEND, 0, 2}, {"stream", STREAM, 0, 2}, {"fold", FOLD, 1, 1}, {"copy", COPY, 1, 1},
    };
    if (strcmp(name, "once") == 0) {
        collective(KINDS, bytes);
        return;
    }
    for (int kind = 0; kind < KINDS; kind++) {
        if (strcmp(name, names[kind]) == 0) {
            collective(kind, kind == BARRIER ? 0 : bytes);
            return;
        }
        if (strncmp(name, "code-", 5) == 0 && strcmp(name + 5, names[kind]) == 0) {
            begin_turn();
            code(kind, kind == BARRIER ? 0 : bytes, apart ? 2000 : 10000);
            end_turn(1, meet);
            return;
        }
    }
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++) {
        size_t length = strlen(messages[i].name);
        if (strncmp(name, messages[i].name, length) != 0) continue;
        int partners = messages[i].each ? messages[i].each * atoi(name + length) : messages[i].least;
        if (partners < messages[i].least) return;
        begin_turn();
        exchange(name, messages[i].message, partners, bytes);
        end_turn(1, meet);
        return;
    }
    fprintf(stderr, "channel: no task is called %s\n", name);
    MPI_Abort(world, 2);
}

int main(int argc, char **argv)
{
    start_mpi(&argc, &argv);
    if (argc < 2) {
        fprintf(stderr, "channel: expected a window in ms and tasks\n");
        MPI_Abort(world, 2);
    }
    window_ns = atof(argv[1]) * 1e6;
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    apart = ranks <= cpus;
    static char version[LWM_LONGEST_VERSION];
    int length, on = nodes();
    MPI_Get_library_version(version, &length);
    for (char *c = version; *c; c++) if (*c == '\n' || *c == '\t') *c = ' ';
    if (rank == 0) {
        printf("mpi %d %d %ld %s\n", ranks, on, cpus, version);
        fflush(stdout);
    }
    if (argc > 2 && on == 1) share_memory(argv[0]);
    for (int i = 2; i < argc && ranks > 1 && on == 1; i++) {
        if (strncmp(argv[i], "turns:", 6) == 0) {
            join_turns(argv[i] + 6);
            continue;
        }
        /* A case of other jobs is theirs alone. */
        if (strncmp(argv[i], "jobs:", 5) == 0) {
            int part = i + 1 < argc && take_part(argv[i] + 5, i + 2 < argc ? argv[i + 2] + 5 : NULL);
            i += !part;
            continue;
        }
        char *rest = strdup(argv[i]), *name = strsep(&rest, ":"), *text;
        while (rest && (text = strsep(&rest, ","))) {
            task(name, strtoull(text, NULL, 10));
            if (!turns) MPI_Barrier(world);
        }
    }
    leave_turns();
    MPI_Finalize();
    return 0;
}
