//! The timeline of an MPI job: what each rank recorded (`mpi/src/trace.c`), who waited for whom, and a file that trace viewers open.

pub mod chrome;
pub mod measured;
pub mod record;
pub mod waits;

use crate::error::CliError;
use record::Part;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the folder of the records from which a timeline is made.
pub fn folder(timeline: &Path) -> PathBuf {
    let mut name = timeline.as_os_str().to_owned();
    name.push(".parts");
    name.into()
}

/// Returns a file that is a record by its name, and whether its rank came to `MPI_Finalize`.
fn record_of(path: PathBuf) -> Option<(PathBuf, bool)> {
    let complete = match path.extension().and_then(|end| end.to_str()) {
        Some("complete") => true,
        Some("running") => false,
        _ => return None,
    };
    Some((path, complete))
}

/// Removes the records, and their folder if nothing else is in it. What somebody else owns stays, and does no harm.
pub fn remove(timeline: &Path) {
    let folder = folder(timeline);
    for (path, _) in
        fs::read_dir(&folder).into_iter().flatten().flatten().filter_map(|entry| record_of(entry.path()))
    {
        let _ = fs::remove_file(path);
    }
    let _ = fs::remove_dir(folder);
}

/// Puts all calls on one axis, the time since 1970: those of a node by one offset, so that its ranks stay as they were to each other.
fn place(parts: &mut [Part]) {
    let mut offsets: HashMap<String, i64> = HashMap::new();
    for part in parts.iter() {
        let best = offsets.entry(part.node.clone()).or_insert(part.since_1970);
        *best = part.since_1970.max(*best);
    }
    for part in parts {
        for call in &mut part.calls {
            call.from_ns += offsets[&part.node];
            call.to_ns += offsets[&part.node];
        }
    }
}

/// Returns what the ranks recorded, by node and rank, and what to say about files that cannot be read.
pub fn load(timeline: &Path) -> Result<(Vec<Part>, Vec<String>), CliError> {
    let folder = folder(timeline);
    let none =
        |reason: String| CliError::NoTrace { timeline: timeline.to_owned(), folder: folder.clone(), reason };
    let entries = fs::read_dir(&folder).map_err(|e| none(e.to_string()))?;
    let (mut parts, mut warnings) = (Vec::new(), Vec::new());
    for (path, complete) in entries.flatten().filter_map(|entry| record_of(entry.path())) {
        match Part::load(&path, complete) {
            Ok(part) => parts.push(part),
            Err(reason) => warnings.push(format!("{}: {reason}; it is left out", path.display())),
        }
    }
    if parts.is_empty() {
        return Err(none("it has no record that can be read".to_owned()));
    }
    place(&mut parts);
    parts.sort_by(|a, b| (&a.node, a.rank, a.pid).cmp(&(&b.node, b.rank, b.pid)));
    Ok((parts, warnings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_a_node_keep_their_distance_whatever_their_offsets() {
        let records = [([10, 30, 5, 0, 8], [-1, 0, 2], [0, 2, 0])];
        let part = |rank, since_1970| Part {
            since_1970,
            ..Part::read(&record::tests::file(rank, 4, 1, &records), true).unwrap()
        };
        let mut parts = [part(0, 1_000_000), part(1, 400_000), Part { node: "other".into(), ..part(2, 7) }];
        place(&mut parts);
        let begin: Vec<i64> = parts.iter().map(|part| part.calls[0].from_ns).collect();
        assert_eq!(begin, [1_000_010, 1_000_010, 17]);
    }
}
