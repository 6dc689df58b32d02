//! Cost of a whole message, by windows and parts of windows that were costed.

/// Time for which calls follow each other without a pause, in ns: as long as a batch of `bench` and `tune`.
const BATCH: f64 = 50e3;

/// Returns the number of windows that a message takes, one at least.
pub fn repeats(message: usize, window: usize) -> f64 {
    if window == 0 {
        1.0
    } else {
        (message as f64 / window as f64).max(1.0)
    }
}

/// Two parts of a window in whole lines of elements, the first as many times smaller as said and the other twice as large.
pub fn parts(window: usize, grain: usize, smaller: usize) -> Option<[usize; 2]> {
    let part = window / smaller / grain * grain;
    (part > 0).then_some([part, 2 * part])
}

/// Returns the value at `whole` on the line through two points.
pub fn extended([(a, at_a), (b, at_b)]: [(f64, f64); 2], whole: usize) -> f64 {
    at_b + (at_b - at_a) / (b - a) * (whole as f64 - b)
}

/// A call of the whole message, one of a batch, the first of which begins when everybody is there and nothing is under way.
pub fn whole_call(first: f64, steady: f64, each: f64) -> f64 {
    let calls = (BATCH / steady.max(1.0)).ceil().max(1.0);
    steady + (first - each).max(0.0) / calls
}
