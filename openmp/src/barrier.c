/*
 * A barrier for the threads of one team, from which a wait can be called away.
 *
 * Threads that each have a CPU, in run `run`:
 *   1. in round r, set the flag of the thread 2^r places further to `run`;
 *   2. wait for one's own flag of round r, which the thread 2^r places before sets; then the next round.
 * After the last round all have arrived, since each flag stands for twice as many threads as one of the round before. Where the number of threads
 * is a power of two, those whose numbers differ in bit r exchange flags in round r, on one line: the later thread gets the other's flag with the
 * line that it writes. Two threads take 75 ns so, and 140 ns with a line for each flag, or without pauses between looks (Xeon, 2 CPUs of a
 * virtual machine).
 *
 * Threads that share CPUs, since each of these rounds could wait for the scheduler:
 *   1. count oneself;
 *   2. the last one begins the count anew and sets the release word to `run`, for which the others wait;
 *   3. where the first thread was held up lately, the others give the CPU up once if it has not left: threads that went on may spin for it.
 *
 * Flags only rise and are never reset; `run` is one more than the last time, in any region.
 *
 * Called away. A thread that makes a task sets `leave_from` to its next run, and does not arrive at that run. So no thread gets through that run
 * here: a thread that waits in it finds `leave_from` after its first looks, goes to the runtime, and does not come back here. Waits of earlier
 * runs end by their flags.
 *
 * Waiting: look, then yield the CPU, then sleep. No thread sleeps on a set flag: a sleeper announces itself and looks again, a setter sets and
 * looks for sleepers, with a full fence between the two steps of each. `membarrier` by the sleeper is a fence in both; without it the setter has
 * its own.
 */
#define _GNU_SOURCE
#include "lwo.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 16 };

/* The flags of one round. The second one is for exchanges. */
struct flags {
    _Alignas(LWO_APART) uint64_t run[2];
};

/* The place of one thread. */
struct place {
    struct flags rounds[ROUNDS];
    /* 1 while the thread sleeps or is about to. */
    _Alignas(LWO_APART) uint32_t sleeps;
    /* The last run of the place when its last region ended. */
    _Alignas(LWO_APART) uint64_t run;
};

struct lwo_barrier {
    int room;
    _Alignas(LWO_APART) uint64_t arrived;
    /* Twice the run that was released last, plus 1 if some thread sleeps. */
    _Alignas(LWO_APART) uint32_t release;
    _Alignas(LWO_APART) uint64_t leave_from;
    /* Before this run the first thread leaves first, as it does in the runtimes' barriers; and the number of runs for which that was decided.
     * Seldom written, like `leave_from`. */
    uint64_t first_before, first_for;
    /* The last of these runs that the first thread left. */
    _Alignas(LWO_APART) uint64_t first_left;
    struct place places[];
};

/* True if a setter needs its own fence. */
static bool fences = true;

static long membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0); }

static void futex_wait(uint32_t *word, uint32_t value, const struct timespec *limit)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, limit, NULL, 0);
}

static void futex_wake(uint32_t *word, int many) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, many, NULL, NULL, 0); }

void lwo_barrier_open(void) { fences = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) != 0; }

static size_t bytes_of(int size) { return sizeof(struct lwo_barrier) + (size_t)size * sizeof(struct place); }

struct lwo_barrier *lwo_barrier_new(int size, uint64_t run)
{
    struct lwo_barrier *barrier = lwo_memory(bytes_of(size));
    if (!barrier) return NULL;
    barrier->room = size;
    barrier->leave_from = UINT64_MAX;
    barrier->release = (uint32_t)run << 1;
    barrier->places[0].run = run;
    return barrier;
}

uint64_t lwo_barrier_run(const struct lwo_barrier *barrier, int place) { return barrier->places[place].run; }

void lwo_barrier_keep(struct lwo_barrier *barrier, int place, uint64_t run) { barrier->places[place].run = run; }

void lwo_barrier_free(struct lwo_barrier *barrier)
{
    if (barrier) lwo_memory_free(barrier, bytes_of(barrier->room));
}

int lwo_barrier_room(const struct lwo_barrier *barrier) { return barrier ? barrier->room : 0; }

/* The target of a wait: a flag of this place, or the release word. */
struct wait {
    struct lwo_barrier *barrier;
    struct place *place;
    const uint64_t *flag;
    uint64_t run;
};

static inline bool is_there(const struct wait *wait)
{
    if (wait->flag) return __atomic_load_n(wait->flag, __ATOMIC_ACQUIRE) >= wait->run;
    return __atomic_load_n(&wait->barrier->release, __ATOMIC_ACQUIRE) >> 1 == ((uint32_t)wait->run << 1 >> 1);
}

static inline bool is_left(const struct wait *wait)
{
    return __atomic_load_n(&wait->barrier->leave_from, __ATOMIC_ACQUIRE) <= wait->run;
}

/* Number of looks before the CPU is yielded, and time of yielding before a thread sleeps. A passive program's threads sleep after about the time
 * that sleeping and waking takes. Threads that share CPUs look for less time than a switch to another thread takes. */
