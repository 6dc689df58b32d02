/*
 * Tools that watch by OMPT: the runtime calls a tool's functions at the events of a program, among them the begin and end of each barrier.
 *
 * A tool sees the same events whoever carries a barrier out:
 *   1. the runtime asks for a tool by `ompt_start_tool`, which is defined here. The tool that the runtime would have found is found in its order:
 *      a library of the process, one that OMP_TOOL_LIBRARIES names, LLVM's Archer;
 *   2. the functions that it has called are noted, and where the runtime would say an address in this library as the caller, the program's is said;
 *   3. a barrier that is carried out here is told by these functions. If the runtime has to end it, its own word that it begins is left out.
 *
 * Names, numbers and signatures are those of OpenMP 5.0, chapter 4, and 5.2, chapter 19.
 */
#define _GNU_SOURCE
#include "lwo.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

union data {
    uint64_t value;
    void *pointer;
};

struct frame {
    union data exit, enter;
    int exit_flags, enter_flags;
};

typedef void any(void);
typedef any *lookup(const char *name);

struct tool {
    int (*initialize)(lookup *lookup, int device, union data *data);
    void (*finalize)(union data *data);
    union data data;
};
typedef struct tool *start(unsigned version, const char *runtime);

enum event { PARALLEL_BEGIN = 3, PARALLEL_END = 4, TASK_CREATE = 5, SYNC_WAIT = 16, WORK = 20, SYNC = 23, REDUCTION = 31, EVENTS };
enum endpoint { BEGIN = 1, END = 2 };
enum { FIRST_STATE = 0x102 };
enum kind { IMPLICIT = 2, EXPLICIT = 3, IMPLEMENTATION = 4, WORKSHARE = 8 };

typedef void parallel_begin(union data *task, const struct frame *frame, union data *parallel, unsigned threads, int flags, const void *from);
typedef void parallel_end(union data *parallel, union data *task, int flags, const void *from);
typedef void task_create(union data *task, const struct frame *frame, union data *made, int flags, int depends, const void *from);
typedef void work(int kind, int endpoint, union data *parallel, union data *task, uint64_t count, const void *from);
typedef void sync_region(int kind, int endpoint, union data *parallel, union data *task, const void *from);

bool lwo_watched;

/* The tool, the runtime's functions, and those of the tool by their events. */
static struct tool *tool;
static lookup *runtime;
static int (*set_callback)(int event, any *function);
static int (*get_callback)(int event, any **function);
static int (*get_task)(int level, int *flags, union data **task, struct frame **frame, union data **parallel, int *place);
static any *callbacks[EVENTS];

/* True if the runtime tells the kinds of implicit barriers apart, as of OpenMP 5.1. */
static bool has_kinds;

/* Events whose beginning was told here and whose end was not: if the runtime has to carry the barrier out, it ends them. */
static __thread bool is_begun[EVENTS] __attribute__((tls_model("initial-exec")));

static any *callback_of(int event) { return __atomic_load_n(&callbacks[event], __ATOMIC_ACQUIRE); }

/* Where the runtime and this library lie in memory. */
struct range {
    uintptr_t in, from, to;
};
static struct range runtimes, own;

static bool is_in(const struct range *range, const void *at) { return (uintptr_t)at - range->from < range->to - range->from; }

static int find_range(struct dl_phdr_info *info, size_t size, void *found)
{
    (void)size;
    struct range *range = found, seen = {range->in, UINTPTR_MAX, 0};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr, to = from + info->dlpi_phdr[i].p_memsz;
        if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
        if (from < seen.from) seen.from = from;
        if (to > seen.to) seen.to = to;
    }
    if (range->in < seen.from || range->in >= seen.to) return 0;
    *range = seen;
    return 1;
}

static void find_own(void)
{
    own.in = (uintptr_t)&tool;
    dl_iterate_phdr(find_range, &own);
}

bool lwo_may_watch(void)
{
    const char *off = getenv("OMP_TOOL");
    find_own();
    return (off && strcasecmp(off, "disabled") == 0) || is_in(&own, dlsym(RTLD_DEFAULT, "ompt_start_tool"));
}

const void *lwo_called(const void *from)
{
    const void *before = lwo_me.caller;
    /* The runtime calls its own functions by name, which come by here. */
    if (!is_in(&runtimes, from) && !is_in(&own, from)) lwo_me.caller = from;
    return before;
}

