//! One collective with its buffers and what must come of it: blocking, started or persistent.

use super::random::Random;
use super::sample::{Affine, Sample};
use lineweave::{CallSpec, Communicator, Element, ElementType, Error, Operation, Operator};
use lineweave_core::collective::Collective;
use std::borrow::Cow;
use std::ops::Range;

/// Elements around each buffer that no call may touch.
const GUARD: usize = 4;

/// A call, as all ranks make it.
#[derive(Clone, Debug)]
pub struct Call {
    pub collective: Collective,
    pub element: ElementType,
    pub operator: Option<Operator>,
    /// The root is what remains after division by the number of ranks.
    pub root: usize,
    /// Elements of the message, or of a block.
    pub n: usize,
    pub uneven: bool,
    pub in_place: bool,
}

/// Input and output, or in place only the latter, with guards.
pub struct Buffers<T> {
    input: Vec<T>,
    output: Vec<T>,
}

impl<T: Copy> Buffers<T> {
    /// Returns the input, and the output without its guards.
    pub fn parts(&mut self) -> (&[T], &mut [T]) {
        let end = self.output.len() - GUARD;
        (&self.input, &mut self.output[GUARD..end])
    }

    /// Takes over what others of the same lengths hold.
    pub fn fill_from(&mut self, other: Buffers<T>) {
        self.input.copy_from_slice(&other.input);
        self.output.copy_from_slice(&other.output);
    }
}

/// A call seen from one rank, with data that depend on `salt`.
#[derive(Clone)]
pub struct Part<'c> {
    call: Cow<'c, Call>,
    rank: usize,
    ranks: usize,
    root: usize,
    salt: usize,
    /// Elements that each rank gives and takes of every other, or of every rank.
    given: Vec<usize>,
    taken: Vec<usize>,
}

#[allow(dead_code, reason = "each program uses some of it")]
impl Call {
    /// The call of `n` elements each way that there is: with blocks of one length and of different ones, in place and not.
    pub fn each_way(
        collective: Collective,
        element: ElementType,
        operator: Option<Operator>,
        n: usize,
    ) -> impl Iterator<Item = Call> {
        let operator = operator.filter(|_| collective.folds());
        let ways = [(false, false), (false, true), (true, false), (true, true)].into_iter();
        ways.filter(move |&(uneven, _)| !uneven || collective.has_blocks())
            .filter(move |&(_, in_place)| {
                !in_place || !matches!(collective, Collective::Barrier | Collective::Bcast)
            })
            .map(move |(uneven, in_place)| Call {
                collective,
                element,
                operator,
                root: n,
                n,
                uneven,
                in_place,
            })
    }

    /// One of all that there are. `own` is an operator on [`Affine`].
    pub fn random(random: &mut Random, own: Operator) -> Call {
        let collective = random.of(&Collective::ALL);
        let element = match random.below(ElementType::ALL.len() + 1) {
            i if i < ElementType::ALL.len() => ElementType::ALL[i],
            _ => Affine::TYPE,
        };
        let defined: Vec<Operator> = match element {
            ElementType::Block(_) => vec![own],
            _ => Operator::ALL
                .into_iter()
                .filter(|&o| lineweave::kernel::fold_fn(o, element).is_ok())
                .collect(),
        };
        let most = if collective.has_blocks() { 4 } else { 8 };
        let sizes = [0, 1, 3, 17, 260, 1000, 4099, 70_001];
        Call {
            collective,
            element,
            operator: collective.folds().then(|| random.of(&defined)),
            root: random.below(64),
            n: match collective.moves_data() {
                true => sizes[random.below(most)] + random.below(3),
                false => 0,
            },
            uneven: collective.has_blocks() && random.once_in(3),
            in_place: !matches!(collective, Collective::Barrier | Collective::Bcast) && random.once_in(3),
        }
    }

