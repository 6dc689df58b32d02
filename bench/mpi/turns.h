/*
 * Several launches of the program that are there at once, and measure in turns: jobs, each with settings of its own. What happens on the machine meanwhile
 * meets all of them alike.
 *
 * Ranks of a job whose turn it is not sleep on a word of the job in a file that all map. The word counts the turns that the job was given so far. Rank 0
 * of the job that has the turn gives it to the next one, so there is one holder at a time.
 */
#ifndef LWM_TURNS_H
#define LWM_TURNS_H
#include "calls.h"
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* As in src/mpi/turns.rs, which makes the file, gives the first turn, and sets `stop` where a job failed. */
enum { MOST_JOBS = 60 };
static struct turns {
    atomic_uint stop, holder, started, ended;
    atomic_uint given[MOST_JOBS];
} *turns;
static int job, jobs, turns_file;
static unsigned turns_begun;
/* The jobs that take part in the case, this one's place among them or -1, and the job that is first in the next case or -1. */
static int partners[MOST_JOBS], partners_held, place, next_first;

static void sleep_until(atomic_uint *word, unsigned least)
{
    for (unsigned found; (found = atomic_load(word)) < least;) {
        struct timespec limit = {0, 200000000};
        /* Who started the jobs has the file locked. If it is gone, nobody stops them where one has failed. */
        if (atomic_load(&turns->stop) || flock(turns_file, LOCK_SH | LOCK_NB) == 0) MPI_Abort(world, 3);
        syscall(SYS_futex, word, FUTEX_WAIT, found, &limit, NULL, 0);
    }
}

static void raise_word(atomic_uint *word)
{
    atomic_fetch_add(word, 1);
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Binds this rank to one of the CPUs that it may use, the same in all jobs: where the kernel moves ranks, each job runs on other CPUs, and of ranks that share
 * CPUs more are on one than on another. */
static void bind_rank(void)
{
    cpu_set_t may, one;
    if (sched_getaffinity(0, sizeof may, &may) || CPU_COUNT(&may) < 2) return;
    int left = rank % CPU_COUNT(&may), cpu = 0;
    while (!CPU_ISSET(cpu, &may) || left-- > 0) cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
}

/* Reads `FILE:JOB:JOBS`, and waits until all jobs have started. */
static void join_turns(char *text)
{
    /* A path may have colons. */
    char *last = strrchr(text, ':'), *own = last;
    while (own && own > text && *--own != ':') continue;
    if (!own || *own != ':') MPI_Abort(world, 2);
    *own = 0;
    job = atoi(own + 1);
    jobs = atoi(last + 1);
    turns_file = open(text, O_RDWR);
    turns = turns_file < 0 ? MAP_FAILED : mmap(NULL, sizeof *turns, PROT_READ | PROT_WRITE, MAP_SHARED, turns_file, 0);
    if (turns == MAP_FAILED) {
        perror(text);
        MPI_Abort(world, 2);
    }
    bind_rank();
    if (rank == 0) raise_word(&turns->started);
    sleep_until(&turns->started, (unsigned)jobs);
}

/* Waits until no job measures any more: the end of a job is work, too. */
static void leave_turns(void)
{
    if (!turns) return;
    if (rank == 0) raise_word(&turns->ended);
    sleep_until(&turns->ended, (unsigned)jobs);
}

/* Reads the jobs of the case, `0,2,3`, and those of the next one, which may be none. Returns whether this one takes part. */
static int take_part(const char *list, const char *next)
{
    partners_held = 0;
    place = -1;
    while (partners_held < MOST_JOBS && *list) {
        char *end;
        int one = (int)strtol(list, &end, 10);
        if (one == job) place = partners_held;
        partners[partners_held++] = one;
        list = *end ? end + 1 : end;
    }
    next_first = next ? atoi(next) : -1;
    return place >= 0;
}

/* Waits for this job's turn. */
static void begin_turn(void)
{
    if (!turns) return;
    sleep_until(&turns->given[job], ++turns_begun);
    if (rank == 0) atomic_store(&turns->holder, (unsigned)job + 1);
}

/* Gives the turn to the next job, when all ranks have called it; `last` if the case has no further turn of this job. */
static void end_turn(int last, void (*meet)(void))
{
    if (!turns) return;
    meet();
    int next = place + 1 < partners_held ? partners[place + 1] : last ? next_first : partners[0];
    if (rank == 0 && next >= 0) raise_word(&turns->given[next]);
}

#endif
