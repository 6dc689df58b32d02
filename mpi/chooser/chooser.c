/* The library that `lineweave run` preloads if the program that it starts may not be the one that needs lineweave: a shell, a script, taskset,
 * timeout, srun, mpirun. No command line is read: the library decides in each program when it is loaded.
 *
 * 1. Before main, in every process, look at what the loader has loaded.
 * 2. Where that is an MPI or a runtime of OpenMP without lineweave's library for it, or a Python, which loads its MPI later, become `lineweave run`
 *    for the same program. It finds out the rest and becomes the program, all in the same process. Where there is nothing to find out, the program
 *    starts anew without it.
 * 3. LINEWEAVE_RUN_SEEN names the process and the file for which this was done, so it is done once.
 * 4. A program that opens its MPI later and asks the loader for functions in it (dlopen, dlsym) gets those of lineweave's library,
 *    which is opened then. It finds the MPI among what is loaded.
 * 5. MPItrampoline within another library, as JAX has it, opens a library that is linked to an MPI, and asks that its calls go to that MPI and not
 *    to what is preloaded (RTLD_DEEPBIND). Where lineweave's library is preloaded, the calls go there.
 * 6. At the end of a process whose MPI was used without that, one line says so; also where `--mpi` named another one.
 *
 * A library has to be loaded before the MPI to stand before it, so the process starts anew. Rejected: to preload the libraries of all interfaces,
 * which define the same functions; to load one from here, which comes after the MPI. Any other program is left as it is, without a message. */
#define _GNU_SOURCE
#include "../src/speaks.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

/* The beginning of a library's name, and of lineweave's for it. `lineweave run` reports an MPI that is not known. */
static const struct {
    const char *host, *ours;
} LIBRARIES[] = {
    {"libmpi.so.40", "liblineweave_mpi_openmpi"}, {"libmpi.so.", "liblineweave_mpi_mpich"}, {"libmpich.so.", "liblineweave_mpi_mpich"},
    {"libmpi_cray.so.", "liblineweave_mpi_mpich"}, {"libmpi_abi.so.", "liblineweave_mpi_standard"},
    {"libgomp.so.", "liblineweave_openmp"}, {"libgomp-", "liblineweave_openmp"}, {"libomp.so", "liblineweave_openmp"},
    {"libomp5.so", "liblineweave_openmp"}, {"libiomp5.so", "liblineweave_openmp"},
};
enum { COUNT = sizeof LIBRARIES / sizeof LIBRARIES[0] };

/* MPIs of which the name tells the interface; of others the command says so. */
static const char *const KNOWN[] = {"libmpi.so.40", "libmpi.so.12", "libmpich.so.12", "libmpi_cray.so.12", "libmpi_abi.so.0", "libmpi_abi.so.1"};
/* Variables for which `lineweave run` has nothing to do in a program that it started another one with. */
static const char *const PASSED[] = {"RUN_COMMAND=", "RUN_SEEN=", "ROOT=", "QUIET=", "MPI_REPORT=", "MPI_LINK=", "MPI_TRACE="};

struct loaded {
    unsigned hosts, ours;
    const char *known;
    bool mpi_of_ours, valgrind, trampoline;
};