    pub fn part(&self, comm: &Communicator, salt: usize) -> Part<'_> {
        let (rank, ranks) = (comm.rank(), comm.ranks());
        let pair = |from: usize, to: usize| self.pair(from, to, ranks);
        let (given, taken) = match (self.uneven, self.collective) {
            (false, _) => (vec![self.n; ranks], vec![self.n; ranks]),
            (true, Collective::Alltoall) => {
                ((0..ranks).map(|r| pair(rank, r)).collect(), (0..ranks).map(|r| pair(r, rank)).collect())
            }
            (true, _) => {
                let counts: Vec<usize> = (0..ranks).map(|k| self.length(k)).collect();
                (counts.clone(), counts)
            }
        };
        Part { call: Cow::Borrowed(self), rank, ranks, root: self.root % ranks, salt, given, taken }
    }

    /// Length of the uneven block `k`: all are about as long if the call's number is odd, else some are empty and some far shorter.
    fn length(&self, k: usize) -> usize {
        match self.n % 2 {
            1 => (self.n + 3 * k) % (2 * self.n + 1),
            _ => self.n * ((5 * k + self.n / 2) % 4) / 2,
        }
    }

    /// Length of what one rank gives to another in an alltoall; in place, ranks take as much as they give.
    fn pair(&self, from: usize, to: usize, ranks: usize) -> usize {
        let step = if self.in_place { 1 } else { 2 };
        if self.uneven {
            self.length((from + step * to) % ranks)
        } else {
            self.n
        }
    }
}

