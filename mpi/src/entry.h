/* The table of entries (entries.c), of which mpi/build makes what is exported. */
#ifndef LWM_ENTRY_H
#define LWM_ENTRY_H

#include <stdint.h>

/* A name, with its function here and what records a call around it (trace.c). */
struct lwm_entry {
    const char *name;
    void *own, *traced;
};
extern const struct lwm_entry lwm_entry_names[] __attribute__((weak, visibility("hidden")));
/* Three jumps a name: called as MPI_x, as PMPI_x, and as PMPI_x by the host. */
extern void *lwm_entries[] __attribute__((weak, visibility("hidden")));
extern const uint32_t lwm_entry_count __attribute__((weak, visibility("hidden")));

static inline void *lwm_entry_own(unsigned which) { return lwm_entry_names[which].own; }

#endif
