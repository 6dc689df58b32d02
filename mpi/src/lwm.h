/*
 * lineweave under an MPI program: declarations that the parts of the library share.
 *
 * The library is preloaded, defines the collectives of MPI, and carries them out by lineweave where it can; all else is passed on to the host's
 * MPI, which it finds among the loaded libraries and is not linked to. Every decision is made from facts that are equal on all ranks, or agreed
 * by them: never from a rank's own datatype or buffer.
 */
#ifndef LWM_H
#define LWM_H

#if defined(LWM_OPENMPI)
#include "abi/openmpi.h"
#elif defined(LWM_MPICH)
#include "abi/mpich.h"
#elif defined(LWM_STANDARD)
#include "abi/standard.h"
#else
#error "say for which binary interface: -DLWM_OPENMPI, -DLWM_MPICH or -DLWM_STANDARD"
#endif

#include "samples.h"

#include <lineweave.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LWM_LIKELY(x) __builtin_expect(!!(x), 1)
#define LWM_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* ---- the host's MPI (host.c) ---- */

typedef int lwm_copy_attr(MPI_Comm, int, void *, void *, void *, int *);
typedef int lwm_delete_attr(MPI_Comm, int, void *, void *);
typedef int lwm_query(void *, MPI_Status *);
typedef int lwm_free(void *);
typedef int lwm_cancel(void *, int);

struct lwm_host {
#define H(result, name, parameters) result(*name) parameters;
#include "host.def"
#undef H
    MPI_Comm world, self, null;
    MPI_Errhandler errors_return;
    MPI_Request no_request;
    MPI_Info no_info;
    MPI_Datatype no_type, byte, integer, long_long, real;
    MPI_Op sum, min, max;
};
extern struct lwm_host lwm_host;
/* The name of this program's MPI, such as `Intel MPI`; the interface's name until the MPI is found. */
extern const char *lwm_host_title;

/* The host's MPI_x, or its PMPI_x. Ends the program with one line when there is neither. */
void *lwm_next(const char *name);
/* As lwm_next, but returns null instead of ending the program. */
void *lwm_next_or_null(const char *name);
/* The host's PMPI_x, or what comes before it under that name, or null; and the host's alone. */
void *lwm_pmpi(const char *name);
void *lwm_pmpi_of_library(const char *name);
/* Returns MPI_x, or PMPI_x, of a tool that comes between this library and the host, with its file where that is asked for; null: there is none. */
void *lwm_tool(const char *name, bool profiled, const char **file);
/* Finds the host. False, with the reason said, when it cannot be used: then everything passes. */
bool lwm_host_open(void);
/* Returns whether a file's name is that of an MPI library. */
bool lwm_is_mpi(const char *path);
/* Returns a function that does the work of MPI_x_c by MPI_x of another MPI that lacks the former (entries_large.c); null where there is none. */
void *lwm_large_as_small(const char *name, void *library);
/* Returns the address of an object of the host. */
void *lwm_host_object(const char *name);

#ifdef LWM_HANDLES_BY_NAME
#define LWM_NAMED(type, token) ((type)lwm_host_object(#token))
#define LWM_HANDLE(type, token) LWM_NAMED(type, token)
#else
#define LWM_HANDLE(type, token) ((type)(token))
#endif
#define LWM_KEY(handle) ((uintptr_t)(handle))

/* ---- counts for the report (report.c) ---- */

enum lwm_kind {
#define K(name, text) LWM_##name,
#include "kinds.def"
#undef K
    LWM_KINDS
};

/* Kinds that may be taken over come first. */
#define LWM_TAKEN (LWM_REDUCE_SCATTER + 1)

enum lwm_reason {
#define R(name, text) LWM_##name,
#include "reasons.def"
#undef R
    LWM_REASONS
};

/* Classes of sizes: 0 B, to 64 B, 1 KiB, 16 KiB, 256 KiB, 4 MiB, more. */
#define LWM_CLASSES 7
static inline int lwm_class(size_t bytes)
{
    if (bytes == 0) return 0;
    int bits = 64 - __builtin_clzll((bytes - 1) | 1);
    return bits <= 6 ? 1 : bits <= 10 ? 2 : bits <= 14 ? 3 : bits <= 18 ? 4 : bits <= 22 ? 5 : 6;
}

/* Returns the class of a contest. It is finer, each power of two, since the faster side changes within a class of the report: 0 B, to 1, 2, 4 B
 * .. 8 MiB, more. */
