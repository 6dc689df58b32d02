/*
 * Calls that the host refuses at a rank, where errors return: refused KIND.
 *
 *   alone     a rank makes refused calls while no other rank takes part, then the right ones. They count nowhere.
 *   carried   a rank's broadcasts are refused while the root's own calls go through; all go on
 *   same      identical buffers: prints what the host does with each collective, blocking, started and prepared, which must be the same
 *             in all rounds, before there is a team and after, and as without lineweave
 */
#include "kinds.h"

/* One call that every host refuses. (MPICH 5.0.2 ends by a signal for a reduce of -1 elements, and for an allreduce without type.) */
static int refused(int which, int *in, int *out, MPI_Comm comm)
{
    switch (which % 6) {
    case 0: return MPI_Reduce(in, out, 1, MPI_INT, MPI_SUM, ranks, comm);
    case 1: return MPI_Bcast(in, 1, MPI_DATATYPE_NULL, 0, comm);
    case 2: return MPI_Allreduce(in, out, 1, MPI_INT, MPI_OP_NULL, comm);
    case 3: return MPI_Allgather(in, -2, MPI_INT, out, 1, MPI_INT, comm);
    case 4: return MPI_Bcast(in, 1, MPI_INT, ranks, comm);
    default: return MPI_Bcast(in, -1, MPI_INT, 0, comm);
    }
}

/* `step`: 0 reduces only; 1 a barrier and others too. */
static void alone(int who, int step)
{
    MPI_Comm comm;
    int word[64] = {0}, none[64];
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; rank == who && i < 6; i++) EXPECT(refused(i, word, none, MPI_COMM_WORLD) != MPI_SUCCESS);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int turn = 0; turn < 60; turn++) {
        int in[64], out[64], mine = rank + turn, sum = -1;
        for (int i = 0; i < 64; i++) in[i] = i, out[i] = -1;
        for (int i = 0; rank == who && i <= turn % 3; i++) EXPECT(refused(turn + i, in, out, comm) != MPI_SUCCESS);
        EXPECT(MPI_Reduce(&mine, &sum, 1, MPI_INT, MPI_SUM, 0, comm) == MPI_SUCCESS);
        EXPECT(rank != 0 || sum == ranks * turn + ranks * (ranks - 1) / 2);
        if (!step) continue;
        for (int i = 0; rank == who && i <= turn % 2; i++) EXPECT(refused(turn + i, in, out, comm) != MPI_SUCCESS);
        sum_up(comm, turn);
        if (turn % 2) MPI_Barrier(comm);
    }
    MPI_Comm_free(&comm);
}

/* Roots do not wait for short broadcasts, so those went well there and counted; the refused rank takes them late. What they bring is the
 * host's affair. */
static void carried(int who, int often)
{
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int turn = 0; turn < 40; turn++) {
        int word = turn;
        if (turn < often && rank == who) EXPECT(MPI_Bcast(&word, 1, MPI_DATATYPE_NULL, 0, comm) != MPI_SUCCESS);
        else EXPECT(MPI_Bcast(&word, 1, MPI_INT, 0, comm) == MPI_SUCCESS);
        /* Other ranks wait for one that was refused here, and not before. */
        if (turn % 5 == 4) MPI_Barrier(comm);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static const char *const forms[FORMS] = {"blocking", "started", "prepared"};
enum { MOST = 64 };

static int call(int kind, int form, int *give, int *take, int root, MPI_Comm comm, struct job *j)
{
    *j = job_of(kind, 1, root, 0, false, give, take, comm);
    return make_call(j, form);
}

/* Of kinds with a root only the root gives and takes. Where the host refuses, the rank makes the right call after it, as the others may. */
static void same(void)
{
    static int answers[KINDS][FORMS];
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int turn = 0; turn < 12; turn++) {
        sum_up(comm, turn);
        for (int kind = REDUCE; kind < KINDS; kind++) {
            for (int form = 0; form < FORMS; form++) {
                int *all = malloc(MOST * sizeof *all), give[MOST], take[MOST], root = turn % ranks, class = MPI_SUCCESS;
                for (int i = 0; i < MOST; i++) all[i] = give[i] = i, take[i] = -1;
                bool gathers = kind == GATHER || kind == GATHERV, scatters = kind == SCATTER || kind == SCATTERV, rooted = kind == REDUCE || gathers || scatters;
                bool own_place = gathers || kind == ALLGATHER || kind == ALLGATHERV;
                struct job job;
                if (rank == root || (!rooted && turn % 2)) {
                    int result = call(kind, form, all + (own_place ? rank : 0), all + (scatters ? rank : 0), root, comm, &job);
                    MPI_Error_class(result, &class);
                    EXPECT(turn == 0 || answers[kind][form] == class);
                    if (class != MPI_SUCCESS) EXPECT(call(kind, form, give, take, root, comm, &job) == MPI_SUCCESS);
                } else {
                    EXPECT(call(kind, form, give, take, root, comm, &job) == MPI_SUCCESS);
                }
                complete(&job, form);
                free(all);
                if (turn > 0) continue;
                MPI_Bcast(&class, 1, MPI_INT, root, MPI_COMM_WORLD);
                answers[kind][form] = class;
            }
        }
    }
    for (int kind = REDUCE; kind < KINDS && rank == 0; kind++) {
        for (int form = 0; form < FORMS; form++) printf("same: %s %s: error class %d\n", names[kind], forms[form], answers[kind][form]);
    }
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "alone";
    start_mpi(&argc, &argv, MPI_THREAD_SINGLE);
    EXPECT(ranks >= 2);
    if (strcmp(kind, "alone") == 0) for (int i = 0; i < 4; i++) alone(i % 2 ? ranks - 1 : 0, i / 2);
    else if (strcmp(kind, "carried") == 0) for (int often = 1; often <= 5; often++) carried(ranks - 1, often);
    else same();
    return end_mpi("refused: gone on");
}
