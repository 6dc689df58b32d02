//! Element types and operators as numbers.

use crate::status::{Failure, LW_ERR_OP, LW_ERR_TYPE};
use lineweave::{ElementType, Operator};

/** The type of elements: one of LW_I8 to LW_F64. */
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

/** How two elements are combined: one of LW_SUM to LW_LXOR. */
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

pub(crate) fn element(given: lw_type) -> Result<ElementType, Failure> {
    Ok(match given {
        LW_I8 => ElementType::I8,
        LW_I16 => ElementType::I16,
        LW_I32 => ElementType::I32,
        LW_I64 => ElementType::I64,
        LW_U8 => ElementType::U8,
        LW_U16 => ElementType::U16,
        LW_U32 => ElementType::U32,
        LW_U64 => ElementType::U64,
        LW_F16 => ElementType::F16,
        LW_BF16 => ElementType::BF16,
        LW_F32 => ElementType::F32,
        LW_F64 => ElementType::F64,
        _ => {
            let text =
                format!("element type {given} is unknown; expected {LW_I8} (LW_I8) to {LW_F64} (LW_F64)");
            return Err(Failure::new(LW_ERR_TYPE, text));
        }
    })
}

/// The operator, if it is one and the type has it.
pub(crate) fn operator(given: lw_op, element: ElementType) -> Result<Operator, Failure> {
    let operator = match given {
        LW_SUM => Operator::Sum,
        LW_PROD => Operator::Prod,
        LW_MIN => Operator::Min,
        LW_MAX => Operator::Max,
        LW_AVG => Operator::Avg,
        LW_BAND => Operator::BitAnd,
        LW_BOR => Operator::BitOr,
        LW_BXOR => Operator::BitXor,
        LW_LAND => Operator::LogicalAnd,
        LW_LOR => Operator::LogicalOr,
        LW_LXOR => Operator::LogicalXor,
        _ => {
            let text =
                format!("operator {given} is unknown; expected {LW_SUM} (LW_SUM) to {LW_LXOR} (LW_LXOR)");
            return Err(Failure::new(LW_ERR_OP, text));
        }
    };
    if !operator.defined_for(element) {
        let text = format!("operator {operator} is not defined on {element}: it takes integers only");
        return Err(Failure::new(LW_ERR_OP, text));
    }
    Ok(operator)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_in_the_order_of_the_runtime() {
        for (n, known) in ElementType::ALL.into_iter().enumerate() {
            assert_eq!(element(n as lw_type).expect("known"), known);
        }
        for (n, known) in Operator::ALL.into_iter().enumerate() {
            assert_eq!(operator(n as lw_op, ElementType::U8).expect("known"), known);
        }
        assert!(element(-1).is_err() && element(ElementType::ALL.len() as lw_type).is_err());
        assert!(operator(LW_BOR, ElementType::F16).is_err());
    }
}