impl Part<'_> {
    /// The same with a call of its own.
    pub fn into_owned(self) -> Part<'static> {
        let Part { call, rank, ranks, root, salt, given, taken } = self;
        Part { call: Cow::Owned(call.into_owned()), rank, ranks, root, salt, given, taken }
    }

    fn is(&self, which: &[Collective]) -> bool {
        which.contains(&self.call.collective)
    }

    /// Element `i` of what a rank gives.
    fn value<T: Sample>(&self, rank: usize, i: usize) -> T {
        let n = ((rank * 7 + i * 3 + self.salt) % 4) as u32;
        // Products stay exact in every type while few ranks give more than 1.
        T::of(if self.call.operator == Some(Operator::Prod) && rank > 3 { n.min(1) } else { n }, rank)
    }

    fn fold<T: Sample>(&self, of: Range<usize>, i: usize) -> T {
        let (operator, ranks) = (self.call.operator.expect("a fold has an operator"), of.len());
        let sum = of.map(|r| self.value(r, i)).reduce(|a, b| T::combine(operator, a, b)).expect("a rank");
        if operator == Operator::Avg {
            sum.divide(ranks)
        } else {
            sum
        }
    }

    fn before(&self, counts: &[usize], rank: usize) -> usize {
        counts[..rank].iter().sum()
    }

    /// Elements of this rank's input.
    fn gives(&self) -> usize {
        use Collective::*;
        match self.call.collective {
            Barrier | Bcast => 0,
            Reduce | Allreduce | Scan | Exscan => self.call.n,
            Gather | Allgather => self.given[self.rank],
            Scatter if self.rank != self.root => 0,
            Scatter | ReduceScatter | Alltoall => self.given.iter().sum(),
        }
    }

    /// What must be in this rank's output; nothing where it has none.
    fn result<T: Sample>(&self) -> Option<Vec<T>> {
        use Collective::*;
        let Part { rank, ranks, root, .. } = *self;
        let n = self.call.n;
        let folded =
            |of: Range<usize>, at: Range<usize>| Some(at.map(|i| self.fold(of.clone(), i)).collect());
        let own = || self.before(&self.given, rank)..self.before(&self.given, rank + 1);
        let blocks = |of: &dyn Fn(usize) -> Range<usize>| {
            Some((0..ranks).flat_map(|r| of(r).map(move |i| (r, i))).map(|(r, i)| self.value(r, i)).collect())
        };
        match self.call.collective {
            Barrier => None,
            Bcast => Some((0..n).map(|i| self.value(root, i)).collect()),
            Reduce if rank != root => None,
            Reduce | Allreduce => folded(0..ranks, 0..n),
            Scan => folded(0..rank + 1, 0..n),
            Exscan if rank == 0 => None,
            Exscan => folded(0..rank, 0..n),
            Gather if rank != root => None,
            Gather | Allgather => blocks(&|r| 0..self.given[r]),
            Scatter => Some(own().map(|i| self.value(root, i)).collect()),
            ReduceScatter => folded(0..ranks, own()),
            // Its input lies in the order of ranks; how much others give to ranks before this one follows from theirs.
            Alltoall => blocks(&|r| {
                let start = self.given_before(r);
                start..start + self.taken[r]
            }),
        }
    }

    /// Where in the input of `rank` the block for this one begins.
    fn given_before(&self, rank: usize) -> usize {
        (0..self.rank).map(|to| self.call.pair(rank, to, self.ranks)).sum()
    }

    /// In place: where in the buffer input and output begin.
    fn places(&self) -> (usize, usize) {
        use Collective::*;
        let own = self.before(&self.given, self.rank);
        match self.call.collective {
            Gather if self.rank == self.root => (own, 0),
            Allgather => (own, 0),
            Scatter if self.rank == self.root => (0, own),
            _ => (0, 0),
        }
    }

    /// Buffers as the call wants them.
    pub fn buffers<T: Sample>(&self) -> Buffers<T> {
        let filler = T::of(3, 1);
        let gives: Vec<T> = match (self.call.collective, self.rank == self.root) {
            (Collective::Bcast, true) => (0..self.call.n).map(|i| self.value(self.rank, i)).collect(),
            _ => (0..self.gives()).map(|i| self.value(self.rank, i)).collect(),
        };
        let takes = self.result::<T>().map_or(0, |r| r.len());
        let exscan = if self.is(&[Collective::Exscan]) { self.call.n } else { 0 };
        if self.call.in_place || self.is(&[Collective::Bcast]) {
            let (from, to) = self.places();
            let mut output = vec![filler; 2 * GUARD + (from + gives.len()).max(to + takes)];
            output[GUARD + from..][..gives.len()].copy_from_slice(&gives);
            return Buffers { input: Vec::new(), output };
        }
        Buffers { input: gives, output: vec![filler; 2 * GUARD + takes.max(exscan)] }
    }

    /// The call, to be started.
    pub fn describe<'b, T: Sample>(&self, (input, output): (&'b [T], &'b mut [T])) -> Operation<'b> {
        use Collective::*;
        let Call { collective, operator, uneven, in_place, .. } = *self.call;
        let (root, given, taken) = (self.root, &self.given, &self.taken);
        match (in_place, uneven) {
            (true, true) => return Operation::in_place_uneven(collective, operator, output, given, root),
            (true, false) => return Operation::in_place(collective, operator, output, root),
            (false, _) => {}
        }
        let folds = || operator.expect("a fold has an operator");
        match (collective, uneven) {
            (Barrier, _) => Operation::barrier(),
            (Bcast, _) => Operation::bcast(output, root),
            (Reduce, _) => Operation::reduce(input, output, folds(), root),
            (Allreduce, _) => Operation::allreduce(input, output, folds()),
            (Scan, _) => Operation::scan(input, output, folds()),
            (Exscan, _) => Operation::exscan(input, output, folds()),
            (Gather, false) => Operation::gather(input, output, root),
            (Gather, true) => Operation::gatherv(input, output, given, root),
            (Scatter, false) => Operation::scatter(input, output, root),
            (Scatter, true) => Operation::scatterv(input, output, given, root),
            (Allgather, false) => Operation::allgather(input, output),
            (Allgather, true) => Operation::allgatherv(input, output, given),
            (ReduceScatter, false) => Operation::reduce_scatter_block(input, output, folds()),
            (ReduceScatter, true) => Operation::reduce_scatter(input, output, given, folds()),
            (Alltoall, false) => Operation::alltoall(input, output),
            (Alltoall, true) => Operation::alltoallv(input, given, output, taken),
        }
    }

    /// The call that blocks.
    pub fn block<T: Sample>(
        &self,
        comm: &mut Communicator,
        (input, output): (&[T], &mut [T]),
    ) -> Result<(), Error> {
        use Collective::*;
        let Call { collective, operator, uneven, in_place, n, .. } = *self.call;
        let (root, given, taken) = (self.root, &self.given, &self.taken);
        let folds = || operator.expect("a fold has an operator");
        match (collective, in_place, uneven) {
            (Barrier, ..) => comm.barrier(),
            (Bcast, ..) => comm.bcast(output, root),
            (Reduce, false, _) => comm.reduce(input, output, folds(), root),
            (Reduce, true, _) => {
                let call = CallSpec { collective, element: T::TYPE, count: n, operator, root };
                let start = output.as_mut_ptr().cast::<u8>();
                // SAFETY: the slice is exclusively borrowed and as long as the call says.
                unsafe { comm.call(&call, start, start) }
            }
            (Allreduce, false, _) => comm.allreduce(input, output, folds()),
            (Allreduce, true, _) => comm.allreduce_in_place(output, folds()),
            (Scan, false, _) => comm.scan(input, output, folds()),
            (Scan, true, _) => comm.scan_in_place(output, folds()),
            (Exscan, false, _) => comm.exscan(input, output, folds()),
            (Exscan, true, _) => comm.exscan_in_place(output, folds()),
            (Gather, false, false) => comm.gather(input, output, root),
            (Gather, true, false) => comm.gather_in_place(output, root),
            (Gather, false, true) => comm.gatherv(input, output, given, root),
            (Gather, true, true) => comm.gatherv_in_place(output, given, root),
            (Scatter, false, false) => comm.scatter(input, output, root),
            (Scatter, true, false) => comm.scatter_in_place(output, root),
            (Scatter, false, true) => comm.scatterv(input, output, given, root),
            (Scatter, true, true) => comm.scatterv_in_place(output, given, root),
            (Allgather, false, false) => comm.allgather(input, output),
            (Allgather, true, false) => comm.allgather_in_place(output),
            (Allgather, false, true) => comm.allgatherv(input, output, given),
            (Allgather, true, true) => comm.allgatherv_in_place(output, given),
            (ReduceScatter, false, false) => comm.reduce_scatter_block(input, output, folds()),
            (ReduceScatter, true, false) => comm.reduce_scatter_block_in_place(output, folds()),
            (ReduceScatter, false, true) => comm.reduce_scatter(input, output, given, folds()),
            (ReduceScatter, true, true) => comm.reduce_scatter_in_place(output, given, folds()),
            (Alltoall, false, false) => comm.alltoall(input, output),
            (Alltoall, true, false) => comm.alltoall_in_place(output),
            (Alltoall, false, true) => comm.alltoallv(input, given, output, taken),
            (Alltoall, true, true) => comm.alltoallv_in_place(output, given),
        }
    }

    /// Compares what came of it, and what must not be touched.
    pub fn check<T: Sample>(&self, found: &Buffers<T>) -> Result<(), String> {
        let mut wanted = self.buffers::<T>();
        if let Some(result) = self.result::<T>() {
            let (_, to) = if self.call.in_place { self.places() } else { (0, 0) };
            wanted.output[GUARD + to..][..result.len()].copy_from_slice(&result);
        }
        let mut compared = 0..wanted.output.len();
        if self.call.in_place && self.is(&[Collective::ReduceScatter]) {
            // Behind the own block may be anything.
            compared.end = GUARD + self.given[self.rank];
        }
        let wrong = |what: &str, found: &[T], wanted: &[T]| {
            let at = found.iter().zip(wanted).position(|(f, w)| f != w);
            at.map_or(Ok(()), |i| {
                Err(format!(
                    "{:?} with root {} and salt {}: rank {} of {} has in {what} {} of {}: {:?}, expected {:?}",
                    self.call, self.root, self.salt, self.rank, self.ranks, i, found.len(), found[i], wanted[i]
                ))
            })
        };
        wrong("the input", &found.input, &wanted.input)?;
        let end = found.output.len() - GUARD;
        wrong("the guard behind the output", &found.output[end..], &wanted.output[end..])?;
        wrong("the output (with its guard)", &found.output[compared.clone()], &wanted.output[compared])
    }
}
