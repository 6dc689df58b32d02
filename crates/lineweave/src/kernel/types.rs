//! Element types and reduction operators, and which pairs of them mean something.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

/// The type of the elements of a message.
///
/// ```
/// use lineweave::ElementType;
/// let element: ElementType = "f32".parse()?;
/// assert_eq!((element.size(), element.align()), (4, 4));
/// assert_eq!(ElementType::block(12).map(ElementType::size), Some(12));
/// # Ok::<(), lineweave::kernel::UnknownElementType>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ElementType {
    /// Signed, 1 byte.
    I8,
    /// Signed, 2 bytes.
    I16,
    /// Signed, 4 bytes.
    I32,
    /// Signed, 8 bytes.
    I64,
    /// Unsigned, 1 byte.
    U8,
    /// Unsigned, 2 bytes.
    U16,
    /// Unsigned, 4 bytes.
    U32,
    /// Unsigned, 8 bytes.
    U64,
    /// IEEE 754 binary16.
    F16,
    /// The upper half of a binary32.
    BF16,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
    /// Two binary32, the real part first.
    ComplexF32,
    /// Two binary64, the real part first.
    ComplexF64,
    /// A truth value of 1 byte: 0, or anything else for true.
    Bool,
    /// An F32 and an I32 that says where it is from: C's `struct { float; int; }`.
    FloatInt,
    /// An F64 and an I32: C's `struct { double; int; }`, 16 bytes.
    DoubleInt,
    /// An I64 and an I32: C's `struct { long; int; }` on 64-bit Unix, 16 bytes.
    LongInt,
    /// Two I32: C's `struct { int; int; }`.
    IntInt,
    /// An I16 and an I32: C's `struct { short; int; }`, 8 bytes.
    ShortInt,
    /// So many bytes that only a user-defined operator understands.
    Block(NonZeroU32),
}

impl ElementType {
    /// Every element type but blocks, in the order in which listings show them.
    pub const ALL: [ElementType; 20] = [
        ElementType::I8,
        ElementType::I16,
        ElementType::I32,
        ElementType::I64,
        ElementType::U8,
        ElementType::U16,
        ElementType::U32,
        ElementType::U64,
        ElementType::F16,
        ElementType::BF16,
        ElementType::F32,
        ElementType::F64,
        ElementType::ComplexF32,
        ElementType::ComplexF64,
        ElementType::Bool,
        ElementType::FloatInt,
        ElementType::DoubleInt,
        ElementType::LongInt,
        ElementType::IntInt,
        ElementType::ShortInt,
    ];

    /// The numbers among them: integers and floats.
    pub const NUMBERS: [ElementType; 12] = {
        let mut numbers = [ElementType::I8; 12];
        let mut i = 0;
        while i < numbers.len() {
            numbers[i] = ElementType::ALL[i];
            i += 1;
        }
        numbers
    };

    /// Blocks of `bytes` bytes; nothing for none, or for 2 GiB and more.
    pub fn block(bytes: usize) -> Option<ElementType> {
        let bytes = u32::try_from(bytes).ok().filter(|&n| n <= i32::MAX as u32)?;
        NonZeroU32::new(bytes).map(ElementType::Block)
    }

