/*
 * lineweave under an MPI program: what the parts of the library share.
 *
 * The library is preloaded, defines the collectives of MPI, and carries them out by lineweave where it can; all else is
 * passed on to the host's MPI, which it finds among the loaded libraries and is not linked to. What is decided is
 * decided from what is equal on all ranks, or agreed by them: never from a rank's own datatype or buffer.
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
/* What this program's MPI calls itself, as `Intel MPI`; the interface's name until it is found. */
extern const char *lwm_host_title;

/* The host's MPI_x, or its PMPI_x. Ends the program with one line when there is neither. */
void *lwm_next(const char *name);
/* The same, or null. */
void *lwm_next_or_null(const char *name);
/* The host's PMPI_x, or what comes before it under that name, or null; and the host's alone. */
void *lwm_pmpi(const char *name);
void *lwm_pmpi_of_library(const char *name);
/* MPI_x of a tool that comes between this library and the host, or null. */
void *lwm_tool(const char *name);
/* Finds the host. False, with the reason said, when it cannot be used: then everything passes. */
bool lwm_host_open(void);
/* Whether a file's name is that of an MPI library. */
bool lwm_is_mpi(const char *path);
/* A function that does what MPI_x_c does, by MPI_x of another MPI that lacks the former (entries_large.c); null where there is none. */
void *lwm_large_as_small(const char *name, void *library);
/* The address of an object of the host. */
void *lwm_host_object(const char *name);

#ifdef LWM_HANDLES_BY_NAME
#define LWM_NAMED(type, token) ((type)lwm_host_object(#token))
#define LWM_HANDLE(type, token) LWM_NAMED(type, token)
#else
#define LWM_HANDLE(type, token) ((type)(token))
#endif
#define LWM_KEY(handle) ((uintptr_t)(handle))

/* ---- what is counted (report.c) ---- */

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

/* Contests are of finer classes, each power of two, since who is faster changes within a class of the report: 0 B, to 1, 2, 4 B .. 8 MiB,
 * more. */
#define LWM_RACE_CLASSES 26
static inline int lwm_race_class(size_t bytes)
{
    int bits = bytes <= 1 ? (int)bytes : 65 - __builtin_clzll(bytes - 1);
    return bits < LWM_RACE_CLASSES ? bits : LWM_RACE_CLASSES - 1;
}

/* What one rank has done in one kind of call of one class of size. */
struct lwm_count {
    uint64_t taken, taken_bytes, taken_timed, taken_ns;
    uint64_t passed, passed_timed, passed_ns;
    /* Contests that were settled, and what lineweave took less in each, a call: the sum, and that of the squares. */
    uint64_t contests;
    int64_t gain_ns, gain_ns2;
    uint64_t why[LWM_REASONS];
};
extern struct lwm_count lwm_counts[LWM_KINDS][LWM_CLASSES];

/* What communicators cost this rank before lineweave could serve them: how many got a team, how many of them by meeting, and their time; and
   how many plans they held at their end, or when the table was made, and the time to make all they ever had. */
enum { LWM_TEAMS, LWM_MET, LWM_TEAMS_NS, LWM_PLANS, LWM_PLANS_NS, LWM_SETUP };
extern uint64_t lwm_setup[LWM_SETUP];

uint64_t lwm_now_ns(void);
/* Counts a contest in which a call took lineweave so much less. */
void lwm_count_gain(struct lwm_count *count, double ns);
/* Whether the n-th call is timed: the first ones, and then one in 64. */
static inline bool lwm_is_timed(uint64_t n) { return n < 16 || (n & 63) == 0; }
void lwm_report(bool of_all);
/* One line on standard error, from rank 0 or from a rank alone; nothing with LINEWEAVE_QUIET=1. */
void lwm_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- the settings (init.c) ---- */

struct lwm_settings {
    bool quiet;
    int ranks_per_node;   /* 0: as they are */
    int leaders;          /* ranks of a node that talk to other nodes */
    uint64_t after;       /* calls that all ranks of a communicator carried out before it may get a team */
    bool counts;          /* whether it gets one at that count, and not when they have cost what a team costs */
    bool race;            /* whether the host is kept where it is faster */
    const char *report;   /* a file, or null */
    const char *link;     /* the same: for what messages between nodes take */
    bool links;           /* whether rank 0 has that file */
};
extern struct lwm_settings lwm_settings;
/* Those that rank 0 decides for all, in 16 bytes; `links`: whether it has a file for what messages between nodes take. */
struct lwm_rules {
    uint64_t after;
    uint32_t ranks_per_node;
    uint8_t leaders;
    bool counts, race, links;
};
/* This rank's own, and those of rank 0 in their place. */
struct lwm_rules lwm_rules_here(void);
void lwm_follow(struct lwm_rules rules);
/* From MPI_Init on, with a host that can be used, until it is known whether all ranks have the library; and from then to MPI_Finalize, if they do. */
extern _Atomic bool lwm_open, lwm_active;
/* Finds out whether all ranks of MPI_COMM_WORLD have the library: called by all of them at the same place of the program (calls.c, wrappers.c). */
void lwm_set_up(void);
/* When MPI_Init was over. */
extern uint64_t lwm_began_ns;
/* Whether threads may call at the same time. */
extern bool lwm_threads;

