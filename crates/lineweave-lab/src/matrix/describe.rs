//! A machine's description, from its matrix and what is known of machines of its kind.

use super::{costs, home, placed, shape, synthetic, LevelCost, MatrixError, Readout};
use lineweave_core::machine::{shipped, Away, Machine, Measured, Status, Value};
use lineweave_core::topology::{Cpu, Level, Topology};

/// Descriptions whose caches are simulated, for each instruction set: those that have such a table.
const SIMULATED: [(&str, &str); 2] = [("ppc64le", "power8-8247-42l"), ("", "sandy-bridge-e5-2670-2s")];

/// Levels whose medians differ by less than this factor are not told apart. Of the 34 shipped matrices only Power9's has such, timed by a
/// coarse clock; elsewhere the least factor is 1.6.
const APART: f64 = 1.1;

/// The machine with what its matrix tells; what had to be assumed of the matrix is in [`Measured::remarks`]. Without a topology it
/// gets the matrix' own. Values that no matrix has are those of the description that it is `like`, listed in
/// [`Measured::assumed`].
///
/// # Errors
/// A [`MatrixError`] when the matrix is not one of this machine.
pub fn describe(mut machine: Machine, readout: Readout) -> Result<Machine, MatrixError> {
    let Readout { matrix, mut remarks } = readout;
    let shaped = shape(&matrix).map_err(|_| MatrixError::Empty { rows: matrix.cpus().len() })?;
    remarks.extend(shaped.remarks);
    let topology = match (machine.topology(), &machine.topology.value) {
        (Some(known), Some(text)) => {
            let (cpus, found) = (known.cpus.len(), matrix.cpus().len());
            if cpus != found {
                return Err(MatrixError::OtherSize { topology: text.clone(), cpus, found });
            }
            let topology = placed(&shaped.topology, &known);
            remarks.extend(unlike(&shaped.topology, &topology, text));
            topology
        }
        _ => shaped.topology,
    };
    let source = machine.matrix.as_ref().map_or_else(String::new, |m| m.source.clone());
    let text = machine.topology.value.clone().or_else(|| synthetic(&topology));
    if machine.topology.value.is_none() {
        machine.topology = match text.clone() {
            Some(value) => known_by(Status::Inferred, Some(value), format!("groups of the matrix; {source}")),
            None => unknown("the groups of the matrix differ in size: the CPUs are placed as they are"),
        };
    }
    let levels = costs(&matrix, &topology);
    for pair in levels.windows(2) {
        if pair[1].median < APART * pair[0].median {
            remarks.push(format!(
                "CPUs of one {} and of one {} are as far apart ({:.1} and {:.1} ns): levels of the topology that the matrix does not tell \
                 from each other; is it of that machine?",
                pair[0].level, pair[1].level, pair[0].median, pair[1].median
            ));
        }
        if pair[1].median < pair[0].median {
            return Err(MatrixError::OtherMachine {
                topology: text.unwrap_or_else(|| "of the matrix".to_owned()),
                near: pair[0].level,
                near_ns: pair[0].median,
                far: pair[1].level,
                far_ns: pair[1].median,
            });
        }
    }
    for level in Level::ALL {
        let found = levels.iter().find(|cost| cost.level == level);
        *machine.transfer.at_mut(level) = match found {
            Some(cost) => of_level(cost, &source),
            None => unknown("no such pair of CPUs in the matrix"),
        };
    }
    machine.away.retain(|away| levels.iter().all(|cost| cost.level != away.level));
    machine.away.extend(levels.iter().filter_map(|cost| away(cost, &source)));
    let assumed = stand_in(&mut machine)?;
    let home = home(&levels, &matrix, &topology);
    machine.measured = Some(Measured { matrix, topology, home, remarks, assumed });
    Ok(machine)
}

