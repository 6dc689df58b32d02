/*
 * lineweave: collectives shaped to the machine they run on, among threads and processes of one node.
 *
 *     static lw_status work(lw_comm *comm, void *arg) {
 *         double x = lw_comm_rank(comm), sum;
 *         return lw_allreduce(comm, &x, &sum, 1, LW_F64, LW_SUM);
 *     }
 *     lw_status status = lw_team_threads(4, work, NULL);
 *
 * Every rank of a team makes the same calls in the same order. A call blocks. Those that begin with lw_i, and lw_start, start one,
 * in the same order on all ranks; it is waited for later, and its buffers belong to it until then. A call that blocks
 * first completes those that were started on its communicator. A communicator belongs to one thread at a time.
 *
 * A function that returns lw_status returns LW_OK or what was wrong; lw_last_error() has it in words. `Errors:` names what that can be.
 * "Of calls" stands for what every call on a communicator may return: LW_ERR_HANDLE, LW_ERR_BUSY, LW_ERR_FORKED, LW_ERR_MISMATCH, LW_ERR_PEER,
 * LW_ERR_TIMEOUT, LW_ERR_FAILED, LW_ERR_MEMORY, LW_ERR_PLAN, LW_ERR_PANIC. "Of buffers" stands for LW_ERR_NULL, LW_ERR_ALIGN, LW_ERR_TYPE,
 * LW_ERR_COUNT, LW_ERR_BUFFER.
 *
 * Pointers must be null where a function says so, and else valid for what the call reads and writes. What can be
 * checked is checked: null, misaligned and overlapping buffers, lengths beyond memory, unknown types and operators,
 * communicators that were freed or are in use.
 *
 * Counts are in elements, sizes and offsets in bytes. Where a rank's buffer holds a block for every rank, `count` is the length of
 * one block; blocks lie one after the other in the order of ranks. Buffers that a call does not use at a rank, as recvbuf where
 * it is not the root, are ignored.
 */


#ifndef LINEWEAVE_H
#define LINEWEAVE_H

/* Made by cbindgen from crates/lineweave-c/src. Do not edit. */

#include <stddef.h>
#include <stdint.h>

/*
 * Given for one of two buffers: the other one holds input and output, as in MPI. For sendbuf (at the root only in
 * lw_reduce, lw_gather and lw_gatherv); in lw_scatter and lw_scatterv for recvbuf, at the root.
 */
#define LW_IN_PLACE ((void *)-1)

/*
 * Elements of n bytes, from 1 to 2^30 - 1, that lineweave moves and only an operator of lw_op_create combines. Such
 * elements need no alignment but what that operator asks for.
 */
#define LW_BYTES(n) ((lw_type)(0x40000000 | (n)))


/* The version of this header: this, LW_VERSION_MINOR and LW_VERSION_PATCH. */
#define LW_VERSION_MAJOR 0

/* While the major version is 0, minor versions differ in their interface. */
#define LW_VERSION_MINOR 1

/* Versions that differ in this number alone have the same interface. */
#define LW_VERSION_PATCH 0

/* The version of this header as one number that grows with it, for #if and lw_check_version. */
#define LW_VERSION (((LW_VERSION_MAJOR << 16) | (LW_VERSION_MINOR << 8)) | LW_VERSION_PATCH)

/* The colour of a rank that is to be in no new communicator. */
#define LW_UNDEFINED -1

/* One rank's end of a team. It belongs to one thread at a time. */
typedef struct lw_comm lw_comm;

/* Chooses and proves plans for the calls of a communicator, in a thread beside the one that makes them, and also after it is freed. */
typedef struct lw_planner lw_planner;

/* A call that was started, or one that can be started again and again. It belongs to one thread at a time. */
typedef struct lw_request lw_request;

/* Where ranks of a team make communicators without the team's: from several threads at once, and after it is freed. */
typedef struct lw_site lw_site;

/* A team whose ranks are threads of the program. */
typedef struct lw_team lw_team;

/* What a call returns: LW_OK or one of LW_ERR_. */
typedef int32_t lw_status;

/*
 * Puts in[i] (op) inout[i] into inout[i], for `len` elements of `size` bytes each; `in` holds the contributions of lower
 * ranks. The runs do not overlap and may be any part of a message; an element begins at a multiple of its size from
 * an address that is aligned to 64 bytes, or from the start of a buffer that the program gave. It must return, and
 * not by longjmp or a C++ exception, must not call lineweave, and may be called by several threads at once.
 */
typedef void (*lw_op_fn)(const void *in, void *inout, size_t len, size_t size, void *arg);

/*
 * How two elements are combined: one of these, or what lw_op_create made; with LW_REPRODUCIBLE or without.
 */
typedef enum lw_op {
  /* a + b; integers wrap. */
  LW_SUM = 0,
  /* a * b; integers wrap. */
  LW_PROD = 1,
  /* The lesser; NaN if either operand is. */
  LW_MIN = 2,
  /* The greater; NaN if either operand is. */
  LW_MAX = 3,
  /* The sum, divided once at the end by the number of ranks. */
  LW_AVG = 4,
  /* Bitwise and, integers only. */
  LW_BAND = 5,
  /* Bitwise or, integers only. */
  LW_BOR = 6,
  /* Bitwise exclusive or, integers only. */
  LW_BXOR = 7,
  /* 1 when both are not 0, else 0. */
  LW_LAND = 8,
  /* 1 when either is not 0, else 0. */
  LW_LOR = 9,
  /* 1 when exactly one is not 0, else 0. */
  LW_LXOR = 10,
  /* The pair with the lesser value, of equal ones the one with the lower index; NaN is less than any value. */
  LW_MINLOC = 11,
  /* The pair with the greater value, of equal ones the one with the lower index; NaN is greater than any value. */
  LW_MAXLOC = 12,
  /*
   * Or-ed to an operator for one call, LW_SUM | LW_REPRODUCIBLE: the bits of the result depend on the number of ranks and the elements alone, and not
   * on the algorithm, box sizes, where ranks sit, or whether they are threads or processes. Given by all ranks or none.
   */
  LW_REPRODUCIBLE = 536870912,
  /* None: makes each a signed number of 32 bits. */
  LW_OP_LEAST = INT32_MIN
} lw_op;

#ifdef __cplusplus
static inline lw_op operator|(lw_op a, lw_op b) { return (lw_op)((int32_t)a | (int32_t)b); }
#endif

/* Called over and over while a rank waits, with the argument that was given with it. */
typedef void (*lw_progress_fn)(void *arg);

/* What a rank of lw_team_threads runs. It returns LW_OK, or what lw_team_threads shall return. */
typedef lw_status (*lw_rank_fn)(struct lw_comm *comm, void *arg);

/* Asked while a rank waits for others to meet: 0 ends the wait. */
typedef int (*lw_go_on_fn)(void *arg);

/* What ranks can have in common. */
typedef enum lw_level {
  /* The same core. */
  LW_LEVEL_CORE = 0,
  /* The same last-level cache. */
  LW_LEVEL_L3 = 1,
  /* The same NUMA node. */
  LW_LEVEL_NUMA = 2,
  /* The same package. */
  LW_LEVEL_PACKAGE = 3,
  /* The same machine: all ranks. */
  LW_LEVEL_MACHINE = 4,
  /* None: makes each a signed number of 32 bits. */
  LW_LEVEL_LEAST = INT32_MIN
} lw_level;