    /// Its name, what it is to operators, its bytes and its alignment.
    #[inline]
    fn row(self) -> (&'static str, Kind, usize, usize) {
        match self {
            ElementType::I8 => ("i8", Kind::Integer, 1, 1),
            ElementType::I16 => ("i16", Kind::Integer, 2, 2),
            ElementType::I32 => ("i32", Kind::Integer, 4, 4),
            ElementType::I64 => ("i64", Kind::Integer, 8, 8),
            ElementType::U8 => ("u8", Kind::Integer, 1, 1),
            ElementType::U16 => ("u16", Kind::Integer, 2, 2),
            ElementType::U32 => ("u32", Kind::Integer, 4, 4),
            ElementType::U64 => ("u64", Kind::Integer, 8, 8),
            ElementType::F16 => ("f16", Kind::Float, 2, 2),
            ElementType::BF16 => ("bf16", Kind::Float, 2, 2),
            ElementType::F32 => ("f32", Kind::Float, 4, 4),
            ElementType::F64 => ("f64", Kind::Float, 8, 8),
            ElementType::ComplexF32 => ("complex-f32", Kind::Complex, 8, 4),
            ElementType::ComplexF64 => ("complex-f64", Kind::Complex, 16, 8),
            ElementType::Bool => ("bool", Kind::Truth, 1, 1),
            ElementType::FloatInt => ("float-int", Kind::Pair, 8, 4),
            ElementType::DoubleInt => ("double-int", Kind::Pair, 16, 8),
            ElementType::LongInt => ("long-int", Kind::Pair, 16, 8),
            ElementType::IntInt => ("int-int", Kind::Pair, 8, 4),
            ElementType::ShortInt => ("short-int", Kind::Pair, 8, 4),
            ElementType::Block(bytes) => ("block", Kind::Block, bytes.get() as usize, 1),
        }
    }

    /// The name used on the command line and in records: Rust's, where Rust has one. Blocks are printed with their size
    /// behind it.
    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// Returns the kind of this type, as operators distinguish types.
    pub(super) fn kind(self) -> Kind {
        self.row().1
    }

    /// Bytes of one element.
    #[inline]
    pub fn size(self) -> usize {
        self.row().2
    }

    /// The alignment of its elements in memory: as in C. Blocks have none.
    #[inline]
    pub fn align(self) -> usize {
        self.row().3
    }

    /// Returns whether sums and products are the same in any order.
    pub(crate) fn is_exact(self) -> bool {
        matches!(self.kind(), Kind::Integer | Kind::Truth)
    }

    /// Returns whether it is a floating-point type.
    pub fn is_float(self) -> bool {
        self.kind() == Kind::Float
    }
}

/// Kind of an element type, as operators distinguish types.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Integer,
    Float,
    Complex,
    Truth,
    Pair,
    Block,
}

/// A user-defined operator, see [`Operator::new`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct UserOperator {
    pub(super) number: u32,
    pub(super) commutes: bool,
}

/// Operator that combines two elements into one.
///
/// Every operator but user-defined ones is commutative to the last bit; sums, products and averages of floats are not
/// associative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Operator {
    /// `a + b`; integers wrap.
    Sum,
    /// `a * b`; integers wrap.
    Prod,
    /// The lesser, as IEEE 754-2019 `minimum`: NaN if either operand is, and -0 is less than +0.
    Min,
    /// The greater, as IEEE 754-2019 `maximum`: NaN if either operand is, and +0 is greater than -0.
    Max,
    /// The sum, divided once at the end by the number of ranks (see [`scale_fn`](super::scale_fn)).
    Avg,
    /// Bitwise and, integers only.
    BitAnd,
    /// Bitwise or, integers only.
    BitOr,
    /// Bitwise exclusive or, integers only.
    BitXor,
    /// 1 when both are non-zero, else 0. NaN counts as non-zero, as in C.
    LogicalAnd,
    /// 1 when either is non-zero, else 0.
    LogicalOr,
    /// 1 when exactly one is non-zero, else 0.
    LogicalXor,
    /// The pair with the lesser value; of equal ones, the one with the lower index. NaN is less than any value.
    MinLoc,
    /// The pair with the greater value; of equal ones, the one with the lower index. NaN is greater than any value.
    MaxLoc,
    /// Operator that a program defined, see [`Operator::new`].
    User(UserOperator),
}

impl Operator {
    /// Every operator that is not user-defined, in the order in which listings show them.
    pub const ALL: [Operator; 13] = [
        Operator::Sum,
        Operator::Prod,
        Operator::Min,
        Operator::Max,
        Operator::Avg,
        Operator::BitAnd,
        Operator::BitOr,
        Operator::BitXor,
        Operator::LogicalAnd,
        Operator::LogicalOr,
        Operator::LogicalXor,
        Operator::MinLoc,
        Operator::MaxLoc,
    ];

