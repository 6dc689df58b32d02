//! Checks of the buffers that C passes, made before anything else is done.

use crate::status::{Failure, LW_ERR_ALIGN, LW_ERR_BUFFER, LW_ERR_COUNT, LW_ERR_NULL};
use lineweave::ElementType;
use std::ffi::c_void;

/// The value of `LW_IN_PLACE` in the header.
const IN_PLACE: usize = usize::MAX;

pub(crate) fn is_in_place(buffer: *const c_void) -> bool {
    buffer as usize == IN_PLACE
}

#[cold]
pub(crate) fn not_in_place(what: &str) -> Failure {
    Failure::new(LW_ERR_BUFFER, format!("LW_IN_PLACE is not allowed for {what} here"))
}

/// Checks a buffer of so many bytes. An empty buffer may have any address, also null.
#[inline]
pub(crate) fn check(
    what: &str,
    buffer: *const c_void,
    bytes: usize,
    element: ElementType,
) -> Result<*mut u8, Failure> {
    let start = buffer as usize;
    if bytes == 0 {
        return Ok(std::ptr::without_provenance_mut(element.align()));
    }
    if is_in_place(buffer) {
        return Err(not_in_place(what));
    }
    if buffer.is_null() {
        return Err(Failure::new(LW_ERR_NULL, format!("{what} is null and {bytes} bytes were expected")));
    }
    if start % element.align() != 0 {
        let align = element.align();
        return Err(Failure::new(
            LW_ERR_ALIGN,
            format!("{what} is not aligned to {align} bytes, for {element}"),
        ));
    }
    if start.checked_add(bytes).is_none() {
        return Err(Failure::new(LW_ERR_COUNT, format!("{what} of {bytes} bytes does not fit into memory")));
    }
    Ok(buffer.cast_mut().cast())
}

/// Returns whether [`check`] accepts a buffer of at most 16 bytes as it is, by comparisons alone.
#[inline(always)]
pub(crate) fn is_plain(buffer: *const c_void, align: usize) -> bool {
    let start = buffer as usize;
    // The address is not null, and not so near to the end of all addresses, where LW_IN_PLACE is.
    start.wrapping_sub(1) < IN_PLACE - 16 && start & (align - 1) == 0
}

/// Returns a buffer that [`check`] accepts as it is, or `None` when [`check`] has to examine it.
#[inline(always)]
pub(crate) fn plain(buffer: *const c_void, bytes: usize, element: ElementType) -> Option<*mut u8> {
    let start = buffer as usize;
    if bytes == 0 {
        return Some(std::ptr::without_provenance_mut(element.align()));
    }
    let sound = start != 0
        && start & (element.align() - 1) == 0
        && start.checked_add(bytes).is_some()
        && !is_in_place(buffer);
    sound.then(|| buffer.cast_mut().cast())
}

/// Returns the bytes of `count` elements, `times` over; less than half the address space, like every object in memory.
#[inline]
pub(crate) fn bytes(count: usize, element: ElementType, times: usize) -> Result<usize, Failure> {
    let bytes = count.checked_mul(element.size()).and_then(|b| b.checked_mul(times));
    bytes.filter(|&b| b <= isize::MAX as usize).ok_or_else(|| {
        Failure::new(
            LW_ERR_COUNT,
            format!("{times} x {count} elements of {} bytes do not fit into memory", element.size()),
        )
    })
}

/// Returns the sum of counts, in bytes.
pub(crate) fn total(counts: &[usize], element: ElementType) -> Result<usize, Failure> {
    let sum = counts.iter().try_fold(0usize, |sum, &n| sum.checked_add(n));
    bytes(sum.unwrap_or(usize::MAX), element, 1)
}

/// Returns the counts that C passes, one for each rank.
pub(crate) fn counts<'a>(what: &str, given: *const usize, ranks: usize) -> Result<&'a [usize], Failure> {
    if given.is_null() {
        return Err(Failure::new(LW_ERR_NULL, format!("{what} is null and {ranks} counts were expected")));
    }
    if !given.is_aligned() {
        return Err(Failure::new(LW_ERR_ALIGN, format!("{what} is not aligned for size_t")));
    }
    // SAFETY: not null and aligned, as just seen, and as long as there are ranks by the header's rule.
    Ok(unsafe { std::slice::from_raw_parts(given, ranks) })
}

/// Returns a list that C passed.
///
/// # Safety
/// `list` must be null or valid for reads of `count` elements.
pub(crate) unsafe fn list_of<'a, T>(what: &str, list: *const T, count: usize) -> Result<&'a [T], Failure> {
    if list.is_null() || !list.is_aligned() {
        return Err(Failure::new(LW_ERR_NULL, format!("{what} is null or misaligned")));
    }
    // SAFETY: not null and aligned, as just seen, and that long by the caller's word.
    Ok(unsafe { std::slice::from_raw_parts(list, count) })
}