/* What a communicator takes of memory. */
typedef struct lw_memory {
  /* Bytes reserved of the memory that its ranks share, by all of them together. */
  size_t shared_bytes;
  /* Bytes of addresses for it in each process. They cost nothing before they are used. */
  size_t address_bytes;
  /* Bytes of this rank alone. */
  size_t private_bytes;
} lw_memory;

/* What the plans of a communicator's calls have cost this rank so far. */
typedef struct lw_setup {
  /* Plans that it holds. Those of calls that were not made for long are given up. */
  size_t plans;
  /* Bytes of memory that they take. */
  size_t plan_bytes;
  /* Nanoseconds in which it chose, proved and compiled plans, or waited for a rank that did. */
  uint64_t took_ns;
  /* Calls that this held up for 100 us or longer. */
  size_t held_up;
} lw_setup;

/* The type of elements: one of these, or LW_BYTES(n). */
typedef enum lw_type {
  /* Signed, 1 byte. */
  LW_I8 = 0,
  /* Signed, 2 bytes. */
  LW_I16 = 1,
  /* Signed, 4 bytes. */
  LW_I32 = 2,
  /* Signed, 8 bytes. */
  LW_I64 = 3,
  /* Unsigned, 1 byte. */
  LW_U8 = 4,
  /* Unsigned, 2 bytes. */
  LW_U16 = 5,
  /* Unsigned, 4 bytes. */
  LW_U32 = 6,
  /* Unsigned, 8 bytes. */
  LW_U64 = 7,
  /* IEEE 754 binary16. */
  LW_F16 = 8,
  /* The upper half of a binary32. */
  LW_BF16 = 9,
  /* IEEE 754 binary32. */
  LW_F32 = 10,
  /* IEEE 754 binary64. */
  LW_F64 = 11,
  /* Two floats, the real part first: float _Complex. */
  LW_COMPLEX_F32 = 12,
  /* Two doubles, the real part first: double _Complex. */
  LW_COMPLEX_F64 = 13,
  /* A truth value of 1 byte, such as _Bool. */
  LW_BOOL = 14,
  /* struct { float value; int32_t index; }: for LW_MINLOC and LW_MAXLOC, as the following ones. */
  LW_FLOAT_INT = 15,
  /* struct { double value; int32_t index; }, 16 bytes. */
  LW_DOUBLE_INT = 16,
  /* struct { int64_t value; int32_t index; }, 16 bytes: long and int on 64-bit Unix. */
  LW_LONG_INT = 17,
  /* struct { int32_t value; int32_t index; }. */
  LW_2INT = 18,
  /* struct { int16_t value; int32_t index; }, 8 bytes. */
  LW_SHORT_INT = 19,
  /* None: makes each a signed number of 32 bits. */
  LW_TYPE_LEAST = INT32_MIN
} lw_type;

/* A barrier for a number of threads. Its fields are lineweave's. */
typedef struct lw_barrier_t {
  uint64_t state;
  const void *inner;
} lw_barrier_t;

/* Kinds of collectives. */
typedef enum lw_collective {
  /* lw_barrier. */
  LW_BARRIER = 0,
  /* lw_bcast. */
  LW_BCAST = 1,
  /* lw_reduce. */
  LW_REDUCE = 2,
  /* lw_allreduce. */
  LW_ALLREDUCE = 3,
  /* lw_gather. */
  LW_GATHER = 4,
  /* lw_scatter. */
  LW_SCATTER = 5,
  /* lw_allgather. */
  LW_ALLGATHER = 6,
  /* lw_reduce_scatter_block. */
  LW_REDUCE_SCATTER = 7,
  /* lw_scan. */
  LW_SCAN = 8,
  /* lw_exscan. */
  LW_EXSCAN = 9,
  /* lw_alltoall. */
  LW_ALLTOALL = 10,
  /* None: makes each a signed number of 32 bits. */
  LW_COLLECTIVE_LEAST = INT32_MIN
} lw_collective;

/* It worked. */
#define LW_OK 0

/* A pointer is null and may not be. */
#define LW_ERR_NULL 1

/* A buffer is not aligned for its elements. */
#define LW_ERR_ALIGN 2

/* No such element type. */
#define LW_ERR_TYPE 3

/* No such operator, or not on this element type. */
#define LW_ERR_OP 4

/* The root is not a rank. */
#define LW_ERR_ROOT 5

/* Lengths that do not fit together, or memory. */
#define LW_ERR_COUNT 6

/* Buffers overlap by part, or LW_IN_PLACE where it cannot be. */
#define LW_ERR_BUFFER 7

/* Not a communicator, team or barrier, or one that was freed. */
#define LW_ERR_HANDLE 8

/* The communicator, team, barrier or request is in use: by another thread, further up in this one, or started. */
#define LW_ERR_BUSY 9

/* A team cannot have that many ranks, or has another number. */
#define LW_ERR_SIZE 10

/* No such rank, it was joined before, or no list of ranks, colour or level that makes a communicator. */
#define LW_ERR_RANK 11

/* Ranks called different things. */
#define LW_ERR_MISMATCH 12

/* Another rank died, left or failed. The communicator cannot be used any more. */
#define LW_ERR_PEER 13

/* Waited longer than LINEWEAVE_TIMEOUT, or for ranks that did not join. */
#define LW_ERR_TIMEOUT 14

/* The communicator failed earlier. */
#define LW_ERR_FAILED 15

/* Not enough memory. */
#define LW_ERR_MEMORY 16

/* The operating system refused something. */
#define LW_ERR_SYSTEM 17

/* A setting, profile, topology, or what a launcher left in the environment cannot be used. */
#define LW_ERR_ENVIRONMENT 18

/* Another version of lineweave, or another user, is on the other side. */
#define LW_ERR_VERSION 19

/* No plan fits, or one was refuted. */
#define LW_ERR_PLAN 20

/* lineweave panicked, which is a bug in it. The communicator cannot be used any more. */
#define LW_ERR_PANIC 21

/* The process was forked since: the communicator belongs to the parent. Let the child make or join a team of its own. */
#define LW_ERR_FORKED 22

/* A message is longer than the buffer for it. It is lost; the communicator can be used on. */
#define LW_ERR_TRUNCATED 30

/* Too many messages with other tags came first. The communicator can be used on. */
#define LW_ERR_UNEXPECTED 31

/* Returned to one of the threads that wait, as by pthread_barrier_wait. */
#define LW_BARRIER_SERIAL_THREAD -1

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 * What a status means, in a few words. Never null; static.
 *
 *     printf("%s\n", lw_strerror(LW_ERR_PEER));
 */
const char *lw_strerror(lw_status status);

/*
 * The last error of this thread in words: what was expected, what was found, what to do. Empty when there was none.
 * Valid until the next error in this thread.
 *
 *     if (lw_barrier(comm) != LW_OK) fprintf(stderr, "%s\n", lw_last_error());
 */
const char *lw_last_error(void);

/*
 * The version of the library, as LW_VERSION is that of the header.
 *
 *     printf("%u.%u\n", lw_version() >> 16, lw_version() >> 8 & 0xff);
 */
uint32_t lw_version(void);

/*
 * Returns whether a program made with the header of that version can use this library. While the major version is 0, minor versions
 * differ in their interface.
 * Errors: LW_ERR_VERSION when it cannot.
 *
 *     if (lw_check_version(LW_VERSION) != LW_OK) return;
 */
lw_status lw_check_version(uint32_t header);

