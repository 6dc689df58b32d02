//! Finds the algorithm that a library's default is by the code that it runs, whatever it takes: the return addresses of ranks that wait
//! for one that is late. They are those of the same algorithm forced, except where the library decides, in frames that all have.

/// The frames of a rank that waits for another, innermost first, for each pair of a late rank and another.
type Pairs = Vec<Vec<u64>>;

/// Scores from this share of the best on are of the same code: looks at one algorithm differ by a frame or two.
const NEAR: f64 = 0.75;

/// Returns the pairs of a line of `channel.c`: numbers behind a 0 each.
fn pairs(numbers: &[f64]) -> Pairs {
    numbers.split(|n| *n == 0.0).skip(1).map(|frames| frames.iter().map(|&f| f as u64).collect()).collect()
}

/// Returns the candidates whose code the default runs, several where they run the same; `None` for candidates without a line. `noise` are lines of
/// other collectives: their frames are of waiting.
///
/// A frame of the default counts the more, the fewer candidates have it, and not at all where all have it. The innermost one must be among them in a
/// pair: it is in the algorithm, and those further out may be of what leads to it. Last, the same ranks should wait for the same ones.
pub fn same(default: &[f64], candidates: &[Option<Vec<f64>>], noise: &[Vec<f64>]) -> Vec<usize> {
    let default = pairs(default);
    let noise: Vec<u64> = noise.iter().flatten().map(|&f| f as u64).filter(|f| *f > 1).collect();
    let all: Vec<Option<Pairs>> = candidates.iter().map(|c| c.as_ref().map(|c| pairs(c))).collect();
    let known = all.iter().flatten().count();
    let having = |i: usize, frame: u64| {
        all.iter().flatten().filter(|c| c.get(i).is_some_and(|f| f.contains(&frame))).count()
    };
    let waits = |frames: &[u64]| frames != [1];
    let score = |candidate: &Pairs| {
        let each = || candidate.iter().zip(&default).enumerate();
        let own = |(i, c): (usize, &Vec<u64>)| -> Vec<u64> {
            let is = |frame: &u64| waits(c) && !noise.contains(frame) && having(i, *frame) < known;
            c.iter().copied().filter(is).collect()
        };
        let inner = each().any(|(i, (c, d))| own((i, c)).first().is_some_and(|frame| d.contains(frame)));
        let shared = each()
            .flat_map(|(i, (c, d))| own((i, c)).into_iter().filter(|f| d.contains(f)).map(move |f| (i, f)));
        let sum: f64 = shared.map(|(i, frame)| 1.0 / having(i, frame) as f64).sum();
        let alike =
            each().filter(|(_, (c, d))| waits(c) == waits(d)).count() as f64 / default.len().max(1) as f64;
        if inner {
            sum * alike
        } else {
            0.0
        }
    };
    let scores: Vec<f64> = all.iter().map(|c| c.as_ref().map_or(0.0, score)).collect();
    let most = scores.iter().copied().fold(0.0, f64::max);
    (0..scores.len()).filter(|&i| most > 0.0 && scores[i] > NEAR * most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks two ranks: of 100 to 102 are what leads to an algorithm, of 10 to 12 the waits within it, 5 is of waiting.
    #[test]
    fn a_default_is_what_runs_the_same_code() {
        let line = |inner: &[f64], outer: f64| {
            let pair = [&[0.0, 5.0], inner, &[outer, 103.0]].concat();
            [pair.as_slice(), &[0.0, 1.0]].concat()
        };
        let forced =
            vec![Some(line(&[10.0], 100.0)), Some(line(&[11.0], 100.0)), None, Some(line(&[11.0], 100.0))];
        assert_eq!(same(&line(&[10.0], 101.0), &forced, &[]), [0]);
        assert_eq!(same(&line(&[11.0], 101.0), &forced, &[]), [1, 3]);
        // Code that no forced algorithm runs, though all are led to by the same frame.
        assert!(same(&line(&[12.0], 100.0), &forced, &[]).is_empty());
        // Nothing but what waits in other collectives, too.
        assert!(same(&line(&[11.0], 101.0), &forced, &[vec![0.0, 11.0]]).is_empty());
        assert!(same(&[], &[], &[]).is_empty());
    }
}
