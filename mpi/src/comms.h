/* The records of communicators (comms.c). Included by lwm.h, whose declarations it uses. */
#ifndef LWM_COMMS_H
#define LWM_COMMS_H

enum lwm_way {
    LWM_FIRST, /* of it only its name is known */
    LWM_NEW,   /* counted until it is worth a team */
    LWM_FORMS, /* passes while a thread forms its team */
    LWM_TEAM,  /* one team has all ranks */
    LWM_NODES, /* a team a node, and the host between leaders */
    LWM_AWAY,  /* passes for ever, and `why` says why */
};

/* State of choosing plans for a kind of call and race class (planning.c): those of the first call's shape come first, then the rest. What is begun and
 * has no `planning` is not possible at this rank. */
enum { LWM_UNPLANNED, LWM_FIRST_BEGUN, LWM_FIRST_PLANNED, LWM_REST_BEGUN, LWM_PLANNED };

/* State of the contests of lineweave and the host for one kind of call and race class. */
struct lwm_race {
    uint64_t left;        /* calls until the next contest; 0: one is under way */
    uint32_t calls;       /* of the turn under way */
    uint8_t turn;         /* of the contest under way */
    uint8_t host;         /* 1: the host won the last one, and is called */
    uint8_t contest;      /* how many are over */
    uint8_t pace;         /* the race class whose turns it has; 0: not known yet */
    uint8_t loose;        /* turns of the first contest between whose calls the program did other things; then whether it does */
    uint8_t clear;        /* looks in a row at which lineweave was far ahead */
    uint8_t planned;      /* whether its plans were chosen beside the program (planning.c) */
    bool decided;         /* true if one was held, and was not only settled by what was known (verdicts.c) */
    uint32_t looked_calls;
    uint64_t began_ns, looked_ns;  /* the turn under way; of it, until the last look */
    uint64_t turn_ns, half_ns;     /* of the turn under way; of its first half, if it is over and halves count */
    uint64_t ours_ns;              /* of lineweave's latest turn */
    struct lwm_planning *planning; /* what is under way of that, or null */
    uint64_t shape;                /* of the first call, whose plans come first */
    uint64_t best_ns[2][2];        /* of ours and of the host's: of the fastest first half, where halves count, and of the fastest rest */
};

/* The last call of a kind, on predefined types and operators, which may come again: its form for lineweave, so that it is recognised by a few
 * comparisons. The time between two short calls decides whether a line goes between ranks once or twice. */
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
    bool host;            /* it passes */
    bool meets;           /* of those that pass: no rank leaves it before all entered it */
    uint8_t why;          /* the reason for which it passes */
    struct lwm_race *race;         /* the contest that it counts for, or null */
    struct lwm_planning *planning; /* the choice of plans that it is numbered for, or null */
};
/* Number of the kinds that are kept: up to ALLTOALL. */
#define LWM_HOT (LWM_ALLTOALL + 1)

struct lwm_nodes;
struct lwm_forming;
struct lwm_planning;

