//! Programs of torch: the same program by two backends.

use super::{together, App, Ask, Figure, Part, Way};
use crate::bench::installed::PATIENCE;
use serde::Deserialize;
use std::net::TcpListener;
use std::process::Command;

/// Packages with operators for sums that lineweave's are compared with: the name of the package, of the row in the
/// table, and of the backend.
const OPERATORS: [(&str, &str, &str); 2] = [
    ("deepspeed", "tensor parallel by operators, DeepSpeed", "operator/deepspeed"),
    ("vllm", "tensor parallel by operators, vLLM", "operator/vllm"),
];

/// Returns the programs of training with `DistributedDataParallel`.
pub(super) fn ddp(ask: &Ask<'_>) -> Vec<Result<App, String>> {
    let program = "DistributedDataParallel, gloo";
    programs(Part::Ddp, program, "ddp.py", "trains 235,146 parameters", ["gloo", "lineweave"], ask)
}

/// Returns the programs that decode with a transformer: divided by torch, and by hand with operators for the sums.
pub(super) fn tensor_parallel(ask: &Ask<'_>) -> Vec<Result<App, String>> {
    let app = |program, backends| {
        programs(
            Part::TensorParallel,
            program,
            "tensor_parallel.py",
            "decodes, 8 layers of 1024",
            backends,
            ask,
        )
    };
    let mut all = app("tensor parallel, gloo", ["gloo", "lineweave"]);
    if all.iter().any(Result::is_ok) {
        for (peer, program, without) in OPERATORS {
            // Python fetches the operator, if it is not there.
            let mut command = Command::new(ask.python());
            command.args(["-m", "lineweave._bench_peers", peer]);
            match together(vec![command]) {
                Ok(_) => all.extend(app(program, [without, "operator/lineweave"])),
                Err(why) => all.push(Err(why)),
            }
        }
    }
    all
}

/// A line that a program of torch prints.
#[derive(Deserialize)]
struct Told {
    figure: String,
    seconds: f64,
    communication: f64,
}

/// Returns one program with two backends, the first without lineweave and the second with it, for each number of ranks.
fn programs(
    part: Part,
    program: &str,
    file: &str,
    runs: &'static str,
    [without, with]: [&'static str; 2],
    ask: &Ask<'_>,
) -> Vec<Result<App, String>> {
    let python = match ask.has(&["torch", "lineweave"]) {
        Ok(python) => python,
        Err(why) => return vec![Err(why)],
    };
    let app = |&ranks: &usize| {
        let (python, file, seconds) = (python.clone(), ask.program(file), ask.seconds.to_string());
        let launch = move |way: Way| {
            let backend = if way == Way::Without { without } else { with };
            let port = TcpListener::bind(("127.0.0.1", 0)).and_then(|l| l.local_addr());
            let port = port.map_err(|e| format!("no port to meet at: {e}"))?.port().to_string();
            let rank = |rank: usize| {
                let mut command = Command::new("timeout");
                command.arg(PATIENCE).arg(&python).arg(&file).args([backend, &seconds]);
                command.env("RANK", rank.to_string()).env("WORLD_SIZE", ranks.to_string());
                command.env("MASTER_ADDR", "127.0.0.1").env("MASTER_PORT", &port);
                command.env("OMP_NUM_THREADS", "1").env("LINEWEAVE_QUIET", "1");
                command
            };
            let (said, _) = together((0..ranks).map(rank).collect())?;
            let told = said.lines().filter_map(|line| serde_json::from_str::<Told>(line).ok());
            let figure =
                |t: Told| Figure { of: t.figure, seconds: t.seconds, communication: Some(t.communication) };
            Ok(told.map(figure).collect())
        };
        Ok(App {
            part,
            program: program.to_owned(),
            workers: ranks,
            runs,
            counts: false,
            launch: Box::new(launch),
        })
    };
    ask.workers.iter().map(app).collect()
}
