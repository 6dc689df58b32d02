use super::*;

#[test]
fn all_ranks_name_the_loss_that_was_published_first() {
    let segment = Arc::new(Segment::create(3, 4096, b"").expect("memory"));
    let watch =
        |rank| Watch::new(Arc::clone(&segment), rank, Limits::default(), Arc::default(), WakeFence::Full);
    let named = |error: Error| match error {
        Error::PeerLost { rank, how, .. } => (rank, how),
        other => panic!("{other}"),
    };
    assert_eq!(named(watch(1).lose(2, Loss::Died)), (2, Loss::Died));
    // Rank 1 has ended because of that, and this is what rank 0 saw first.
    assert_eq!(named(watch(0).lose(1, Loss::Failed)), (2, Loss::Died));
    // The lost rank cannot name itself.
    assert_eq!(named(watch(2).lose(1, Loss::Failed)), (1, Loss::Failed));
}