/*
 * Makes an operator of `f`, which is associative, on elements of any type and size. Where it does not commute
 * (`commutes` is 0), contributions are combined in the order of ranks. `arg` is passed on to it. Every rank gives an
 * operator that does the same; threads of one team may share one.
 * Errors: LW_ERR_NULL, LW_ERR_OP.
 *
 *     lw_op_create(combine, 1, NULL, &op);
 *     lw_allreduce(comm, x, y, n, LW_F64, op);
 */
lw_status lw_op_create(lw_op_fn f,
                       int commutes,
                       void *arg,
                       lw_op *op);

/*
 * Gives an operator back, when no call uses it any more. Calls that name it are refused from then on.
 * Errors: LW_ERR_OP when it is none of lw_op_create.
 *
 *     lw_op_free(op);
 */
lw_status lw_op_free(lw_op op);

/*
 * Asks for reproducible results in all calls from now on (1), as LW_REPRODUCIBLE does for one, or no longer (0).
 * LINEWEAVE_REPRODUCIBLE says what holds at first. All ranks ask for the same between the same calls.
 * Errors: of calls.
 *
 *     lw_comm_set_reproducible(comm, 1);
 */
lw_status lw_comm_set_reproducible(struct lw_comm *comm,
                                   int reproducible);

/*
 * This rank, from 0; -1 when it is not a communicator.
 *
 *     int rank = lw_comm_rank(comm);
 */
int lw_comm_rank(const struct lw_comm *comm);

/*
 * The number of ranks; -1 when it is not a communicator.
 *
 *     int size = lw_comm_size(comm);
 */
int lw_comm_size(const struct lw_comm *comm);

/*
 * Leaves the team. Ranks that wait for this one get LW_ERR_PEER. Null is allowed.
 * Errors: LW_ERR_HANDLE, LW_ERR_BUSY.
 *
 *     lw_comm_free(comm);
 */
lw_status lw_comm_free(struct lw_comm *comm);

/*
 * Sets what to call while this rank waits, so that another library can progress; null for nothing. It must not use this
 * communicator (LW_ERR_BUSY).
 * Errors: of calls.
 *
 *     lw_comm_set_progress(comm, poll, NULL);
 */
lw_status lw_comm_set_progress(struct lw_comm *comm,
                               lw_progress_fn progress,
                               void *arg);

/*
 * Has the calling thread sleep three quarters of the time while it forms teams (1), or no longer (0). For a thread beside ranks that take all CPUs:
 * they lose less time to it at a stretch.
 * Errors: none.
 *
 *     lw_thread_throttle(1);
 */
lw_status lw_thread_throttle(int on);

/*
 * Runs f(comm, arg) on `ranks` new threads that form a team, with the settings of the environment, and returns when all
 * have returned: LW_OK, or what the first rank that failed by itself returned. Communicators are freed by
 * lineweave.
 * Errors: LW_ERR_NULL, LW_ERR_SIZE, LW_ERR_ENVIRONMENT, LW_ERR_MEMORY, LW_ERR_SYSTEM.
 *
 *     lw_team_threads(4, work, NULL);
 */
lw_status lw_team_threads(int ranks,
                          lw_rank_fn f,
                          void *arg);

/*
 * A team of `ranks` ranks, with the settings of the environment. Threads join it by lw_team_join.
 * Errors: LW_ERR_NULL, LW_ERR_SIZE, LW_ERR_ENVIRONMENT, LW_ERR_MEMORY, LW_ERR_SYSTEM.
 *
 *     lw_team_create(4, &team);
 */
lw_status lw_team_create(int ranks, struct lw_team **team);

/*
 * Makes the calling thread `rank` of the team. Returns when every rank has joined. Each rank is joined once; threads are
 * not bound to CPUs.
 * Errors: LW_ERR_NULL, LW_ERR_HANDLE, LW_ERR_RANK, LW_ERR_TIMEOUT, LW_ERR_PEER.
 *
 *     lw_team_join(team, rank, &comm);
 */
lw_status lw_team_join(struct lw_team *team,
                       int rank,
                       struct lw_comm **comm);

/*
 * Frees a team. Its communicators remain usable. Null is allowed.
 * Errors: LW_ERR_HANDLE, LW_ERR_BUSY.
 *
 *     lw_team_free(team);
 */
lw_status lw_team_free(struct lw_team *team);

/*
 * Joins the team whose descriptor and rank this process was started with, by `lineweave run` or Team::spawn.
 * Errors: LW_ERR_NULL, LW_ERR_ENVIRONMENT without a launcher, LW_ERR_VERSION, LW_ERR_PEER.
 *
 *     if (lw_comm_from_env(&comm) != LW_OK) return;
 */
lw_status lw_comm_from_env(struct lw_comm **comm);

/*
 * The part of a team of several processes that this process was started for by Team::spawn_mixed: ranks *first to *first + *count - 1,
 * which its threads join by lw_team_join. Threads of several processes that meet by lw_comm_connect form such a team too.
 * Errors: LW_ERR_NULL, LW_ERR_ENVIRONMENT without a launcher, LW_ERR_VERSION.
 *
 *     int first, count;
 *     lw_team_from_env(&team, &first, &count);
 */
lw_status lw_team_from_env(struct lw_team **team,
                           int *first,
                           int *count);

/*
 * Joins `size` processes of one user that meet at a Unix socket: a path of at most 107 bytes, or @name, which leaves no
 * file behind. Rank 0 listens there, the others may come before or after it. Returns when all have come.
 * Ranks wait for each other for a minute, or for LINEWEAVE_TIMEOUT where that is shorter. If rank 0 cannot go on, it tells the others.
 * Errors: LW_ERR_NULL, LW_ERR_SIZE, LW_ERR_RANK, LW_ERR_TIMEOUT, LW_ERR_VERSION, LW_ERR_SYSTEM.
 *
 *     lw_comm_connect("@my-program", rank, size, &comm);
 */
lw_status lw_comm_connect(const char *path,
                          int rank,
                          int size,
                          struct lw_comm **comm);

/*
 * lw_comm_connect of processes that a launcher has placed: rank r runs on CPU cpus[r], and all of them together may use the
 * `allowed_count` CPUs of `allowed`, by the operating system's numbers. No thread is bound, whatever LINEWEAVE_BIND says,
 * and first calls wait for their plans: a planner chooses them beside (lw_comm_planner). Memory that only long messages need is reserved when a
 * plan first needs it.
 * Rank 0's lists count. While it waits for others it calls go_on(arg), unless that is null, at least 20 times a second; when that
 * returns 0, because another rank is known not to come, it gives up.
 * Errors: those of lw_comm_connect; LW_ERR_TIMEOUT also for giving up.
 *
 *     const int cpus[] = {0, 1}, allowed[] = {0, 1};
 *     lw_comm_connect_on("@my-program", rank, 2, cpus, allowed, 2, NULL, NULL, &comm);
 */
lw_status lw_comm_connect_on(const char *path,
                             int rank,
                             int size,
                             const int *cpus,
                             const int *allowed,
                             int allowed_count,
                             lw_go_on_fn go_on,
                             void *arg,
                             struct lw_comm **comm);

/*
 * A communicator of the same ranks, whose calls have nothing to do with those of comm. Every rank of comm calls it. New
 * communicators live on when comm is freed. They cost a few pages until they are used.
 * Errors: of calls, LW_ERR_NULL, LW_ERR_MEMORY.
 *
 *     lw_comm_dup(comm, &made);
 */
lw_status lw_comm_dup(struct lw_comm *comm,
                      struct lw_comm **made);

