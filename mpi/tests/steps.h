/*
 * The threads of lineweave's that form teams and choose plans beside a program, as its test sees them: pthread_create and functions of the C library
 * that they call are the program's own. So threads can be refused or slowed, and each such call is a step at which the process may be harmed.
 * Include it first, and link with -rdynamic.
 */
#ifndef STEPS_H
#define STEPS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* True if no thread may start; true if threads run only where nobody else does. */
static bool no_thread, starves;
/* Steps of these threads so far; the one at which `harm` is called; 0: none. */
static long steps, harmed_at;
static void (*harm)(void);
static __thread bool beside;

static void step(void)
{
    if (beside && harm && __atomic_add_fetch(&steps, 1, __ATOMIC_RELAXED) == harmed_at) harm();
}

struct begun {
    void *(*run)(void *);
    void *with;
};

static void *in_thread(void *given)
{
    struct begun begun = *(struct begun *)given;
    free(given);
    beside = true;
    if (starves) sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){0});
    step();
    return begun.run(begun.with);
}

#define NEXT_OF(name) \
    static __typeof__(&name) next; \
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, #name)

int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *with)
{
    NEXT_OF(pthread_create);
    struct begun *begun = malloc(sizeof *begun);
    if (no_thread || !begun) return EAGAIN;
    *begun = (struct begun){run, with};
    return next(thread, how, in_thread, begun);
}

#define STEP(result, name, parameters, arguments) \
    result name parameters \
    { \
        NEXT_OF(name); \
        step(); \
        return next arguments; \
    }
STEP(int, nanosleep, (const struct timespec *wanted, struct timespec *left), (wanted, left))
STEP(int, clock_gettime, (clockid_t clock, struct timespec *now), (clock, now))
STEP(int, sched_yield, (void), ())
STEP(void *, mmap, (void *at, size_t bytes, int may, int how, int file, off_t from), (at, bytes, may, how, file, from))
STEP(int, munmap, (void *at, size_t bytes), (at, bytes))
STEP(int, socket, (int family, int type, int protocol), (family, type, protocol))
STEP(int, poll, (struct pollfd *files, nfds_t many, int ms), (files, many, ms))

/* Has the kernel refuse threads to this thread, and to those and the processes that it starts, as a limit of a cgroup would. */
static bool deny_threads(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof rules / sizeof *rules, rules};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/* What may happen at a step. */
static void kill_here(void) { kill(getpid(), SIGKILL); }

static void fork_here(void)
{
    pid_t child = fork();
    if (child == 0) _exit(0);
    if (child > 0) waitpid(child, NULL, 0);
}

static void stop_here(void)
{
    int own = getpid();
    pid_t child = fork();
    if (child == 0) {
        /* The process may stop later than this one waits once. */
        for (int i = 0; i < 10 && kill(own, SIGCONT) == 0; i++) syscall(SYS_nanosleep, &(struct timespec){0, 50000000}, NULL);
        _exit(0);
    }
    kill(own, SIGSTOP);
}

#endif
