//! Element types and operators as numbers.

use crate::status::{Failure, LW_ERR_OP, LW_ERR_TYPE};
use lineweave::kernel::{Undefined, UserOperator};
use lineweave::{ElementType, Operator};

/** The type of elements: one of these, or LW_BYTES(n). */
pub type lw_type = i32;
/** Signed, 1 byte. */
pub const LW_I8: lw_type = 0;
/** Signed, 2 bytes. */
pub const LW_I16: lw_type = 1;
/** Signed, 4 bytes. */
pub const LW_I32: lw_type = 2;
/** Signed, 8 bytes. */
pub const LW_I64: lw_type = 3;
/** Unsigned, 1 byte. */
pub const LW_U8: lw_type = 4;
/** Unsigned, 2 bytes. */
pub const LW_U16: lw_type = 5;
/** Unsigned, 4 bytes. */
pub const LW_U32: lw_type = 6;
/** Unsigned, 8 bytes. */
pub const LW_U64: lw_type = 7;
/** IEEE 754 binary16. */
pub const LW_F16: lw_type = 8;
/** The upper half of a binary32. */
pub const LW_BF16: lw_type = 9;
/** IEEE 754 binary32. */
pub const LW_F32: lw_type = 10;
/** IEEE 754 binary64. */
pub const LW_F64: lw_type = 11;
/** Two floats, the real part first: float _Complex. */
pub const LW_COMPLEX_F32: lw_type = 12;
/** Two doubles, the real part first: double _Complex. */
pub const LW_COMPLEX_F64: lw_type = 13;
/** A truth value of 1 byte, such as _Bool. */
pub const LW_BOOL: lw_type = 14;
/** struct { float value; int32_t index; }: for LW_MINLOC and LW_MAXLOC, as the following ones. */
pub const LW_FLOAT_INT: lw_type = 15;
/** struct { double value; int32_t index; }, 16 bytes. */
pub const LW_DOUBLE_INT: lw_type = 16;
/** struct { int64_t value; int32_t index; }, 16 bytes: long and int on 64-bit Unix. */
pub const LW_LONG_INT: lw_type = 17;
/** struct { int32_t value; int32_t index; }. */
pub const LW_2INT: lw_type = 18;
/** struct { int16_t value; int32_t index; }, 8 bytes. */
pub const LW_SHORT_INT: lw_type = 19;
/// The bit that marks the types made by LW_BYTES.
const BYTES: lw_type = 0x4000_0000;

/**
 * How two elements are combined: one of these, or what lw_op_create made; with LW_REPRODUCIBLE or without.
 */
pub type lw_op = i32;
/** a + b; integers wrap. */
pub const LW_SUM: lw_op = 0;
/** a * b; integers wrap. */
pub const LW_PROD: lw_op = 1;
/** The lesser; NaN if either operand is. */
pub const LW_MIN: lw_op = 2;
/** The greater; NaN if either operand is. */
pub const LW_MAX: lw_op = 3;
/** The sum, divided once at the end by the number of ranks. */
pub const LW_AVG: lw_op = 4;
/** Bitwise and, integers only. */
pub const LW_BAND: lw_op = 5;
/** Bitwise or, integers only. */
pub const LW_BOR: lw_op = 6;
/** Bitwise exclusive or, integers only. */
pub const LW_BXOR: lw_op = 7;
/** 1 when both are not 0, else 0. */
pub const LW_LAND: lw_op = 8;
/** 1 when either is not 0, else 0. */
pub const LW_LOR: lw_op = 9;
/** 1 when exactly one is not 0, else 0. */
pub const LW_LXOR: lw_op = 10;
/** The pair with the lesser value, of equal ones the one with the lower index; NaN is less than any value. */
pub const LW_MINLOC: lw_op = 11;
/** The pair with the greater value, of equal ones the one with the lower index; NaN is greater than any value. */
pub const LW_MAXLOC: lw_op = 12;
/**
 * Or-ed to an operator for one call, LW_SUM | LW_REPRODUCIBLE: the bits of the result depend on the number of ranks and the elements alone, and not
 * on the algorithm, box sizes, where ranks sit, or whether they are threads or processes. Given by all ranks or none.
 */
