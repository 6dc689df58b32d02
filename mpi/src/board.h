/* Memory that the processes of a node share which one launcher started (board.c), and who is there (presence.c). */
#ifndef LWM_BOARD_H
#define LWM_BOARD_H

#include <stdbool.h>
#include <stdint.h>

/* A line of that memory, for one name: all processes that ask for the name get the same line. */
struct lwm_line {
    uint64_t name;   /* 0: free */
    uint64_t users;  /* processes that have it */
    uint64_t words[6];
};
_Static_assert(sizeof(struct lwm_line) == 64, "a cache line for each");

/* Maps the memory of this launcher, or makes it. `ranks` and `rank` are of MPI_COMM_WORLD. False where it cannot be had. */
bool lwm_board_open(uint64_t launcher, int ranks, int rank);
/* Gives up what lets others find it. The memory stays mapped: callbacks of communicators come later. */
void lwm_board_close(void);
/* Returns the line of a name, zeroed if this process is the first to ask; null where there is no room. */
struct lwm_line *lwm_board_take(uint64_t name);
/* How many processes have it. */
int lwm_board_users(const struct lwm_line *line);
/* Gives it back; after its last user it is free. */
void lwm_board_give_back(struct lwm_line *line);
/* A random number that tells this memory from all others; 0 before it is open. */
uint64_t lwm_board_token(void);
/* The number that the linker gave to this build of the library; 0 where there is none. */
uint64_t lwm_build(void);
/* One number made of two: equal for equal ones, and as good as never for others. */
uint64_t lwm_mix(uint64_t a, uint64_t b);
uint64_t lwm_mix_text(uint64_t a, const char *text);
/* What a name is for goes into it first, so that no two kinds of names are ever the same. */
enum { LWM_NAME_RANK = 0x72616e6b, LWM_NAME_CENSUS, LWM_NAME_MADE, LWM_NAME_GROUP, LWM_NAME_SPAWN };
static inline uint64_t lwm_mix_for(uint64_t purpose, uint64_t a, uint64_t b) { return lwm_mix(lwm_mix(purpose, a), b); }

#endif