/*
 * One communicator for each colour, of the ranks that give it, in the order of their keys; ranks with equal keys in their order
 * in comm. A colour is not negative, or LW_UNDEFINED: then this rank is in none, and gets null. Every rank of comm calls it.
 * Errors: of calls, LW_ERR_NULL, LW_ERR_RANK for another colour, LW_ERR_MEMORY.
 *
 *     lw_comm_split(comm, lw_comm_rank(comm) % 2, 0, &made);
 */
lw_status lw_comm_split(struct lw_comm *comm,
                        int colour,
                        int key,
                        struct lw_comm **made);

/*
 * One communicator for each core, last-level cache, NUMA node or package, of the ranks that were placed there, in their order in
 * comm. Every rank of comm calls it.
 * Errors: of calls, LW_ERR_NULL, LW_ERR_RANK for another level, LW_ERR_MEMORY.
 *
 *     lw_comm_split_level(comm, LW_LEVEL_NUMA, &made);
 */
lw_status lw_comm_split_level(struct lw_comm *comm,
                              lw_level level,
                              struct lw_comm **made);

/*
 * A communicator of `count` ranks of comm, in the order of the list. They, and nobody else, call it, with equal lists.
 * Errors: of calls, LW_ERR_NULL, LW_ERR_RANK for another list, LW_ERR_MEMORY.
 *
 *     const int ranks[] = {0, 2};
 *     lw_comm_create_group(comm, ranks, 2, &made);
 */
lw_status lw_comm_create_group(struct lw_comm *comm,
                               const int *ranks,
                               size_t count,
                               struct lw_comm **made);

/*
 * This rank's site for communicators of ranks of comm. It does not communicate.
 * Errors: of calls, LW_ERR_NULL.
 *
 *     lw_comm_site(comm, &site);
 */
lw_status lw_comm_site(struct lw_comm *comm, struct lw_site **site);

/*
 * Takes a place for a communicator of these `ranks` ranks of the team in this order, which this rank then tells to all of them.
 * Errors: LW_ERR_NULL, LW_ERR_HANDLE, LW_ERR_RANK, LW_ERR_SIZE, LW_ERR_MEMORY.
 *
 *     const int members[] = {0, 1};
 *     lw_site_place(site, members, 2, &place);
 */
lw_status lw_site_place(struct lw_site *site,
                        const int *members,
                        int ranks,
                        uint64_t *place);

/*
 * Joins a communicator at each of `count` places, of these `ranks` ranks of the team in this order, and puts them into made[0] to
 * made[count - 1]. They, and nobody else, call it, with equal places and lists. `progress` is as in lw_comm_set_progress, for the
 * communicators and for the time until all have come.
 * Errors: LW_ERR_NULL, LW_ERR_HANDLE, LW_ERR_RANK, LW_ERR_FAILED, LW_ERR_MEMORY.
 *
 *     const int members[] = {0, 1};
 *     lw_site_join(site, &place, 1, members, 2, poll, NULL, &made);
 */
lw_status lw_site_join(struct lw_site *site,
                       const uint64_t *places,
                       int count,
                       const int *members,
                       int ranks,
                       lw_progress_fn progress,
                       void *arg,
                       struct lw_comm **made);

/*
 * In place of lw_site_join, with its arguments: that of the other members fails.
 * Errors: LW_ERR_NULL, LW_ERR_HANDLE, LW_ERR_RANK, LW_ERR_SYSTEM.
 *
 *     const int members[] = {0, 1};
 *     lw_site_decline(site, &place, 1, members, 2);
 */
lw_status lw_site_decline(struct lw_site *site,
                          const uint64_t *places,
                          int count,
                          const int *members,
                          int ranks);

/*
 * Frees a site. Communicators that were made there remain usable. Null is allowed.
 * Errors: LW_ERR_HANDLE, LW_ERR_BUSY.
 *
 *     lw_site_free(site);
 */
lw_status lw_site_free(struct lw_site *site);

/*
 * What comm takes of memory.
 * Errors: of calls, LW_ERR_NULL.
 *
 *     lw_memory memory;
 *     lw_comm_memory(comm, &memory);
 */
lw_status lw_comm_memory(struct lw_comm *comm, struct lw_memory *memory);

/*
 * What the plans of comm's calls have cost this rank so far.
 * Errors: of calls, LW_ERR_NULL.
 *
 *     lw_setup setup;
 *     lw_comm_setup(comm, &setup);
 */
lw_status lw_comm_setup(struct lw_comm *comm, struct lw_setup *setup);

/*
 * A buffer of `bytes` bytes, zero at first and aligned to a page, in memory that all ranks share; null when it is to have none. Every
 * rank of comm calls it, and each says how many bytes it wants for itself. Where every rank gives such buffers to a call on
 * comm, or on a communicator that is made from it later, long messages are read, combined and written where they lie,
 * also between processes. Freed by lw_free, or when the process ends.
 * Errors: of calls, LW_ERR_NULL, LW_ERR_MEMORY when all ranks together want more than can be had.
 *
 *     void *buffer;
 *     lw_alloc(comm, 1 << 20, &buffer);
 */
lw_status lw_alloc(struct lw_comm *comm,
                   size_t bytes,
                   void **buffer);

/*
 * Gives the memory of a buffer of lw_alloc back. This rank alone calls it, also when comm was freed. Null is allowed.
 * Errors: LW_ERR_BUFFER when lw_alloc did not give it.
 *
 *     lw_free(buffer);
 */
lw_status lw_free(void *buffer);

/*
 * Sets whether long calls on comm find out if all ranks give buffers of lw_alloc: 0 for no. All ranks say the same between the same
 * calls. lw_alloc turns it on; it costs a call that asks about as much as a barrier.
 * Errors: of calls.
 *
 *     lw_comm_set_shared_buffers(comm, 0);
 */
lw_status lw_comm_set_shared_buffers(struct lw_comm *comm,
                                     int32_t on);

/*
 * Returns when every rank has called it.
 * Errors: of calls.
 *
 *     lw_barrier(comm);
 */
lw_status lw_barrier(struct lw_comm *comm);

/*
 * Combines every rank's sendbuf, `count` elements, elementwise in every rank's recvbuf, with the same bits everywhere.
 * Errors: of calls, of buffers, LW_ERR_OP.
 *
 *     lw_allreduce(comm, x, y, n, LW_F64, LW_SUM);
 */
lw_status lw_allreduce(struct lw_comm *comm,
                       const void *sendbuf,
                       void *recvbuf,
                       size_t count,
                       lw_type type,
                       lw_op op);

/*
 * Copies `count` elements of the root's buffer into every other rank's.
 * Errors: of calls, of buffers, LW_ERR_ROOT.
 *
 *     lw_bcast(comm, x, n, LW_F64, 0);
 */
lw_status lw_bcast(struct lw_comm *comm, void *buffer, size_t count, lw_type type, int root);

/*
 * Combines every rank's sendbuf, `count` elements, elementwise in the root's recvbuf.
 * Errors: of calls, of buffers, LW_ERR_OP, LW_ERR_ROOT.
 *
 *     lw_reduce(comm, x, y, n, LW_F64, LW_SUM, 0);
 */
lw_status lw_reduce(struct lw_comm *comm,
                    const void *sendbuf,
                    void *recvbuf,
                    size_t count,
                    lw_type type,
                    lw_op op,
                    int root);

/*
 * Gathers `count` elements of every rank in the root's recvbuf, in the order of ranks.
 * Errors: of calls, of buffers, LW_ERR_ROOT.
 *
 *     lw_gather(comm, x, all, n, LW_F64, 0);
 */
