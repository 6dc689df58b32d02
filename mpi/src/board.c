/*
 * Memory that is shared by the processes of a node that one launcher started, found without any communicator of MPI.
 *
 * 1. A process makes the memory (memfd) and binds an abstract socket whose name contains the user, the launcher and the build of this library.
 *    No connection is accepted there. If the name is taken, the process connects to the socket instead: the kernel tells which process listens.
 * 2. It opens that process's memory by /proc/PID/fd, which the kernel allows to processes of the same user, and checks that it is of this user.
 * 3. The memory is a table of lines, in buckets of fifteen. A name's line is in the bucket that its bits choose. Looking for a name and taking
 *    a free line for it is one step, under the bucket's lock.
 *
 * A socket and a memfd end with their process, so nothing stays behind. Processes of another build have another name, and so another memory.
 */
#define _GNU_SOURCE
#include "board.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BUCKETS = 2048, LINES = 15 };
struct bucket {
    uint64_t lock, rest[7];
    struct lwm_line lines[LINES];
};
struct memory {
    /* The first bucket's lines are not used: its head identifies the memory. */
    uint64_t magic, token, rest[126];
    struct bucket buckets[BUCKETS - 1];
};
_Static_assert(sizeof(struct bucket) == 1024 && sizeof(struct memory) == BUCKETS * 1024, "one size");
/* The text "lineweav", as a number. */
#define MAGIC 0x6c696e6577656176u

static struct memory *memory;
static int file = -1;

static char trouble[96];
const char *lwm_board_trouble(void) { return trouble; }

/* Records what failed, with errno; returns false. */
static bool failed(const char *what)
{
    snprintf(trouble, sizeof trouble, " (%s: %s)", what, strerror(errno));
    return false;
}

/* Pending connections are never accepted, and a socket holds as many as the system allows (128 on older ones). So there are several of them. */
enum { SOCKETS = 16, A_SOCKET = 100 };
static int sockets[SOCKETS], bound;

/* Mixes two numbers by the finalizer of splitmix64. */
uint64_t lwm_mix(uint64_t a, uint64_t b)
{
    uint64_t z = a * 0x9e3779b97f4a7c15u + b + 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return z ? z : 1;
}

uint64_t lwm_mix_text(uint64_t a, const char *text)
{
    for (; *text; text++) a = lwm_mix(a, (unsigned char)*text);
    return lwm_mix(a, 0);
}

uint64_t lwm_board_token(void) { return memory ? memory->token : 0; }

/* Makes a number of the id that the linker gave to the library that contains this function. */
static int look_at(struct dl_phdr_info *info, size_t size, void *found)
{
    (void)size;
    uintptr_t here = (uintptr_t)&memory;
    bool ours = false;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        ours = ours || (part->p_type == PT_LOAD && here - info->dlpi_addr - part->p_vaddr < part->p_memsz);
    }
    for (int i = 0; ours && i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        const char *at = (const char *)(info->dlpi_addr + part->p_vaddr), *end = at + part->p_memsz;
        while (part->p_type == PT_NOTE && at + sizeof(ElfW(Nhdr)) <= end) {
            const ElfW(Nhdr) *note = (const void *)at;
            const unsigned char *id = (const void *)(at + sizeof *note + ((note->n_namesz + 3) & ~3u));
            if (note->n_type == NT_GNU_BUILD_ID) {
                for (uint32_t b = 0; b < note->n_descsz; b++) *(uint64_t *)found = lwm_mix(*(uint64_t *)found, id[b]);
            }
            at = (const char *)id + ((note->n_descsz + 3) & ~3u);
        }
    }
    return ours;
}

uint64_t lwm_build(void)
{
    static uint64_t build;
    if (!build) dl_iterate_phdr(look_at, &build);
    return build;
}

/* Makes the name of the memory, which /proc/PID/fd shows too; false without a number for this build. */
static bool name_of(char *name, size_t room, uint64_t launcher)
{
    uint64_t build = lwm_build();
    snprintf(name, room, "lineweave-mpi-%u-%016llx", (unsigned)geteuid(), (unsigned long long)lwm_mix(launcher, build));
    return build != 0;
}

static socklen_t address_of(struct sockaddr_un *address, const char *name, int number)
{
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    int length = snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "%s-%d", name, number);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static bool map(int from)
{
    struct stat found;
    if (fstat(from, &found) != 0 || found.st_uid != geteuid() || found.st_size != sizeof *memory) return false;
    struct memory *at = mmap(NULL, sizeof *memory, PROT_READ | PROT_WRITE, MAP_SHARED, from, 0);
    if (at == MAP_FAILED) return failed("mmap");
    if (at->magic == MAGIC) memory = at;
    else munmap(at, sizeof *at);
    return memory != NULL;
}

/* Maps the memory if it is this one of a process's open files, under this name. */
static bool map_file(int folder, const char *number, const char *name)
{
    char link[128], wanted[80];
    int length = snprintf(wanted, sizeof wanted, "/memfd:%s", name);
    ssize_t many = readlinkat(folder, number, link, sizeof link);
    if (many < length || strncmp(link, wanted, (size_t)length) != 0) return false;
    int from = openat(folder, number, O_RDWR | O_CLOEXEC);
    bool mapped = from >= 0 && map(from);
    if (from >= 0) close(from);
    return mapped;
}

