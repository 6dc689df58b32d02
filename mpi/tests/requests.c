/*
 * Collectives that are started and completed later, under MPI's rules for requests: in any order, mixed with messages, by every
 * function that completes. Results are computed here. Ends with how many calls it made.
 *
 *   requests [threads] [team]
 *
 * `threads` asks for MPI_THREAD_MULTIPLE. `team` adds what Open MPI 5.0 and MPICH 5.0 get wrong themselves, and is for communicators
 * with a team: calls that are over after their communicator was freed, and testing persistent calls without statuses. Open MPI 4
 * has no persistent collectives: -DNO_PERSISTENT.
 */
#include "kinds.h"

static int team;

enum { MANY = KINDS, COUNT = 40 };

/* Each round starts all kinds and two messages, and completes them in its own way. */
static void every_function_completes_them(MPI_Comm comm, int rounds)
{
    static struct job jobs[MANY];
    static int in[MANY][64 * COUNT], out[MANY][64 * COUNT];
    for (int turn = 0; turn < rounds; turn++) {
        MPI_Request all[MANY + 3];
        int given = rank * 10 + turn, taken = -1, next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
        for (int i = 0; i < MANY; i++) {
            jobs[i] = job_of(i, i % 2 ? COUNT : 3, turn, turn, true, in[i], out[i], comm);
            jobs[i].in_place = turn % 3 == 2;
            fill(&jobs[i]);
        }
        MPI_Irecv(&taken, 1, MPI_INT, last, 5, comm, &all[0]);
        for (int i = 0; i < MANY; i++) make_call(&jobs[i], STARTED), all[i + 1] = jobs[i].request;
        MPI_Isend(&given, 1, MPI_INT, next, 5, comm, &all[MANY + 1]);
        all[MANY + 2] = MPI_REQUEST_NULL;
        int total = MANY + 3, flag = 0, index, many, which[MANY + 3];
        MPI_Status statuses[MANY + 3];
        switch (turn % 8) {
        case 0: MPI_Waitall(total, all, statuses); break;
        case 1: for (int i = total - 1; i >= 0; i--) MPI_Wait(&all[i], MPI_STATUS_IGNORE); break;
        case 2: while (!flag) MPI_Testall(total, all, &flag, statuses); break;
        case 3:
            for (int done = 0; done < total - 1; done++) {
                MPI_Waitany(total, all, &index, statuses);
                EXPECT(index >= 0 && index < total - 1 && all[index] == MPI_REQUEST_NULL);
            }
            MPI_Waitany(total, all, &index, MPI_STATUS_IGNORE);
            EXPECT(index == MPI_UNDEFINED);
            break;
        case 4:
            for (int done = 0; done < total - 1; done += many) {
                MPI_Waitsome(total, all, &many, which, statuses);
                EXPECT(many > 0);
                for (int i = 0; i < many; i++) EXPECT(all[which[i]] == MPI_REQUEST_NULL);
            }
            break;
        case 5:
            for (int done = 0; done < total - 1; done += flag) {
                MPI_Testany(total, all, &index, &flag, statuses);
                if (flag) EXPECT(index != MPI_UNDEFINED && all[index] == MPI_REQUEST_NULL);
            }
            break;
        case 6:
            for (int done = 0; done < total - 1; done += many) {
                MPI_Testsome(total, all, &many, which, MPI_STATUSES_IGNORE);
                EXPECT(many != MPI_UNDEFINED);
            }
            break;
        case 7:
            for (int i = 0; i < total; i++) {
                while (flag = 0, MPI_Request_get_status(all[i], &flag, MPI_STATUS_IGNORE), !flag) {}
                for (flag = 0; !flag;) MPI_Test(&all[i], &flag, MPI_STATUS_IGNORE);
            }
            break;
        }
        for (int i = 0; i < total; i++) EXPECT(all[i] == MPI_REQUEST_NULL);
        for (int i = 0; i < MANY; i++) EXPECT(judge(&jobs[i]) == 0);
        EXPECT(taken == last * 10 + turn);
    }
}

