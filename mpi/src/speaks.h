/* Choice of the process that prints messages for its whole job, before its rank is known: for libraries, also that for OpenMP, and the chooser. */
#ifndef LWM_SPEAKS_H
#define LWM_SPEAKS_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The variable that names the process in which a library has said that the program has another MPI. */
#define LWM_SAID "LINEWEAVE_RUN_SAID"

/* Returns whether this process prints messages: it is rank 0 by its launcher's variables, or has no launcher, and is not
 * told to be quiet. */
static inline bool lwm_speaks(void)
{
    static const char *const ranks[] = {"PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMI_ID", "SLURM_PROCID"};
    const char *quiet = getenv("LINEWEAVE_QUIET"), *rank = NULL;
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks && !rank; i++) rank = getenv(ranks[i]);
    return !(quiet && *quiet && strcmp(quiet, "0") != 0) && (!rank || strcmp(rank, "0") == 0);
}

#endif
