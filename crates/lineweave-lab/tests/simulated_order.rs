//! On the simulated SCC, ours against every baseline: one broadcast and one allreduce for short messages and one each for
//! long ones that are faster than RCCE's, RCCE_comm's, RCKMPI's, NoC_Msg's and, for broadcast, OC-Bcast.

use lineweave_core::algorithm::{find, Problem};
use lineweave_core::collective::Collective;
use lineweave_core::machine::{shipped, Machine};
use lineweave_core::plan::Params;
use lineweave_lab::simulate::{simulate, Fidelity, Options, Outcome};

const CORES: usize = 48;
const LINE: usize = 32;

fn scc() -> &'static Machine {
    shipped().iter().find(|m| m.name == "intel-scc").expect("it is shipped")
}

/// Parameters as text: `k=7 chunk=3072`.
fn params(text: &str) -> Params {
    text.split_whitespace().fold(Params::new(), |p, part| {
        let (name, value) = part.split_once('=').expect("name=value");
        p.with(name, value)
    })
}

fn play(collective: Collective, name: &str, text: &str, bytes: usize, fidelity: Fidelity) -> Outcome {
    let mut problem = Problem::flat(collective, CORES, bytes);
    problem.grain = if collective.folds() { 8 } else { 1 };
    let plan = find(collective, name).unwrap().plan(&problem, &params(text)).unwrap();
    let outcome = simulate(scc(), &plan, &Options { fidelity, ..Options::default() });
    outcome.unwrap_or_else(|e| panic!("{name} {text}: {bytes} bytes: {e}"))
}

/// What flags of a line leave of 256 lines: for RCCE's blocking send and receive, NoC_Msg's chunks, and RCKMPI's sections.
const RCCE: &str = "chunk=5024";
const NOC_MSG: &str = "columns=6 cores=2 chunk=7808";
const RCKMPI: &str = "chunk=96";

/// Ours is faster than all of these by at least so much; its ratio to the lower bound is at most that given.
fn leads(
    collective: Collective,
    (ours, text): (&str, &str),
    baselines: &[(&str, &str)],
    sizes: &[(usize, Fidelity, f64)],
) {
    for &(bytes, fidelity, most) in sizes {
        let own = play(collective, ours, text, bytes, fidelity);
        let bound = own.bound.expect("meshes have one");
        let ratio = own.first.0 as f64 / bound.0 as f64;
        println!(
            "{collective}/{ours}, {bytes} bytes: {:.1} us, {ratio:.2} times the bound",
            own.first.nanos() / 1e3
        );
        assert!(
            (1.0..=most).contains(&ratio),
            "{collective}/{ours}: {bytes} bytes: {ratio:.2} times the bound"
        );
        for &(name, text) in baselines {
            let theirs = play(collective, name, text, bytes, fidelity);
            println!("  {name}: {:.1} us", theirs.first.nanos() / 1e3);
            assert!(
                own.first < theirs.first,
                "{collective} of {bytes} bytes: {ours} {} ns, {name} {} ns",
                own.first.nanos(),
                theirs.first.nanos()
            );
        }
    }
}

#[test]
fn our_allreduces_lead() {
    let baselines = [("rcce", RCCE), ("noc-msg", NOC_MSG), ("rckmpi", RCKMPI)];
    let short = [(LINE, Fidelity::Line, 20.0), (512, Fidelity::Line, 5.0), (1024, Fidelity::Line, 4.0)];
    leads(Collective::Allreduce, ("rabenseifner", ""), &baselines, &short);
    let long = [(1024, Fidelity::Line, 6.0), (8192, Fidelity::Line, 2.0), (98_304, Fidelity::Chunk, 1.5)];
    leads(Collective::Allreduce, ("pipelined-ring", "columns=6 cores=2 chunk=2688"), &baselines, &long);
}

#[test]
fn our_broadcasts_lead() {
    let baselines = [
        ("rcce", RCCE),
        ("rcce-comm-binomial", RCCE),
        ("rcce-comm-scatter-allgather", RCCE),
        ("noc-msg", NOC_MSG),
        ("rckmpi", RCKMPI),
        ("oc-bcast", "k=2"),
        ("oc-bcast", "k=7"),
        ("oc-bcast", "k=47"),
    ];
    leads(
        Collective::Bcast,
        ("fibonacci", "carry=0"),
        &baselines,
        &[(LINE, Fidelity::Line, 12.0), (256, Fidelity::Line, 6.0)],
    );
    let long = [(4096, Fidelity::Line, 3.0), (24_576, Fidelity::Chunk, 1.6), (196_608, Fidelity::Chunk, 1.2)];
    leads(Collective::Bcast, ("rotating", ""), &baselines, &long);
}
