/* The file `lineweave` that users start. `mpirun -n 8 lineweave run ./app` starts it once for each rank, and loading the whole command for that
 * takes longer than all it then does. So this one, which has no C library and needs no loader, starts the usual program itself:
 *
 *   lineweave run [--] PROGRAM [ARGUMENT...]
 *
 * with PROGRAM a path, linked to an MPI and otherwise to libraries of the system alone, and with nothing in the environment that the command
 * would have to read or add to. Of these it does what the command does (`crates/lineweave-cli/src/commands/run`): it preloads lineweave's
 * library for that MPI and becomes the program. For everything else, all errors and messages among it, it becomes the command, which is
 * ../libexec/lineweave where it is installed, and ../lineweave where it was built. */
#include <elf.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n\txor %ebp, %ebp\n\tmov %rsp, %rdi\n\tand $-16, %rsp\n\tcall begin\n\thlt\n");
static long call(long number, long a, long b, long c, long d, long e)
{
    long result;
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = e;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8) : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__)
__asm__(".globl _start\n_start:\n\tmov x29, xzr\n\tmov x30, xzr\n\tmov x0, sp\n\tbl begin\n\tbrk #0\n");
static long call(long number, long a, long b, long c, long d, long e)
{
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c, x3 __asm__("x3") = d,
                  x4 __asm__("x4") = e;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
    return x0;
}
#endif

/* Libraries by their whole name, or by its beginning: the kind of an MPI, or 0 for one that brings no MPI and no OpenMP (`run/detect.rs` has the
 * same ones, and a test that compares). */
static const char kinds[][12] = {"", "openmpi", "mpich", "standard"};
static const struct {
    char name[20], kind;
    bool whole;
} KNOWN[] = {
    {"libmpi.so.40", 1, true}, {"libmpi.so.12", 2, true}, {"libmpich.so.12", 2, true}, {"libmpi_cray.so.12", 2, true},
    {"libmpi_abi.so.0", 3, true}, {"libmpi_abi.so.1", 3, true}, {"libc.so", 0, false}, {"libm.so", 0, false}, {"libpthread.so", 0, false},
    {"libdl.so", 0, false}, {"librt.so", 0, false}, {"libgcc_s.so", 0, false}, {"libstdc++.so", 0, false}, {"libgfortran.so", 0, false},
    {"libquadmath.so", 0, false}, {"ld-linux", 0, false},
};

/* Returns what follows in `text` behind `with`; null if it begins otherwise. */
static const char *behind(const char *text, const char *with)
{
    while (*with && *text == *with) text++, with++;
    return *with ? NULL : text;
}

/* Appends a text; returns the new end, or null if there is no room. */
static char *append(char *to, const char *end, const char *text)
{
    while (to && *text) {
        if (to + 1 >= end) return NULL;
        *to++ = *text++;
    }
    if (to) *to = 0;
    return to;
}

static bool read_at(long file, void *to, size_t many, Elf64_Off from)
{
    return call(SYS_pread64, file, (long)to, (long)many, (long)from, 0) == (long)many;
}

/* Returns the kind of the MPI that is the first in a program's list of libraries; 0 if it has none, or a library that may bring another one. */
static int mpi_of(long file)
{
    enum { SEGMENTS = 24, ENTRIES = 96, NAME = 24 };
    Elf64_Ehdr head;
    Elf64_Phdr segments[SEGMENTS];
    Elf64_Dyn entries[ENTRIES];
    if (!read_at(file, &head, sizeof head, 0) || !behind((const char *)head.e_ident, ELFMAG)) return 0;
    const short order = 1;
    if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_ident[EI_DATA] != (*(const char *)&order ? ELFDATA2LSB : ELFDATA2MSB)) return 0;
    if (head.e_phentsize != sizeof *segments || head.e_phnum > SEGMENTS) return 0;
    if (!read_at(file, segments, head.e_phnum * sizeof *segments, head.e_phoff)) return 0;
    bool loaded = false;
    int many = 0;
    for (int i = 0; i < head.e_phnum; i++) {
        if (segments[i].p_type == PT_INTERP) loaded = true;
        if (segments[i].p_type != PT_DYNAMIC) continue;
        many = (int)(segments[i].p_filesz / sizeof *entries);
        if (many > ENTRIES || !read_at(file, entries, (size_t)many * sizeof *entries, segments[i].p_offset)) return 0;
    }
    Elf64_Off names = 0;
    for (int e = 0; e < many && entries[e].d_tag != DT_NULL; e++) {
        if (entries[e].d_tag != DT_STRTAB) continue;
        for (int i = 0; i < head.e_phnum; i++) {
            Elf64_Addr into = entries[e].d_un.d_ptr - segments[i].p_vaddr;
            if (segments[i].p_type == PT_LOAD && into < segments[i].p_filesz) names = segments[i].p_offset + into;
        }
    }
    if (!loaded || !names) return 0;
    int mpi = 0;
    for (int e = 0; e < many && entries[e].d_tag != DT_NULL; e++) {
        char name[NAME];
        if (entries[e].d_tag != DT_NEEDED) continue;
        if (!read_at(file, name, sizeof name, names + entries[e].d_un.d_val)) return 0;
        int known = -1;
        for (size_t k = 0; k < sizeof KNOWN / sizeof *KNOWN; k++) {
            const char *rest = behind(name, KNOWN[k].name);
            if (rest && (!KNOWN[k].whole || !*rest)) known = KNOWN[k].kind;
        }
        if (known < 0) return 0;
        if (!mpi) mpi = known;
    }
    return mpi;
}

