//! Axes of charts: scales with their ends, where values lie on them, and where rules are.

use lineweave_core::units::{Bytes, Nanos};

/// Scale of an axis: the spacing of its values and the form of its labels.
#[derive(Clone, PartialEq, Debug)]
pub enum Scale {
    /// Linear, from 0.
    Linear,
    /// Logarithmic, by powers of ten.
    Log,
    /// Times in ns, by powers of ten.
    Times,
    /// Lengths, by powers of two.
    Bytes,
    /// Numbers, by powers of two.
    Doubling,
    /// One after the other, from 0, with these names.
    Names(Vec<String>),
}

/// An axis.
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    /// Quantity and unit.
    pub title: String,
    /// Scale of the axis.
    pub scale: Scale,
}

impl Axis {
    /// An axis of this title and scale.
    pub fn new(title: &str, scale: Scale) -> Axis {
        Axis { title: title.to_owned(), scale }
    }
}

/// A scale with its ends.
pub(super) struct Range<'a> {
    pub(super) axis: &'a Axis,
    low: f64,
    high: f64,
}

impl Range<'_> {
    pub(super) fn of(axis: &Axis, values: impl Iterator<Item = f64> + Clone) -> Range<'_> {
        let positive = values.clone().filter(|v| v.is_finite() && *v > 0.0);
        let most = values.filter(|v| v.is_finite()).fold(0.0, f64::max);
        let least = positive.fold(f64::INFINITY, f64::min);
        let powers = |base: f64| match least <= most {
            true => {
                let low = (least.log(base) + 1e-9).floor();
                (low, (most.log(base) - 1e-9).ceil().max(low + 1.0))
            }
            false => (0.0, 1.0),
        };
        let (low, high) = match &axis.scale {
            Scale::Linear => {
                let step = step(most);
                (0.0, (most / step - 1e-9).ceil().max(1.0) * step)
            }
            Scale::Log | Scale::Times => powers(10.0),
            Scale::Bytes | Scale::Doubling => powers(2.0),
            Scale::Names(names) => (-0.5, names.len().max(1) as f64 - 0.5),
        };
        Range { axis, low, high }
    }

    /// Returns the place of a value, from 0 to 1 along the axis, or nothing for a value that has no place.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        let at = match self.axis.scale {
            Scale::Linear | Scale::Names(_) => value,
            Scale::Log | Scale::Times => value.log10(),
            Scale::Bytes | Scale::Doubling => value.log2(),
        };
        at.is_finite().then(|| (at - self.low) / (self.high - self.low))
    }

    /// Returns the values at which rules are drawn, with their labels.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        let powers = |by: f64| {
            let mut at = self.low;
            std::iter::from_fn(move || {
                let here = at;
                at += by;
                (here <= self.high + 1e-9).then_some(here)
            })
        };
        match &self.axis.scale {
            Scale::Linear => {
                let step = step(self.high);
                let count = (self.high / step).round() as usize;
                (0..=count).map(|i| (i as f64 * step, short(i as f64 * step))).collect()
            }
            Scale::Log if self.high - self.low < 2.5 => powers(1.0)
                .flat_map(|p| [1.0, 2.0, 5.0].map(|m| m * 10f64.powf(p)))
                .filter(|v| v.log10() <= self.high + 1e-9)
                .map(|v| (v, short(v)))
                .collect(),
            Scale::Log => powers(1.0).map(|p| (10f64.powf(p), short(10f64.powf(p)))).collect(),
            Scale::Times => powers(1.0).map(|p| (10f64.powf(p), Nanos(10f64.powf(p)).to_string())).collect(),
            Scale::Bytes => {
                let by = ((self.high - self.low) / 6.0).ceil().max(1.0);
                powers(by).map(|p| (2f64.powf(p), Bytes(2f64.powf(p).round() as u64).to_string())).collect()
            }
            Scale::Doubling => powers(1.0).map(|p| (2f64.powf(p), short(2f64.powf(p)))).collect(),
            Scale::Names(names) => names.iter().enumerate().map(|(i, n)| (i as f64, n.clone())).collect(),
        }
    }
}

/// The nearest of 1, 2 and 5 times a power of ten above a value, or below it; 1 for what has none.
pub(super) fn round(value: f64, up: bool) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    let (wanted, mut steps) = (value / power, [1.0, 2.0, 5.0, 10.0].into_iter());
    let found = match up {
        true => steps.find(|s| *s >= wanted - 1e-9),
        false => steps.rev().find(|s| *s <= wanted + 1e-9),
    };
    power * found.unwrap_or(10.0)
}

/// The distance of rules up to `most`: some five of them.
pub(super) fn step(most: f64) -> f64 {
    round(most / 5.0, true)
}

/// A number in the fewest digits that tell it from its neighbours.
pub fn number(value: f64) -> String {
    let digits = match value.abs() {
        v if v == 0.0 || v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// [`number`], in thousands, millions and so on where it is long.
pub(super) fn short(value: f64) -> String {
    let units = [(1e9, " G"), (1e6, " M"), (1e3, " k")];
    match units.into_iter().find(|(unit, _)| value >= 10.0 * unit || (value >= *unit && *unit > 1e3)) {
        Some((unit, name)) => number(value / unit) + name,
        None => number(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_rules_are_round() {
        assert_eq!(
            [0.0, 0.25, 1.5, 12.0, 16.6, 100.0, 2048.4].map(number),
            ["0", "0.25", "1.5", "12", "16.6", "100", "2048"]
        );
        assert_eq!([2000.0, 1e4, 2e5, 1e6, 5e9].map(short), ["2000", "10 k", "200 k", "1 M", "5 G"]);
        assert_eq!([4.9, 5.1, 37.0, 0.9, 0.0].map(step), [1.0, 2.0, 10.0, 0.2, 1.0]);
    }
}
