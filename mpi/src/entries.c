/*
 * What a program's call of MPI_x comes to, where the library may have been preloaded for another MPI than the process has, or beside a tool.
 *
 * Interfaces differ in the size of a handle, so a function of this library cannot even pass on a call that was made for another interface. So
 * each name that the library exports is one jump through a table (mpi/build makes both of the names that are defined here). At first an entry of
 * the table leads to `lwm_entry_of`, which replaces it:
 * 1. by the function of this library, if the process's MPI has this library's interface;
 * 2. by the MPI's own, if it has another one: then nothing is taken over, and one line says so;
 * 3. by neither, if MPIs of several interfaces are loaded apart: then each call goes to the one that its caller was linked to.
 *
 * A tool (mpiP, Score-P, TAU) defines MPI_x, counts, and calls PMPI_x. If it comes before this library, its call of PMPI_x arrives here. If it comes
 * after, MPI_x leads to the tool, which then calls PMPI_x here. So a tool sees each call once, and PMPI_x is what this library carries out. Open MPI's
 * Fortran calls PMPI_x too. Only what the host's own library calls as PMPI_x stays the host's, as it may hold a lock.
 */
#define _GNU_SOURCE
#include "entry.h"
#include "speaks.h"
#include "trace.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum form { PLAIN, PROFILED, BY_HOST };

enum kind { UNKNOWN, OURS, OTHER, SEVERAL };

#if defined(LWM_OPENMPI)
enum { OWN = 0 };
#elif defined(LWM_MPICH)
enum { OWN = 1 };
#else
enum { OWN = 2 };
#endif

/* Returns the interface of an MPI library, as one of these numbers. */
static int interface_of(void *library, const char *path)
{
    if (strstr(path, "libmpi.so.40") || dlsym(library, "ompi_mpi_comm_world")) return 0;
    return strstr(path, "libmpi_abi.so") ? 2 : 1;
}

/* The loaded MPIs: the handle of one of another interface, and a bit for each interface. */
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

/* Prints one line about an MPI of another interface, once, at the rank that speaks for all, and tells the chooser (LWM_SAID). */
static void say_other(const char *path)
{
    static bool said;
    char process[24];
    const char *file = strrchr(path, '/');
    if (__atomic_exchange_n(&said, true, __ATOMIC_RELAXED) || !lwm_speaks()) return;
    snprintf(process, sizeof process, "%ld", (long)getpid());
    setenv(LWM_SAID, process, 1);
    fprintf(stderr, "lineweave: this program's MPI is %s, and the library for " LWM_ABI_TITLE " was preloaded; nothing is taken over\n",
            file ? file + 1 : path);
}

/* Returns the kind of MPI that the process has; it is looked up until there is one. */
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

/* Returns the function that a call from this place would have reached without this library. */
static void *as_linked(const char *name, const void *caller)
{
    Dl_info object;
    void *library = dladdr(caller, &object) && object.dli_fname ? dlopen(object.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    return library ? dlsym(library, name) : NULL;
}

/* Says once of a tool that is behind this library and has PMPI_x too, as Darshan does: it goes on from where it is, and never comes here. */
static void say_past(const char *file)
{
    static bool said;
    const char *name = strrchr(file, '/');
    if (__atomic_exchange_n(&said, true, __ATOMIC_RELAXED) || !lwm_speaks()) return;
    fprintf(stderr, "lineweave: %s comes behind lineweave and calls the MPI past it, so nothing is taken over; it works in front: lineweave run --tool %s\n",
            name ? name + 1 : file, file);
}

/* Address and length of the host's code. PMPI_x looks whether its caller lies in it. */
__attribute__((visibility("hidden"))) uintptr_t lwm_host_code[2];

static int find_code(struct dl_phdr_info *info, size_t size, void *inside)
{
    (void)size;
    uintptr_t from = UINTPTR_MAX, to = 0, address = (uintptr_t)inside;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
        uintptr_t begins = info->dlpi_addr + part->p_vaddr, ends = begins + part->p_memsz;
        if (begins < from) from = begins;
        if (ends > to) to = ends;
    }
    if (address < from || address >= to) return 0;
    /* Length last: until it is there, nobody is the host. */
    __atomic_store_n(&lwm_host_code[0], from, __ATOMIC_RELAXED);
    __atomic_store_n(&lwm_host_code[1], to - from, __ATOMIC_RELEASE);
    return 1;
}

/* Returns whether the host's own library is the caller. */
static bool is_host(const void *caller) { return (uintptr_t)caller - lwm_host_code[0] < lwm_host_code[1]; }

/* Returns the function for a call of that form, in a process whose MPI is this library's. */
static void *ours(const struct lwm_entry *entry, enum form form, const void *caller)
{
    void *barrier = lwm_pmpi_of_library("Barrier");
    if (lwm_host_code[1] == 0 && barrier) dl_iterate_phdr(find_code, barrier);
    const char *name = entry->name + strlen("MPI_");
    if (form == BY_HOST || (form == PROFILED && is_host(caller))) return lwm_pmpi(name);
    const char *file = NULL;
    void *tool = lwm_tool(name, form == PROFILED, &file);
    if (tool) {
        if (strncmp(name, "Init", 4) == 0 && lwm_tool(name, true, NULL)) say_past(file);
        return tool;
    }
    return lwm_trace_wants((unsigned)(entry - lwm_entry_names), name) ? entry->traced : entry->own;
}

/* Returns what jump number `which` shall lead to, called from there, and makes it lead there from now on where that is the same for all callers. */
__attribute__((visibility("hidden"))) void *lwm_entry_of(unsigned which, const void *caller)
{
    struct loaded loaded;
    const struct lwm_entry *entry = &lwm_entry_names[which % lwm_entry_count];
    enum form form = which / lwm_entry_count;
    enum kind kind = kind_here(&loaded);
    char name[80];
    snprintf(name, sizeof name, "%s%s", form == PLAIN ? "" : "P", entry->name);
    void *target;
    switch (kind) {
    case OURS: target = ours(entry, form, caller); break;
    /* Without an MPI, the function here says so. */
    case UNKNOWN: target = entry->own; break;
    case OTHER: target = dlsym(RTLD_NEXT, name); break;
    default: target = as_linked(name, caller);
    }
    if (!target && kind == OTHER) target = dlsym(loaded.other, name);
    if (!target && kind == OTHER) target = lwm_large_as_small(entry->name, loaded.other);
    if (!target) {
        fprintf(stderr, "lineweave: %s was called, and the MPI that is loaded does not have it\n", name);
        abort();
    }
    if (kind == OTHER) say_other(loaded.other_path);
    bool for_all = kind == OTHER || (kind == OURS && !(form == PROFILED && is_host(caller)));
    if (for_all) __atomic_store_n(&lwm_entries[which], target, __ATOMIC_RELEASE);
    return target;
}
