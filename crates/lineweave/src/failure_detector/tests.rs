use super::*;

#[test]
fn all_ranks_name_the_loss_that_was_published_first() {
    let segment = Arc::new(Segment::create(3, 4096, b"").expect("memory"));
    let watch = |rank| {
        FailureDetector::new(Arc::clone(&segment), rank, Limits::default(), Arc::default(), WakeFence::Full)
    };
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

#[test]
fn who_is_kept_from_running_within_a_call_is_named() {
    let segment = Arc::new(Segment::create(3, 4096, b"").expect("memory"));
    let watch = |rank| {
        FailureDetector::new(Arc::clone(&segment), rank, Limits::default(), Arc::default(), WakeFence::Full)
    };
    let mut child = std::process::Command::new("sleep").arg("1000").spawn().expect("a process");
    // As it starts it waits for its disk, too.
    let sleeps = || {
        std::fs::read_to_string(format!("/proc/{}/stat", child.id()))
            .is_ok_and(|stat| stat.contains("(sleep) S"))
    };
    while !sleeps() {
        std::thread::yield_now();
    }
    (0..3).for_each(|rank| segment.set_pid(rank, std::process::id()));
    segment.set_pid(1, child.id());
    let wait = |rank| segment.note_wait(rank, 1, 0, Awaited::Call, "barrier()");
    // Rank 2 waits too; rank 1 sleeps elsewhere.
    wait(2);
    let said = watch(0).missing();
    assert!(
        said.starts_with(&format!("rank 1 (pid {}, within this call or behind it", child.id())),
        "{said}"
    );
    assert!(said.contains("no CPU time") && !said.contains("rank 2"), "{said}");
    wait(1);
    assert_eq!(watch(0).missing(), "ranks that are all within this call, and all wait");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).expect("stopped");
    while process::kept_from_running(child.id()) != Some("stopped") {
        std::thread::yield_now();
    }
    assert_eq!(watch(0).missing(), format!("rank 1 (pid {}, within this call, stopped)", child.id()));
    child.kill().expect("killed");
    child.wait().expect("ended");
}
