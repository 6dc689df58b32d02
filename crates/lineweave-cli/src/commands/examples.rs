//! Examples of the commands, for their help and their manual pages.

use clap::Command;

/// Full names of commands, below each the purposes of its examples and the lines that serve them.
const EXAMPLES: &str = r#"
lineweave
  # Measure this machine once; all programs then use what was found
  lineweave tune
  # Run an MPI program with lineweave's collectives
  mpirun -n 4 lineweave run -- ./program
lineweave tune
  # In half a minute, by fewer sizes
  lineweave tune --quick
  # What a program needs, for five minutes
  lineweave tune --ranks 2,4 --bytes 8,1MiB --seconds 300
  # An MPI's own algorithms, for programs without lineweave
  lineweave tune --for openmpi -o tuned.sh -- mpirun -n 4
  # The settings of OpenMP, by number of threads
  lineweave tune --for libgomp --ranks 2,4
  # Whether such a file makes anything slower
  lineweave tune --check tuned.sh -- mpirun -n 4
lineweave info
  # As JSON, for programs
  lineweave info --json
lineweave doctor
  # Before a job starts, in a script
  lineweave doctor || exit 1
  # Settings that make a program faster
  lineweave doctor -- ./app
  # With a file of settings beside its own
  lineweave doctor --with tuned.sh -- mpirun -n 4 ./app
lineweave who
  # All teams on this machine
  lineweave who
  # That of one process, again every second
  lineweave who 4711 --watch
  # Metrics for Prometheus
  lineweave who --watch 15 --prometheus teams.prom
lineweave trace
  # Of a job that died, with each rank's times
  lineweave trace job.json
  # Each rank's times as JSON, and the records stay
  lineweave trace job.json --keep --json
lineweave list
  # Algorithms of allreduce
  lineweave list allreduce
  # Described machines
  lineweave list --machines
lineweave plan
  # What is chosen for this machine
  lineweave plan allreduce --ranks 4 --bytes 64KiB
  # An algorithm by name
  lineweave plan bcast binomial --ranks 7 --bytes 4KiB
lineweave draw
  # An algorithm's plan
  lineweave draw bcast binomial --ranks 7 --bytes 4KiB -o binomial.svg
  # A plan in a file
  lineweave draw --plan plan.txt -o plan.svg
lineweave verify
  # An algorithm among 1 to 16 ranks
  lineweave verify bcast/binomial --max-ranks 16
  # A plan in a file
  lineweave verify plan.txt
lineweave run
  # Every rank of an MPI program
  mpirun -n 4 lineweave run -- ./program
  # The same, with what was taken over
  mpirun -n 4 lineweave run --report taken.jsonl -- ./program
  # With a timeline of who waited for whom
  lineweave run --trace job.json -- mpirun -n 4 ./program
  # A program of lineweave's own, as 4 ranks
  lineweave run -n 4 -- python3 script.py
  # The barriers of an OpenMP program
  lineweave run -- ./openmp-program
lineweave env
  # In a job script, before what it starts
  eval "$(lineweave env)"
  # The same for programs of one MPI
  eval "$(lineweave env --mpi openmpi)"
lineweave bench
  # Barriers of 2 ranks
  lineweave bench barrier --ranks 2
  # An installed MPI with lineweave and without
  lineweave bench mpi --mpi /opt/openmpi --ranks 2
  # Its first and its longest calls
  lineweave bench first --mpi /opt/openmpi --ranks 2
lineweave explain
  # For all CPUs of this machine
  lineweave explain allreduce 64KiB
  # For another machine
  lineweave explain barrier --machine dual-epyc-9754 --ranks 256
  # All plans that were costed
  lineweave explain bcast 1MiB --ranks 8 --candidates
lineweave measure
  # Into a file of its own
  lineweave measure --quick -o profile.toml
lineweave fit
  # What a profile says
  lineweave fit profile.toml
lineweave report
  # This machine
  lineweave report -o report.html
  # A described machine
  lineweave report --machine dual-epyc-9754 -o 9754.html
lineweave profile
  # Two profiles
  lineweave profile diff before.toml after.toml
lineweave profile diff
  # Before and after an update
  lineweave profile diff before.toml after.toml
lineweave profile import
  # A matrix of core-to-core-latency
  lineweave profile import latencies.csv --title 'Our login node' -o my.toml
lineweave profile export
  # A described machine as CSV
  lineweave profile export --csv --machine dual-xeon-8375c -o latencies.csv
  # For lstopo
  lineweave profile export --hwloc --machine dual-xeon-8375c -o machine.xml