lw_status lw_gather(struct lw_comm *comm,
                    const void *sendbuf,
                    void *recvbuf,
                    size_t count,
                    lw_type type,
                    int root);

/*
 * Gives block r of the root's sendbuf to rank r, `count` elements each.
 * Errors: of calls, of buffers, LW_ERR_ROOT.
 *
 *     lw_scatter(comm, all, x, n, LW_F64, 0);
 */
lw_status lw_scatter(struct lw_comm *comm,
                     const void *sendbuf,
                     void *recvbuf,
                     size_t count,
                     lw_type type,
                     int root);

/*
 * Gathers `count` elements of every rank in every rank's recvbuf, in the order of ranks.
 * Errors: of calls, of buffers.
 *
 *     lw_allgather(comm, x, all, n, LW_F64);
 */
lw_status lw_allgather(struct lw_comm *comm,
                       const void *sendbuf,
                       void *recvbuf,
                       size_t count,
                       lw_type type);

/*
 * Combines every rank's sendbuf, which has a block of `count` elements for each rank, and gives block r of the result to
 * rank r. In place recvbuf is as long as the input, and the result is at its start; what is behind may have changed.
 * Errors: of calls, of buffers, LW_ERR_OP.
 *
 *     lw_reduce_scatter_block(comm, all, x, n, LW_F64, LW_SUM);
 */
lw_status lw_reduce_scatter_block(struct lw_comm *comm,
                                  const void *sendbuf,
                                  void *recvbuf,
                                  size_t count,
                                  lw_type type,
                                  lw_op op);

/*
 * Combines, in rank order, the sendbuf of all ranks up to and with this one in its recvbuf, `count` elements.
 * Errors: of calls, of buffers, LW_ERR_OP.
 *
 *     lw_scan(comm, x, y, n, LW_F64, LW_SUM);
 */
lw_status lw_scan(struct lw_comm *comm,
                  const void *sendbuf,
                  void *recvbuf,
                  size_t count,
                  lw_type type,
                  lw_op op);

/*
 * Combines, in rank order, the sendbuf of all ranks before this one in its recvbuf, `count` elements. Rank 0 does not touch it.
 * Errors: of calls, of buffers, LW_ERR_OP.
 *
 *     lw_exscan(comm, x, y, n, LW_F64, LW_SUM);
 */
lw_status lw_exscan(struct lw_comm *comm,
                    const void *sendbuf,
                    void *recvbuf,
                    size_t count,
                    lw_type type,
                    lw_op op);

/*
 * Gives block j of this rank's sendbuf, `count` elements, to rank j, where it is the block of this rank in recvbuf.
 * Errors: of calls, of buffers.
 *
 *     lw_alltoall(comm, all, whole, n, LW_F64);
 */
lw_status lw_alltoall(struct lw_comm *comm,
                      const void *sendbuf,
                      void *recvbuf,
                      size_t count,
                      lw_type type);

/*
 * lw_gather of counts[r] elements from rank r. Every rank gives the same
 * counts, one for each rank.
 * Errors: of calls, of buffers, LW_ERR_ROOT.
 *
 *     lw_gatherv(comm, x, all, counts, LW_F64, 0);
 */
lw_status lw_gatherv(struct lw_comm *comm,
                     const void *sendbuf,
                     void *recvbuf,
                     const size_t *counts,
                     lw_type type,
                     int root);

/*
 * lw_scatter of counts[r] elements to rank r. Every rank gives the same
 * counts, one for each rank.
 * Errors: of calls, of buffers, LW_ERR_ROOT.
 *
 *     lw_scatterv(comm, all, x, counts, LW_F64, 0);
 */
lw_status lw_scatterv(struct lw_comm *comm,
                      const void *sendbuf,
                      void *recvbuf,
                      const size_t *counts,
                      lw_type type,
                      int root);

/*
 * lw_allgather of counts[r] elements from rank r. Every rank gives the same
 * counts, one for each rank.
 * Errors: of calls, of buffers.
 *
 *     lw_allgatherv(comm, x, all, counts, LW_F64);
 */
lw_status lw_allgatherv(struct lw_comm *comm,
                        const void *sendbuf,
                        void *recvbuf,
                        const size_t *counts,
                        lw_type type);

/*
 * lw_reduce_scatter_block with counts[r] elements of the result for rank r. Every rank gives the same
 * counts, one for each rank.
 * Errors: of calls, of buffers, LW_ERR_OP.
 *
 *     lw_reduce_scatter(comm, all, x, counts, LW_F64, LW_SUM);
 */
lw_status lw_reduce_scatter(struct lw_comm *comm,
                            const void *sendbuf,
                            void *recvbuf,
                            const size_t *counts,
                            lw_type type,
                            lw_op op);

/*
 * lw_alltoall of sendcounts[j] elements to rank j and recvcounts[i] elements from rank i. In place each rank gives as much as
 * it gets, and sendcounts is ignored. Ranks first exchange what they give.
 * Errors: of calls, of buffers.
 *
 *     lw_alltoallv(comm, all, counts, whole, counts, LW_F64);
 */
lw_status lw_alltoallv(struct lw_comm *comm,
                       const void *sendbuf,
                       const size_t *sendcounts,
                       void *recvbuf,
                       const size_t *recvcounts,
                       lw_type type);

/*
 * Sends `count` elements to rank `dest`. A short message is on its way when this returns; a longer one was received.
 * Messages from one rank to another with one tag are received in the order in which they were sent.
 * Errors: of calls, of buffers, LW_ERR_RANK, LW_ERR_UNEXPECTED.
 *
 *     lw_send(comm, x, n, LW_F64, 1, 7);
 */
lw_status lw_send(struct lw_comm *comm,
                  const void *buffer,
                  size_t count,
                  lw_type type,
                  int dest,
                  uint32_t tag);

/*
 * Receives the next message of rank `source` with this tag, of at most `count` elements, and puts how many came into
 * *received, which may be null. There is no receiving from any rank or with any tag.
 * Errors: of calls, of buffers, LW_ERR_RANK, LW_ERR_TRUNCATED, LW_ERR_UNEXPECTED.
 *
 *     size_t received;
 *     lw_recv(comm, x, n, LW_F64, 0, 7, &received);
 */
lw_status lw_recv(struct lw_comm *comm,
                  void *buffer,
                  size_t count,
                  lw_type type,
                  int source,
                  uint32_t tag,
                  size_t *received);

/*
 * lw_send and lw_recv at the same time, so that ranks can exchange messages of any length or pass them round a ring. The
 * buffers do not overlap.
 * Errors: those of lw_send and lw_recv.
 *
 *     lw_sendrecv(comm, x, n, 1, 7, y, n, 1, 7, LW_F64, NULL);
 */
lw_status lw_sendrecv(struct lw_comm *comm,
                      const void *sendbuf,
                      size_t sendcount,
                      int dest,
                      uint32_t sendtag,
                      void *recvbuf,
                      size_t recvcount,
                      int source,
                      uint32_t recvtag,
                      lw_type type,
                      size_t *received);

/*
 * Gives every rank a window of `bytes` bytes, 16 MiB at most, and 64 flags. All ranks call it with the same length. What is
 * there is zero at first.
 * Errors: of calls, LW_ERR_COUNT, LW_ERR_MEMORY.
 *
 *     lw_window_create(comm, 4096);
 */
lw_status lw_window_create(struct lw_comm *comm,
                           size_t bytes);

