/*
 * A tool that watches an OpenMP program by OMPT: a library that prints to the file of WATCHER, when the runtime ends, how often each event was told,
 * in how many places of the program regions begin, and whether each thread's events come in pairs. It is the same with lineweave as without.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void any(void);
typedef any *lookup(const char *);
struct tool {
    int (*initialize)(lookup *, int, uint64_t *);
    void (*finalize)(uint64_t *);
    uint64_t data;
};

enum { PARALLEL_BEGIN = 3, PARALLEL_END, TASK_CREATE, SYNC_WAIT = 16, WORK = 20, SYNC = 23, REDUCTION = 31, EVENTS };
enum { KINDS = 32, PLACES = 64, DEEP = 4096 };

static uint64_t counts[EVENTS][KINDS][4];
/* Where regions begin. */
static const void *places[PLACES];
static int faults;

/* The sync regions that this thread is in. */
static __thread struct {
    int event, kind;
    const void *parallel, *task;
} inside[DEEP];
static __thread int depth;

static void fault(const char *what)
{
    if (!__atomic_fetch_add(&faults, 1, __ATOMIC_RELAXED)) fprintf(stderr, "watcher: %s\n", what);
}

/* Counts an event, which must not come from lineweave. */
static void count(int event, int kind, int endpoint, const void *from)
{
    __atomic_fetch_add(&counts[event][kind % KINDS][endpoint % 4], 1, __ATOMIC_RELAXED);
    if (!from) return;
    Dl_info info;
    if (!dladdr(from, &info) || strstr(info.dli_fname, "lineweave_openmp")) fault("an event came from lineweave");
    for (int i = 0; event == PARALLEL_BEGIN && i < PLACES; i++) {
        const void *there = NULL;
        if (__atomic_compare_exchange_n(&places[i], &there, from, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED) || there == from) return;
    }
}

static void on_parallel_begin(void *task, void *frame, void *parallel, unsigned threads, int flags, const void *from)
{
    (void)task, (void)frame, (void)parallel, (void)threads, (void)flags;
    count(PARALLEL_BEGIN, 0, 1, from);
}

static void on_parallel_end(void *parallel, void *task, int flags, const void *from)
{
    (void)parallel, (void)task, (void)flags;
    count(PARALLEL_END, 0, 2, from);
}

static void on_task_create(void *task, void *frame, void *made, int flags, int depends, const void *from)
{
    (void)task, (void)frame, (void)made, (void)flags, (void)depends;
    count(TASK_CREATE, 0, 1, from);
}

static void on_work(int kind, int endpoint, void *parallel, void *task, uint64_t many, const void *from)
{
    (void)parallel, (void)task, (void)many;
    count(WORK, kind, endpoint, from);
}

static void on_sync(int event, int kind, int endpoint, void *parallel, void *task, const void *from)
{
    count(event, kind, endpoint, from);
    if (endpoint == 1) {
        if (depth == DEEP) return fault("too many sync regions in each other");
        inside[depth].event = event, inside[depth].kind = kind, inside[depth].parallel = parallel, inside[depth].task = task;
        depth++;
    } else if (depth == 0) {
        fault("a sync region ended that had not begun");
    } else {
        depth--;
        /* At the end of a parallel region there is no parallel region any more. */
        if (inside[depth].event != event || inside[depth].kind != kind) fault("another sync region ended");
        if (parallel && inside[depth].parallel != parallel) fault("a sync region of another parallel region ended");
        if (parallel && inside[depth].task != task) fault("a sync region of another task ended");
    }
}

static void on_sync_region(int kind, int endpoint, void *parallel, void *task, const void *from) { on_sync(SYNC, kind, endpoint, parallel, task, from); }
static void on_sync_wait(int kind, int endpoint, void *parallel, void *task, const void *from) { on_sync(SYNC_WAIT, kind, endpoint, parallel, task, from); }
static void on_reduction(int kind, int endpoint, void *parallel, void *task, const void *from)
{
    (void)parallel, (void)task;
    count(REDUCTION, kind, endpoint, from);
}

static int initialize(lookup *look_up, int device, uint64_t *data)
{
    static const struct {
        int event;
        any *function;
    } all[] = {{PARALLEL_BEGIN, (any *)on_parallel_begin}, {PARALLEL_END, (any *)on_parallel_end}, {TASK_CREATE, (any *)on_task_create},
               {WORK, (any *)on_work}, {SYNC, (any *)on_sync_region}, {SYNC_WAIT, (any *)on_sync_wait}, {REDUCTION, (any *)on_reduction}};
    int (*set)(int, any *) = (int (*)(int, any *))look_up("ompt_set_callback");
    int (*get)(int, any **) = (int (*)(int, any **))look_up("ompt_get_callback");
    (void)device;
    if (*data != 7) fault("other data than the tool's");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        any *got = NULL;
        set(all[i].event, all[i].function);
        if (get(all[i].event, &got) && got != all[i].function) fault("another function than was given");
    }
    return 1;
}

static void finalize(uint64_t *data)
{
    FILE *out = fopen(getenv("WATCHER"), "w");
    if (*data != 7) fault("other data than the tool's");
    if (!out) return;
    for (int event = 0; event < EVENTS; event++) {
        for (int kind = 0; kind < KINDS; kind++) {
            const uint64_t *told = counts[event][kind];
            if (told[1] + told[2] + told[3]) fprintf(out, "event %d of kind %d: %lu begin, %lu end, %lu both\n", event, kind, told[1], told[2], told[3]);
        }
    }
    int regions = 0;
    while (regions < PLACES && places[regions]) regions++;
    fprintf(out, "regions begin in %d places\n", regions);
    fprintf(out, "%d faults\n", faults);
    fclose(out);
}

struct tool *ompt_start_tool(unsigned version, const char *runtime)
{
    static struct tool tool = {initialize, finalize, 7};
    (void)version, (void)runtime;
    return getenv("WATCHER") ? &tool : NULL;
}