static bool begins(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

static const char *last(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int look(struct dl_phdr_info *info, size_t size, void *to) {
    (void)size;
    struct loaded *loaded = to;
    const char *name = last(info->dlpi_name);
    bool found = false;
    for (int i = 0; i < COUNT; i++) {
        if (!found && begins(name, LIBRARIES[i].host)) {
            loaded->hosts |= 1u << i;
            found = true;
        }
        if (begins(name, LIBRARIES[i].ours)) loaded->ours |= 1u << i;
    }
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++) {
        if (strcmp(name, KNOWN[i]) == 0) loaded->known = info->dlpi_name;
    }
    loaded->mpi_of_ours |= begins(name, "liblineweave_mpi_");
    loaded->valgrind |= begins(name, "vgpreload");
    return 0;
}

/* Returns the path by which this program was started, if that is the file that runs: a Python finds its environment by it. A name without a slash
 * would be looked up on the PATH. */
static const char *path_of(const struct stat *own, const char *argv0, char *room, size_t size) {
    const char *named[] = {(const char *)getauxval(AT_EXECFN), argv0};
    for (int i = 0; i < 2; i++) {
        struct stat other;
        if (!named[i] || !strchr(named[i], '/') || stat(named[i], &other) != 0) continue;
        if (other.st_dev == own->st_dev && other.st_ino == own->st_ino) return named[i];
    }
    ssize_t length = readlink("/proc/self/exe", room, size - 1);
    if (length <= 0) return NULL;
    room[length] = '\0';
    return room;
}

static bool ours_for(const char *mpi, char *room, size_t size);

/* Becomes the program with lineweave's library for its MPI before it, if that is all that the command would do. */
static void become(const struct loaded *loaded, const char *path, char **argv) {
    unsigned wanted = loaded->hosts & ~loaded->ours;
    const char *before = getenv("LD_PRELOAD");
    char file[4096], list[8200];
    Dl_info own;
    if (!loaded->known || loaded->mpi_of_ours || (wanted & (wanted - 1)) || !before || !dladdr((void *)become, &own)) return;
    for (char **variable = environ; *variable; variable++) {
        bool passed = !begins(*variable, "LINEWEAVE_");
        for (size_t i = 0; i < sizeof PASSED / sizeof *PASSED; i++) passed = passed || begins(*variable + strlen("LINEWEAVE_"), PASSED[i]);
        if (!passed) return;
    }
    if (strcmp(before, own.dli_fname) != 0 || !ours_for(loaded->known, file, sizeof file) || access(file, F_OK) != 0) return;
    snprintf(list, sizeof list, "%s:%s", file, before);
    if (setenv("LD_PRELOAD", list, 1) != 0) return;
    execv(path, argv);
    setenv("LD_PRELOAD", before, 1);
}

__attribute__((constructor)) static void choose(int argc, char **argv, char **envp) {
    (void)envp;
    const char *command = getenv("LINEWEAVE_RUN_COMMAND");
    struct stat own, its;
    if (!command || argc < 1 || stat("/proc/self/exe", &own) != 0) return;
    /* The command itself loads an MPI where a preloaded tool needs one. */
    if (stat(command, &its) == 0 && own.st_dev == its.st_dev && own.st_ino == its.st_ino) return;
    struct loaded loaded = {0};
    dl_iterate_phdr(look, &loaded);
    char room[4096], seen[96];
    const char *path = path_of(&own, argv[0], room, sizeof room);
    if (!path) return;
    const char *name = last(path);
    bool python = (begins(name, "python") || begins(name, "pypy")) && !loaded.mpi_of_ours;
    /* Valgrind would not follow. A loader that was started by its name is not the program. */
    if ((!python && !(loaded.hosts & ~loaded.ours)) || loaded.valgrind || begins(name, "ld-linux") || begins(name, "ld.so")) return;

    snprintf(seen, sizeof seen, "%ld:%llx:%llx", (long)getpid(), (unsigned long long)own.st_dev, (unsigned long long)own.st_ino);
    const char *before = getenv("LINEWEAVE_RUN_SEEN");
    if (before && strcmp(before, seen) == 0) return;
    if (setenv("LINEWEAVE_RUN_SEEN", seen, 1) != 0) return;
    if (!python) become(&loaded, path, argv);
    char **words = calloc((size_t)argc + 6, sizeof *words);
    if (!words) return;
    char *const first[] = {(char *)command, "run", "--chosen", argv[0], "--", (char *)path};
    memcpy(words, first, sizeof first);
    memcpy(words + 6, argv + 1, (size_t)argc * sizeof *words - sizeof *words);
    execv(command, words);
    free(words);
}

/* Finds the file of lineweave's library for the MPI in this file, beside this one; false for a file that is no known MPI. */
static bool ours_for(const char *mpi, char *room, size_t size) {
    Dl_info own;
    const char *name = last(mpi);
    for (int i = 0; i < COUNT; i++) {
        if (!begins(name, LIBRARIES[i].host)) continue;
        if (!begins(LIBRARIES[i].ours, "liblineweave_mpi_") || !dladdr((void *)ours_for, &own) || !own.dli_fname) return false;
        int length = snprintf(room, size, "%.*s%s.so", (int)(last(own.dli_fname) - own.dli_fname), own.dli_fname, LIBRARIES[i].ours);
        return length > 0 && (size_t)length < size;
    }
    return false;
}

/* Returns the MPI of a library of lineweave's, as --mpi names it, in `room`. */
static const char *kind_of(const char *ours, char *room, size_t size) {
    const char *from = strstr(last(ours), "_mpi_") + 5;
    snprintf(room, size, "%.*s", (int)strcspn(from, "."), from);
    return room;
}

#if defined(__x86_64__) && defined(__GLIBC__)
__attribute__((visibility("hidden"))) void *(*loaders_dlsym)(void *, const char *);

/* Finds lineweave's library that is loaded, if it is for another MPI than the one in this file: a user named it (`--mpi`). */
struct other {
    const char *wanted, *found;
};
static int look_for_other(struct dl_phdr_info *info, size_t size, void *to) {
    (void)size;
    struct other *other = to;
    const char *name = last(info->dlpi_name);
    if (begins(name, "liblineweave_mpi_") && strcmp(name, last(other->wanted)) != 0) other->found = info->dlpi_name;
    return other->found != NULL;
}

/* That library, and the MPI that the program has started past it, as far as is known. */
static char other_ours[4096], other_mpi[4096];

/* Returns lineweave's function of that name where `library` is a known MPI that has it; null: the loader answers. */
__attribute__((visibility("hidden"), used)) void *dlsym_of(void *library, const char *name) {
    if (!__atomic_load_n(&loaders_dlsym, __ATOMIC_RELAXED)) {
        void *next = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
        if (!next) next = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
        __atomic_store_n(&loaders_dlsym, (void *(*)(void *, const char *))next, __ATOMIC_RELAXED);
    }
    if (library == RTLD_NEXT || library == RTLD_DEFAULT || !name || !begins(name, "MPI_")) return NULL;
    Dl_info object;
    char file[4096];
    void *theirs = loaders_dlsym(library, name);
    if (!theirs || !dladdr(theirs, &object) || !object.dli_fname || !ours_for(object.dli_fname, file, sizeof file)) return NULL;
    struct other other = {.wanted = file};
    dl_iterate_phdr(look_for_other, &other);
    if (other.found && begins(name, "MPI_Init") && !strstr(name, "ialized")) {
        snprintf(other_ours, sizeof other_ours, "%s", other.found);
        snprintf(other_mpi, sizeof other_mpi, "%s", object.dli_fname);
    }
    void *ours = other.found ? NULL : dlopen(file, RTLD_NOW | RTLD_LOCAL);
    return ours ? loaders_dlsym(ours, name) : NULL;
}

/* The loader checks the place from which dlsym is called, so calls that it is to answer are passed on by a jump. */
__asm__(".text\n\t.globl dlsym\n\t.type dlsym, @function\n\t.p2align 4\ndlsym:\n\tendbr64\n"
        "\tpush %rdi\n\tpush %rsi\n\tsub $8, %rsp\n\tcall dlsym_of\n\tadd $8, %rsp\n\tpop %rsi\n\tpop %rdi\n"
        "\ttest %rax, %rax\n\tjz 1f\n\tret\n1:\tjmp *loaders_dlsym(%rip)\n\t.size dlsym, .-dlsym\n");
#endif

#if defined(__x86_64__) && defined(__GLIBC__)
__attribute__((visibility("hidden"))) void *(*loaders_dlopen)(const char *, int);

/* Whether MPItrampoline is a library of its own: its functions have the names of MPI's, and would be taken for them. */
static int look_for_trampoline(struct dl_phdr_info *info, size_t size, void *to) {
    (void)size;
    struct loaded *loaded = to;
    loaded->trampoline |= strstr(last(info->dlpi_name), "mpitrampoline") != NULL;
    return look(info, size, loaded);
}

/* Returns the mode in which a library is opened. */
__attribute__((visibility("hidden"), used)) int mode_of(const char *file, int mode) {
    if (!__atomic_load_n(&loaders_dlopen, __ATOMIC_RELAXED)) {
        void *next = dlvsym(RTLD_NEXT, "dlopen", "GLIBC_2.34");
        if (!next) next = dlvsym(RTLD_NEXT, "dlopen", "GLIBC_2.2.5");
        __atomic_store_n(&loaders_dlopen, (void *(*)(const char *, int))next, __ATOMIC_RELAXED);
    }
    const char *wrapper = mode & RTLD_DEEPBIND ? getenv("MPITRAMPOLINE_LIB") : NULL;
    if (!file || !wrapper || strcmp(file, wrapper) != 0) return mode;
    struct loaded loaded = {0};
    dl_iterate_phdr(look_for_trampoline, &loaded);
    return loaded.mpi_of_ours && !loaded.trampoline ? mode & ~RTLD_DEEPBIND : mode;
}

/* The loader searches where the library that calls dlopen says, so all calls are passed on by a jump. */
__asm__(".text\n\t.globl dlopen\n\t.type dlopen, @function\n\t.p2align 4\ndlopen:\n\tendbr64\n"
        "\tpush %rdi\n\tsub $16, %rsp\n\tcall mode_of\n\tadd $16, %rsp\n\tpop %rdi\n\tmov %eax, %esi\n"
        "\tjmp *loaders_dlopen(%rip)\n\t.size dlopen, .-dlopen\n");
#endif

struct used {
    const char *mpi;
    bool ours;
};

static int look_for_mpi(struct dl_phdr_info *info, size_t size, void *to) {
    (void)size;
    char file[4096];
    struct used *used = to;
    if (begins(last(info->dlpi_name), "liblineweave_mpi_")) used->ours = true;
    else if (!used->mpi && ours_for(info->dlpi_name, file, sizeof file)) used->mpi = info->dlpi_name;
    return 0;
}

#if defined(__x86_64__) && defined(__GLIBC__)
/* Says that the program started another MPI than the one that was named. Where it has called lineweave's functions as well, they have said so. */
static bool tell_other(void) {
    if (!*other_ours) return false;
    char file[4096], named[16], right[16];
    const char *said = getenv(LWM_SAID);
    if ((said && atol(said) == (long)getpid()) || !lwm_speaks() || !ours_for(other_mpi, file, sizeof file)) return true;
    fprintf(stderr, "lineweave: this program's MPI is %s, and the library for %s was preloaded; nothing is taken over. Try `lineweave run --mpi %s`\n",
            last(other_mpi), kind_of(other_ours, named, sizeof named), kind_of(file, right, sizeof right));
    return true;
}
#else
static bool tell_other(void) { return false; }
#endif

__attribute__((destructor)) static void tell(void) {
    struct used used = {0};
    char file[4096];
    if (tell_other()) return;
    dl_iterate_phdr(look_for_mpi, &used);
    if (!used.mpi || used.ours || !lwm_speaks() || !ours_for(used.mpi, file, sizeof file)) return;
    void *library = dlopen(used.mpi, RTLD_LAZY | RTLD_NOLOAD);
    int (*initialized)(int *) = library ? (int (*)(int *))dlsym(library, "PMPI_Initialized") : NULL;
    int was = 0;
    if (!initialized || initialized(&was) != 0 || !was) return;
    char kind[16];
    fprintf(stderr, "lineweave: this program opened its MPI, %s, where lineweave could not follow; nothing was taken over. Try `lineweave run --mpi %s`\n",
            last(used.mpi), kind_of(file, kind, sizeof kind));
}
