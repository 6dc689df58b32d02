/*
 * Threads of the library's own, beside the program: they get no signal of the program's. They have its priority: with a lower one ranks that spin on
 * all CPUs keep them waiting, and the longest call is no shorter.
 */
#define _GNU_SOURCE
#include "helper.h"
#include "lwm.h"
#include "presence.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct work {
    void (*run)(void *);
    void *with;
};

static void *carry_out(void *given)
{
    struct work work = *(struct work *)given;
    free(given);
    work.run(work.with);
    return NULL;
}

bool lwm_helper_start(void (*run)(void *), void *with)
{
    sigset_t all, before;
    pthread_t thread;
    struct work *work = malloc(sizeof *work);
    if (!work) return false;
    *work = (struct work){run, with};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&thread, NULL, carry_out, work) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started) pthread_detach(thread);
    else free(work);
    if (!started) __atomic_store_n(&lwm_setup[LWM_THREADLESS], 1, __ATOMIC_RELAXED);
    return started;
}

/* A rank that is bound to one CPU, or by its launcher to as many as there are ranks, shares them with its thread. Where something else keeps the ranks
 * to a part of the CPUs online, they seem to have more than they have. */
static bool shares_cpus(void)
{
    cpu_set_t mine;
    bool first;
    if (sched_getaffinity(0, sizeof mine, &mine) != 0) return false;
    return CPU_COUNT(&mine) < 2 || lwm_presence_count(&first) >= sysconf(_SC_NPROCESSORS_ONLN);
}

/* Where threads take the ranks' time, they take at most 1/SHARE of it. */
enum { SHARE = 20 };

uint64_t lwm_helper_worth_ns(uint64_t work_ns)
{
    enum { UNKNOWN, SHARES, HAS_MORE };
    static int known;
    int now = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (now == UNKNOWN) __atomic_store_n(&known, now = shares_cpus() ? SHARES : HAS_MORE, __ATOMIC_RELAXED);
    return now == SHARES ? SHARE * work_ns : work_ns;
}

uint64_t lwm_processor_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