/* ---- communicators (comms.c) ---- */

enum lwm_way {
    LWM_FIRST, /* of it only its name is known */
    LWM_NEW,   /* counted until it is worth a team */
    LWM_TEAM,  /* one team has all ranks */
    LWM_NODES, /* a team a node, and the host between leaders */
    LWM_AWAY,  /* passes for ever, and `why` says why */
};

/* Contests of lineweave and the host for one kind of call and race class. */
struct lwm_race {
    uint64_t left;        /* calls until the next contest; 0: one is under way */
    uint32_t calls;       /* of the turn under way */
    uint8_t turn;         /* of the contest under way */
    uint8_t host;         /* 1: the host won the last one, and is called */
    uint8_t contest;      /* how many are over */
    uint8_t pace;         /* the race class whose turns it has; 0: not known yet */
    uint8_t loose;        /* turns of the first contest between whose calls the program did other things; then whether it does */
    uint8_t clear;        /* looks in a row at which lineweave was far ahead */
    uint32_t looked_calls;
    uint64_t began_ns, looked_ns;  /* the turn under way; of it, until the last look */
    uint64_t turn_ns, half_ns;     /* of the turn under way; of its first half, if it is over and halves count */
    uint64_t best_ns[2][2];        /* of ours and of the host's: of the fastest first half, where halves count, and of the fastest rest */
};

/* A call that was made last and may come again, on predefined types and operators: what it is for lineweave, so that it is recognised
 * by a few comparisons. What lies between two short calls decides whether a line goes between ranks once or twice. */
struct lwm_hot {
    uint32_t left;        /* calls until one goes the whole way, which counts and times it; 0: none is known */
    uint32_t done;        /* calls not counted yet */
    int root;
    MPI_Datatype type;
    MPI_Op op;
    MPI_Count count;
    size_t bytes, align;
    lw_type element;
    lw_op combine;
    int size_class;
    bool host;            /* it passes, since the host won the contest */
};
/* The kinds that are kept: to ALLTOALL. */
#define LWM_HOT (LWM_ALLTOALL + 1)

struct lwm_nodes;

struct lwm_comm {
    MPI_Comm handle;
    enum lwm_way way;
    enum lwm_reason why;
    int rank, size;
    lw_comm *team;
    /* The same ranks again, for calls that are started: mpi4py starts some before a blocking one at one rank and after it at another,
     * which hosts bear. Null when there is none, and then they pass. */
    lw_comm *started;
    struct lwm_nodes *nodes;
    /* While it is new, the calls that every rank carried out (lwm_passed). */
    uint64_t calls;
    /* How long calls that passed took while it was new, and from how many on that is looked at next. */
    uint64_t passed_ns, look_at;
    /* Its name, which all its ranks on this node give it alike (names.c), 0: none; how many communicators were made from it, and by which groups. */
    uint64_t name, made;
    struct lwm_group_count *groups;
    /* Where ranks agree to form a team (agree.c), null when they cannot; collectives handed to the host, the number of the next one to agree
     * at, and the attempts of either kind so far; since when; and what of `passed_ns` the others were told. */
    struct lwm_line *line;
    struct lwm_word *word;
    uint64_t position, agrees_at, attempt, looks, since_ns, told_ns;
    /* It has ranks of another MPI_COMM_WORLD, which were spawned or spawned these. */
    bool foreign;
    /* Barriers until one that is more than lw_barrier, and those that were not counted yet, these included. */
    uint64_t plain_barriers, barriers;
    /* Blocking calls that were recorded (trace.c). */
    uint64_t traced;
    struct lwm_hot hot[LWM_HOT];
    struct lwm_race races[LWM_TAKEN][LWM_RACE_CLASSES];
    struct lwm_comm *next;
};

#define LWM_SLOTS 1024
extern struct lwm_comm *lwm_slots[LWM_SLOTS];
static inline size_t lwm_slot(MPI_Comm comm)
{
    return (size_t)((uint64_t)LWM_KEY(comm) * 0x9e3779b97f4a7c15u >> 54);
}

