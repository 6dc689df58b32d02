/*
 * A record of each collective call: `lineweave run --trace FILE`.
 *
 * 1. Each process has a file in the folder FILE.parts: a header, and a ring of records of which the last LINEWEAVE_MPI_TRACE_CALLS stay. It is mapped, so
 *    what was recorded is there also if the process is killed; its blocks are reserved before they are written, so a full disk ends the record and not
 *    the program.
 * 2. A call is recorded around the function that carries it out: the table of entries leads through `traced` (mpi/build), which calls the two functions
 *    below. Where nothing is recorded, no call is any longer than without this file.
 * 3. In MPI_Finalize each process marks its file as complete, under a lock. Who finds no other that is not starts `lineweave trace FILE`,
 *    which writes the timeline from all of them. If one died, `lineweave trace FILE` does so when it is called.
 */
#define _GNU_SOURCE
#include "trace.h"
#include "entry.h"
#include "presence.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The beginning of a file; the reader knows this layout. */
struct header {
    char magic[8];
    uint32_t capacity, record_bytes;
    uint64_t recorded;    /* calls so far, of which the last `capacity` are there */
    int32_t rank, size, pid, pad;
    uint64_t world;       /* the name of MPI_COMM_WORLD: of one job, all ranks' that MPI_Init joined */
    int64_t real_ns;      /* added to a record's times, gives the time since 1970, unless this rank was interrupted between both clocks */
    char node[64], mpi[64];
    char kinds[1024], reasons[2048]; /* names, a line each */
};
enum { HEADER = 4096, CHUNK = 16384 };
_Static_assert(sizeof(struct header) <= HEADER, "the header has a page");
#define MAGIC "lwtrace1"
#define LIVE ".running"
#define DONE ".complete"

bool lwm_tracing;
static char folder[4000], part[4096];
static struct header *header;
static struct lwm_traced *records;
static uint32_t ready;
static int file = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The outcome of the call that this thread is in, as lwm_trace_saw has it; -1 until it is known. */
static __thread __attribute__((tls_model("initial-exec"))) struct { int why; size_t bytes; } seen;

/* ---- the folder ---- */

/* Locks the folder, which is made if it is not there; a descriptor, or -1. */
static int lock_folder(void)
{
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) return -1;
    int held = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (held >= 0) flock(held, LOCK_EX);
    return held;
}

