/*
 * The search for the host's MPI.
 *
 * This library is linked to none. In a plain program the next definition of MPI_x is the host's, or a tool's, which had its turn (entries.c). A program that loads its MPI late and for itself alone, as mpi4py does, has it in no
 * search order: then it is found among the loaded objects.
 */
#define _GNU_SOURCE
#include "lwm.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lwm_host lwm_host;
const char *lwm_host_title = LWM_ABI_TITLE;

/* The host's library, once found. */
static void *library;

bool lwm_is_mpi(const char *path)
{
    const char *file = strrchr(path, '/');
    file = file ? file + 1 : path;
    return strncmp(file, "libmpi.so", 9) == 0 || strncmp(file, "libmpi_abi.so", 13) == 0 ||
           strncmp(file, "libmpich.so", 11) == 0 || strncmp(file, "libmpi_intel", 12) == 0 ||
           strncmp(file, "libmpi_cray", 11) == 0;
}

static int look_at(struct dl_phdr_info *info, size_t size, void *found)
{
    (void)size;
    if (!info->dlpi_name || !lwm_is_mpi(info->dlpi_name)) return 0;
    void *handle = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle) return 0;
    if (dlsym(handle, "PMPI_Barrier")) {
        *(void **)found = handle;
        return 1;
    }
    dlclose(handle);
    return 0;
}

static void *host_library(void)
{
    void *known = __atomic_load_n(&library, __ATOMIC_ACQUIRE);
    if (known) return known;
    void *found = NULL;
    dl_iterate_phdr(look_at, &found);
    /* Threads that look at the same time find the same. */
    __atomic_store_n(&library, found, __ATOMIC_RELEASE);
    return found;
}

void *lwm_pmpi(const char *name)
{
    char text[80];
    snprintf(text, sizeof text, "PMPI_%s", name);
    void *found = dlsym(RTLD_NEXT, text);
    void *host = found ? NULL : host_library();
    return host ? dlsym(host, text) : found;
}

void *lwm_pmpi_of_library(const char *name)
{
    char text[80];
    snprintf(text, sizeof text, "PMPI_%s", name);
    void *host = host_library();
    return host ? dlsym(host, text) : NULL;
}

void *lwm_tool(const char *name, bool profiled, const char **file)
{
#ifdef __x86_64__
    char text[80];
    snprintf(text, sizeof text, "%sMPI_%s", profiled ? "P" : "", name);
    void *found = dlsym(RTLD_NEXT, text), *host = lwm_pmpi_of_library(name);
    Dl_info of_found, of_host;
    bool known = found && host && dladdr(found, &of_found) && dladdr(host, &of_host);
    if (known && file) *file = of_found.dli_fname;
    return known && of_found.dli_fbase != of_host.dli_fbase ? found : NULL;
#else
    (void)name, (void)profiled, (void)file;
    return NULL;
#endif
}

void *lwm_next_or_null(const char *name)
{
    char text[80];
    snprintf(text, sizeof text, "MPI_%s", name);
    void *found = lwm_tool(name, false, NULL) ? dlsym(host_library(), text) : dlsym(RTLD_NEXT, text);
    return found ? found : lwm_pmpi(name);
}

void *lwm_next(const char *name)
{
    void *found = lwm_next_or_null(name);
    if (!found) {
        fprintf(stderr, "lineweave: MPI_%s was called, and no MPI of the " LWM_ABI_TITLE " kind that has it is loaded\n",
                name);
        abort();
    }
    return found;
}

void *lwm_host_object(const char *name)
{
    /* A program may hold the object itself, copied at its start; that copy counts for all. */
    void *found = dlsym(RTLD_DEFAULT, name);
    void *host = found ? NULL : host_library();
    return host ? dlsym(host, name) : found;
}

/* Returns whether the host is of the kind that this library was built for. */
static bool is_of_our_kind(void)
{
    char *version = calloc(1, LWM_LONGEST_VERSION + 1);
    int length = 0;
    bool right = false;
    if (version && lwm_host.Get_library_version && lwm_host.Get_library_version(version, &length) == 0) {
        static const char *const names[] = LWM_ABI_VERSIONS;
        for (int i = 0; names[i]; i++) right = right || strncmp(version, names[i], strlen(names[i])) == 0;
        static const char *const own[][2] = {{"Intel(R) MPI", "Intel MPI"}, {"MVAPICH", "MVAPICH"}, {"CRAY MPICH", "Cray MPICH"},
                                             {"MPICH", "MPICH"}, {"Open MPI", "Open MPI"}};
        for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
            if (strncmp(version, own[i][0], strlen(own[i][0])) == 0) lwm_host_title = own[i][1];
        }
        if (!right) {
            version[strcspn(version, "\n,")] = 0;
            lwm_say("this program's MPI is `%.60s`, and the library for " LWM_ABI_TITLE " was preloaded; nothing is taken over",
                    version);
        }
    }
    free(version);
    return right;
}

bool lwm_host_open(void)
{
#define H(result, name, parameters) *(void **)&lwm_host.name = lwm_pmpi(#name);
#include "host.def"
#undef H
    const char *missing = NULL;
#define H(result, name, parameters) if (!lwm_host.name) missing = missing ? missing : #name;
#include "host.def"
#undef H
    if (missing) {
        lwm_say("this program's MPI has no PMPI_%s; nothing is taken over", missing);
        return false;
    }
    if (!is_of_our_kind()) return false;
    lwm_host.world = LWM_HANDLE(MPI_Comm, LWM_COMM_WORLD);
    lwm_host.self = LWM_HANDLE(MPI_Comm, LWM_COMM_SELF);
    lwm_host.errors_return = LWM_HANDLE(MPI_Errhandler, LWM_ERRORS_RETURN);
    lwm_host.null = LWM_HANDLE(MPI_Comm, LWM_COMM_NULL);
    lwm_host.no_request = LWM_HANDLE(MPI_Request, LWM_REQUEST_NULL);
    lwm_host.no_info = LWM_HANDLE(MPI_Info, LWM_INFO_NULL);
    lwm_host.no_type = LWM_HANDLE(MPI_Datatype, LWM_DATATYPE_NULL);
    lwm_host.byte = LWM_HANDLE(MPI_Datatype, LWM_BYTE);
    lwm_host.integer = LWM_HANDLE(MPI_Datatype, LWM_INT);
    lwm_host.long_long = LWM_HANDLE(MPI_Datatype, LWM_LONG_LONG);
    lwm_host.real = LWM_HANDLE(MPI_Datatype, LWM_DOUBLE);
    lwm_host.sum = LWM_HANDLE(MPI_Op, LWM_SUM);
    lwm_host.min = LWM_HANDLE(MPI_Op, LWM_MIN);
    lwm_host.max = LWM_HANDLE(MPI_Op, LWM_MAX);
    return true;
}