/* Returns the MPI of a program that a caller may start; 0 if there is something to say of it. */
static int mpi_of_program(const char *path)
{
    struct statx about;
    long file = call(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0);
    /* A setuid program is loaded without what is preloaded. */
    if (file < 0 || call(SYS_statx, file, (long)"", 0x1000 /* AT_EMPTY_PATH */, STATX_TYPE | STATX_MODE, (long)&about) != 0) return 0;
    return (about.stx_mode & 0176000) == 0100000 ? mpi_of(file) : 0;
}

/* Returns whether this variable's value is read by the command, or is to be added to. */
static bool is_for_command(const char *variable)
{
    if (behind(variable, "LD_PRELOAD=")) return true;
    if (!behind(variable, "LINEWEAVE_") || behind(variable, "LINEWEAVE_ROOT=")) return false;
    const char *quiet = behind(variable, "LINEWEAVE_QUIET=");
    return !quiet || (*quiet != '0' && *quiet != '1') || quiet[1];
}

/* Becomes the program, if it is one as above. */
static void become_program(char **words, char **environment, const char *libraries)
{
    char *const *program = words + 2;
    if (!words[1] || !behind(words[1], "run") || words[1][3]) return;
    if (*program && behind(*program, "--") && !(*program)[2]) program++;
    if (!*program || **program == '-') return;
    const char *slash = *program;
    while (*slash && *slash != '/') slash++;
    if (!*slash) return;
    size_t many = 0;
    for (; environment[many]; many++) {
        if (is_for_command(environment[many])) return;
    }
    int mpi = mpi_of_program(*program);
    char preload[4200], *end = preload + sizeof preload;
    char *at = mpi ? append(append(preload, end, "LD_PRELOAD="), end, libraries) : NULL;
    if (!append(append(append(at, end, "liblineweave_mpi_"), end, kinds[mpi]), end, ".so")) return;
    if (call(SYS_faccessat, AT_FDCWD, (long)behind(preload, "LD_PRELOAD="), 0, 0, 0) != 0) return;
    char *more[many + 2];
    for (size_t i = 0; i < many; i++) more[i] = environment[i];
    more[many] = preload;
    more[many + 1] = NULL;
    call(SYS_execve, (long)*program, (long)program, (long)more, 0, 0);
}

__attribute__((used, noreturn)) void begin(long *stack)
{
    char **words = (char **)(stack + 1), **environment = words + *stack + 1;
    static const char commands[][24] = {"../libexec/lineweave", "../lineweave"}, libraries[][24] = {"../lib/lineweave/", "../"};
    char path[4096];
    long length = call(SYS_readlinkat, AT_FDCWD, (long)"/proc/self/exe", (long)path, sizeof path - 24, 0);
    char *name = path + (length > 0 ? length : 0);
    while (name > path && name[-1] != '/') name--;
    for (int i = 0; i < 2 && *stack > 0; i++) {
        append(name, path + sizeof path, commands[i]);
        if (call(SYS_faccessat, AT_FDCWD, (long)path, 1 /* X_OK */, 0, 0) != 0) continue;
        append(name, path + sizeof path, libraries[i]);
        become_program(words, environment, path);
        append(name, path + sizeof path, commands[i]);
        call(SYS_execve, (long)path, (long)words, (long)environment, 0, 0);
    }
    static const char said[] = "lineweave: expected the command in ../libexec beside the folder of this file, found none; install it again\n";
    call(SYS_write, 2, (long)said, sizeof said - 1, 0, 0);
    call(SYS_exit_group, 1, 0, 0, 0, 0);
    __builtin_unreachable();
}
