/*
 * Too little memory for long messages: at rank 1, reservations of shared memory of more than 1.5 MB say ENOSPC. All sums must be right.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SHORT = 4, LONG = 131072, CALLS = 200 };

static void deny(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fallocate, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[3])),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 1500000, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSPC),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof rules / sizeof *rules, rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) perror("memory: seccomp");
}

int main(int argc, char **argv)
{
    static double in[LONG], out[LONG];
    int rank, ranks, wrong = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    /* Threads that start later have it, too. */
    if (rank == 1) deny();
    for (int call = 0; call < CALLS; call++) {
        int count = call % 2 ? LONG : SHORT;
        for (int i = 0; i < count; i++) in[i] = rank + i + call;
        MPI_Allreduce(in, out, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < count; i++) wrong += out[i] != (double)ranks * (i + call) + ranks * (ranks - 1) / 2;
        /* Time for the threads that choose plans. */
        if (call % 20 == 0) usleep(20000);
    }
    if (wrong) printf("memory: rank %d has %d wrong sums\n", rank, wrong);
    MPI_Finalize();
    return wrong != 0;
}