/* The communicator's call of this kind that may be repeated without the whole way; null when there is none. */
static inline struct lwm_comm *lwm_hot(MPI_Comm comm, enum lwm_kind kind)
{
    struct lwm_comm *found = __atomic_load_n(&lwm_slots[lwm_slot(comm)], __ATOMIC_ACQUIRE);
    return LWM_LIKELY(found && found->handle == comm && found->hot[kind].left > 1) ? found : NULL;
}
/* Whether buffers are as lineweave wants them: aligned, two, and not in place. */
static inline bool lwm_plain(const struct lwm_hot *hot, const void *give, const void *take, size_t most)
{
    uintptr_t a = (uintptr_t)give, b = (uintptr_t)take;
    bool there = give && take && give != LWM_IN_PLACE && take != LWM_IN_PLACE;
    return there && ((a | b) & (hot->align - 1)) == 0 && (a > b ? a - b : b - a) >= most;
}

struct lwm_comm *lwm_comm_slow(MPI_Comm comm);
/* The record of a communicator, made if need be, without asking what it is; null without memory. */
struct lwm_comm *lwm_record_of(MPI_Comm comm);
/* The state of a communicator; null for a handle that is none. */
static inline struct lwm_comm *lwm_comm_of(MPI_Comm comm)
{
    /* Acquire: with the release that published it. Records are never unmapped, so a stale one is only another key. */
    struct lwm_comm *found = __atomic_load_n(&lwm_slots[lwm_slot(comm)], __ATOMIC_ACQUIRE);
    if (LWM_LIKELY(found && found->handle == comm)) return found;
    return lwm_comm_slow(comm);
}
/* Gets what one rank needs for itself; whether it could. */
bool lwm_comms_open(void);
/* Finds out which ranks share a node, once all are known to be there: on several nodes by an exchange, in which rank 0's settings go along. */
bool lwm_comms_meet(void);
/* The same, with a collective counted that is handed to the host or may be; null also while it is not known whether all ranks are there. */
struct lwm_comm *lwm_comm_counted(MPI_Comm comm);
void lwm_comms_count(void);
/* Completes what was started on a communicator that is about to go. */
void lwm_comm_finish(MPI_Comm comm);
void lwm_comms_close(void);

/* ---- their teams (teams.c) ---- */

extern MPI_Group lwm_world_group;
/* Lets the host move messages while a rank waits in lineweave; a hook of lineweave's, hence the argument. */
void lwm_progress(void *unused);
/* Counts a call of a new communicator that every rank went into, and makes its team when that is due. Called by all ranks directly
 * after the same call. `fine`: it went well at this one; else none is made. */
void lwm_comm_came(struct lwm_comm *comm, bool fine);
/* Makes its team; afterwards its way is known. As above. */
void lwm_comm_settle(struct lwm_comm *comm, bool fine);
/* What a team has cost this rank of late. */
uint64_t lwm_team_ns(void);
/* The node of each rank of a communicator, and behind them each rank in MPI_COMM_WORLD, in memory to free; null when one is not there, or without
 * memory. */
int *lwm_nodes_of(MPI_Comm comm, int size);
/* A number for each rank of MPI_COMM_WORLD: its node. */
extern int *lwm_node_of;
extern int lwm_world_size, lwm_world_rank;
/* Measures what messages between two nodes take (link.c); called by all ranks. */
void lwm_link(void);
/* Adds what a plain barrier counted beside the table. */
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
/* Asks the host what it makes of types that MPI does not let be combined. */
void lwm_types_ask(void);
/* Bytes of a predefined type, without asking the host; 0 for others. */
size_t lwm_size_of_known(MPI_Datatype type);
/* False when it is no type. */
bool lwm_type_of(MPI_Datatype type, struct lwm_type *to);
/* lineweave's operator on this type, or -1. */
int lwm_op_of(MPI_Op op, const struct lwm_type *type);

/* ---- operators of the program (operators.c) ---- */

/* lineweave's operator for one that the program made, or -1. The next call that uses it is on this type. */
lw_op lwm_own_op(MPI_Op op, MPI_Datatype type);
/* MPI_Op_create; a function of Fortran's gets the type as Fortran knows it. */
int lwm_create_op(void (*function)(void *, void *, int *, MPI_Datatype *), int commutes, MPI_Op *op, bool fortran);
#ifdef LWM_OPENMPI
/* Whether an address is in the host's Fortran libraries (fortran.c). */
bool lwm_is_fortran(const void *caller);
#endif
/* lineweave's operator for any, or -1; for the program's own, the type's element becomes bytes (folds.c). */
lw_op lwm_combining(MPI_Op op, MPI_Datatype type, struct lwm_type *info);

