/*
 * What a program's call of MPI_x comes to, where the library may have been preloaded for another MPI than the process has.
 *
 * Interfaces differ in the size of a handle, so a function of this library cannot even pass on a call that was made for another interface. So each name
 * that the library exports is one jump through a table (mpi/build makes both of the names that are defined here). At first an entry of the table
 * leads to `lwm_entry_of`, which replaces it:
 * 1. by the function of this library, if the process's MPI has this library's interface;
 * 2. by the MPI's own, if it has another one: then nothing is taken over, and one line says so;
 * 3. by neither, if MPIs of several interfaces are loaded apart: then each call goes to the one that its caller was linked to.
 */
#define _GNU_SOURCE
#include "lwm.h"
#include "speaks.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Made by mpi/build: names with their functions here, and where the exported ones jump to. */
struct lwm_entry {
    const char *name;
    void *own;
};
extern const struct lwm_entry lwm_entry_names[] __attribute__((weak, visibility("hidden")));
extern void *lwm_entries[] __attribute__((weak, visibility("hidden")));

enum kind { UNKNOWN, OURS, OTHER, SEVERAL };

#if defined(LWM_OPENMPI)
enum { OWN = 0 };
#elif defined(LWM_MPICH)
enum { OWN = 1 };
#else
enum { OWN = 2 };
#endif

/* The interface of an MPI library, as one of these numbers. */
static int interface_of(void *library, const char *path)
{
    if (strstr(path, "libmpi.so.40") || dlsym(library, "ompi_mpi_comm_world")) return 0;
    return strstr(path, "libmpi_abi.so") ? 2 : 1;
}

/* The MPIs that are loaded: the handle of one of another interface, and which interfaces there are. */
struct loaded {
    void *other;
    const char *other_path;
    unsigned interfaces;
};

static int look_at(struct dl_phdr_info *info, size_t size, void *found)
{
    (void)size;
    struct loaded *loaded = found;
    if (!info->dlpi_name || !lwm_is_mpi(info->dlpi_name)) return 0;
    void *library = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    if (!library) return 0;
    if (dlsym(library, "PMPI_Barrier")) {
        int interface = interface_of(library, info->dlpi_name);
        loaded->interfaces |= 1u << interface;
        if (interface != OWN) {
            loaded->other = library;
            loaded->other_path = info->dlpi_name;
        }
    }
    return 0;
}

/* Once, by the rank that speaks for all. */
static void say_other(const char *path)
{
    static bool said;
    const char *file = strrchr(path, '/');
    if (__atomic_exchange_n(&said, true, __ATOMIC_RELAXED) || !lwm_speaks()) return;
    fprintf(stderr, "lineweave: this program's MPI is %s, and the library for " LWM_ABI_TITLE " was preloaded; nothing is taken over\n",
            file ? file + 1 : path);
}

/* What the process has, looked up until there is an MPI. */
static enum kind kind_here(struct loaded *loaded)
{
    memset(loaded, 0, sizeof *loaded);
    dl_iterate_phdr(look_at, loaded);
    /* In the order in which names are looked up, the first MPI is the one that a program without this library would have. */
    Dl_info first;
    void *next = dlsym(RTLD_NEXT, "MPI_Init");
    if (next && dladdr(next, &first) && first.dli_fname && lwm_is_mpi(first.dli_fname)) {
        void *library = dlopen(first.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
        bool ours = library && interface_of(library, first.dli_fname) == OWN;
        loaded->other = ours ? loaded->other : library;
        loaded->other_path = first.dli_fname;
        return ours ? OURS : OTHER;
    }
    if (loaded->interfaces == 0) return UNKNOWN;
    if (loaded->interfaces == 1u << OWN) return OURS;
    return loaded->interfaces & (loaded->interfaces - 1) ? SEVERAL : OTHER;
}

/* The function that a call from this place would have come to by itself. */
static void *as_linked(const char *name, const void *caller)
{
    Dl_info object;
    void *library = dladdr(caller, &object) && object.dli_fname ? dlopen(object.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    return library ? dlsym(library, name) : NULL;
}

/* Returns what the exported function number `which` shall do, called from there, and makes it do so from now on where that is the same for all. */
__attribute__((visibility("hidden"))) void *lwm_entry_of(unsigned which, const void *caller)
{
    struct loaded loaded;
    const struct lwm_entry *entry = &lwm_entry_names[which];
    enum kind kind = kind_here(&loaded);
    /* Without an MPI, the function here says so. */
    void *target = kind == OURS || kind == UNKNOWN ? entry->own : kind == OTHER ? dlsym(RTLD_NEXT, entry->name) : as_linked(entry->name, caller);
    if (!target && kind == OTHER) target = dlsym(loaded.other, entry->name);
    if (!target && kind == OTHER) target = lwm_large_as_small(entry->name, loaded.other);
    if (!target) {
        fprintf(stderr, "lineweave: %s was called, and the MPI that is loaded does not have it\n", entry->name);
        abort();
    }
    if (kind == OTHER) say_other(loaded.other_path);
    if (kind == OURS || kind == OTHER) __atomic_store_n(&lwm_entries[which], target, __ATOMIC_RELEASE);
    return target;
}
