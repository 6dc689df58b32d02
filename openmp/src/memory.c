/*
 * Memory of this library's own. No memory is taken from the program's heap: the place of the runtime's memory there decides which of its
 * words share a line, and with it the time of a region.
 */
#define _GNU_SOURCE
#include "lwo.h"

#include <sys/mman.h>

void *lwo_memory(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void lwo_memory_free(void *memory, size_t bytes) { munmap(memory, bytes); }