/// Groups of the matrix that are no level's of the known topology, in words. One CPU in ten may be elsewhere.
fn unlike(shaped: &Topology, known: &Topology, text: &str) -> Option<String> {
    let n = shaped.cpus.len();
    // `known` has the same CPUs in the same order.
    let astray = |a: Level, b: Level| {
        let differs = |&i: &usize| {
            let (x, y) = (&shaped.cpus[i], &known.cpus[i]);
            let apart = |j: &usize| (x.id(a) == shaped.cpus[*j].id(a)) != (y.id(b) == known.cpus[*j].id(b));
            (0..n).any(|j| apart(&j))
        };
        (0..n).filter(differs).count()
    };
    let levels = [Level::Core, Level::L3, Level::Numa, Level::Package];
    let strange = levels.into_iter().filter(|&a| Level::ALL.iter().all(|&b| 10 * astray(a, b) > n));
    let mut sizes: Vec<String> = strange
        .map(|level| {
            let size = |cpu: &Cpu| shaped.cpus.iter().filter(|c| c.id(level) == cpu.id(level)).count();
            shaped.cpus.iter().map(size).max().unwrap_or(0).to_string()
        })
        .collect();
    sizes.dedup();
    let list = sizes.join(" and of ");
    (!sizes.is_empty()).then(|| {
        format!("the matrix has groups of {list} CPUs, which the topology `{text}` has no level for")
    })
}

fn of_level(cost: &LevelCost, source: &str) -> Value {
    let of = format!("{source}: median of {} pairs", cost.pairs);
    Value {
        value: Some(cost.median),
        low: Some(cost.ci_low),
        high: Some(cost.away.unwrap_or(cost.ci_high)),
        status: Status::Cited,
        source: match cost.away {
            Some(away) => {
                format!("{of} where the line has its home; {away:.1} where its home is in another package")
            }
            None => of,
        },
    }
}

/// Taken to be the same in each package: a matrix has the lines of one.
fn away(cost: &LevelCost, source: &str) -> Option<Away> {
    let source = format!("{source}: median in the package that is not the line's home");
    let transfer_ns = known_by(Status::Cited, Some(cost.away?), source);
    Some(Away { level: cost.level, transfer_ns })
}

fn known_by<T>(status: Status, value: Option<T>, source: String) -> Value<T> {
    Value { value, low: None, high: None, status, source }
}

fn unknown<T>(why: &str) -> Value<T> {
    known_by(Status::Unknown, None, why.to_owned())
}

/// Fills in what no matrix tells, from the descriptions that the machine is like, and lists it.
fn stand_in(machine: &mut Machine) -> Result<Vec<String>, MatrixError> {
    let named = |name: &str| {
        let found = shipped().iter().find(|m| m.name == name);
        found.ok_or_else(|| MatrixError::NoSuchMachine { name: name.to_owned() })
    };
    let arch = machine.arch.clone();
    let generic = shipped().iter().find(|m| m.arch == arch && m.name.starts_with("generic"));
    let generic = generic.map_or_else(|| named("generic-x86"), Ok)?;
    let like = match machine.matrix.as_ref().and_then(|m| m.like.as_deref()) {
        Some(name) => named(name)?,
        None => generic,
    };
    let cached = SIMULATED.iter().find(|(known, _)| arch == *known || known.is_empty());
    let cached = named(cached.map_or("", |(_, name)| name))?;
    let mut assumed = Vec::new();
    let mut take = |what: &str, value: &mut Value, from: fn(&Machine) -> &Value| {
        if value.value.is_some() {
            return;
        }
        let Some(donor) = [like, generic, cached].into_iter().find(|m| from(m).value.is_some()) else {
            return;
        };
        let theirs = from(donor);
        assumed.push(format!("{what} {} as of {}", theirs.value.unwrap_or_default(), donor.name));
        let source = format!("assumed as of {}: {}", donor.name, theirs.source);
        *value = Value { status: Status::Inferred, source, ..theirs.clone() };
    };
    take("line_bytes", &mut machine.line_bytes, |m| &m.line_bytes);
    take("local_ns", &mut machine.access.local_ns, |m| &m.access.local_ns);
    take("memory_ns", &mut machine.access.memory_ns, |m| &m.access.memory_ns);
    take("copy_bytes_per_ns", &mut machine.rates.copy_bytes_per_ns, |m| &m.rates.copy_bytes_per_ns);
    take("memory_bytes_per_ns", &mut machine.rates.memory_bytes_per_ns, |m| &m.rates.memory_bytes_per_ns);
    take("fold_bytes_per_ns", &mut machine.rates.fold_bytes_per_ns, |m| &m.rates.fold_bytes_per_ns);
    if machine.coherent.is_none() {
        let donor = if like.coherent.is_some() { like } else { cached };
        machine.coherent = donor.coherent.clone();
        assumed.push(format!("caches that keep coherent as of {}, in simulations", donor.name));
    }
    Ok(assumed)
}
