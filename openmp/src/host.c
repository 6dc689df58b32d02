/*
 * Beginning: finds the runtime that the program was started with, and reads the settings.
 *
 * This library is linked to no runtime. `lineweave run` preloads it for programs that load one at their start, and then the runtime's
 * functions are the next ones of their names. A program that such a program starts may load a runtime later, or have several: its calls go where
 * they would go without this library, and nothing is taken over.
 */
#define _GNU_SOURCE
#include "lwo.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

struct lwo_host lwo_host;
const char *lwo_host_title;
bool lwo_active, lwo_race;
int lwo_cpus;
enum lwo_policy lwo_policy;

uint64_t lwo_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- a runtime that was loaded later ---- */

/* Targets of calls from a place, so that each is looked up once. A slot is taken once and for all. */
enum { CALLS = 1024 };
static struct {
    const void *from;
    const char *name;
    void *found;
    bool filled;
} calls[CALLS];

static void *look_for(const char *name, const void *from)
{
    /* The loader searches the caller's own libraries after the program's. */
    Dl_info caller;
    void *found = dlsym(RTLD_NEXT, name);
    if (!found && dladdr(from, &caller)) {
        void *library = dlopen(caller.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
        if (library) {
            found = dlsym(library, name);
            dlclose(library);
        }
    }
    if (!found) {
        fprintf(stderr, "lineweave: %s was called, and no OpenMP runtime that has it is loaded\n", name);
        abort();
    }
    return found;
}

void *lwo_late(const char *name, const void *from)
{
    size_t at = ((uintptr_t)from * 0x9e3779b97f4a7c15u) >> 54;
    if (__atomic_load_n(&calls[at].filled, __ATOMIC_ACQUIRE) && calls[at].from == from && calls[at].name == name) return calls[at].found;
    void *found = look_for(name, from);
    const void *none = NULL;
    if (__atomic_compare_exchange_n(&calls[at].from, &none, from, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        calls[at].name = name;
        calls[at].found = found;
        __atomic_store_n(&calls[at].filled, true, __ATOMIC_RELEASE);
    }
    return found;
}

/* ---- the runtime ---- */

static const void *library_of(const void *function)
{
    Dl_info info;
    return function && dladdr(function, &info) ? info.dli_fbase : NULL;
}

/* Functions that only one of the runtimes has, as the loader found them: null where it is not there. */
extern void GOMP_offload_register(void) __attribute__((weak));
extern void __kmpc_global_thread_num(void) __attribute__((weak));

/* Returns the runtime's function. One that it does not have is not looked up: the loader would keep its error in the program's heap. */
static void *find(const char *name)
{
    if (!__kmpc_global_thread_num && strncmp(name, "__kmpc_", 7) == 0) return NULL;
    if (!GOMP_offload_register && strncmp(name, "GOMP_target_", 12) == 0) return NULL;
    return dlsym(RTLD_NEXT, name);
}

/* Returns whether there is exactly one runtime, and it is known. */
static bool host_open(void)
{
#define H(result, name, parameters) *(void **)&lwo_host.name = find(#name);
#include "host.def"
#undef H
    const void *gnu = library_of((const void *)lwo_host.GOMP_parallel), *llvm = library_of((const void *)lwo_host.__kmpc_fork_call);
    if (!gnu && !llvm) return false;
    if (gnu && llvm && gnu != llvm) {
        lwo_say("the program has two OpenMP runtimes; no barrier is taken over");
        return false;
    }
    const void *library = gnu ? gnu : llvm;
    lwo_host_title = llvm ? "LLVM's libomp" : "GNU's libgomp";
    if (llvm && !lwo_may_watch()) {
        lwo_say("a tool for OpenMP (OMPT) is linked to the program or preloaded before lineweave, and would not see its barriers; no barrier is "
                "taken over; `lineweave run --tool TOOL` puts it behind");
        return false;
    }
    const void *needed[] = {
        (const void *)lwo_host.omp_get_thread_num, (const void *)lwo_host.omp_get_num_threads, (const void *)lwo_host.omp_get_level,
        (const void *)lwo_host.omp_get_active_level, (const void *)lwo_host.omp_get_cancellation, (const void *)lwo_host.GOMP_barrier,
        (const void *)lwo_host.GOMP_loop_end_nowait, (const void *)lwo_host.GOMP_sections_end_nowait,
    };
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        if (library_of(needed[i]) == library) continue;
        lwo_say("the program's OpenMP runtime is not known; no barrier is taken over");
        return false;
    }
    return true;
}

/* ---- settings ---- */

static int cpus_of(pid_t process)
{
    cpu_set_t set;
    return sched_getaffinity(process, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

/* Returns the number of CPUs for this process. If a launcher of MPI put several processes beside each other, it is the parent, as `lineweave run`
 * becomes the program: this process has a share of the launcher's CPUs, but no more than it was bound to. */
static int count_cpus(void)
{
    static const char *const beside[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"};
    int own = cpus_of(0), share = own;
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
        const char *text = getenv(beside[i]);
        int ranks = text ? atoi(text) : 0;
        if (ranks < 2) continue;
        int launcher = cpus_of(getppid());
        share = (launcher > own ? launcher : own) / ranks;
        break;
    }
    if (share > own) share = own;
    return share > 1 ? share : 1;
}

static void open_library(void) __attribute__((constructor));
static void open_library(void)
{
    const char *policy = getenv("OMP_WAIT_POLICY"), *race = getenv("LINEWEAVE_OPENMP_RACE");
    if (policy && strcasecmp(policy, "active") == 0) lwo_policy = LWO_ACTIVE;
    if (policy && strcasecmp(policy, "passive") == 0) lwo_policy = LWO_PASSIVE;
    lwo_race = !race || strcmp(race, "0") != 0;
    if (!host_open()) return;
    lwo_cpus = count_cpus();
    lwo_barrier_open();
    lwo_report_open();
    lwo_active = true;
}