/* ---- buffers that are not as lineweave needs them (stage.c) ---- */

/* Bytes of this thread's scratch number `which`, valid until the next request of that number; null without memory. */
enum { LWM_SCRATCH_IN, LWM_SCRATCH_OUT, LWM_SCRATCH_COUNTS, LWM_SCRATCH_NODES, LWM_SCRATCH_NODES_2, LWM_SCRATCH_NODES_3,
       LWM_SCRATCHES };
void *lwm_scratch(int which, size_t bytes);
bool lwm_pack(const void *from, size_t count, MPI_Datatype type, const struct lwm_type *info, void *to, MPI_Comm comm);
bool lwm_unpack(const void *from, void *to, size_t count, MPI_Datatype type, const struct lwm_type *info, MPI_Comm comm);

/* ---- one call (calls.c) ---- */

struct lwm_call {
    struct lwm_comm *comm;
    enum lwm_kind kind;
    enum lwm_reason why;
    int size_class;
    int race_class;       /* equal on all ranks, which a call's size need not be */
    int result;
    size_t bytes;
    uint64_t start_ns;    /* 0: not timed */
    struct lwm_race *race;
    bool introduces;      /* of MPI_COMM_WORLD, while ranks do not know each other */
    /* What each rank takes of every other one. Where that is something, who comes out knows that all went in. */
    MPI_Count each;
    MPI_Datatype each_type;
};

/* Begins a call: true when lineweave is to carry it out; if not, `lwm_away` is next. */
bool lwm_begin(struct lwm_call *call, enum lwm_kind kind, MPI_Comm comm);
/* What this rank gives or takes, for the report of a call that passes. */
void lwm_told(struct lwm_call *call, MPI_Count count, MPI_Datatype type);
/* Leaves a call that was not begun to the host, counted with what this rank gives or takes. Returns false. */
bool lwm_away(struct lwm_call *call, MPI_Count count, MPI_Datatype type);
/* With the size known and the arguments found sound: whether lineweave carries it out now. `alike`: bytes are equal on all
 * ranks; where they are not, sizes of all classes share one contest. */
bool lwm_mine(struct lwm_call *call, size_t bytes, bool alike);
/* A call that moves nothing, which returns at once. Returns true. */
bool lwm_nothing(struct lwm_call *call);
/* A call without memory to pack in. Returns true. */
bool lwm_short(struct lwm_call *call);
/* Ends a call that lineweave carried out. Returns true. */
bool lwm_done(struct lwm_call *call, lw_status status);
/* Keeps a call that lineweave carried out, or the winner of a contest, to be repeated; `hot` says what it is. */
void lwm_heat(const struct lwm_call *call, struct lwm_hot hot);
int lwm_repeat_failed(struct lwm_comm *comm, enum lwm_kind kind);
/* Carries one out, unless it moves nothing. */
#define LWM_REPEAT(hot, status) (LWM_LIKELY((hot)->bytes != 0) ? (status) : LW_OK)
/* One that was repeated; MPI's result. */
static inline int lwm_repeated(struct lwm_comm *comm, enum lwm_kind kind, lw_status status)
{
    if (LWM_UNLIKELY(status != LW_OK)) return lwm_repeat_failed(comm, kind);
    comm->hot[kind].left--;
    comm->hot[kind].done++;
    return 0;
}
/* One that passed again; the host's result. What it refuses does not count. */
static inline int lwm_passed_again(struct lwm_hot *hot, int result)
{
    if (LWM_UNLIKELY(result != 0)) return result;
    hot->left--;
    hot->done++;
    return result;
}
/* Counts what was repeated. */
void lwm_count_hot(struct lwm_comm *comm, enum lwm_kind kind);
/* Leaves a call to the host. Returns false. */
bool lwm_leave(struct lwm_call *call, enum lwm_reason why);
/* Says of a call that `lwm_begin` left to the host what each rank takes of every other one. Returns false. */
bool lwm_meets(struct lwm_call *call, MPI_Count each, MPI_Datatype type);
/* Whether the host refused a call for its arguments, which it does before it sends anything: then this rank did not go into it. */
bool lwm_is_refusal(int result);
/* After the host has carried it out, or refused it. Returns its result. */
int lwm_passed(struct lwm_call *call, int result);
/* Counts a started call that is over, or calls the error handler of its communicator (null: of MPI_COMM_WORLD); MPI's result. */
int lwm_ended(enum lwm_kind kind, size_t bytes, uint64_t start_ns, struct lwm_comm *comm, lw_status status);
/* Counts a call of a kind that always passes, for its communicator too, which is returned. */
struct lwm_comm *lwm_count_passed(enum lwm_kind kind, MPI_Comm comm);

#endif