lineweave profile adopt
  # An imported machine, on this one
  lineweave profile adopt my.toml
lineweave profile link
  # What `lineweave run --link link.jsonl` measured
  lineweave profile link link.jsonl
lineweave lab
  # The papers by Petrovic
  lineweave lab papers petrovic
lineweave lab papers
  # One author's
  lineweave lab papers petrovic
  # Figures, drawn below this folder
  lineweave lab papers --figures .
lineweave lab reproduce
  # Barriers on this machine, judged
  lineweave lab reproduce chunduri --here -o .
lineweave lab simulate
  # A barrier on two packages
  lineweave lab simulate --machine sandy-bridge-e5-2670-2s -c barrier -a dissemination -n 4,8
  # OC-Bcast on the SCC
  lineweave lab simulate --machine intel-scc -c bcast -a oc-bcast --k 2,7 -b 4KiB
lineweave lab models
  # What each predicts
  lineweave lab models --collective bcast --bytes 8KiB,64KiB --ranks 4
  # The best and the worst order
  lineweave lab models --machine xeon-phi-5110p --collective barrier -n 3 --place core --bounds
lineweave lab optimise
  # The cheapest tree for 48 ranks
  lineweave lab optimise bcast 8 --ranks 48
  # Trees made for a matrix
  lineweave lab optimise barrier --compare --machine dual-epyc-9754
lineweave lab what-if
  # Two meshes
  lineweave lab what-if --mesh 6x4x2,80x64x2 --in-flight 1,16
  # A mesh of coherent caches
  lineweave lab what-if --machine knights-landing-7210 --in-flight 1,16
  # Caches or message buffers
  lineweave lab what-if --coherence -o coherence.svg
lineweave lab mpi
  # The MPI of this launcher
  lineweave lab mpi -- mpirun -n 2
  # Its broadcasts alone, drawn
  lineweave lab mpi --collective bcast -o bcast.svg -- mpirun -n 2
lineweave completions
  # For bash
  lineweave completions bash > ~/.local/share/bash-completion/completions/lineweave
"#;

/// Returns the examples of a command, by its full name: the purpose of each, and the line that serves it.
pub fn of(name: &str) -> Vec<(&'static str, &'static str)> {
    let own = EXAMPLES.lines().skip_while(|line| *line != name).skip(1);
    let lines: Vec<&str> = own.map_while(|line| line.strip_prefix("  ")).collect();
    lines.chunks_exact(2).map(|pair| (pair[0].trim_start_matches("# "), pair[1])).collect()
}

/// Adds its examples to each command's help.
pub fn add(command: Command) -> Command {
    let name = command.get_name().to_owned();
    below(command, &name)
}

fn below(command: Command, name: &str) -> Command {
    let command = command.mut_subcommands(|sub| {
        let name = format!("{name} {}", sub.get_name());
        below(sub, &name)
    });
    match of(name).as_slice() {
        [] => command,
        examples => {
            let text: String =
                examples.iter().map(|(what, line)| format!("\n  # {what}\n  {line}")).collect();
            command.after_help(format!("Examples:{text}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the arguments that a shell would pass to `lineweave`: the words after its name, without those that the
    /// shell itself interprets.
    fn arguments(line: &str) -> Vec<String> {
        let line = line.strip_suffix(")\"").unwrap_or(line);
        let own = line.find("lineweave").expect("it is called");
        let words = shlex::split(&line[own..]).expect("whole quotes").into_iter();
        words.take_while(|word| !["|", "||", ">"].contains(&word.as_str())).collect()
    }

    #[test]
    fn every_example_is_a_line_that_its_command_understands() {
        let mut known = 0;
        for name in EXAMPLES.lines().filter(|line| line.starts_with("lineweave")) {
            for (_, line) in of(name) {
                let words = arguments(line);
                crate::command().try_get_matches_from(&words).unwrap_or_else(|e| panic!("{line}: {e}"));
                assert!(words.join(" ").starts_with(name), "`{line}` of {name}");
                known += 1;
            }
        }
        assert_eq!(known, EXAMPLES.matches("\n  # ").count(), "each has a purpose and a line");
    }

    #[test]
    fn every_command_that_is_shown_has_an_example() {
        fn look(command: &Command, name: &str) {
            // `lineweave man` writes these pages itself.
            if name == "lineweave man" {
                return;
            }
            assert!(!of(name).is_empty(), "{name}");
            for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
                look(sub, &format!("{name} {}", sub.get_name()));
            }
        }
        look(&crate::command(), "lineweave");
    }
}
