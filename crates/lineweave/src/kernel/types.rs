//! Element types and reduction operators, and which pairs of them mean something.

use std::fmt;
use std::str::FromStr;

/// The type of the elements of a message.
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
}

impl ElementType {
    /// Every element type, in the order in which listings show them.
    pub const ALL: [ElementType; 12] = [
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
    ];

    /// Bytes of one element, which is also its alignment.
    pub fn size(self) -> usize {
        match self {
            ElementType::I8 | ElementType::U8 => 1,
            ElementType::I16 | ElementType::U16 | ElementType::F16 | ElementType::BF16 => 2,
            ElementType::I32 | ElementType::U32 | ElementType::F32 => 4,
            ElementType::I64 | ElementType::U64 | ElementType::F64 => 8,
        }
    }

    /// The name used on the command line and in records: Rust's, where Rust has one.
    pub fn name(self) -> &'static str {
        match self {
            ElementType::I8 => "i8",
            ElementType::I16 => "i16",
            ElementType::I32 => "i32",
            ElementType::I64 => "i64",
            ElementType::U8 => "u8",
            ElementType::U16 => "u16",
            ElementType::U32 => "u32",
            ElementType::U64 => "u64",
            ElementType::F16 => "f16",
            ElementType::BF16 => "bf16",
            ElementType::F32 => "f32",
            ElementType::F64 => "f64",
        }
    }

    /// Whether it is a floating-point type.
    pub fn is_float(self) -> bool {
        match self {
            ElementType::F16 | ElementType::BF16 | ElementType::F32 | ElementType::F64 => true,
            ElementType::I8
            | ElementType::I16
            | ElementType::I32
            | ElementType::I64
            | ElementType::U8
            | ElementType::U16
            | ElementType::U32
            | ElementType::U64 => false,
        }
    }
}

/// How two elements are combined into one.
///
/// Every operator is commutative to the last bit; sums, products and averages of floats are not associative.
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
}

impl Operator {
    /// Every operator, in the order in which listings show them.
    pub const ALL: [Operator; 11] = [
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
        }
    }

    /// Whether the operator means something on elements of this type: all do but bitwise ones on floats.
    pub fn defined_for(self, element: ElementType) -> bool {
        match self {
            Operator::BitAnd | Operator::BitOr | Operator::BitXor => !element.is_float(),
            Operator::Sum
            | Operator::Prod
            | Operator::Min
            | Operator::Max
            | Operator::Avg
            | Operator::LogicalAnd
            | Operator::LogicalOr
            | Operator::LogicalXor => true,
        }
    }
}

/// An operator that is not defined on an element type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("`{operator}` is not defined on {element}: {element} takes {}, and `{operator}` takes {}",
    list(Operator::ALL.into_iter().filter(|o| o.defined_for(*element))),
    list(ElementType::ALL.into_iter().filter(|e| operator.defined_for(*e))))]
pub struct Undefined {
    /// Asked for.
    pub operator: Operator,
    /// On elements of this type.
    pub element: ElementType,
}

/// A name that is not an element type's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown element type `{0}`: expected one of {known}", known = list(ElementType::ALL))]
pub struct UnknownElementType(pub String);

/// A name that is not an operator's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown operator `{0}`: expected one of {known}", known = list(Operator::ALL))]
pub struct UnknownOperator(pub String);

fn list<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
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
        ElementType::ALL
            .into_iter()
            .find(|e| e.name() == name)
            .ok_or_else(|| UnknownElementType(name.to_owned()))
    }
}

impl FromStr for Operator {
    type Err = UnknownOperator;

    fn from_str(name: &str) -> Result<Self, UnknownOperator> {
        Operator::ALL.into_iter().find(|o| o.name() == name).ok_or_else(|| UnknownOperator(name.to_owned()))
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type whose values can be elements of a message. Every bit pattern is a value, and there is no padding.
pub trait Element: Copy + Send + Sync + 'static + sealed::Sealed {
    /// The element type it stands for.
    const TYPE: ElementType;
}

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
}