    /// The name used on the command line and in records: MPI's, where MPI has one.
    pub fn name(self) -> &'static str {
        match self {
            Operator::Sum => "sum",
            Operator::Prod => "prod",
            Operator::Min => "min",
            Operator::Max => "max",
            Operator::Avg => "avg",
            Operator::BitAnd => "band",
            Operator::BitOr => "bor",
            Operator::BitXor => "bxor",
            Operator::LogicalAnd => "land",
            Operator::LogicalOr => "lor",
            Operator::LogicalXor => "lxor",
            Operator::MinLoc => "minloc",
            Operator::MaxLoc => "maxloc",
            Operator::User(user) if user.commutes() => "user-defined",
            Operator::User(_) => "user-defined, in rank order",
        }
    }

    /// Returns whether the operands may change places.
    pub fn commutes(self) -> bool {
        !matches!(self, Operator::User(user) if !user.commutes())
    }

    /// Returns whether the operator means something on elements of this type, as in MPI (which has no averages).
    pub fn defined_for(self, element: ElementType) -> bool {
        let kind = element.kind();
        match self {
            Operator::Sum | Operator::Prod | Operator::Avg => {
                matches!(kind, Kind::Integer | Kind::Float | Kind::Complex)
            }
            Operator::Min | Operator::Max => matches!(kind, Kind::Integer | Kind::Float),
            Operator::BitAnd | Operator::BitOr | Operator::BitXor => kind == Kind::Integer,
            Operator::LogicalAnd | Operator::LogicalOr | Operator::LogicalXor => {
                matches!(kind, Kind::Integer | Kind::Float | Kind::Truth)
            }
            Operator::MinLoc | Operator::MaxLoc => kind == Kind::Pair,
            Operator::User(user) => user.fits(element),
        }
    }
}

/// An operator that is not defined on an element type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("`{operator}` is not defined on {element}: {element} takes {}, and `{operator}` takes {}",
    operators_of(*element), elements_of(*operator))]
pub struct Undefined {
    /// Asked for.
    pub operator: Operator,
    /// On elements of this type.
    pub element: ElementType,
}

/// A name that is not an element type's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown element type `{0}`: expected one of {known}, or blockN for N bytes", known = list(ElementType::ALL))]
pub struct UnknownElementType(pub String);

/// A name that is not an operator's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown operator `{0}`: expected one of {known}", known = list(Operator::ALL))]
pub struct UnknownOperator(pub String);

fn operators_of(element: ElementType) -> String {
    match element {
        ElementType::Block(_) => "user-defined operators only".to_owned(),
        _ => list(Operator::ALL.into_iter().filter(|o| o.defined_for(element))),
    }
}

fn elements_of(operator: Operator) -> String {
    match operator {
        Operator::User(user) => user.expects(),
        _ => list(ElementType::ALL.into_iter().filter(|e| operator.defined_for(*e))),
    }
}

fn list<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ElementType::Block(bytes) => write!(f, "{}{bytes}", self.name()),
            _ => f.pad(self.name()),
        }
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for ElementType {
    type Err = UnknownElementType;

    fn from_str(name: &str) -> Result<Self, UnknownElementType> {
        let block = || ElementType::block(name.strip_prefix("block")?.parse().ok()?);
        ElementType::ALL
            .into_iter()
            .find(|e| e.name() == name)
            .or_else(block)
            .ok_or_else(|| UnknownElementType(name.to_owned()))
    }
}

impl FromStr for Operator {
    type Err = UnknownOperator;

    fn from_str(name: &str) -> Result<Self, UnknownOperator> {
        Operator::ALL.into_iter().find(|o| o.name() == name).ok_or_else(|| UnknownOperator(name.to_owned()))
    }
}
