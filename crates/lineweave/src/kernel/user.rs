//! Operators that a program defines: a function that combines two runs of elements.
//!
//! Every one has a number that is never given twice, by which it is found when a call is made ready. A function is called
//! as MPI calls one: `right = left (op) right`, with operands that do not overlap. Where a plan wants the result on the
//! left operand, or apart from both, the run goes piece by piece through a buffer on the stack.
//!
//! A panic does not cross the engine: the run ends, the rank's communicator fails with the panic's words, and its peers
//! are told.

use super::element::Element;
use super::fold::{fold_fn, FoldFn};
use super::sums::{sums, Sums};
use super::types::{ElementType, Operator, Undefined, UserOperator};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{PoisonError, RwLock};

/// `right[i] = left[i] (op) right[i]` for so many elements of so many bytes.
type Run = dyn Fn(*const u8, *mut u8, usize, usize) + Send + Sync;

/// Definition of a user-defined operator, found by the operator's number.
struct Definition {
    run: Box<Run>,
    /// The size of the elements it takes, if it does not take any.
    size: Option<usize>,
    commutes: bool,
}

/// All of them. Definitions are leaked, and given back by [`UserOperator::release`] alone.
static KNOWN: RwLock<Option<Table>> = RwLock::new(None);

#[derive(Default)]
struct Table {
    definitions: HashMap<u32, &'static Definition>,
    next: u32,
}

/// The most operators that a process can define: their numbers are never given twice.
const MOST: u32 = 1 << 24;

impl Operator {
    /// An operator of one's own: `f(left, right)` puts `left[i] (op) right[i]` into `right[i]`, for all `i`. Both slices
    /// are equally long, and may be any part of a message. It is associative; if it does not `commute` as well,
    /// contributions are combined in the order of ranks.
    ///
    /// Every rank gives an operator that does the same. It stays until the program ends: define it once, and not for
    /// every call. When it panics, the rank's call returns [`Error::Panicked`](crate::Error::Panicked), its
    /// communicator cannot be used any more, and other ranks are told who failed.
    ///
    /// # Panics
    /// When the process has defined 2^24 of them.
    ///
    /// ```
    /// use lineweave::Operator;
    /// // Affine maps x -> m x + c, one applied after the other: not commutative.
    /// let compose = Operator::new(false, |left: &[[u8; 2]], right: &mut [[u8; 2]]| {
    ///     for (&[m, c], r) in left.iter().zip(right) {
    ///         *r = [r[0].wrapping_mul(m), r[0].wrapping_mul(c).wrapping_add(r[1])];
    ///     }
    /// });
    /// let maps = lineweave::team::threads(3, |mut comm| {
    ///     let mut map = [[2u8, comm.rank() as u8]];
    ///     comm.allreduce_in_place(&mut map, compose)?;
    ///     Ok(map[0])
    /// })?;
    /// assert_eq!(maps, [[8, 4]; 3]); // 2 (2 (2 x) + 1) + 2
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    pub fn new<T: Element>(commutes: bool, f: impl Fn(&[T], &mut [T]) + Send + Sync + 'static) -> Operator {
        let run = move |left: *const u8, right: *mut u8, elements: usize, _: usize| {
            // SAFETY: the engine gives runs of `elements` elements of this size, which lie at multiples of it from
            // an aligned start, do not overlap, and are nobody else's to write meanwhile.
            let (left, right) = unsafe {
                (
                    std::slice::from_raw_parts(left.cast::<T>(), elements),
                    std::slice::from_raw_parts_mut(right.cast::<T>(), elements),
                )
            };
            f(left, right);
        };
        Operator::define(commutes, Some(size_of::<T>()), Box::new(run))
    }