/* Who waits for a message must carry on the broadcast that its sender waits for. */
static void who_waits_for_a_message_carries_calls_on(void)
{
    enum { LONG = 1 << 18 };
    int *data = malloc(sizeof *data * LONG), word = 0;
    for (int turn = 0; turn < 6; turn++) {
        MPI_Request request;
        for (int i = 0; i < LONG; i++) data[i] = rank == 0 ? i ^ turn : -1;
        if (rank == ranks - 1 && turn % 2) usleep(5000);
        MPI_Ibcast(data, LONG, MPI_INT, 0, MPI_COMM_WORLD, &request);
        if (rank != 0) {
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            MPI_Ssend(&turn, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
        } else {
            for (int r = 1; r < ranks; r++) {
                MPI_Recv(&word, 1, MPI_INT, r, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                EXPECT(word == turn);
            }
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        for (int i = 0; i < LONG; i++) EXPECT(data[i] == (i ^ turn));
    }
    free(data);
}

/* A call that is under way, calls that block and another communicator's, in different orders of completion. */
static void calls_may_overlap(void)
{
    MPI_Comm other;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    get_team(other);
    for (int turn = 0; turn < 10; turn++) {
        int own = rank + turn, sum = 0, far = 0, near = 0, value = rank == turn % ranks ? turn : -1;
        MPI_Request a, b;
        MPI_Iallreduce(&own, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &a);
        MPI_Iallreduce(&own, &far, 1, MPI_INT, MPI_MAX, other, &b);
        MPI_Bcast(&value, 1, MPI_INT, turn % ranks, MPI_COMM_WORLD);
        MPI_Allreduce(&own, &near, 1, MPI_INT, MPI_MIN, other);
        MPI_Wait(rank % 2 ? &a : &b, MPI_STATUS_IGNORE);
        MPI_Wait(rank % 2 ? &b : &a, MPI_STATUS_IGNORE);
        EXPECT(value == turn && near == turn && far == turn + ranks - 1 && sum == ranks * turn + ranks * (ranks - 1) / 2);
    }
    int own = rank, sum = 0;
    MPI_Request last;
    MPI_Iallreduce(&own, &sum, 1, MPI_INT, MPI_SUM, other, &last);
    if (!team) MPI_Wait(&last, MPI_STATUS_IGNORE);
    MPI_Comm_free(&other);
    if (team) MPI_Wait(&last, MPI_STATUS_IGNORE);
    EXPECT(sum == ranks * (ranks - 1) / 2);
}

/* One rank starts a call before a barrier, the others after it: not MPI's order, but what mpi4py does in Iagree, and hosts bear. */
static void started_calls_are_apart_from_those_that_block(void)
{
    for (int root = 0; root < ranks; root++) {
        int own = rank + root, sum = 0;
        MPI_Request request;
        if (rank == root) MPI_Iallreduce(&own, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank != root) MPI_Iallreduce(&own, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        EXPECT(sum == ranks * root + ranks * (ranks - 1) / 2);
    }
}

/* Types with gaps, which the program frees before the call is over, and buffers in place. */
static void types_may_go_before_the_call_is_over(void)
{
    for (int turn = 0; turn < 6; turn++) {
        MPI_Datatype strided;
        MPI_Type_vector(5, 1, 2, MPI_INT, &strided);
        MPI_Type_commit(&strided);
        int own[10], all[5 * 64], block[64];
        for (int i = 0; i < 10; i++) own[i] = 50 * rank + i + turn;
        MPI_Request request[3];
        MPI_Iallgather(own, 1, strided, all, 5, MPI_INT, MPI_COMM_WORLD, &request[0]);
        int spread[10];
        for (int i = 0; i < 10; i++) spread[i] = rank == 0 ? 3 * i + turn : -5;
        MPI_Ibcast(spread, 1, strided, 0, MPI_COMM_WORLD, &request[1]);
        for (int r = 0; r < ranks; r++) block[r] = 10 * rank + r;
        MPI_Ialltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, block, 1, MPI_INT, MPI_COMM_WORLD, &request[2]);
        MPI_Type_free(&strided);
        MPI_Waitall(3, request, MPI_STATUSES_IGNORE);
        for (int r = 0; r < ranks; r++) {
            for (int i = 0; i < 5; i++) EXPECT(all[5 * r + i] == 50 * r + 2 * i + turn);
            EXPECT(block[r] == 10 * r + rank);
        }
        for (int i = 0; i < 9; i++) EXPECT(spread[i] == (i % 2 == 0 || rank == 0 ? 3 * i + turn : -5));
    }
}

#ifndef NO_PERSISTENT
static void persistent_calls_start_again(void)
{
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    get_team(comm);
    int own = 0, sum = 0, value = 0, all[64], message = 0, got = -1;
    MPI_Request r[5];
    MPI_Allreduce_init(&own, &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &r[0]);
    MPI_Bcast_init(&value, 1, MPI_INT, ranks - 1, comm, MPI_INFO_NULL, &r[1]);
    MPI_Allgather_init(&own, 1, MPI_INT, all, 1, MPI_INT, comm, MPI_INFO_NULL, &r[2]);
    MPI_Barrier_init(comm, MPI_INFO_NULL, &r[3]);
    MPI_Recv_init(&got, 1, MPI_INT, (rank + ranks - 1) % ranks, 8, comm, &r[4]);
    for (int turn = 0; turn < 40; turn++) {
        own = rank * turn, value = rank == ranks - 1 ? turn : -1, message = turn + rank, sum = got = -1;
        memset(all, -1, sizeof all);
        MPI_Request send;
        int flag, index, many, which[5];
        /* With a team each rank in its own order. */
        if (turn % 2) MPI_Startall(5, r);
        else for (int i = 0; i < 5; i++) MPI_Start(&r[team ? (i + rank) % 5 : i]);
        MPI_Isend(&message, 1, MPI_INT, (rank + 1) % ranks, 8, comm, &send);
        switch (turn % 5) {
        case 0: MPI_Waitall(5, r, MPI_STATUSES_IGNORE); break;
        case 1: for (int i = 0; i < 5; i++) MPI_Wait(&r[(i + 2 * rank) % 5], MPI_STATUS_IGNORE); break;
        case 2:
            for (int done = 0; done < 5; done++) {
                MPI_Waitany(5, r, &index, MPI_STATUS_IGNORE);
                EXPECT(index != MPI_UNDEFINED);
            }
            MPI_Waitany(5, r, &index, MPI_STATUS_IGNORE);
            EXPECT(index == MPI_UNDEFINED);
            break;
        case 3:
            for (int done = 0; done < 5; done += many) {
                MPI_Testsome(5, r, &many, which, MPI_STATUSES_IGNORE);
                EXPECT(many != MPI_UNDEFINED);
            }
            break;
        case 4:
            if (team) do MPI_Testall(5, r, &flag, MPI_STATUSES_IGNORE); while (!flag);
            else MPI_Waitall(5, r, MPI_STATUSES_IGNORE);
            break;
        }
        for (int i = 0; i < 5; i++) EXPECT(r[i] != MPI_REQUEST_NULL);
        MPI_Wait(&send, MPI_STATUS_IGNORE);
        EXPECT(sum == turn * (ranks * (ranks - 1) / 2) && value == turn && got == turn + (rank + ranks - 1) % ranks);
        for (int i = 0; i < ranks; i++) EXPECT(all[i] == i * turn);
    }
    if (team) MPI_Comm_free(&comm);
    for (int i = 0; i < 5; i++) MPI_Request_free(&r[i]);
    if (!team) MPI_Comm_free(&comm);
}
#endif

#if MPI_VERSION >= 4 && !defined(OPEN_MPI)
static void large_counts_too(void)
{
    for (int turn = 0; turn < 4; turn++) {
        int own[3] = {rank, rank + 1, turn}, sum[3], all[3 * 64];
        MPI_Count counts[64];
        MPI_Aint places[64];
        for (int r = 0; r < ranks; r++) counts[r] = 3, places[r] = 3 * (ranks - 1 - r);
        MPI_Request r[2];
        MPI_Iallreduce_c(own, sum, 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r[0]);
        MPI_Iallgatherv_c(own, 3, MPI_INT, all, counts, places, MPI_INT, MPI_COMM_WORLD, &r[1]);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
        EXPECT(sum[0] == ranks * (ranks - 1) / 2 && sum[1] == sum[0] + ranks && sum[2] == ranks * turn);
        for (int q = 0; q < ranks; q++) EXPECT(all[3 * (ranks - 1 - q)] == q && all[3 * (ranks - 1 - q) + 1] == q + 1);
    }
}
#else
static void large_counts_too(void) {}
#endif

int main(int argc, char **argv)
{
    int threads = 0;
    for (int i = 1; i < argc; i++) threads |= strcmp(argv[i], "threads") == 0, team |= strcmp(argv[i], "team") == 0;
    start_mpi(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    every_function_completes_them(MPI_COMM_WORLD, 8);
    get_team(MPI_COMM_WORLD);
    every_function_completes_them(MPI_COMM_WORLD, 48);
    who_waits_for_a_message_carries_calls_on();
    calls_may_overlap();
    started_calls_are_apart_from_those_that_block();
    types_may_go_before_the_call_is_over();
#ifndef NO_PERSISTENT
    persistent_calls_start_again();
#endif
    large_counts_too();
    return end_mpi("requests: completed");
}
