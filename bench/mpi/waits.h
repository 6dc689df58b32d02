/*
 * Where ranks wait within the MPI's library for one that is late: the code that an algorithm runs, whatever time it takes.
 */
#ifndef LWM_WAITS_H
#define LWM_WAITS_H
#include "calls.h"
#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

int MPI_Send(const void *, int, MPI_Datatype, int, int, MPI_Comm);
int MPI_Recv(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);

/* The tag of messages with something in them. */
enum { PAYLOAD = 1 };

/* The return addresses within the MPI's library at looks at a call that waits, each with the number of looks that found it. */
enum { MOST_FRAMES = 200, DEEPEST = 48, LOOKS = 2, TURNS = 5, FIRST_CALLS = 32 };
static double frames[MOST_FRAMES];
static int found[MOST_FRAMES], frames_held;
static volatile sig_atomic_t looks, in_call;
static char *library;

static void look(int signal)
{
    void *stack[DEEPEST];
    Dl_info here;
    int depth = backtrace(stack, DEEPEST);
    if (!in_call) return;
    looks += signal != 0;
    for (int i = 0; i < depth; i++) {
        double frame = (double)((char *)stack[i] - library);
        int j = 0;
        if (!dladdr(stack[i], &here) || here.dli_fbase != library) continue;
        while (j < frames_held && frames[j] != frame) j++;
        if (j == MOST_FRAMES) continue;
        if (j == frames_held) frames[frames_held++] = frame, found[j] = 0;
        found[j]++;
    }
}

/* Where the other ranks wait while each rank in turn is late. Three ticks, in us, are longer than a time slice where ranks share CPUs. */
static void code(enum kind kind, size_t bytes, int tick)
{
    struct set set = make_set(given(kind, bytes), taken(kind, bytes));
    struct itimerval ticks = {{0, tick}, {0, tick}}, none = {{0, 0}, {0, 0}};
    Dl_info mpi;
    dladdr((void *)MPI_Barrier, &mpi);
    library = mpi.dli_fbase;
    /* The first call loads what it needs, which no handler of a signal may do. */
    in_call = 1;
    look(0);
    in_call = 0;
    signal(SIGALRM, look);
    check(kind, set, bytes);
    for (int i = 0; i < FIRST_CALLS; i++) call(kind, set, bytes);
    begin_line("code-", names[kind], bytes);
    for (int late = 0; late < ranks; late++) {
        looks = frames_held = 0;
        for (int turn = 0; turn < TURNS; turn++) {
            MPI_Barrier(world);
            if (rank == late) usleep((useconds_t)((LOOKS + 1) * tick));
            else setitimer(ITIMER_REAL, &ticks, NULL);
            in_call = 1;
            call(kind, set, bytes);
            in_call = 0;
            setitimer(ITIMER_REAL, &none, NULL);
        }
        /* Other work delays a few turns. Turns may wait at different places; a frame that few looks found is of a transfer. */
        double told[1 + MOST_FRAMES] = {0};
        int often = 0;
        for (int i = 0; i < frames_held && looks > LOOKS * TURNS / 3; i++) if (4 * found[i] >= looks) told[++often] = frames[i];
        if (often == 0) told[++often] = 1;
        told[0] = often;
        for (int r = 0; r < ranks; r++) {
            if (r == late) continue;
            if (rank == r && r > 0) MPI_Send(told, 1 + MOST_FRAMES, real, 0, PAYLOAD, world);
            if (rank == 0 && r > 0) MPI_Recv(told, 1 + MOST_FRAMES, real, r, PAYLOAD, world, LWM_STATUS_IGNORE);
            for (int i = 0; rank == 0 && i <= (int)told[0]; i++) printf(" %.0f", i ? told[i] : 0);
        }
    }
    end_line();
    give_back(set);
}

#endif
