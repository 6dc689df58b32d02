//! Rust types whose values are elements of messages.

use super::pair::{DoubleInt, FloatInt, IntInt, LongInt, ShortInt};
use super::types::ElementType;
use num_complex::Complex;

mod sealed {
    pub trait Sealed {}
}

/// A Rust type whose values can be elements of a message. Every bit pattern is a value, and there is no padding.
///
/// Types of one's own become elements by [`Block`].
pub trait Element: Copy + Send + Sync + 'static + sealed::Sealed {
    /// The element type it stands for.
    const TYPE: ElementType;
}

/// A type of one's own as an element: bytes to every collective, and values to user-defined operators.
///
/// ```
/// #[derive(Clone, Copy)]
/// #[repr(C)]
/// struct Moments { count: u64, sum: f64, squares: f64 }
/// // SAFETY: three words, each of which may be anything, without padding.
/// unsafe impl lineweave::Block for Moments {}
/// ```
///
/// # Safety
/// Every bit pattern is a value, there is no padding, and the type is aligned to 64 bytes at most.
pub unsafe trait Block: Copy + Send + Sync + 'static {}

// SAFETY: bytes may be anything.
unsafe impl<const N: usize> Block for [u8; N] {}

impl<T: Block> sealed::Sealed for T {}

impl<T: Block> Element for T {
    const TYPE: ElementType = {
        assert!(align_of::<T>() <= 64, "a block is aligned to 64 bytes at most");
        assert!(size_of::<T>() <= i32::MAX as usize, "a block has less than 2 GiB");
        match std::num::NonZeroU32::new(size_of::<T>() as u32) {
            Some(bytes) => ElementType::Block(bytes),
            None => panic!("a block has at least one byte"),
        }
    };
}

/// A truth value that may come from other languages: 0 is false, and any other byte is true.
///
/// ```
/// use lineweave::{kernel::Bool, Operator};
/// let all = lineweave::team::threads(3, |mut comm| {
///     let mut ready = [Bool::from(comm.rank() != 1)];
///     comm.allreduce_in_place(&mut ready, Operator::LogicalAnd)?;
///     Ok(ready[0].get())
/// })?;
/// assert_eq!(all, [false; 3]);
/// # Ok::<(), lineweave::Error>(())
/// ```
#[derive(Clone, Copy, Default, Debug)]
#[repr(transparent)]
pub struct Bool(u8);

impl Bool {
    /// Returns the value as a `bool`.
    pub fn get(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for Bool {
    fn from(truth: bool) -> Bool {
        Bool(u8::from(truth))
    }
}

impl PartialEq for Bool {
    fn eq(&self, other: &Bool) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Bool {}

macro_rules! element {
    ($($rust:ty => $name:ident),* $(,)?) => {$(
        impl sealed::Sealed for $rust {}
        impl Element for $rust {
            const TYPE: ElementType = ElementType::$name;
        }
    )*};
}

element! {
    i8 => I8, i16 => I16, i32 => I32, i64 => I64,
    u8 => U8, u16 => U16, u32 => U32, u64 => U64,
    ::half::f16 => F16, ::half::bf16 => BF16, f32 => F32, f64 => F64,
    Complex<f32> => ComplexF32, Complex<f64> => ComplexF64, Bool => Bool,
    FloatInt => FloatInt, DoubleInt => DoubleInt, LongInt => LongInt, IntInt => IntInt, ShortInt => ShortInt,
}