enum { FIRST_LOOKS = 20, LOOKS = 400, LOOKS_PASSIVE = 60, LOOKS_CROWDED = 20 };
#define YIELD_NS 3000000u
#define YIELD_PASSIVE_NS 30000u
#define YIELD_ACTIVE_NS 1000000000u
#define YIELD_LOST_NS 400000u
#define YIELD_LOST_MOST_NS 10000000u
#define YIELD_WHILE_NS 20000000u
#define YIELD_PAUSE_NS 20000000u
#define YIELD_PAUSE_MOST_NS 1000000000u
/* Numbers of runs for which the first thread leaves first. */
enum { FIRST_FOR = 16, FIRST_FOR_MOST = 4096 };

static void sleep_once(const struct wait *wait)
{
    /* If the promised fence fails, a sleeper looks by itself now and then. */
    static const struct timespec now_and_then = {0, 1000000};
    struct lwo_barrier *barrier = wait->barrier;
    if (wait->flag) {
        __atomic_store_n(&wait->place->sleeps, 1, __ATOMIC_SEQ_CST);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        bool fenced = fences || membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0;
        if (!is_there(wait) && !is_left(wait)) futex_wait(&wait->place->sleeps, 1, fenced ? NULL : &now_and_then);
        __atomic_store_n(&wait->place->sleeps, 0, __ATOMIC_RELAXED);
    } else {
        uint32_t seen = __atomic_load_n(&barrier->release, __ATOMIC_ACQUIRE);
        if (is_there(wait)) return;
        if (!(seen & 1) && !__atomic_compare_exchange_n(&barrier->release, &seen, seen | 1, false, __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE)) return;
        if (!is_left(wait)) futex_wait(&barrier->release, seen | 1, NULL);
    }
}

/* Threads that share CPUs do not yield before this time, and the length of time for which that was decided. Then the yields of a period: its
 * beginning, and the time that they lost. Several threads write these at once; a lost write delays the decision a little. */
static uint64_t no_yield_before, no_yield_for, while_began, while_lost;

/* Records that a yield was so long that a program beside this one has had the CPU. When most of the time is lost so, threads sleep instead: a
 * thread that is woken gets the CPU sooner than one that yielded it. Between busy programs a barrier of 4 threads on 2 CPUs took 10 ms by
 * yielding and 27 us by sleeping; alone it takes 1.5 us by yielding. One such yield says little, as a thread is alone when others still sleep. */
static void lost_yield(uint64_t now, uint64_t lost)
{
    uint64_t began = __atomic_load_n(&while_began, __ATOMIC_RELAXED), before = 0;
    if (now - began > YIELD_WHILE_NS) {
        began = now - lost;
        __atomic_store_n(&while_began, began, __ATOMIC_RELAXED);
    } else {
        before = __atomic_load_n(&while_lost, __ATOMIC_RELAXED);
    }
    lost += before;
    __atomic_store_n(&while_lost, lost, __ATOMIC_RELAXED);
    if (lost < YIELD_LOST_MOST_NS || lost < (now - began) / 2) return;
    /* The pause is twice as long each time, if yields were no better in between. */
    uint64_t last = __atomic_load_n(&no_yield_before, __ATOMIC_RELAXED), pause = __atomic_load_n(&no_yield_for, __ATOMIC_RELAXED);
    pause = pause && now < last + pause ? pause * 2 : YIELD_PAUSE_NS;
    if (pause > YIELD_PAUSE_MOST_NS) pause = YIELD_PAUSE_MOST_NS;
    __atomic_store_n(&no_yield_for, pause, __ATOMIC_RELAXED);
    __atomic_store_n(&no_yield_before, now + pause, __ATOMIC_RELAXED);
    __atomic_store_n(&while_began, 0, __ATOMIC_RELAXED);
}

static bool may_yield(uint64_t now) { return now >= __atomic_load_n(&no_yield_before, __ATOMIC_RELAXED); }

/* Records a yield from `before` to `now`; returns whether to sleep. */
static bool note_yield(uint64_t before, uint64_t now)
{
    if (now - before <= YIELD_LOST_NS) return false;
    lost_yield(now, now - before);
    return !may_yield(now);
}

/* Notes whether the first thread was held up: its yield began at `before`, and it may leave now. If the yield took long, another thread may have
 * left before and have spun for this one. Letting the first thread leave first costs one more switch of threads: 4.7 us instead of 3.3 in a loop
 * of barriers among 4 threads on 2 CPUs (EPYC). So it is done for a few runs, and for twice as many where the thread is held up again soon after
 * them. */
static void see_held_up(struct lwo_barrier *barrier, uint64_t run, uint64_t before)
{
    if (run < barrier->first_before || lwo_now_ns() - before <= YIELD_LOST_NS) return;
    uint64_t many = run - barrier->first_before < barrier->first_for ? barrier->first_for * 2 : FIRST_FOR;
    if (many > FIRST_FOR_MOST) many = FIRST_FOR_MOST;
    barrier->first_for = many;
    __atomic_store_n(&barrier->first_before, run + many, __ATOMIC_RELAXED);
}

