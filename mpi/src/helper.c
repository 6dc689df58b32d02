/*
 * Threads of the library's own, beside the program: they get no signal of the program's. They have its priority: with a lower one ranks that spin on
 * all CPUs keep them waiting, which makes some first calls shorter and others longer.
 */
#define _GNU_SOURCE
#include "helper.h"
#include "lwm.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

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