pub const LW_REPRODUCIBLE: lw_op = 0x2000_0000;
/// The bit that marks the operators that a program made.
pub(crate) const USER: lw_op = 0x4000_0000;

pub(crate) fn element(given: lw_type) -> Result<ElementType, Failure> {
    let known = usize::try_from(given).ok().and_then(|number| ElementType::ALL.get(number).copied());
    let block = || ElementType::block((given ^ BYTES) as usize).filter(|_| given > BYTES);
    known.or_else(block).ok_or_else(|| {
        let text = format!(
            "element type {given} is unknown; expected {LW_I8} (LW_I8) to {LW_SHORT_INT} (LW_SHORT_INT), \
             or LW_BYTES(n) with n from 1 to 2^30 - 1"
        );
        Failure::new(LW_ERR_TYPE, text)
    })
}

/// Returns the number of an operator that a program made, or `None` for other operators.
pub(crate) fn made(given: lw_op) -> Option<u32> {
    (given & USER != 0 && given > 0).then_some((given ^ USER) as u32)
}

/// Returns the operator, without LW_REPRODUCIBLE, if it exists and the element type has it.
pub(crate) fn operator(given: lw_op, element: ElementType) -> Result<Operator, Failure> {
    let given = if given > 0 { given & !LW_REPRODUCIBLE } else { given };
    let known = usize::try_from(given).ok().and_then(|number| Operator::ALL.get(number).copied());
    let user = || made(given).and_then(UserOperator::numbered).map(Operator::User);
    let operator = known.or_else(user).ok_or_else(|| {
        let text = format!(
            "operator {given} is unknown; expected {LW_SUM} (LW_SUM) to {LW_MAXLOC} (LW_MAXLOC), \
             or one that lw_op_create made and that was not freed"
        );
        Failure::new(LW_ERR_OP, text)
    })?;
    if !operator.defined_for(element) {
        return Err(Failure::new(LW_ERR_OP, Undefined { operator, element }.to_string()));
    }
    Ok(operator)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the constants of a type as declared above: their numbers, and their names as the runtime writes them.
    fn declared(of: &str) -> Vec<(i32, String)> {
        let of = format!(": {of} = ");
        let lines = include_str!("types.rs").lines().filter_map(|line| line.strip_prefix("pub const LW_"));
        let parts = lines.filter_map(|line| line.trim_end_matches(';').split_once(&of));
        let numbered = parts.filter_map(|(name, number)| Some((number.parse().ok()?, name)));
        numbered
            .map(|(n, name)| (n, name.to_lowercase().replace('_', "-").replace("2int", "int-int")))
            .collect()
    }

    #[test]
    fn numbers_are_in_the_order_of_the_runtime() {
        let (types, operators) = (declared("lw_type"), declared("lw_op"));
        assert_eq!((types.len(), operators.len()), (ElementType::ALL.len(), Operator::ALL.len()));
        for (n, name) in types {
            assert_eq!(element(n).expect("known").name(), name);
        }
        for (n, name) in operators {
            assert_eq!(Operator::ALL[n as usize].name(), name);
        }
        for (n, known) in Operator::ALL.into_iter().enumerate() {
            let element =
                ElementType::ALL.into_iter().find(|&e| known.defined_for(e)).expect("some type has it");
            assert_eq!(operator(n as lw_op, element).expect("known"), known);
            assert_eq!(operator(n as lw_op | LW_REPRODUCIBLE, element).expect("known"), known);
        }
        assert!(element(-1).is_err() && element(ElementType::ALL.len() as lw_type).is_err());
        assert!(operator(LW_BOR, ElementType::F16).is_err());
        assert_eq!(element(BYTES | 24).expect("a block"), ElementType::block(24).expect("a size"));
        assert!(element(BYTES).is_err() && operator(USER | 1234, ElementType::U8).is_err());
    }
}