static void let_first_leave(struct lwo_barrier *barrier, int place, uint64_t run)
{
    if (run >= __atomic_load_n(&barrier->first_before, __ATOMIC_RELAXED)) return;
    if (place == 0) {
        __atomic_store_n(&barrier->first_left, run, __ATOMIC_RELAXED);
    } else if (__atomic_load_n(&barrier->first_left, __ATOMIC_RELAXED) < run) {
        uint64_t before = lwo_now_ns();
        if (!may_yield(before)) return;
        sched_yield();
        note_yield(before, lwo_now_ns());
    }
}

static uint64_t patience_ns(void)
{
    return lwo_policy == LWO_PASSIVE ? YIELD_PASSIVE_NS : lwo_policy == LWO_ACTIVE ? YIELD_ACTIVE_NS : YIELD_NS;
}

/* Waits beyond the first looks. */
static __attribute__((noinline)) bool wait_long(const struct wait *wait, int looks)
{
    for (int i = 0; i < looks; i++) {
        if (is_there(wait)) return true;
        if (is_left(wait)) return false;
        lwo_relax();
    }
    uint64_t now = lwo_now_ns(), until = now + patience_ns();
    if (!wait->flag && !may_yield(now)) until = 0;
    while (now < until) {
        uint64_t before = now;
        sched_yield();
        if (is_there(wait)) {
            if (!wait->flag && wait->place == wait->barrier->places) see_held_up(wait->barrier, wait->run, before);
            return true;
        }
        if (is_left(wait)) return false;
        now = lwo_now_ns();
        if (!wait->flag && note_yield(before, now)) break;
    }
    for (;;) {
        sleep_once(wait);
        if (is_there(wait)) return true;
        if (is_left(wait)) return false;
    }
}

static void wake(struct place *place)
{
    if (__atomic_exchange_n(&place->sleeps, 0, __ATOMIC_SEQ_CST)) futex_wake(&place->sleeps, 1);
}

static inline bool wait_rounds(struct lwo_barrier *barrier, int place, int size, uint64_t run)
{
    struct place *places = barrier->places;
    bool exchange = (size & (size - 1)) == 0;
    for (int round = 0, step = 1; step < size; round++, step *= 2) {
        int to = exchange ? place ^ step : place + step < size ? place + step : place + step - size;
        /* Which of two that exchange, and the line of the lower one. */
        bool upper = exchange && (place & step);
        uint64_t *set = &places[upper || !exchange ? to : place].rounds[round].run[upper];
        const uint64_t *flag = exchange ? &set[upper ? -1 : 1] : &places[place].rounds[round].run[0];
        __atomic_store_n(set, run, __ATOMIC_RELEASE);
        if (__builtin_expect(fences, false)) __atomic_thread_fence(__ATOMIC_SEQ_CST);
        else __asm__ volatile("" ::: "memory");
        if (__builtin_expect(__atomic_load_n(&places[to].sleeps, __ATOMIC_RELAXED), 0)) wake(&places[to]);
        /* The first looks are at nothing else. They have pauses, as a look takes the line away that the other thread is about to write. */
        int look = 0;
        while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) < run && ++look < FIRST_LOOKS) lwo_relax();
        if (look < FIRST_LOOKS) continue;
        struct wait wait = {barrier, &places[place], flag, run};
        if (!wait_long(&wait, lwo_policy == LWO_PASSIVE ? LOOKS_PASSIVE : LOOKS)) return false;
    }
    return true;
}

static bool wait_counted(struct lwo_barrier *barrier, int place, int size, uint64_t run)
{
    if (__atomic_add_fetch(&barrier->arrived, 1, __ATOMIC_ACQ_REL) == (uint64_t)size) {
        __atomic_store_n(&barrier->arrived, 0, __ATOMIC_RELAXED);
        if (__atomic_exchange_n(&barrier->release, (uint32_t)run << 1, __ATOMIC_SEQ_CST) & 1) futex_wake(&barrier->release, INT_MAX);
    } else {
        struct wait wait = {barrier, &barrier->places[place], NULL, run};
        if (!wait_long(&wait, LOOKS_CROWDED)) return false;
    }
    let_first_leave(barrier, place, run);
    return true;
}

bool lwo_barrier_wait(struct lwo_barrier *barrier, bool crowded, int place, int size, uint64_t run)
{
    return crowded ? wait_counted(barrier, place, size, run) : wait_rounds(barrier, place, size, run);
}

void lwo_barrier_leave_from(struct lwo_barrier *barrier, uint64_t run)
{
    uint64_t none = UINT64_MAX;
    if (!__atomic_compare_exchange_n(&barrier->leave_from, &none, run, false, __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE)) return;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    for (int i = 0; i < barrier->room; i++) wake(&barrier->places[i]);
    if (__atomic_fetch_and(&barrier->release, ~(uint32_t)1, __ATOMIC_SEQ_CST) & 1) futex_wake(&barrier->release, INT_MAX);
}
