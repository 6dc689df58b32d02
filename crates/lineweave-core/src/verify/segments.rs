//! A map from byte ranges to values, split where regions begin and end: its cost depends on the number of
//! regions a plan uses, not on bytes.

/// Value of a stretch of bytes.
pub(super) trait Piece: Clone {
    /// Returns the value of the same stretch from `by` bytes further on.
    fn tail(&self, by: usize) -> Self;

    /// Returns whether `next` is what the same stretch holds from `by` bytes further on, so that both may be one.
    fn goes_on(&self, by: usize, next: &Self) -> bool;
}

/// Contiguous stretches that cover `0 .. len`, each with a value. Changes join what goes on: bytes that arrive one after the other are one
/// stretch, and not as many as there were writes.
#[derive(Clone, Debug)]
pub(super) struct Segments<T> {
    /// First byte and value; the next entry's first byte, or `len`, ends it.
    items: Vec<(usize, T)>,
    len: usize,
}

impl<T: Piece> Segments<T> {
    /// `0 .. len`, all of it `value`.
    pub(super) fn new(len: usize, value: T) -> Segments<T> {
        Segments { items: vec![(0, value)], len }
    }

    /// Everything becomes `value`.
    pub(super) fn reset(&mut self, value: T) {
        self.items.clear();
        self.items.push((0, value));
    }

    /// Index of the stretch that holds byte `at`.
    fn find(&self, at: usize) -> usize {
        self.items.partition_point(|(start, _)| *start <= at) - 1
    }

    fn end(&self, i: usize) -> usize {
        self.items.get(i + 1).map_or(self.len, |(start, _)| *start)
    }

    /// The stretches within `start .. end`, clipped to it: first byte, one past the last, value.
    pub(super) fn iter(&self, start: usize, end: usize) -> impl Iterator<Item = (usize, usize, T)> + '_ {
        let first = if start < end { self.find(start) } else { self.items.len() };
        (first..self.items.len()).take_while(move |&i| self.items[i].0 < end).map(move |i| {
            let (at, value) = &self.items[i];
            let from = start.max(*at);
            (from, end.min(self.end(i)), value.tail(from - at))
        })
    }

    /// Makes `at` the first byte of a stretch and returns its index.
    fn split(&mut self, at: usize) -> usize {
        if at >= self.len {
            return self.items.len();
        }
        let i = self.find(at);
        let (start, value) = &self.items[i];
        if *start == at {
            return i;
        }
        let tail = value.tail(at - start);
        self.items.insert(i + 1, (at, tail));
        i + 1
    }

    /// The values within `start .. end`, to be changed in place, each with its first byte and length.
    pub(super) fn update(&mut self, start: usize, end: usize, mut change: impl FnMut(usize, usize, &mut T)) {
        let first = self.split(start);
        let last = self.split(end);
        for i in first..last {
            let to = self.end(i);
            let (from, value) = &mut self.items[i];
            change(*from, to, value);
        }
        self.join(first, last);
    }

    /// Joins the stretches `first .. last` with each other, and with those beside them, where one goes on with the next.
    fn join(&mut self, first: usize, last: usize) {
        let begin = first.saturating_sub(1);
        let mut kept = begin;
        let end = self.items.len().min(last + 1);
        for next in begin + 1..end {
            let (start, value) = &self.items[kept];
            if value.goes_on(self.items[next].0 - start, &self.items[next].1) {
                continue;
            }
            kept += 1;
            self.items.swap(kept, next);
        }
        self.items.drain((kept + 1).min(end)..end);
    }

    /// `start .. end` now holds `pieces`, given as (distance from `start`, value) with the first at 0.
    pub(super) fn replace(&mut self, start: usize, end: usize, pieces: &[(usize, T)]) {
        let first = self.split(start);
        let last = self.split(end);
        if last == first + 1 && pieces.len() == 1 {
            self.items[first].1 = pieces[0].1.clone();
        } else {
            self.items.splice(first..last, pieces.iter().map(|(at, v)| (start + at, v.clone())));
        }
        self.join(first, first + pieces.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, PartialEq, Debug)]
    struct From(usize);

    impl Piece for From {
        fn tail(&self, by: usize) -> From {
            From(self.0 + by)
        }

        fn goes_on(&self, by: usize, next: &From) -> bool {
            self.0 + by == next.0
        }
    }

    fn all(s: &Segments<From>) -> Vec<(usize, usize, usize)> {
        s.iter(0, s.len).map(|(a, b, v)| (a, b, v.0)).collect()
    }

    #[test]
    fn replacing_the_middle_keeps_both_ends() {
        let mut s = Segments::new(10, From(100));
        s.replace(3, 6, &[(0, From(0)), (1, From(50))]);
        assert_eq!(all(&s), vec![(0, 3, 100), (3, 4, 0), (4, 6, 50), (6, 10, 106)]);
        assert_eq!(
            s.iter(5, 8).map(|(a, b, v)| (a, b, v.0)).collect::<Vec<_>>(),
            vec![(5, 6, 51), (6, 8, 106)]
        );
        s.replace(0, 10, &[(0, From(7))]);
        assert_eq!(all(&s), vec![(0, 10, 7)]);
    }

    #[test]
    fn what_goes_on_is_one_stretch() {
        let mut s = Segments::new(10, From(100));
        s.replace(0, 2, &[(0, From(0))]);
        s.replace(4, 6, &[(0, From(4))]);
        assert_eq!(all(&s), vec![(0, 2, 0), (2, 4, 102), (4, 6, 4), (6, 10, 106)]);
        s.replace(2, 4, &[(0, From(2)), (1, From(3))]);
        assert_eq!(all(&s), vec![(0, 6, 0), (6, 10, 106)]);
        s.update(0, 10, |start, _, value| *value = From(50 + start));
        assert_eq!(all(&s), vec![(0, 10, 50)]);
        s.replace(9, 10, &[(0, From(0))]);
        s.update(2, 3, |_, _, value| *value = From(7));
        assert_eq!(all(&s), vec![(0, 2, 50), (2, 3, 7), (3, 9, 53), (9, 10, 0)]);
    }

    #[test]
    fn nothing_lies_in_an_empty_range() {
        let s = Segments::new(0, From(0));
        assert_eq!(s.iter(0, 0).count(), 0);
    }
}
