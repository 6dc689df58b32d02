/* Parameters and arguments that recur in collectives (collectives.inc, collectives.def, passed.inc). Counts are of type COUNT, places of type
 * PLACE, where these are used. */
#ifndef LWM_SHAPES_H
#define LWM_SHAPES_H

/* One buffer and a root; two buffers, of which one or both may have blocks of lengths of their own, or a type each; and those that combine. */
#define ONE void *b, COUNT n, MPI_Datatype t, int root
#define ONE_A b, n, t, root
#define TWO const void *s, COUNT sn, MPI_Datatype st, void *r, COUNT rn, MPI_Datatype rt
#define TWO_A s, sn, st, r, rn, rt
#define TAKEN const void *s, COUNT sn, MPI_Datatype st, void *r, const COUNT *rn, const PLACE *rd, MPI_Datatype rt
#define TAKEN_A s, sn, st, r, rn, rd, rt
#define GIVEN const void *s, const COUNT *sn, const PLACE *sd, MPI_Datatype st, void *r, COUNT rn, MPI_Datatype rt
#define GIVEN_A s, sn, sd, st, r, rn, rt
#define BOTH const void *s, const COUNT *sn, const PLACE *sd, MPI_Datatype st, void *r, const COUNT *rn, const PLACE *rd, MPI_Datatype rt
#define EACH_AT(place) \
    const void *s, const COUNT *sn, const place *sd, const MPI_Datatype *st, void *r, const COUNT *rn, const place *rd, const MPI_Datatype *rt
#define EACH EACH_AT(PLACE)
#define BOTH_A s, sn, sd, st, r, rn, rd, rt
#define FOLD const void *s, void *r, COUNT n, MPI_Datatype t, MPI_Op op
#define FOLDS const void *s, void *r, const COUNT *n, MPI_Datatype t, MPI_Op op
#define FOLD_A s, r, n, t, op
#define ROOT(parameters) parameters, int root

#endif