/* Returns whether a file was left by another job: its process was on this node, and is gone. */
static bool is_left_over(int held, const char *name)
{
    struct header other;
    int opened = openat(held, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    bool whole = opened >= 0 && pread(opened, &other, sizeof other, 0) == (ssize_t)sizeof other && memcmp(other.magic, MAGIC, 8) == 0;
    if (opened >= 0) close(opened);
    if (!whole || other.world == header->world || strncmp(other.node, header->node, sizeof other.node) != 0) return false;
    return kill(other.pid, 0) != 0 && errno == ESRCH;
}

/* Removes what jobs that died left, or counts the files that are not complete. */
static int look_through(int held, bool removes)
{
    int many = 0, again = dup(held);
    DIR *list = again >= 0 ? fdopendir(again) : NULL;
    if (!list && again >= 0) close(again);
    if (list) rewinddir(list);
    for (struct dirent *entry; list && (entry = readdir(list));) {
        const char *end = strrchr(entry->d_name, '.');
        if (!end || (strcmp(end, LIVE) != 0 && strcmp(end, DONE) != 0)) continue;
        if (!removes) many += strcmp(end, LIVE) == 0;
        else if (is_left_over(held, entry->d_name)) unlinkat(held, entry->d_name, 0);
    }
    if (list) closedir(list);
    return many;
}

/* ---- this process's file ---- */

static void describe(uint32_t capacity)
{
    struct timespec real;
    clock_gettime(CLOCK_REALTIME, &real);
    header->capacity = capacity;
    header->record_bytes = sizeof(struct lwm_traced);
    header->rank = lwm_world_rank;
    header->size = lwm_world_size;
    header->pid = (int32_t)getpid();
    header->world = lwm_presence_world();
    header->real_ns = (int64_t)real.tv_sec * 1000000000 + real.tv_nsec - (int64_t)lwm_now_ns();
    gethostname(header->node, sizeof header->node - 1);
    snprintf(header->mpi, sizeof header->mpi, "%s", lwm_host_title);
    size_t at = 0;
    for (int i = 0; i < LWM_KINDS; i++) at += (size_t)snprintf(header->kinds + at, sizeof header->kinds - at, "%s\n", lwm_kind_names[i]);
    at = 0;
    for (int i = 0; i < LWM_REASONS; i++) {
        at += (size_t)snprintf(header->reasons + at, sizeof header->reasons - at, "%s\n", lwm_reason_names[i]);
    }
    memcpy(header->magic, MAGIC, 8);
}

/* Reserves the records to number `to`. False: there is no room. */
static bool reserve(uint32_t to)
{
    bool fine = true;
    pthread_mutex_lock(&lock);
    while (fine && ready < to) {
        uint32_t more = header->capacity - ready < CHUNK ? header->capacity - ready : CHUNK;
        fine = posix_fallocate(file, HEADER + (off_t)ready * (off_t)sizeof(struct lwm_traced), (off_t)more * (off_t)sizeof(struct lwm_traced)) == 0;
#ifdef MADV_POPULATE_WRITE
        /* At once: a fault for each page would fall into some call. Kernels before 5.14 refuse, and then it does. */
        if (fine) madvise(records + ready, more * sizeof *records, MADV_POPULATE_WRITE);
#endif
        if (fine) __atomic_store_n(&ready, ready + more, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    return fine;
}

static bool map(uint32_t capacity)
{
    size_t bytes = HEADER + capacity * sizeof(struct lwm_traced);
    file = open(part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (file < 0 || (errno = posix_fallocate(file, 0, HEADER)) != 0) return false;
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at == MAP_FAILED) return false;
    header = at;
    records = (struct lwm_traced *)((char *)at + HEADER);
    describe(capacity);
    return reserve(1);
}

void lwm_trace_open(void)
{
    const char *name = getenv("LINEWEAVE_MPI_TRACE");
    if (!name || !*name || header) return;
    char *end;
    const char *most = getenv("LINEWEAVE_MPI_TRACE_CALLS");
    long long calls = most && *most ? strtoll(most, &end, 10) : 32768;
    if (most && *most && (*end || calls < 1 || calls > 1 << 26)) {
        if (lwm_world_rank == 0) lwm_say("LINEWEAVE_MPI_TRACE_CALLS=`%s` has no effect: expected a whole number from 1 to %d", most, 1 << 26);
        calls = 32768;
    }
    snprintf(folder, sizeof folder, "%s.parts", name);
    snprintf(part, sizeof part, "%s/%d-%d" LIVE, folder, lwm_world_rank, (int)getpid());
    int held = lock_folder();
    bool fine = held >= 0 && map((uint32_t)calls);
    int why = errno;
    if (fine) look_through(held, true);
    if (held >= 0) close(held);
    if (!fine) lwm_say("%s: rank %d's calls cannot be recorded: %s", part, lwm_world_rank, strerror(why));
    lwm_tracing = fine;
}

/* Starts `lineweave trace FILE`, without this library in it. */
static void write_timeline(void)
{
    const char *command = getenv("LINEWEAVE_RUN_COMMAND"), *name = getenv("LINEWEAVE_MPI_TRACE");
    if (!command || !*command) return;
    size_t many = 0, kept = 0;
    while (environ[many]) many++;
    char **environment = calloc(many + 1, sizeof *environment);
    if (!environment) return;
    for (size_t i = 0; i < many; i++) {
        if (strncmp(environ[i], "LD_PRELOAD=", 11) != 0) environment[kept++] = environ[i];
    }
    char *const words[] = {(char *)command, "trace", "--of-job", (char *)name, NULL};
    pid_t child;
    int failed = posix_spawn(&child, command, NULL, NULL, words, environment);
    if (failed) lwm_say("%s cannot be started: %s; `lineweave trace %s` writes the timeline", command, strerror(failed), name);
    while (!failed && waitpid(child, NULL, 0) < 0 && errno == EINTR) {}
    free(environment);
}

void lwm_trace_close(void)
{
    if (!lwm_tracing) return;
    lwm_tracing = false;
    char complete[sizeof part];
    snprintf(complete, sizeof complete, "%.*s" DONE, (int)(strlen(part) - strlen(LIVE)), part);
    int held = lock_folder();
    bool last = held >= 0 && rename(part, complete) == 0 && look_through(held, false) == 0;
    if (held >= 0) close(held);
    if (last) write_timeline();
}

/* ---- a call ---- */

/* The calls that are recorded, and which of their arguments are communicator and root. */
static const struct what { const char *name; int8_t kind, comm, root; } whats[] = {
    {"Barrier", LWM_BARRIER, 0, -1}, {"Bcast", LWM_BCAST, 4, 3}, {"Reduce", LWM_REDUCE, 6, 5}, {"Allreduce", LWM_ALLREDUCE, 5, -1},
    {"Gather", LWM_GATHER, 7, 6}, {"Scatter", LWM_SCATTER, 7, 6}, {"Allgather", LWM_ALLGATHER, 6, -1}, {"Alltoall", LWM_ALLTOALL, 6, -1},
    {"Reduce_scatter_block", LWM_REDUCE_SCATTER_BLOCK, 5, -1}, {"Scan", LWM_SCAN, 5, -1}, {"Exscan", LWM_EXSCAN, 5, -1},
    {"Gatherv", LWM_GATHERV, 8, 7}, {"Scatterv", LWM_SCATTERV, 8, 7}, {"Allgatherv", LWM_ALLGATHERV, 7, -1},
    {"Alltoallv", LWM_ALLTOALLV, 8, -1}, {"Alltoallw", LWM_ALLTOALLW, 8, -1}, {"Reduce_scatter", LWM_REDUCE_SCATTER, 5, -1},
    {"Neighbor_allgather", LWM_NEIGHBOR, 6, -1}, {"Neighbor_alltoall", LWM_NEIGHBOR, 6, -1}, {"Neighbor_allgatherv", LWM_NEIGHBOR, 7, -1},
    {"Neighbor_alltoallv", LWM_NEIGHBOR, 8, -1}, {"Neighbor_alltoallw", LWM_NEIGHBOR, 8, -1},
};
/* By the number of an entry: the place in `whats`, from 1 on. */
enum { ENTRIES = 512 };
static uint8_t what_of[ENTRIES];

bool lwm_trace_wants(unsigned which, const char *name)
{
    if (!lwm_tracing || which >= ENTRIES) return false;
    size_t length = strlen(name);
    if (length > 2 && strcmp(name + length - 2, "_c") == 0) length -= 2;
    for (size_t i = 0; i < sizeof whats / sizeof *whats; i++) {
        if (strlen(whats[i].name) == length && memcmp(whats[i].name, name, length) == 0) {
            what_of[which] = (uint8_t)(i + 1);
            return true;
        }
    }
    return false;
}

void lwm_trace_saw(int why, size_t bytes)
{
    seen.why = why;
    seen.bytes = bytes;
}

static struct lwm_comm *comm_of(MPI_Comm handle)
{
    struct lwm_comm *found = __atomic_load_n(&lwm_slots[lwm_slot(handle)], __ATOMIC_ACQUIRE);
    if (LWM_LIKELY(found && found->handle == handle)) return found;
    return (lwm_open || lwm_active) && handle != lwm_host.null && handle != (MPI_Comm)0 ? lwm_record_of(handle) : NULL;
}

void lwm_trace_keep(const struct lwm_traced *call)
{
    if (!lwm_tracing) return;
    uint64_t number = __atomic_fetch_add(&header->recorded, 1, __ATOMIC_RELAXED);
    uint32_t at = (uint32_t)(number % header->capacity);
    if (LWM_UNLIKELY(at >= __atomic_load_n(&ready, __ATOMIC_ACQUIRE)) && !reserve(at + 1)) {
        if (__atomic_exchange_n(&lwm_tracing, false, __ATOMIC_RELAXED)) {
            lwm_say("%s: no room for more than %llu calls of rank %d", part, (unsigned long long)number, lwm_world_rank);
        }
        return;
    }
    struct lwm_traced *to = &records[at];
    __atomic_store_n(&to->end_ns, 0, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    struct lwm_traced unfinished = *call;
    unfinished.end_ns = 0;
    *to = unfinished;
    __atomic_store_n(&to->end_ns, call->end_ns, __ATOMIC_RELEASE);
}

/* The memory that `traced` keeps for a call (mpi/build): the arguments that were in registers, and room for 64 bytes more. */
struct frame {
    uintptr_t registers[6];
    const struct what *what;
    struct lwm_comm *comm;
    uint64_t number, start_ns;
    int32_t root;
};
_Static_assert(sizeof(struct frame) <= 112, "mpi/build reserves so much");

__attribute__((visibility("hidden"))) void *lwm_trace_enter(unsigned which, struct frame *frame, const uintptr_t *stack)
{
    const struct what *what = frame->what = &whats[what_of[which] - 1];
#define ARGUMENT(i) ((i) < 6 ? frame->registers[i] : stack[(i) - 6])
    frame->comm = comm_of((MPI_Comm)ARGUMENT(what->comm));
    frame->root = what->root >= 0 ? (int32_t)ARGUMENT(what->root) : -1;
    frame->number = frame->comm ? __atomic_fetch_add(&frame->comm->traced, 1, __ATOMIC_RELAXED) : 0;
    seen.why = -1;
    frame->start_ns = lwm_now_ns();
    return lwm_entry_own(which);
}

__attribute__((visibility("hidden"))) int lwm_trace_leave(const struct frame *frame, int result)
{
    uint64_t end_ns = lwm_now_ns();
    if (!lwm_tracing || result != 0) return result;
    struct lwm_comm *comm = frame->comm;
    struct lwm_traced call = {.start_ns = frame->start_ns, .end_ns = end_ns, .comm = comm ? comm->name : 0, .number = frame->number,
                              .root = frame->root, .rank = -1, .kind = (uint8_t)frame->what->kind};
    if (comm && comm->way != LWM_FIRST) {
        call.rank = comm->rank;
        call.size = comm->size;
    }
    /* A call that was repeated has not been seen. */
    const struct lwm_hot *hot = seen.why < 0 && comm && call.kind < LWM_HOT ? &comm->hot[call.kind] : NULL;
    call.bytes = hot ? hot->bytes : seen.bytes;
    call.why = seen.why >= 0 ? (uint8_t)seen.why : hot && hot->host ? hot->why : LWM_REASONS;
    lwm_trace_keep(&call);
    return result;
}

/* Returns the record of a started call up to its end. */
static struct lwm_traced started(enum lwm_kind kind, size_t bytes, uint64_t start_ns, const struct lwm_comm *comm, int why)
{
    bool placed = comm && comm->way != LWM_FIRST;
    return (struct lwm_traced){.start_ns = start_ns, .comm = comm ? comm->name : 0, .bytes = bytes, .root = -1, .rank = placed ? comm->rank : -1,
                               .size = placed ? comm->size : 0, .kind = (uint8_t)kind, .why = (uint8_t)why, .started = 1};
}

void lwm_trace_ended(enum lwm_kind kind, size_t bytes, uint64_t start_ns, struct lwm_comm *comm)
{
    struct lwm_traced call = started(kind, bytes, start_ns, comm, LWM_REASONS);
    call.end_ns = lwm_now_ns();
    lwm_trace_keep(&call);
}

void lwm_trace_left(uint64_t start_ns, const struct lwm_comm *comm, MPI_Request request)
{
    struct lwm_traced call = started(LWM_NONBLOCKING, seen.bytes, start_ns, comm, seen.why);
    if (start_ns != 0) lwm_trace_begun(&call, request);
}
