/* Memory that the processes of a node share if one launcher started them (board.c), used to find out which ranks are there
 * (presence.c). */
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
/* Returns what kept this process from the memory, in brackets with a space before; empty if nothing did. */
const char *lwm_board_trouble(void);
/* Closes the sockets by which others find the memory. It stays mapped: callbacks of communicators come later. */
void lwm_board_close(void);
/* Returns the line of a name, zeroed if this process is the first to ask; null where there is no room. */
struct lwm_line *lwm_board_take(uint64_t name);
/* Returns the number of processes that have the line. */
int lwm_board_users(const struct lwm_line *line);
/* Gives a line back; after its last user it is free. */
void lwm_board_give_back(struct lwm_line *line);
/* Returns a random number that distinguishes this memory from all others; 0 before it is open. */
uint64_t lwm_board_token(void);
/* Returns the number that the linker gave to this build of the library; 0 where there is none. */
uint64_t lwm_build(void);
/* Mix two numbers into one: equal for equal ones, and practically never for others. */
uint64_t lwm_mix(uint64_t a, uint64_t b);
uint64_t lwm_mix_text(uint64_t a, const char *text);
/* Purposes of names. The purpose goes into a name first, so that no two kinds of names are ever the same. */
enum { LWM_NAME_RANK = 0x72616e6b, LWM_NAME_CENSUS, LWM_NAME_MADE, LWM_NAME_GROUP, LWM_NAME_SPAWN, LWM_NAME_PLANS };
static inline uint64_t lwm_mix_for(uint64_t purpose, uint64_t a, uint64_t b) { return lwm_mix(lwm_mix(purpose, a), b); }

#endif