struct lwm_comm {
    MPI_Comm handle;
    enum lwm_way way;
    enum lwm_reason why;
    int rank, size;
    lw_comm *team;
    /* A second communicator of the same ranks for started calls: mpi4py starts some before a blocking call at one rank and after it at another,
     * which hosts tolerate. Null when there is none, and then they pass. */
    lw_comm *started;
    struct lwm_nodes *nodes;
    /* How its team forms, or was formed, beside the program; null: within a call, or not yet. */
    struct lwm_forming *forming;
    /* A number that communicators of the same ranks of MPI_COMM_WORLD in the same order have; 0: none. */
    uint64_t members;
    /* Blocking and started calls, until a team forms beside the program. */
    uint64_t numbers[2];
    /* Number of calls that every rank carried out while the communicator is new (lwm_passed). */
    uint64_t calls;
    /* Time of the calls that passed while it was new, and the number of calls at which that is examined next. */
    uint64_t passed_ns, look_at;
    /* Of short calls one in eight is timed, for all that were not since the last: how many are still to go by untimed, and how many have. */
    uint32_t untimed_left, untimed;
    /* Calls that may pass as those before them, without all steps, until ranks have to agree on something (repeats.c): how many still may, and were
     * allowed to (0: any number, and the first of these means nothing); those of them that all ranks entered; the kinds of which one is known, a bit
     * each; and the way that it was known for. */
    uint64_t pass_left;
    uint32_t pass_given, pass_met, pass_kinds;
    enum lwm_way pass_way;
    /* True if the last call that was timed was short; and if a contest was decided. */
    bool brief, decided;
    /* Its name, which all its ranks on this node compute alike (names.c), 0: none; the number of communicators that were made from it, and the
     * groups that made some. */
    uint64_t name, made;
    struct lwm_group_count *groups;
    /* The word by which ranks agree to form a team (agree.c), null when they cannot; collectives passed to the host, the number of the next one
     * to agree at, and the attempts of either kind so far; the time since which they count; and the part of `passed_ns` that the others were
     * told. */
    struct lwm_line *line;
    struct lwm_word *word;
    uint64_t position, agrees_at, attempt, looks, since_ns, told_ns;
    /* True if it has ranks of another MPI_COMM_WORLD, which were spawned or spawned these. */
    bool foreign;
    /* Barriers until one that does more than lw_barrier, and those that were not counted yet, these included. */
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

/* Returns the record of a communicator whose last call of this kind may be repeated without all steps; null for others. */
static inline struct lwm_comm *lwm_hot(MPI_Comm comm, enum lwm_kind kind)
{
    struct lwm_comm *found = __atomic_load_n(&lwm_slots[lwm_slot(comm)], __ATOMIC_ACQUIRE);
    return LWM_LIKELY(found && found->handle == comm && found->hot[kind].left > 1) ? found : NULL;
}
/* Returns whether buffers suit lineweave as they are: aligned, two, and not in place. */
static inline bool lwm_plain(const struct lwm_hot *hot, const void *give, const void *take, size_t most)
{
    uintptr_t a = (uintptr_t)give, b = (uintptr_t)take;
    bool there = give && take && give != LWM_IN_PLACE && take != LWM_IN_PLACE;
    return there && ((a | b) & (hot->align - 1)) == 0 && (a > b ? a - b : b - a) >= most;
}

struct lwm_comm *lwm_comm_slow(MPI_Comm comm);
/* An attribute that a duplicate of its communicator does not get. */
lwm_copy_attr lwm_no_copy;
/* Returns the record of a communicator, made if need be, without examining the communicator; null without memory. */
struct lwm_comm *lwm_record_of(MPI_Comm comm);
/* Returns the state of a communicator; null for a handle that is none. */
static inline struct lwm_comm *lwm_comm_of(MPI_Comm comm)
{
    /* Acquire: with the release that published it. Records are never unmapped, so a stale one is only another key. */
    struct lwm_comm *found = __atomic_load_n(&lwm_slots[lwm_slot(comm)], __ATOMIC_ACQUIRE);
    if (LWM_LIKELY(found && found->handle == comm)) return found;
    return lwm_comm_slow(comm);
}
/* Prepares this rank for itself; returns whether that worked. */
bool lwm_comms_open(void);
/* Finds out which ranks share a node, once all are known to be there: on several nodes by an exchange, which includes rank 0's settings. */
bool lwm_comms_meet(void);
/* As lwm_comm_of, and counts a collective that is passed to the host or may be; returns null also while it is not known whether all ranks are
 * there. `which`: the kind as which it is numbered for a change-over (beside.c), by the communicator that is stored then. */
enum { LWM_BLOCKING, LWM_STARTED, LWM_UNNUMBERED };
struct lwm_comm *lwm_comm_counted(MPI_Comm comm, int which, struct lwm_comm **numbered);
void lwm_comms_count(void);
/* Completes the started calls of a communicator that is about to be freed. */
void lwm_comm_finish(MPI_Comm comm);
void lwm_comms_close(void);

#endif
