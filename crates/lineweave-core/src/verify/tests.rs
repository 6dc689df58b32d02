use super::*;
use crate::algorithm::{self, Problem};
use crate::plan::Params;

#[test]
fn the_binomial_broadcast_is_proved() {
    for p in 1..20 {
        for bytes in [0, 1, 56, 57, 1000] {
            let plan = algorithm::find(Collective::Bcast, "binomial")
                .unwrap()
                .plan(&Problem { root: p / 2, ..Problem::flat(Collective::Bcast, p, bytes) }, &Params::new())
                .unwrap();
            let proof = verify(&plan).unwrap_or_else(|v| panic!("{v}"));
            assert_eq!(proof.depth, p.ilog2());
            assert!(proof.in_place && proof.rank_order);
            assert_eq!(proof.synchronizing, p == 1);
            assert_eq!(verify_runs(&plan, 4).unwrap(), proof);
        }
    }
}
