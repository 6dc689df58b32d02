/*
 * What may happen while a team forms beside the program, and at its change-over: forming WHAT [NUMBER]. Every call's result is compared.
 *
 *   calls        blocking calls of several kinds, with roots that change, and started ones between, in another order at each rank
 *   started      only started calls
 *   refused      calls that the MPI refuses at one rank, between
 *   slow         one rank comes late to every call for a while
 *   no-thread    no rank may start a thread
 *   freed N      N communicators, freed after a few calls more each time
 *   fork         a process is started meanwhile
 *   ends N       the program ends after N calls
 *   kill MS      the last rank ends without a word so long after the fourth call
 *   stop MS      the last rank stops for 300 ms so long after the fourth call
 */
#define _GNU_SOURCE
#include "expect.h"
#include <dlfcn.h>
#include <errno.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int rank, ranks;
static bool no_thread;

/* In place of the system's: refused to this program and whatever is loaded with it. */
int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *arg)
{
    static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "pthread_create");
    return no_thread ? EAGAIN : next(thread, how, run, arg);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void pause_us(long us)
{
    struct timespec t = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&t, NULL);
}

static void sum(MPI_Comm comm, int i)
{
    int own = rank * 3 + i, all = -1;
    MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_SUM, comm);
    EXPECT(all == ranks * i + 3 * ranks * (ranks - 1) / 2);
}

static void from_root(MPI_Comm comm, int i)
{
    int word = rank == i % ranks ? i : -1;
    MPI_Bcast(&word, 1, MPI_INT, i % ranks, comm);
    EXPECT(word == i);
}

static void started(MPI_Comm comm, int i, MPI_Request *request, int *own, int *all)
{
    *own = rank + i;
    *all = -1;
    MPI_Iallreduce(own, all, 1, MPI_INT, MPI_MAX, comm, request);
}

static void await(int i, MPI_Request *request, const int *all)
{
    MPI_Wait(request, MPI_STATUS_IGNORE);
    EXPECT(*all == ranks - 1 + i);
}

/* Returns whether rank 0 has time left. */
static bool goes_on(double end)
{
    int going = now() < end;
    MPI_Bcast(&going, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return going;
}

static void calls(double seconds, bool slow)
{
    double end = now() + seconds, slow_until = slow ? now() + 0.3 * seconds : 0;
    bool going = true;
    for (int i = 0; going; i++) {
        int own, all;
        MPI_Request request;
        if (slow_until > 0 && rank == ranks - 1 && now() < slow_until) pause_us(500);
        /* MPI has started calls in one order with blocking ones; hosts bear it otherwise. */
        if (rank % 2) started(MPI_COMM_WORLD, i, &request, &own, &all);
        sum(MPI_COMM_WORLD, i);
        if (rank % 2 == 0) started(MPI_COMM_WORLD, i, &request, &own, &all);
        from_root(MPI_COMM_WORLD, i);
        await(i, &request, &all);
        if (i % 64 == 0) going = goes_on(end);
    }
}

static void only_started(void)
{
    /* A first call that all ranks enter tells who has lineweave. */
    sum(MPI_COMM_WORLD, 0);
    double end = now() + 0.5;
    int more = 1;
    for (int i = 0; more; i++) {
        int own, all;
        if (i % 256 == 255) {
            more = now() < end;
            MPI_Request told;
            MPI_Ibcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD, &told);
            MPI_Wait(&told, MPI_STATUS_IGNORE);
        }
        MPI_Request request;
        started(MPI_COMM_WORLD, i, &request, &own, &all);
        await(i, &request, &all);
    }
}

static void refused(void)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    double end = now() + 0.5;
    for (int i = 0; i % 256 || goes_on(end); i++) {
        int word = 0;
        MPI_Request request;
        if (rank == i % ranks && i % 3 == 0) EXPECT(MPI_Bcast(&word, 1, MPI_INT, ranks, MPI_COMM_WORLD) != 0);
        if (rank == i % ranks && i % 7 == 0) EXPECT(MPI_Ibcast(&word, 1, MPI_INT, ranks, MPI_COMM_WORLD, &request) != 0);
        sum(MPI_COMM_WORLD, i);
    }
}

static void freed(int many)
{
    for (int i = 0; i < many; i++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        for (int call = 0; call < 6 + i * 40; call++) {
            sum(comm, call);
            from_root(comm, call);
        }
        MPI_Comm_free(&comm);
    }
}

/* Does something to the last rank, beside its calls. */
static void *harm(void *how)
{
    pause_us(((const int *)how)[1] * 1000L);
    kill(getpid(), ((const int *)how)[0]);
    return NULL;
}

static void harmed(int signal, int ms)
{
    static int how[2];
    pthread_t thread;
    for (int i = 0; i < 4; i++) sum(MPI_COMM_WORLD, i);
    if (rank == ranks - 1) {
        how[0] = signal;
        how[1] = ms;
        /* Who goes on once it is stopped. */
        int own = getpid();
        pid_t child = signal == SIGSTOP ? fork() : -1;
        if (child == 0) {
            pause_us(ms * 1000L + 300000);
            kill(own, SIGCONT);
            _exit(0);
        }
        EXPECT(pthread_create(&thread, NULL, harm, how) == 0);
        calls(1, false);
        if (child > 0) waitpid(child, NULL, 0);
    } else {
        calls(1, false);
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "calls";
    int number = argc > 2 ? atoi(argv[2]) : 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    no_thread = strcmp(what, "no-thread") == 0;
    if (no_thread || strcmp(what, "calls") == 0) calls(0.4, false);
    else if (strcmp(what, "slow") == 0) calls(0.8, true);
    else if (strcmp(what, "started") == 0) only_started();
    else if (strcmp(what, "refused") == 0) refused();
    else if (strcmp(what, "freed") == 0) freed(number);
    else if (strcmp(what, "kill") == 0) harmed(SIGKILL, number);
    else if (strcmp(what, "stop") == 0) harmed(SIGSTOP, number);
    else if (strcmp(what, "ends") == 0) {
        for (int i = 0; i < number; i++) sum(MPI_COMM_WORLD, i);
    } else if (strcmp(what, "fork") == 0) {
        for (int i = 0; i < 3000; i++) {
            sum(MPI_COMM_WORLD, i);
            pid_t child = i % 100 == 10 ? fork() : -1;
            if (child == 0) _exit(0);
            if (child > 0) waitpid(child, NULL, 0);
        }
    } else {
        fprintf(stderr, "forming: `%s` is nothing that it does\n", what);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Finalize();
    return 0;
}