/*
 * Copies `bytes` bytes into the window of `rank`, from byte `offset` on. Flags order accesses to the same bytes.
 * Errors: of calls, LW_ERR_NULL, LW_ERR_RANK, LW_ERR_COUNT beyond the window.
 *
 *     lw_put(comm, 1, 0, x, sizeof x);
 *     lw_flag_set(comm, 1, 0, 1);
 */
lw_status lw_put(struct lw_comm *comm,
                 int rank,
                 size_t offset,
                 const void *data,
                 size_t bytes);

/*
 * Copies `bytes` bytes out of the window of `rank`, from byte `offset` on. Flags order accesses to the same bytes.
 * Errors: of calls, LW_ERR_NULL, LW_ERR_RANK, LW_ERR_COUNT beyond the window.
 *
 *     lw_get(comm, 1, 0, x, sizeof x);
 */
lw_status lw_get(struct lw_comm *comm,
                 int rank,
                 size_t offset,
                 void *data,
                 size_t bytes);

/*
 * Raises flag 0 to 63 of `rank`: what this rank put before is seen by who sees it. Flags only grow.
 * Errors: of calls, LW_ERR_RANK, LW_ERR_COUNT for another flag.
 *
 *     lw_flag_set(comm, 1, 0, 1);
 */
lw_status lw_flag_set(struct lw_comm *comm, int rank, size_t flag, uint64_t value);

/*
 * Waits until a flag of this rank has reached a value.
 * Errors: of calls, LW_ERR_COUNT for another flag.
 *
 *     lw_flag_wait(comm, 0, 1);
 *     lw_get(comm, lw_comm_rank(comm), 0, x, sizeof x);
 */
lw_status lw_flag_wait(struct lw_comm *comm, size_t flag, uint64_t value);

/*
 * Starts a persistent call. It must not be under way.
 * Errors: of calls, LW_ERR_BUSY when it is.
 *
 *     lw_start(request);
 *     lw_wait(&request);
 */
lw_status lw_start(struct lw_request *request);

/*
 * Waits until the call at *request is over and returns how it ended. Unless it is persistent, the request is freed and
 * *request becomes null. A null *request is over.
 * Errors: those of the call, LW_ERR_NULL, LW_ERR_HANDLE.
 *
 *     lw_iallreduce(comm, x, y, n, LW_F64, LW_SUM, &request);
 *     lw_wait(&request);
 */
lw_status lw_wait(struct lw_request **request);

/*
 * Carries started calls on a little; *done tells whether the one at *request is over (1), which then is as after lw_wait, or not (0).
 * Errors: those of lw_wait.
 *
 *     int done = 0;
 *     while (!done) lw_test(&request, &done);
 */
lw_status lw_test(struct lw_request **request,
                  int *done);

/*
 * lw_wait for each of `count` requests. Returns the first status that is not LW_OK; all are over.
 * Errors: those of lw_wait.
 *
 *     lw_waitall(2, requests);
 */
lw_status lw_waitall(size_t count, struct lw_request **requests);

/*
 * Waits until one of `count` requests is over, which then is as after lw_wait, and tells which: its place in the list, or
 * `count` when all are null.
 * Errors: those of lw_wait.
 *
 *     size_t index;
 *     lw_waitany(2, requests, &index);
 */
lw_status lw_waitany(size_t count,
                     struct lw_request **requests,
                     size_t *index);

/*
 * Carries started calls on a little; *done tells whether all of them are over (1), which then are as after lw_wait, or not (0).
 * Errors: those of lw_wait.
 *
 *     int done;
 *     lw_testall(2, requests, &done);
 */
lw_status lw_testall(size_t count,
                     struct lw_request **requests,
                     int *done);

/*
 * Frees the request at *request, which becomes null. A call that is under way goes on: its buffers are in use until then.
 * Errors: LW_ERR_NULL, LW_ERR_HANDLE, LW_ERR_BUSY.
 *
 *     lw_request_free(&request);
 */
lw_status lw_request_free(struct lw_request **request);

/*
 * Has a helper thread carry started calls on while this rank does something else (1), or no longer (0).
 * Errors: of calls.
 *
 *     lw_comm_set_progress_thread(comm, 1);
 */
lw_status lw_comm_set_progress_thread(struct lw_comm *comm,
                                      int on);

/*
 * Starts lw_bcast; *request is to be waited for, which may fail as lw_bcast does.
 * Errors: those of lw_bcast that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_ibcast(comm, x, n, LW_F64, 0, &request);
 */
lw_status lw_ibcast(struct lw_comm *comm,
                    void *buffer,
                    size_t count,
                    lw_type type,
                    int root,
                    struct lw_request **request);

/*
 * Starts lw_reduce; *request is to be waited for, which may fail as lw_reduce does.
 * Errors: those of lw_reduce that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_ireduce(comm, x, y, n, LW_F64, LW_SUM, 0, &request);
 */
lw_status lw_ireduce(struct lw_comm *comm,
                     const void *sendbuf,
                     void *recvbuf,
                     size_t count,
                     lw_type type,
                     lw_op op,
                     int root,
                     struct lw_request **request);

/*
 * Starts lw_gather; *request is to be waited for, which may fail as lw_gather does.
 * Errors: those of lw_gather that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_igather(comm, x, all, n, LW_F64, 0, &request);
 */
lw_status lw_igather(struct lw_comm *comm,
                     const void *sendbuf,
                     void *recvbuf,
                     size_t count,
                     lw_type type,
                     int root,
                     struct lw_request **request);

/*
 * Starts lw_scatter; *request is to be waited for, which may fail as lw_scatter does.
 * Errors: those of lw_scatter that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_iscatter(comm, all, x, n, LW_F64, 0, &request);
 */
lw_status lw_iscatter(struct lw_comm *comm,
                      const void *sendbuf,
                      void *recvbuf,
                      size_t count,
                      lw_type type,
                      int root,
                      struct lw_request **request);

/*
 * Starts lw_allgather; *request is to be waited for, which may fail as lw_allgather does.
 * Errors: those of lw_allgather that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_iallgather(comm, x, all, n, LW_F64, &request);
 */
lw_status lw_iallgather(struct lw_comm *comm,
                        const void *sendbuf,
                        void *recvbuf,
                        size_t count,
                        lw_type type,
                        struct lw_request **request);

/*
 * Starts lw_reduce_scatter_block; *request is to be waited for, which may fail as lw_reduce_scatter_block does.
 * Errors: those of lw_reduce_scatter_block that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_ireduce_scatter_block(comm, all, x, n, LW_F64, LW_SUM, &request);
 */
lw_status lw_ireduce_scatter_block(struct lw_comm *comm,
                                   const void *sendbuf,
                                   void *recvbuf,
                                   size_t count,
                                   lw_type type,
                                   lw_op op,
                                   struct lw_request **request);

/*
 * Starts lw_scan; *request is to be waited for, which may fail as lw_scan does.
 * Errors: those of lw_scan that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_iscan(comm, x, y, n, LW_F64, LW_SUM, &request);
 */
lw_status lw_iscan(struct lw_comm *comm,
                   const void *sendbuf,
                   void *recvbuf,
                   size_t count,
                   lw_type type,
                   lw_op op,
                   struct lw_request **request);

/*
 * Starts lw_exscan; *request is to be waited for, which may fail as lw_exscan does.
 * Errors: those of lw_exscan that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_iexscan(comm, x, y, n, LW_F64, LW_SUM, &request);
 */