/* Returns the place in the program that called, for a call that the runtime saw come from this library. */
static const void *caller_of(const void *from) { return lwo_me.caller && is_in(&own, from) ? lwo_me.caller : from; }

static void on_parallel_begin(union data *task, const struct frame *frame, union data *parallel, unsigned threads, int flags, const void *from)
{
    parallel_begin *told = (parallel_begin *)callback_of(PARALLEL_BEGIN);
    if (told) told(task, frame, parallel, threads, flags, caller_of(from));
}

static void on_parallel_end(union data *parallel, union data *task, int flags, const void *from)
{
    parallel_end *told = (parallel_end *)callback_of(PARALLEL_END);
    if (told) told(parallel, task, flags, caller_of(from));
}

static void on_task_create(union data *task, const struct frame *frame, union data *made, int flags, int depends, const void *from)
{
    task_create *told = (task_create *)callback_of(TASK_CREATE);
    if (told) told(task, frame, made, flags, depends, caller_of(from));
}

static void on_work(int kind, int endpoint, union data *parallel, union data *task, uint64_t count, const void *from)
{
    work *told = (work *)callback_of(WORK);
    if (told) told(kind, endpoint, parallel, task, count, caller_of(from));
}

static void on_sync(int event, int kind, int endpoint, union data *parallel, union data *task, const void *from)
{
    if (lwo_me.muted) return;
    if (endpoint == BEGIN) {
        bool is_known = is_begun[event];
        lwo_me.runtime_told = true;
        is_begun[event] = false;
        if (is_known) return;
    }
    sync_region *told = (sync_region *)callback_of(event);
    if (told) told(kind, endpoint, parallel, task, caller_of(from));
}

static void on_sync_region(int kind, int endpoint, union data *parallel, union data *task, const void *from)
{
    on_sync(SYNC, kind, endpoint, parallel, task, from);
}

static void on_sync_wait(int kind, int endpoint, union data *parallel, union data *task, const void *from)
{
    on_sync(SYNC_WAIT, kind, endpoint, parallel, task, from);
}

static void on_reduction(int kind, int endpoint, union data *parallel, union data *task, const void *from)
{
    sync_region *told = (sync_region *)callback_of(REDUCTION);
    if (told) told(kind, endpoint, parallel, task, caller_of(from));
}

static any *ours_for(int event)
{
    switch (event) {
    case PARALLEL_BEGIN: return (any *)on_parallel_begin;
    case PARALLEL_END: return (any *)on_parallel_end;
    case TASK_CREATE: return (any *)on_task_create;
    case WORK: return (any *)on_work;
    case SYNC: return (any *)on_sync_region;
    case SYNC_WAIT: return (any *)on_sync_wait;
    case REDUCTION: return (any *)on_reduction;
    default: return NULL;
    }
}

/* ---- barriers that are carried out here ---- */

static void tell(enum endpoint endpoint, int kind, const void *frame_address)
{
    union data *task = NULL, *parallel = NULL;
    struct frame *frame = NULL;
    int flags, place;
    if (!get_task || get_task(0, &flags, &task, &frame, &parallel, &place) != 2) return;
    sync_region *region = (sync_region *)callback_of(SYNC), *wait = (sync_region *)callback_of(SYNC_WAIT);
    if (endpoint == BEGIN) {
        is_begun[SYNC] = region != NULL;
        is_begun[SYNC_WAIT] = wait != NULL;
        if (frame) frame->enter.pointer = (void *)(uintptr_t)frame_address;
        if (region) region(kind, BEGIN, parallel, task, lwo_me.caller);
        if (wait) wait(kind, BEGIN, parallel, task, lwo_me.caller);
    } else {
        is_begun[SYNC] = is_begun[SYNC_WAIT] = false;
        if (wait) wait(kind, END, parallel, task, lwo_me.caller);
        if (region) region(kind, END, parallel, task, lwo_me.caller);
        if (frame) frame->enter.pointer = NULL;
    }
}

/* Returns the barrier's kind as the runtime would: by the flags that the compiler gave the place in the program. */
static int kind_of(const struct ident *place)
{
    int32_t flags = 0;
    if (place) memcpy(&flags, (const char *)place + sizeof flags, sizeof flags);
    if (flags & 0x20) return EXPLICIT;
    if (flags & 0x40) return has_kinds ? WORKSHARE : IMPLICIT;
    return IMPLEMENTATION;
}