    /// As [`Operator::new`], on raw memory, for elements of any size: `f(left, right, elements, size)`.
    ///
    /// # Panics
    /// When the process has defined 2^24 of them.
    ///
    /// # Safety
    /// `f` must write nothing but the `elements * size` bytes at `right`.
    ///
    /// ```
    /// use lineweave::Operator;
    /// // SAFETY: it writes `elements * size` bytes at `right`.
    /// let xor = unsafe {
    ///     Operator::raw(true, |left, right, elements, size| {
    ///         for i in 0..elements * size {
    ///             *right.add(i) ^= *left.add(i);
    ///         }
    ///     })
    /// };
    /// let parity = lineweave::team::threads(3, |mut comm| {
    ///     let mut bits = [1u16 << comm.rank()];
    ///     comm.allreduce_in_place(&mut bits, xor)?;
    ///     Ok(bits[0])
    /// })?;
    /// assert_eq!(parity, [0b111; 3]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    pub unsafe fn raw(
        commutes: bool,
        f: impl Fn(*const u8, *mut u8, usize, usize) + Send + Sync + 'static,
    ) -> Operator {
        Operator::define(commutes, None, Box::new(f))
    }

    fn define(commutes: bool, size: Option<usize>, run: Box<Run>) -> Operator {
        let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
        let table = known.get_or_insert_default();
        let number = table.next;
        assert!(number < MOST, "a process defines at most {MOST} operators");
        table.next += 1;
        table.definitions.insert(number, Box::leak(Box::new(Definition { run, size, commutes })));
        Operator::User(UserOperator { number, commutes })
    }
}

impl UserOperator {
    /// Its number in this process.
    pub fn number(self) -> u32 {
        self.number
    }

    /// The operator of this number, if there is one that was not released.
    pub fn numbered(number: u32) -> Option<UserOperator> {
        let user = UserOperator { number, commutes: false };
        user.definition().map(|definition| UserOperator { commutes: definition.commutes, ..user })
    }

    /// Returns whether its operands may change places.
    pub fn commutes(self) -> bool {
        self.commutes
    }

    /// Returns whether it takes elements of this type: those of its size.
    pub fn fits(self, element: ElementType) -> bool {
        self.definition().is_some_and(|d| d.size.is_none_or(|size| size == element.size()))
    }

    /// Describes the elements that the operator takes, in words.
    pub(super) fn expects(self) -> String {
        match self.definition() {
            None => "nothing any more, because it was released".to_owned(),
            Some(Definition { size: None, .. }) => "elements of any size".to_owned(),
            Some(Definition { size: Some(size), .. }) => format!("elements of {size} bytes"),
        }
    }

    /// Gives its function back. Calls that name it are refused from now on.
    ///
    /// # Safety
    /// No call that uses it may be under way. A call that equals one made with it before may not be made any more.
    pub unsafe fn release(self) {
        let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
        let definition = known.as_mut().and_then(|table| table.definitions.remove(&self.number));
        if let Some(definition) = definition {
            let definition = std::ptr::from_ref(definition).cast_mut();
            // SAFETY: leaked by `define` and just taken out of the table, so it is given back once; the caller
            // vouches that nobody uses it.
            drop(unsafe { Box::from_raw(definition) });
        }
    }

    fn definition(self) -> Option<&'static Definition> {
        let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
        known.as_ref()?.definitions.get(&self.number).copied()
    }
}

/// Function that combines the elements of a run: a kernel, or a user-defined operator.
#[derive(Clone, Copy)]
pub struct Fold {
    way: Way,
    /// Functions that combine many runs with one rounding, where that differs from combining one after the other.
    sums: Option<&'static Sums>,
}

#[derive(Clone, Copy)]
enum Way {
    Kernel(FoldFn),
    User(&'static Definition, usize),
}

impl Fold {
    /// A kernel.
    pub const fn kernel(kernel: FoldFn) -> Fold {
        Fold { way: Way::Kernel(kernel), sums: None }
    }

    /// For an operator on an element type.
    ///
    /// # Errors
    /// [`Undefined`] when the type has no such operator.
    pub fn of(operator: Operator, element: ElementType) -> Result<Fold, Undefined> {
        match operator {
            Operator::User(user) if user.fits(element) => match user.definition() {
                Some(definition) => Ok(Fold { way: Way::User(definition, element.size()), sums: None }),
                None => Err(Undefined { operator, element }),
            },
            _ => Ok(Fold { sums: sums(operator, element), ..fold_fn(operator, element)?.into() }),
        }
    }