lw_status lw_iexscan(struct lw_comm *comm,
                     const void *sendbuf,
                     void *recvbuf,
                     size_t count,
                     lw_type type,
                     lw_op op,
                     struct lw_request **request);

/*
 * Starts lw_alltoall; *request is to be waited for, which may fail as lw_alltoall does.
 * Errors: those of lw_alltoall that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_ialltoall(comm, all, whole, n, LW_F64, &request);
 */
lw_status lw_ialltoall(struct lw_comm *comm,
                       const void *sendbuf,
                       void *recvbuf,
                       size_t count,
                       lw_type type,
                       struct lw_request **request);

/*
 * Starts lw_gatherv; *request is to be waited for, which may fail as lw_gatherv does.
 * Errors: those of lw_gatherv that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_igatherv(comm, x, all, counts, LW_F64, 0, &request);
 */
lw_status lw_igatherv(struct lw_comm *comm,
                      const void *sendbuf,
                      void *recvbuf,
                      const size_t *counts,
                      lw_type type,
                      int root,
                      struct lw_request **request);

/*
 * Starts lw_scatterv; *request is to be waited for, which may fail as lw_scatterv does.
 * Errors: those of lw_scatterv that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_iscatterv(comm, all, x, counts, LW_F64, 0, &request);
 */
lw_status lw_iscatterv(struct lw_comm *comm,
                       const void *sendbuf,
                       void *recvbuf,
                       const size_t *counts,
                       lw_type type,
                       int root,
                       struct lw_request **request);

/*
 * Starts lw_allgatherv; *request is to be waited for, which may fail as lw_allgatherv does.
 * Errors: those of lw_allgatherv that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_iallgatherv(comm, x, all, counts, LW_F64, &request);
 */
lw_status lw_iallgatherv(struct lw_comm *comm,
                         const void *sendbuf,
                         void *recvbuf,
                         const size_t *counts,
                         lw_type type,
                         struct lw_request **request);

/*
 * Starts lw_reduce_scatter; *request is to be waited for, which may fail as lw_reduce_scatter does.
 * Errors: those of lw_reduce_scatter that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_ireduce_scatter(comm, all, x, counts, LW_F64, LW_SUM, &request);
 */
lw_status lw_ireduce_scatter(struct lw_comm *comm,
                             const void *sendbuf,
                             void *recvbuf,
                             const size_t *counts,
                             lw_type type,
                             lw_op op,
                             struct lw_request **request);

/*
 * Starts lw_barrier; *request is to be waited for, which may fail as lw_barrier does.
 * Errors: those of lw_barrier that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_ibarrier(comm, &request);
 */
lw_status lw_ibarrier(struct lw_comm *comm, struct lw_request **request);

/*
 * Starts lw_allreduce; *request is to be waited for, which may fail as lw_allreduce does.
 * Errors: those of lw_allreduce that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_iallreduce(comm, x, y, n, LW_F64, LW_SUM, &request);
 */
lw_status lw_iallreduce(struct lw_comm *comm,
                        const void *sendbuf,
                        void *recvbuf,
                        size_t count,
                        lw_type type,
                        lw_op op,
                        struct lw_request **request);

/*
 * Starts lw_alltoallv; *request is to be waited for, which may fail as lw_alltoallv does.
 * Errors: those of lw_alltoallv that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_ialltoallv(comm, all, counts, whole, counts, LW_F64, &request);
 */
lw_status lw_ialltoallv(struct lw_comm *comm,
                        const void *sendbuf,
                        const size_t *sendcounts,
                        void *recvbuf,
                        const size_t *recvcounts,
                        lw_type type,
                        struct lw_request **request);

/*
 * Prepares lw_bcast; lw_start starts *request.
 * Errors: those of lw_bcast that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_bcast_init(comm, x, n, LW_F64, 0, &request);
 */
lw_status lw_bcast_init(struct lw_comm *comm,
                        void *buffer,
                        size_t count,
                        lw_type type,
                        int root,
                        struct lw_request **request);

/*
 * Prepares lw_reduce; lw_start starts *request.
 * Errors: those of lw_reduce that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_reduce_init(comm, x, y, n, LW_F64, LW_SUM, 0, &request);
 */
lw_status lw_reduce_init(struct lw_comm *comm,
                         const void *sendbuf,
                         void *recvbuf,
                         size_t count,
                         lw_type type,
                         lw_op op,
                         int root,
                         struct lw_request **request);

/*
 * Prepares lw_gather; lw_start starts *request.
 * Errors: those of lw_gather that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_gather_init(comm, x, all, n, LW_F64, 0, &request);
 */
lw_status lw_gather_init(struct lw_comm *comm,
                         const void *sendbuf,
                         void *recvbuf,
                         size_t count,
                         lw_type type,
                         int root,
                         struct lw_request **request);

/*
 * Prepares lw_scatter; lw_start starts *request.
 * Errors: those of lw_scatter that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_scatter_init(comm, all, x, n, LW_F64, 0, &request);
 */
lw_status lw_scatter_init(struct lw_comm *comm,
                          const void *sendbuf,
                          void *recvbuf,
                          size_t count,
                          lw_type type,
                          int root,
                          struct lw_request **request);

/*
 * Prepares lw_allgather; lw_start starts *request.
 * Errors: those of lw_allgather that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_allgather_init(comm, x, all, n, LW_F64, &request);
 */
lw_status lw_allgather_init(struct lw_comm *comm,
                            const void *sendbuf,
                            void *recvbuf,
                            size_t count,
                            lw_type type,
                            struct lw_request **request);

/*
 * Prepares lw_reduce_scatter_block; lw_start starts *request.
 * Errors: those of lw_reduce_scatter_block that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_reduce_scatter_block_init(comm, all, x, n, LW_F64, LW_SUM, &request);
 */
lw_status lw_reduce_scatter_block_init(struct lw_comm *comm,
                                       const void *sendbuf,
                                       void *recvbuf,
                                       size_t count,
                                       lw_type type,
                                       lw_op op,
                                       struct lw_request **request);

/*
 * Prepares lw_scan; lw_start starts *request.
 * Errors: those of lw_scan that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_scan_init(comm, x, y, n, LW_F64, LW_SUM, &request);
 */
lw_status lw_scan_init(struct lw_comm *comm,
                       const void *sendbuf,
                       void *recvbuf,
                       size_t count,
                       lw_type type,
                       lw_op op,
                       struct lw_request **request);

/*
 * Prepares lw_exscan; lw_start starts *request.
 * Errors: those of lw_exscan that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_exscan_init(comm, x, y, n, LW_F64, LW_SUM, &request);
 */
lw_status lw_exscan_init(struct lw_comm *comm,
                         const void *sendbuf,
                         void *recvbuf,
                         size_t count,
                         lw_type type,
                         lw_op op,
                         struct lw_request **request);

/*
 * Prepares lw_alltoall; lw_start starts *request.
 * Errors: those of lw_alltoall that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_alltoall_init(comm, all, whole, n, LW_F64, &request);
 */
lw_status lw_alltoall_init(struct lw_comm *comm,
                           const void *sendbuf,
                           void *recvbuf,
                           size_t count,
                           lw_type type,
                           struct lw_request **request);

/*
 * Prepares lw_gatherv; lw_start starts *request.
 * Errors: those of lw_gatherv that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_gatherv_init(comm, x, all, counts, LW_F64, 0, &request);
 */
lw_status lw_gatherv_init(struct lw_comm *comm,
                          const void *sendbuf,
                          void *recvbuf,
                          const size_t *counts,
                          lw_type type,
                          int root,
                          struct lw_request **request);