void lwo_tell_begin(const struct ident *place, const void *frame) { tell(BEGIN, kind_of(place), frame); }

void lwo_tell_end(const struct ident *place) { tell(END, kind_of(place), NULL); }

/* ---- between the runtime and the tool ---- */

static int note_callback(int event, any *function)
{
    any *ours = ours_for(event);
    if (!ours) return set_callback(event, function);
    __atomic_store_n(&callbacks[event], function, __ATOMIC_RELEASE);
    return set_callback(event, function ? ours : NULL);
}

static int noted_callback(int event, any **function)
{
    int found = get_callback(event, function);
    if (found && ours_for(event)) *function = callback_of(event);
    return found;
}

static any *look_up(const char *name)
{
    any *found = runtime(name);
    if (found && strcmp(name, "ompt_set_callback") == 0) return (any *)note_callback;
    if (found && strcmp(name, "ompt_get_callback") == 0) return (any *)noted_callback;
    return found;
}

/* Runtimes that tell these kinds apart know a state of OpenMP 5.1 besides: LLVM's of version 14 has neither, Intel's of 2026 both. */
static bool tells_kinds(void)
{
    int (*next_state)(int, int *, const char **) = (int (*)(int, int *, const char **))runtime("ompt_enumerate_states");
    const char *name = NULL;
    for (int state = FIRST_STATE; next_state && next_state(state, &state, &name);) {
        if (name && strcmp(name, "ompt_state_wait_barrier_teams") == 0) return true;
    }
    return false;
}

static int initialize(lookup *runtime_lookup, int device, union data *data)
{
    (void)data;
    runtime = runtime_lookup;
    set_callback = (int (*)(int, any *))runtime("ompt_set_callback");
    get_callback = (int (*)(int, any **))runtime("ompt_get_callback");
    get_task = (int (*)(int, int *, union data **, struct frame **, union data **, int *))runtime("ompt_get_task_info");
    has_kinds = tells_kinds();
    lwo_watched = set_callback && get_callback;
    int stays = tool->initialize(lwo_watched ? look_up : runtime, device, &tool->data);
    if (!stays) lwo_watched = false;
    return stays;
}

static void finalize(union data *data)
{
    (void)data;
    lwo_watched = false;
    tool->finalize(&tool->data);
}

static struct tool *started_by(void *library, unsigned version, const char *name)
{
    start *starts = library ? (start *)dlsym(library, "ompt_start_tool") : NULL;
    struct tool *found = starts ? starts(version, name) : NULL;
    if (!found && library) dlclose(library);
    return found;
}

static struct tool *in_libraries(const char *names, unsigned version, const char *name)
{
    struct tool *found = NULL;
    char *copy = names ? strdup(names) : NULL, *rest;
    for (char *at = copy ? strtok_r(copy, ":", &rest) : NULL; at && !found; at = strtok_r(NULL, ":", &rest)) {
        found = started_by(dlopen(at, RTLD_LAZY), version, name);
    }
    free(copy);
    return found;
}

/* Archer, which lies beside the runtime, and says itself whether it is of use. */
static struct tool *archer(const void *in_runtime, unsigned version, const char *name)
{
    Dl_info info;
    char path[PATH_MAX];
    const char *end = dladdr(in_runtime, &info) && info.dli_fname ? strrchr(info.dli_fname, '/') : NULL;
    int length = end ? (int)(end - info.dli_fname) : -1;
    if (length < 0 || snprintf(path, sizeof path, "%.*s/libarcher.so", length, info.dli_fname) >= (int)sizeof path) return NULL;
    return started_by(dlopen(path, RTLD_LAZY), version, name);
}

struct tool *ompt_start_tool(unsigned version, const char *name)
{
    static struct tool ours = {initialize, finalize, {0}};
    static bool asked;
    if (__atomic_exchange_n(&asked, true, __ATOMIC_RELAXED)) return NULL; /* by a second runtime */
    runtimes.in = (uintptr_t)__builtin_return_address(0);
    dl_iterate_phdr(find_range, &runtimes);
    find_own();
    /* The next one may be the runtime's own, which looks for one behind itself. */
    start *next = (start *)dlsym(RTLD_NEXT, "ompt_start_tool");
    tool = next ? next(version, name) : NULL;
    if (!tool) tool = in_libraries(getenv("OMP_TOOL_LIBRARIES"), version, name);
    if (!tool) tool = archer(__builtin_return_address(0), version, name);
    return tool ? &ours : NULL;
}