#define LWM_RACE_CLASSES 26
static inline int lwm_race_class(size_t bytes)
{
    int bits = bytes <= 1 ? (int)bytes : 65 - __builtin_clzll(bytes - 1);
    return bits < LWM_RACE_CLASSES ? bits : LWM_RACE_CLASSES - 1;
}

/* The counts of one rank for one kind of call and one class of size. */
struct lwm_count {
    uint64_t taken, taken_bytes, taken_timed, taken_ns;
    uint64_t passed, passed_timed, passed_ns;
    uint64_t why[LWM_REASONS];
    /* Filled in for the report: medians of a call in ps, and for how many ranks they are known; what this rank saved, with its interval. */
    struct {
        uint64_t ours_ps, ours, theirs_ps, theirs, ranks;
        int64_t saved_ns, low_ns, high_ns;
    } sums;
};
extern struct lwm_count lwm_counts[LWM_KINDS][LWM_CLASSES];
/* Times in ns of timed calls of lineweave's and the host's, and by how much lineweave was faster in pairs of turns of contests. */
struct lwm_times {
    struct lwm_samples ours, theirs, gains;
};
extern struct lwm_times lwm_times[LWM_KINDS][LWM_CLASSES];
/* Names of the kinds of calls and of the reasons, as reports have them. */
extern const char *const lwm_kind_names[LWM_KINDS], *const lwm_reason_names[LWM_REASONS];

/* Costs of communicators at this rank before lineweave could serve them: the number that got a team, the number of these by meeting, and their
 * time within calls and beside them; the calls that waited for any of this; 1 if the process may start no thread for it; the plans that they held at
 * their end, or when the table was made, and the time to make all their plans; and the contests whose verdict was known before (verdicts.c). */
enum { LWM_TEAMS, LWM_MET, LWM_TEAMS_NS, LWM_BESIDE_NS, LWM_WAITED, LWM_THREADLESS, LWM_PLANS, LWM_PLANS_NS, LWM_RECALLED, LWM_SETUP };
extern uint64_t lwm_setup[LWM_SETUP];
/* Counts a call in which this rank waits for others to agree, to meet or to join, or for a plan. Once for each such call. */
static inline void lwm_waits(void) { __atomic_fetch_add(&lwm_setup[LWM_WAITED], 1, __ATOMIC_RELAXED); }

uint64_t lwm_now_ns(void);
/* Returns whether the n-th call is timed: the first ones, and then one in 64. */
static inline bool lwm_is_timed(uint64_t n) { return n < 16 || (n & 63) == 0; }
void lwm_report(bool of_all);
/* Prints one line on standard error, from rank 0 or from a rank alone; nothing with LINEWEAVE_QUIET=1. */
void lwm_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- the settings (init.c) ---- */

struct lwm_settings {
    bool quiet;
    int ranks_per_node;   /* 0: as they are */
    int leaders;          /* ranks of a node that talk to other nodes */
    uint64_t after;       /* calls that all ranks of a communicator carried out before it may get a team */
    bool counts;          /* whether it gets one at that count, and not when they have cost what a team costs */
    bool race;            /* whether the host is kept where it is faster */
    bool beside;          /* whether teams form beside the program */
    const char *report;   /* a file, or null */
    const char *link;     /* the same: for what messages between nodes take */
    bool links;           /* whether rank 0 has that file */
};
extern struct lwm_settings lwm_settings;
/* The settings that rank 0 decides for all, in 16 bytes; `links` is true if it has a file for measuring messages between nodes. */
struct lwm_rules {
    uint64_t after;
    uint32_t ranks_per_node;
    uint8_t leaders;
    bool counts : 1, race : 1, links : 1, beside : 1;
};
/* Return this rank's own settings, and replace them by those of rank 0. */
struct lwm_rules lwm_rules_here(void);
void lwm_follow(struct lwm_rules rules);
/* lwm_open: from MPI_Init on, with a host that can be used, until it is known whether all ranks have the library. lwm_active: from then to
 * MPI_Finalize, if they do. */
extern _Atomic bool lwm_open, lwm_active;
/* Finds out whether all ranks of MPI_COMM_WORLD have the library. All of them call it at the same place of the program (calls.c, wrappers.c). */
void lwm_set_up(void);
/* Time at which MPI_Init was over. */
extern uint64_t lwm_began_ns;
/* True if threads may call at the same time. */
extern bool lwm_threads;
/* Adds to a counter of the report. */
static inline void lwm_add(uint64_t *counter, uint64_t n)
{
    if (LWM_UNLIKELY(lwm_threads)) __atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
    else *counter += n;
}

#include "comms.h"

/* ---- their teams (teams.c) ---- */