    /// `dst[i] = a[i] (op) b[i]` for `i` in `0..elements`; whether it came to its end. When it did not, the operator's
    /// words are kept for the communicator to report.
    ///
    /// # Safety
    /// The conditions of [`FoldFn`].
    #[inline(always)]
    pub unsafe fn run(&self, a: *const u8, b: *const u8, dst: *mut u8, elements: usize) -> bool {
        match self.way {
            Way::Kernel(kernel) => {
                // SAFETY: the caller's.
                unsafe { kernel(a, b, dst, elements) };
                true
            }
            // SAFETY: the caller's.
            Way::User(definition, size) => unsafe { run_user(definition, size, [a, b], dst, elements) },
        }
    }
}

impl Fold {
    /// Returns the functions that combine many runs with one rounding; nothing where that is to combine one after the other.
    pub fn sums(&self) -> Option<&'static Sums> {
        self.sums
    }
}

impl From<FoldFn> for Fold {
    fn from(kernel: FoldFn) -> Fold {
        Fold::kernel(kernel)
    }
}

impl std::fmt::Debug for Fold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.way {
            Way::Kernel(_) => "Fold::Kernel",
            Way::User(..) => "Fold::User",
        })
    }
}

thread_local! {
    /// Words of the last operator that panicked on this thread.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
    /// Room for one element that is larger than [`PIECE`].
    static LARGE: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
}

/// The words of the operator that panicked on this thread, if one has since this was asked last.
pub(crate) fn take_panic() -> Option<String> {
    PANIC.with_borrow_mut(Option::take)
}

/// A cache line, so that a piece is aligned like a slot.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(#[allow(dead_code)] [MaybeUninit<u8>; 64]);

const EMPTY: Line = Line([MaybeUninit::uninit(); 64]);

/// Lines of a piece: two of them stay in any first-level cache.
const PIECE: usize = 128;

/// # Safety
/// The conditions of [`FoldFn`], with elements of `size` bytes.
unsafe fn run_user(
    definition: &Definition,
    size: usize,
    [a, b]: [*const u8; 2],
    dst: *mut u8,
    elements: usize,
) -> bool {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the caller's; the operands given to the function never overlap.
        unsafe {
            if std::ptr::eq(dst, b) && !std::ptr::eq(dst, a) {
                (definition.run)(a, dst, elements, size);
            } else if !std::ptr::eq(dst, a) {
                b.copy_to_nonoverlapping(dst, elements * size);
                (definition.run)(a, dst, elements, size);
            } else {
                by_pieces(definition, size, a, b, dst, elements);
            }
        }
    }));
    outcome.map_err(|panic| PANIC.set(Some(panic_text(panic.as_ref())))).is_ok()
}

/// Combines by pieces, where the result lies on the left operand.
///
/// # Safety
/// The conditions of [`FoldFn`], with elements of `size` bytes.
unsafe fn by_pieces(
    definition: &Definition,
    size: usize,
    a: *const u8,
    b: *const u8,
    dst: *mut u8,
    elements: usize,
) {
    let mut small = [EMPTY; PIECE];
    let mut large = Vec::new();
    let (piece, room) = match size <= size_of_val(&small) {
        true => (small.as_mut_ptr(), size_of_val(&small)),
        false => {
            large = LARGE.take();
            large.resize(large.len().max(size.div_ceil(size_of::<Line>())), EMPTY);
            (large.as_mut_ptr(), size)
        }
    };
    let piece = piece.cast::<u8>();
    let most = room / size;
    let mut done = 0;
    while done < elements {
        let n = most.min(elements - done);
        let at = done * size;
        // SAFETY: `n` elements fit the piece, which is private and so apart from all else, and `done + n` are at
        // most as many as the caller vouches for.
        unsafe {
            b.add(at).copy_to_nonoverlapping(piece, n * size);
            (definition.run)(a.add(at), piece, n, size);
            piece.copy_to_nonoverlapping(dst.add(at), n * size);
        }
        done += n;
    }
    if !large.is_empty() {
        LARGE.set(large);
    }
}

/// Returns what a panic says.
pub fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message").to_owned()
}