/* Maps the memory that process `pid` has under this name. That process made it where this one is now, with about as many files open: so the numbers
 * about the next one here come first. To list all files takes two to three times as long. */
static bool map_of(int pid, const char *name)
{
    enum { NEAR = 16 };
    char path[64], number[16];
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return failed(path);
    bool mapped = false;
    for (int i = 0; i < 2 * NEAR && !mapped; i++) {
        snprintf(number, sizeof number, "%d", i % 2 ? folder - i / 2 - 1 : folder + i / 2);
        mapped = map_file(folder, number, name);
    }
    DIR *files = mapped ? NULL : fdopendir(folder);
    if (!files) close(folder);
    for (struct dirent *entry; files && !mapped && (entry = readdir(files));) mapped = map_file(folder, entry->d_name, name);
    if (files) closedir(files);
    return mapped;
}

/* Makes the memory that this process offers to others. */
static bool make(const char *name)
{
    uint64_t head[2] = {MAGIC, 0};
    if (file < 0 && (file = memfd_create(name, MFD_CLOEXEC)) < 0) return failed("memfd_create");
    if (ftruncate(file, sizeof *memory) != 0) return failed("ftruncate");
    if (getrandom(&head[1], sizeof head[1], 0) != sizeof head[1]) return failed("getrandom");
    return pwrite(file, head, sizeof head, 0) == sizeof head || failed("pwrite");
}

static bool listens(const char *name, int number)
{
    struct sockaddr_un address;
    socklen_t length = address_of(&address, name, number);
    int at = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (at >= 0 && bind(at, (struct sockaddr *)&address, length) == 0 && listen(at, 4096) == 0) {
        sockets[bound++] = at;
        return true;
    }
    if (at >= 0) close(at);
    return false;
}

/* Returns the process of this user that listens there: 0 if there is none, negative if it cannot be known. */
static int who_listens(const char *name, int number)
{
    struct sockaddr_un address;
    socklen_t length = address_of(&address, name, number), many = sizeof(struct ucred);
    struct ucred who = {0};
    int at = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int found = -1;
    if (at < 0) failed("socket");
    else if (connect(at, (struct sockaddr *)&address, length) != 0) found = errno == ECONNREFUSED ? 0 : -1 - failed("connect");
    else if (getsockopt(at, SOL_SOCKET, SO_PEERCRED, &who, &many) == 0 && who.uid == geteuid() && who.pid > 0) found = who.pid;
    if (at >= 0) close(at);
    return found;
}

bool lwm_board_open(uint64_t launcher, int ranks, int rank)
{
    char name[64];
    if (memory) return true;
    if (!name_of(name, sizeof name, launcher)) return false;
    int many = (ranks + A_SOCKET - 1) / A_SOCKET, mine = rank % (many < SOCKETS ? many : SOCKETS);
    /* Between another process's bind and listen, no process can connect; it is about to listen. */
    for (int turn = 0; turn < 1000 && !memory; turn++) {
        int pid = who_listens(name, mine);
        if (pid == 0 && mine != 0) pid = who_listens(name, 0);
        if (pid < 0) break;
        if (pid > 0) return map_of(pid, name);
        if (!make(name)) break;
        if (listens(name, 0)) {
            while (bound < many && bound < SOCKETS && listens(name, bound)) {}
            return map(file);
        }
        sched_yield();
    }
    lwm_board_close();
    return memory != NULL;
}

void lwm_board_close(void)
{
    while (bound > 0) close(sockets[--bound]);
    if (file >= 0) close(file);
    file = -1;
}

/* Takes the lock of a bucket. A process that was killed with the lock never opens it, so after some time this gives up. */
static bool lock(struct bucket *bucket)
{
    for (int turn = 0; turn < 20000; turn++) {
        uint64_t open = 0;
        if (__atomic_compare_exchange_n(&bucket->lock, &open, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return true;
        if (turn > 100) sched_yield();
    }
    return false;
}

static void unlock(struct bucket *bucket) { __atomic_store_n(&bucket->lock, 0, __ATOMIC_RELEASE); }

struct lwm_line *lwm_board_take(uint64_t name)
{
    struct bucket *bucket = memory ? &memory->buckets[name % (BUCKETS - 1)] : NULL;
    struct lwm_line *found = NULL;
    if (!bucket || !lock(bucket)) return NULL;
    for (int i = 0; i < LINES && (!found || found->name == 0); i++) {
        struct lwm_line *line = &bucket->lines[i];
        if (line->name == name || (line->name == 0 && !found)) found = line;
    }
    if (found && found->name == 0) *found = (struct lwm_line){.name = name};
    if (found) __atomic_store_n(&found->users, found->users + 1, __ATOMIC_RELAXED);
    unlock(bucket);
    return found;
}

/* Relaxed: a rank that took it did so before the call after which this one asks. */
int lwm_board_users(const struct lwm_line *line) { return (int)__atomic_load_n(&line->users, __ATOMIC_RELAXED); }

void lwm_board_give_back(struct lwm_line *line)
{
    struct bucket *bucket = &memory->buckets[line->name % (BUCKETS - 1)];
    if (!lock(bucket)) return;
    __atomic_store_n(&line->users, line->users - 1, __ATOMIC_RELAXED);
    if (line->users == 0) line->name = 0;
    unlock(bucket);
}