extern MPI_Group lwm_world_group;
/* Lets the host move messages while a rank waits in lineweave; the argument is that of lineweave's hook. */
void lwm_progress(void *unused);
/* Counts a call of a new communicator that every rank entered, and makes its team when that is due. All ranks call it directly after the same
 * call. `fine` is true if the call went well at this rank; otherwise no team is made. */
void lwm_comm_came(struct lwm_comm *comm, bool fine);
/* Makes the team of a communicator; afterwards its way is known. Arguments as above. */
void lwm_comm_settle(struct lwm_comm *comm, bool fine);
/* Record that a communicator has its team now, or never will. */
void lwm_comm_has_team(struct lwm_comm *comm, enum lwm_way way);
void lwm_comm_has_none(struct lwm_comm *comm);
/* Returns the time that a team has cost this rank lately; and records the cost of one, and the time within calls or beside them (LWM_TEAMS_NS,
 * LWM_BESIDE_NS). */
uint64_t lwm_team_ns(void);
void lwm_team_cost(uint64_t cost_ns, uint64_t took_ns, int where);
/* Returns the node of each rank of a communicator, followed by each rank in MPI_COMM_WORLD, in memory that the caller frees; null when a rank is
 * not there, or without memory. */
int *lwm_nodes_of(MPI_Comm comm, int size);
/* The node of each rank of MPI_COMM_WORLD, as a number. */
extern int *lwm_node_of;
extern int lwm_world_size, lwm_world_rank;
/* Measures messages between two nodes (link.c); called by all ranks. */
void lwm_link(void);
/* Adds the counts that plain barriers keep beside the table. */
void lwm_comm_count(struct lwm_comm *comm);

/* ---- types and operators (handles.c) ---- */

enum lwm_combines { NOTHING, INTEGER, REAL, BITS, TRUTH, COMPLEX, PAIR };

struct lwm_type {
    uintptr_t key;
    size_t size;       /* bytes of data */
    ptrdiff_t extent;  /* from one element to the next */
    bool dense;        /* elements lie in order and without gaps from address 0 on */
    bool run;          /* one element lies in order and without gaps, from byte `first` on */
    size_t first;
    bool predefined;
    uint8_t combines;
    int8_t known;      /* 0: not a type */
    lw_type element;   /* lineweave's */
    size_t step;       /* bytes from one of lineweave's elements to the next: with the gaps of a pair */
    size_t align;
};
bool lwm_types_open(void);
/* Asks the host about types that MPI does not let be combined. */
void lwm_types_ask(void);
/* Returns the bytes of a predefined type, without asking the host; 0 for others. */
size_t lwm_size_of_known(MPI_Datatype type);
/* Describes a type; false when it is none. */
bool lwm_type_of(MPI_Datatype type, struct lwm_type *to);
/* Returns lineweave's operator on this type, or -1. */
int lwm_op_of(MPI_Op op, const struct lwm_type *type);

/* ---- operators of the program (operators.c) ---- */

/* Returns lineweave's operator for one that the program made, or -1. The next call that uses it is on this type. */
lw_op lwm_own_op(MPI_Op op, MPI_Datatype type);
/* MPI_Op_create; a function of Fortran's gets the type as Fortran knows it. */
int lwm_create_op(void (*function)(void *, void *, int *, MPI_Datatype *), int commutes, MPI_Op *op, bool fortran);
#ifdef LWM_OPENMPI
/* Whether an address is in the host's Fortran libraries (fortran.c). */
bool lwm_is_fortran(const void *caller);
#endif
/* Returns lineweave's operator for any operator, or -1; for the program's own, the type's element becomes bytes (folds.c). */
lw_op lwm_combining(MPI_Op op, MPI_Datatype type, struct lwm_type *info);

/* ---- buffers that are not as lineweave needs them (stage.c) ---- */

/* Returns bytes of this thread's scratch number `which`, valid until the next request of that number; null without memory. */
enum { LWM_SCRATCH_IN, LWM_SCRATCH_OUT, LWM_SCRATCH_COUNTS, LWM_SCRATCH_NODES, LWM_SCRATCH_NODES_2, LWM_SCRATCH_NODES_3,
       LWM_SCRATCHES };
void *lwm_scratch(int which, size_t bytes);
bool lwm_pack(const void *from, size_t count, MPI_Datatype type, const struct lwm_type *info, void *to, MPI_Comm comm);
bool lwm_unpack(const void *from, void *to, size_t count, MPI_Datatype type, const struct lwm_type *info, MPI_Comm comm);

#include "call.h"

#endif
