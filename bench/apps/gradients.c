/*
 * Heat in a plate by the method of conjugate gradients: `gradients`, once a rank under an MPI. A program of ours, of the usual form.
 *
 * A grid of 128 x 128 points is divided into strips. An iteration exchanges a strip's edges with its neighbours and adds up two
 * numbers among all ranks (MPI_Allreduce of 8 B). Solved again and again, as steps of time would be. Needs no header of an MPI:
 * bench/mpi/calls.h has what it uses. Ends with 3 if the solution does not satisfy the equations.
 */
#define _GNU_SOURCE
#include "calls.h"

int MPI_Sendrecv(const void *, int, MPI_Datatype, int, int, void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);

enum { SIDE = 128, SOLVED = 30, MOST = 600 };

static int rows;

static double *strip(void)
{
    /* With a row above and one below: the neighbours' edges. */
    double *made = calloc((size_t)(rows + 2) * SIDE, sizeof *made);
    if (!made) MPI_Abort(world, 4);
    return made;
}

static double dot(const double *a, const double *b)
{
    double mine = 0, all;
    for (int i = SIDE; i < (rows + 1) * SIDE; i++) mine += a[i] * b[i];
    MPI_Allreduce(&mine, &all, 1, real, sum, world);
    return all;
}

/* out = A x, the five-point star. */
static void apply(double *x, double *out)
{
    int up = rank > 0 ? rank - 1 : LWM_PROC_NULL, down = rank < ranks - 1 ? rank + 1 : LWM_PROC_NULL;
    MPI_Sendrecv(x + SIDE, SIDE, real, up, 0, x + (rows + 1) * SIDE, SIDE, real, down, 0, world, LWM_STATUS_IGNORE);
    MPI_Sendrecv(x + rows * SIDE, SIDE, real, down, 1, x, SIDE, real, up, 1, world, LWM_STATUS_IGNORE);
    for (int i = 1; i <= rows; i++) {
        for (int j = 0; j < SIDE; j++) {
            double *at = x + i * SIDE + j;
            double sides = (j > 0 ? at[-1] : 0) + (j < SIDE - 1 ? at[1] : 0);
            out[i * SIDE + j] = 4 * *at - sides - at[-SIDE] - at[SIDE];
        }
    }
}

static void solve(const double *given, double *x, double *left, double *towards, double *moved)
{
    for (int i = 0; i < (rows + 2) * SIDE; i++) {
        x[i] = 0;
        left[i] = towards[i] = given[i];
    }
    double size = dot(left, left), enough = size * 1e-16;
    for (int n = 0; n < MOST && size > enough; n++) {
        apply(towards, moved);
        double step = size / dot(towards, moved), before = size;
        for (int i = SIDE; i < (rows + 1) * SIDE; i++) {
            x[i] += step * towards[i];
            left[i] -= step * moved[i];
        }
        size = dot(left, left);
        for (int i = SIDE; i < (rows + 1) * SIDE; i++) towards[i] = left[i] + size / before * towards[i];
    }
}

int main(int argc, char **argv)
{
    start_mpi(&argc, &argv);
    rows = SIDE / ranks + (rank < SIDE % ranks);
    double *given = strip(), *x = strip(), *left = strip(), *towards = strip(), *moved = strip();
    for (int solved = 0; solved < SOLVED; solved++) {
        for (int i = SIDE; i < (rows + 1) * SIDE; i++) given[i] = 1 + (i + solved) % 7;
        solve(given, x, left, towards, moved);
        apply(x, moved);
        for (int i = SIDE; i < (rows + 1) * SIDE; i++) moved[i] -= given[i];
        if (!(dot(moved, moved) < 1e-12 * dot(given, given))) MPI_Abort(world, 3);
    }
    free(given), free(x), free(left), free(towards), free(moved);
    return MPI_Finalize();
}