/*
 * Prepares lw_scatterv; lw_start starts *request.
 * Errors: those of lw_scatterv that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_scatterv_init(comm, all, x, counts, LW_F64, 0, &request);
 */
lw_status lw_scatterv_init(struct lw_comm *comm,
                           const void *sendbuf,
                           void *recvbuf,
                           const size_t *counts,
                           lw_type type,
                           int root,
                           struct lw_request **request);

/*
 * Prepares lw_allgatherv; lw_start starts *request.
 * Errors: those of lw_allgatherv that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_allgatherv_init(comm, x, all, counts, LW_F64, &request);
 */
lw_status lw_allgatherv_init(struct lw_comm *comm,
                             const void *sendbuf,
                             void *recvbuf,
                             const size_t *counts,
                             lw_type type,
                             struct lw_request **request);

/*
 * Prepares lw_reduce_scatter; lw_start starts *request.
 * Errors: those of lw_reduce_scatter that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_reduce_scatter_init(comm, all, x, counts, LW_F64, LW_SUM, &request);
 */
lw_status lw_reduce_scatter_init(struct lw_comm *comm,
                                 const void *sendbuf,
                                 void *recvbuf,
                                 const size_t *counts,
                                 lw_type type,
                                 lw_op op,
                                 struct lw_request **request);

/*
 * Prepares lw_barrier; lw_start starts *request.
 * Errors: those of lw_barrier that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_comm_barrier_init(comm, &request);
 */
lw_status lw_comm_barrier_init(struct lw_comm *comm, struct lw_request **request);

/*
 * Prepares lw_allreduce; lw_start starts *request.
 * Errors: those of lw_allreduce that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_allreduce_init(comm, x, y, n, LW_F64, LW_SUM, &request);
 */
lw_status lw_allreduce_init(struct lw_comm *comm,
                            const void *sendbuf,
                            void *recvbuf,
                            size_t count,
                            lw_type type,
                            lw_op op,
                            struct lw_request **request);

/*
 * Prepares lw_alltoallv; lw_start starts *request.
 * Errors: those of lw_alltoallv that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_alltoallv_init(comm, all, counts, whole, counts, LW_F64, &request);
 */
lw_status lw_alltoallv_init(struct lw_comm *comm,
                            const void *sendbuf,
                            const size_t *sendcounts,
                            void *recvbuf,
                            const size_t *recvcounts,
                            lw_type type,
                            struct lw_request **request);

/*
 * Makes a barrier for `count` threads of this process, with the settings of the environment. (lw_comm_barrier_init prepares lw_barrier.)
 * Errors: LW_ERR_NULL, LW_ERR_SIZE, LW_ERR_ENVIRONMENT, LW_ERR_MEMORY, LW_ERR_SYSTEM.
 *
 *     lw_barrier_t barrier;
 *     lw_barrier_init(&barrier, 4);
 */
lw_status lw_barrier_init(struct lw_barrier_t *barrier,
                          int count);

/*
 * Returns when as many threads as the barrier is for have called it: LW_BARRIER_SERIAL_THREAD to one, LW_OK to the
 * others. A thread keeps its place until it ends: other threads cannot take turns with it.
 * Errors: LW_ERR_NULL, LW_ERR_HANDLE, LW_ERR_SIZE for one thread too many, LW_ERR_PEER.
 *
 *     if (lw_barrier_wait(&barrier) == LW_BARRIER_SERIAL_THREAD) puts("all are here");
 */
lw_status lw_barrier_wait(struct lw_barrier_t *barrier);

/*
 * lw_barrier_wait of a thread that says which of the places 0 to count - 1 is its, as omp_get_thread_num() does. It
 * returns LW_OK to all. Use this form or the other one with a barrier, not both.
 * Errors: LW_ERR_NULL, LW_ERR_HANDLE, LW_ERR_RANK, LW_ERR_PEER.
 *
 *     lw_barrier_wait_at(&barrier, 0);
 */
lw_status lw_barrier_wait_at(struct lw_barrier_t *barrier,
                             int place);

/*
 * Ends a barrier that nobody will wait at.
 * Errors: LW_ERR_NULL, LW_ERR_HANDLE, LW_ERR_BUSY when somebody still waits after a second.
 *
 *     lw_barrier_destroy(&barrier);
 */
lw_status lw_barrier_destroy(struct lw_barrier_t *barrier);

/*
 * A planner for the calls of comm that follow. It does not communicate.
 * Errors: of calls, LW_ERR_NULL.
 *
 *     lw_comm_planner(comm, &planner);
 */
lw_status lw_comm_planner(struct lw_comm *comm, struct lw_planner **planner);

/*
 * Chooses and proves the plans of a call: later calls of this kind and length only compile them. Several threads may do so at once. `op` counts where
 * elements are combined, and `root` where there is one; count is that of the call. If the plans need memory that this rank has not reserved yet
 * (lw_comm_connect_on), it is reserved.
 * Errors: LW_ERR_NULL, LW_ERR_HANDLE, LW_ERR_TYPE also for an unknown collective, LW_ERR_OP, LW_ERR_ROOT, LW_ERR_PLAN, LW_ERR_MEMORY.
 *
 *     lw_planner_plan(planner, LW_ALLREDUCE, 1000, LW_F64, LW_SUM, 0);
 */
lw_status lw_planner_plan(struct lw_planner *planner,
                          lw_collective collective,
                          size_t count,
                          lw_type element,
                          lw_op op,
                          int root);

/*
 * Chooses and proves the plans of a call that is like this one, so that later calls of about this length need not. They are numbered from 0 on, the
 * likeliest first: those with each length above half of the power of two that this one's bytes come to, up to that, and from each root that sits
 * differently. Of lengths and roots that share plans there is one. `many` becomes their number, which is the same at all ranks, at most 32, and does not
 * include the call itself. If `which` is no less, nothing is planned.
 * Errors: of lw_planner_plan.
 *
 *     size_t many = 1;
 *     for (size_t i = 0; i < many; i++) lw_planner_plan_alike(planner, LW_ALLREDUCE, 1000, LW_F64, LW_SUM, 0, i, &many);
 */
lw_status lw_planner_plan_alike(struct lw_planner *planner,
                                lw_collective collective,
                                size_t count,
                                lw_type element,
                                lw_op op,
                                int root,
                                size_t which,
                                size_t *many);

/*
 * What lw_planner_keep kept under a name, in this program or an earlier one, on a communicator with ranks on the same CPUs, by the same profile and
 * version of lineweave; 0: nothing.
 * Errors: LW_ERR_NULL, LW_ERR_HANDLE.
 *
 *     uint64_t kept;
 *     lw_planner_kept(planner, 42, &kept);
 */
lw_status lw_planner_kept(struct lw_planner *planner,
                          uint64_t name,
                          uint64_t *value);

/*
 * Keeps a value for later programs, with the kept plans; nothing where these are not kept (LINEWEAVE_KEEP_PLANS=0, no folder).
 * Errors: LW_ERR_NULL, LW_ERR_HANDLE.
 *
 *     lw_planner_keep(planner, 42, 7);
 */
lw_status lw_planner_keep(struct lw_planner *planner,
                          uint64_t name,
                          uint64_t value);

/*
 * Frees a planner. Null is allowed.
 * Errors: LW_ERR_HANDLE.
 *
 *     lw_planner_free(planner);
 */
lw_status lw_planner_free(struct lw_planner *planner);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* LINEWEAVE_H */
