/*
 * What may happen while a team forms beside the program, and at its change-over: forming WHAT [NUMBER]. Every call's result is compared.
 *
 *   calls        blocking calls of several kinds, with roots that change, and started ones between, in another order at each rank
 *   started      only started calls
 *   refused      calls that the MPI refuses at one rank, between
 *   slow         one rank comes late to every call for a while
 *   no-thread    no rank may start a thread
 *   denied RANK  the kernel refuses threads to this rank
 *   starved      threads get a CPU where nobody else uses it: for a while nowhere, as a process spins beside each rank
 *   stops        kinds of calls and communicators that are called some times and never again
 *   freed N      N communicators, freed after a few calls more each time
 *   fork         a process is started meanwhile
 *   ends N       the program ends after N calls
 *   step KIND N  the last rank is harmed at the N-th step (steps.h) of a thread that forms a team or chooses plans: kill, stop or fork
 */
#include "steps.h"
#include "expect.h"

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
    const char *race = getenv("LINEWEAVE_MPI_RACE");
    /* MPI has started calls in one order with blocking ones, and contests need it; hosts bear it otherwise. */
    bool first = rank % 2 && race && atoi(race) == 0;
    double end = now() + seconds, slow_until = slow ? now() + 0.3 * seconds : 0;
    bool going = true;
    for (int i = 0; going; i++) {
        int own, all;
        MPI_Request request;
        if (slow_until > 0 && rank == ranks - 1 && now() < slow_until) pause_us(500);
        if (first) started(MPI_COMM_WORLD, i, &request, &own, &all);
        sum_up(MPI_COMM_WORLD, i);
        if (!first) started(MPI_COMM_WORLD, i, &request, &own, &all);
        from_root(MPI_COMM_WORLD, i);
        await(i, &request, &all);
        if (i % 64 == 0) going = goes_on(end);
    }
}

static void only_started(void)
{
    /* A first call that all ranks enter tells who has lineweave. */
    sum_up(MPI_COMM_WORLD, 0);
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
        sum_up(MPI_COMM_WORLD, i);
    }
}

static void freed(int many)
{
    for (int i = 0; i < many; i++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        for (int call = 0; call < 6 + i * 40; call++) {
            sum_up(comm, call);
            from_root(comm, call);
        }
        MPI_Comm_free(&comm);
    }
}

/* Calls in which other ones than those before go on, and some communicators of which nothing is heard again before MPI_Finalize. */
static void stops(void)
{
    for (int i = 0; i < 6; i++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        for (int call = 0; call < 3 + 2 * i; call++) sum_up(comm, call);
    }
    for (int i = 0; i < 30; i++) sum_up(MPI_COMM_WORLD, i);
    double end = now() + 0.3;
    for (int i = 0; i % 64 || goes_on(end); i++) {
        int own[64], all[64];
        for (int j = 0; j < 64; j++) own[j] = rank + i + j;
        MPI_Allreduce(own, all, i < 20 ? 64 : 32, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        for (int j = 0; j < 32; j++) EXPECT(all[j] == ranks * (i + j) + ranks * (ranks - 1) / 2);
    }
}

/* Until the spinning processes end, threads that wait for an idle CPU hardly run. */
static void starved(void)
{
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {}
    }
    calls(1, false);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    for (int i = 0; i < 1500; i++) {
        sum_up(MPI_COMM_WORLD, i);
        pause_us(1000);
    }
}

/* Harms the last rank at a step, or at the end if there are fewer. */
static void at_step(const char *kind, int number)
{
    if (rank == ranks - 1) {
        harmed_at = number;
        harm = strcmp(kind, "kill") == 0 ? kill_here : strcmp(kind, "stop") == 0 ? stop_here : fork_here;
    }
    calls(0.25, false);
    if (rank == ranks - 1 && strcmp(kind, "kill") == 0) kill_here();
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "calls";
    int number = argc > 2 ? atoi(argv[2]) : 0;
    start_mpi(&argc, &argv, MPI_THREAD_SINGLE);
    no_thread = strcmp(what, "no-thread") == 0;
    starves = strcmp(what, "starved") == 0;
    if (strcmp(what, "denied") == 0 && rank == number % ranks) EXPECT(deny_threads());
    if (no_thread || strcmp(what, "calls") == 0 || strcmp(what, "denied") == 0) calls(0.4, false);
    else if (starves) starved();
    else if (strcmp(what, "stops") == 0) stops();
    else if (strcmp(what, "step") == 0) at_step(argv[2], atoi(argv[3]));
    else if (strcmp(what, "slow") == 0) calls(0.8, true);
    else if (strcmp(what, "started") == 0) only_started();
    else if (strcmp(what, "refused") == 0) refused();
    else if (strcmp(what, "freed") == 0) freed(number);
    else if (strcmp(what, "ends") == 0) {
        for (int i = 0; i < number; i++) sum_up(MPI_COMM_WORLD, i);
    } else if (strcmp(what, "fork") == 0) {
        for (int i = 0; i < 3000; i++) {
            sum_up(MPI_COMM_WORLD, i);
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
