//! Copies: plain, and with non-temporal stores that leave the caches alone.

use super::level::Level;
use lineweave_core::model::LEAST_STREAMED;
#[cfg(not(target_arch = "x86_64"))]
use std::ptr;

/// Copies `len` bytes from the first place to the second.
///
/// # Safety
///
/// - The places are valid for `len` bytes and do not overlap.
/// - Nothing else writes the source, or touches the destination, meanwhile; between ranks, flags see to that.
pub type CopyFn = unsafe fn(src: *const u8, dst: *mut u8, len: usize);

/// The longest copy done in line, without a call: one line.
const INLINE: usize = 64;

/// Choice of a copy by its length. The threshold comes from the machine's profile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CopyPolicy {
    /// Copies of at least this many bytes use non-temporal stores. They win where the destination would not be read
    /// from a cache anyway, and lose badly where it would.
    pub nt_from: usize,
}

impl CopyPolicy {
    /// Never use non-temporal stores: right until a profile says otherwise.
    pub const PLAIN: CopyPolicy = CopyPolicy { nt_from: usize::MAX };
}

/// A policy resolved for this CPU: what the engine calls.
#[derive(Clone, Copy, Debug)]
pub struct Copier {
    nt_from: usize,
    wide: CopyFn,
    nt: CopyFn,
}

impl Copier {
    /// For the pieces of a call, half of whose buffers' bytes is `message` (of a copy that is its length): what makes non-temporal stores
    /// win is that the whole does not fit the caches, not how long one piece is.
    #[inline(always)]
    pub fn for_message(self, message: usize) -> Copier {
        let nt_from = if message >= self.nt_from { self.nt_from.min(LEAST_STREAMED) } else { self.nt_from };
        Copier { nt_from, ..self }
    }

    /// Returns whether a piece of this length goes past the caches into private memory.
    #[inline(always)]
    pub fn streams(&self, len: usize) -> bool {
        len >= self.nt_from
    }

    /// Copies `len` bytes past the caches, whatever the policy.
    ///
    /// # Safety
    ///
    /// See [`CopyFn`].
    pub unsafe fn stream(&self, src: *const u8, dst: *mut u8, len: usize) {
        // SAFETY: the caller's.
        unsafe { (self.nt)(src, dst, len) }
    }

    /// The functions of a policy for this CPU.
    pub fn new(policy: CopyPolicy) -> Copier {
        let level = Level::best();
        Copier { nt_from: policy.nt_from, wide: copy_wide_at(level), nt: copy_nt_at(level) }
    }

    /// Copies `len` bytes through the caches, whatever the policy.
    ///
    /// # Safety
    ///
    /// See [`CopyFn`].
    #[inline(always)]
    pub unsafe fn copy_plain(&self, src: *const u8, dst: *mut u8, len: usize) {
        // SAFETY: the caller's, and the length was checked.
        unsafe {
            if len <= INLINE && len % 8 == 0 {
                copy_words(src, dst, len);
            } else {
                (self.wide)(src, dst, len);
            }
        }
    }

    /// Copies `len` bytes in the way the policy says.
    ///
    /// # Safety
    ///
    /// See [`CopyFn`].
    #[inline(always)]
    pub unsafe fn copy(&self, src: *const u8, dst: *mut u8, len: usize) {
        // SAFETY: the caller's.
        unsafe {
            if len < self.nt_from {
                self.copy_plain(src, dst, len);
            } else {
                (self.nt)(src, dst, len);
            }
        }
    }
}

impl Default for CopyPolicy {
    fn default() -> Self {
        CopyPolicy::PLAIN
    }
}

/// Plain copy: whole words up to a line in line, anything else in vectors.
///
/// # Safety
///
/// See [`CopyFn`].
#[inline(always)]
pub unsafe fn copy(src: *const u8, dst: *mut u8, len: usize) {
    if len <= INLINE && len % 8 == 0 {
        // SAFETY: the caller's, and the length was checked.
        unsafe { copy_words(src, dst, len) }
    } else {
        // SAFETY: the caller's.
        unsafe { copy_wide(src, dst, len) }
    }
}

/// Copy in vectors through the caches, with the destination on a vector's boundary.
///
/// The C library's `memcpy` was tried first and fell behind in places.
///
/// # Safety
///
/// See [`CopyFn`].
#[inline]
pub unsafe fn copy_wide(src: *const u8, dst: *mut u8, len: usize) {
    // SAFETY: the caller's.
    unsafe { copy_wide_at(Level::best())(src, dst, len) }
}

/// The wide copy compiled for a level that this CPU supports.
pub(super) fn copy_wide_at(level: Level) -> CopyFn {
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::Baseline => x86::copy_wide_sse2,
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => x86::copy_wide_avx2,
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => x86::copy_wide_avx512,
        #[cfg(not(target_arch = "x86_64"))]
        Level::Baseline => copy_library,
    }
}

/// The C library's copy, where no other was found to be faster.
///
/// # Safety
///
/// See [`CopyFn`].
#[cfg(not(target_arch = "x86_64"))]
unsafe fn copy_library(src: *const u8, dst: *mut u8, len: usize) {
    // SAFETY: the caller's.
    unsafe { ptr::copy_nonoverlapping(src, dst, len) }
}

/// At most two moves each way: the first and the last bytes, which may meet in the middle.
///
/// # Safety
///
/// See [`CopyFn`]; and `len` is a multiple of 8 up to [`INLINE`].
#[inline(always)]
unsafe fn copy_words(src: *const u8, dst: *mut u8, len: usize) {
    // SAFETY: the caller's; each arm's width is at most `len` and at least half of it.
    unsafe {
        match len {
            33.. => copy_ends::<32>(src, dst, len),
            16.. => copy_ends::<16>(src, dst, len),
            8.. => dst.cast::<[u8; 8]>().write(src.cast::<[u8; 8]>().read()),
            _ => {}
        }
    }
}

/// # Safety
///
/// See [`CopyFn`]; and `N <= len <= 2 * N`.
#[inline(always)]
unsafe fn copy_ends<const N: usize>(src: *const u8, dst: *mut u8, len: usize) {
    // SAFETY: both runs of N bytes lie within the `len` bytes that the caller vouches for; byte arrays need no alignment.
    unsafe {
        let first = src.cast::<[u8; N]>().read();
        let last = src.add(len - N).cast::<[u8; N]>().read();
        dst.cast::<[u8; N]>().write(first);
        dst.add(len - N).cast::<[u8; N]>().write(last);
    }
}

/// Copy with non-temporal stores, ordered before whatever the caller stores next. Plain where the architecture has none.
///
/// # Safety
///
/// See [`CopyFn`].
pub unsafe fn copy_nt(src: *const u8, dst: *mut u8, len: usize) {
    // SAFETY: the caller's.
    unsafe { copy_nt_at(Level::best())(src, dst, len) }
}

/// The non-temporal copy compiled for a level that this CPU supports.
pub(super) fn copy_nt_at(level: Level) -> CopyFn {
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::Baseline => x86::copy_nt_sse2,
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => x86::copy_nt_avx2,
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => x86::copy_nt_avx512,
        // AArch64 has only a hint (`stnp`), which current cores ignore or treat as a plain store.
        #[cfg(not(target_arch = "x86_64"))]
        Level::Baseline => copy,
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m128i, __m256i, __m512i, _mm256_loadu_si256, _mm256_storeu_si256, _mm256_stream_si256,
        _mm512_loadu_si512, _mm512_storeu_si512, _mm512_stream_si512, _mm_loadu_si128, _mm_sfence,
        _mm_storeu_si128, _mm_stream_si128,
    };
    use std::ptr;

    /// The write-combining buffer's size: a line streamed in one go leaves as one transfer.
    const LINE: usize = 64;

    macro_rules! copy_nt {
        ($name:ident, $features:literal, $vector:ty, $load:ident, $stream:ident) => {
            /// # Safety
            ///
            /// The conditions of [`CopyFn`](super::CopyFn), on a CPU that has the features.
            #[target_feature(enable = $features)]
            pub(super) unsafe fn $name(src: *const u8, dst: *mut u8, len: usize) {
                // Plain up to the first whole line of the destination, and after the last.
                let head = dst.align_offset(LINE).min(len);
                let body = (len - head) / LINE * LINE;
                // SAFETY: head + body <= len, which the caller vouches for; `dst + head` is on a line, hence aligned
                // for the vector, and i + LINE <= body. The fence orders the streamed lines before the stores that
                // follow, as a plain store would be: without it a flag could overtake its data.
                unsafe {
                    ptr::copy_nonoverlapping(src, dst, head);
                    let (from, to) = (src.add(head), dst.add(head));
                    for i in (0..body).step_by(LINE) {
                        for j in (0..LINE).step_by(size_of::<$vector>()) {
                            let vector = $load(from.add(i + j).cast());
                            $stream(to.add(i + j).cast::<$vector>(), vector);
                        }
                    }
                    ptr::copy_nonoverlapping(from.add(body), to.add(body), len - head - body);
                    _mm_sfence();
                }
            }
        };
    }

    copy_nt!(copy_nt_sse2, "sse2", __m128i, _mm_loadu_si128, _mm_stream_si128);
    copy_nt!(copy_nt_avx2, "avx2", __m256i, _mm256_loadu_si256, _mm256_stream_si256);
    copy_nt!(copy_nt_avx512, "avx512f", __m512i, _mm512_loadu_si512, _mm512_stream_si512);

    macro_rules! copy_wide {
        ($name:ident, $features:literal, $vector:ty, $load:ident, $store:ident) => {
            /// # Safety
            ///
            /// The conditions of [`CopyFn`](super::CopyFn), on a CPU that has the features.
            #[target_feature(enable = $features)]
            pub(super) unsafe fn $name(src: *const u8, dst: *mut u8, len: usize) {
                const V: usize = size_of::<$vector>();
                if len < V {
                    // SAFETY: the caller's.
                    return unsafe { ptr::copy_nonoverlapping(src, dst, len) };
                }
                // SAFETY: every access lies within `len` bytes, at least one vector: the first and the last are
                // those at either end, and may overlap others with equal bytes, since source and destination
                // are disjoint.
                unsafe {
                    // Written out: a closure would not be compiled for these features.
                    $store(dst.cast::<$vector>(), $load(src.cast()));
                    let mut at = V - dst as usize % V;
                    while at + 4 * V <= len {
                        let (from, to) = (src.add(at).cast::<$vector>(), dst.add(at).cast::<$vector>());
                        let (v0, v1) = ($load(from.cast()), $load(from.add(1).cast()));
                        let (v2, v3) = ($load(from.add(2).cast()), $load(from.add(3).cast()));
                        $store(to, v0);
                        $store(to.add(1), v1);
                        $store(to.add(2), v2);
                        $store(to.add(3), v3);
                        at += 4 * V;
                    }
                    while at + V <= len {
                        $store(dst.add(at).cast::<$vector>(), $load(src.add(at).cast()));
                        at += V;
                    }
                    $store(dst.add(len - V).cast::<$vector>(), $load(src.add(len - V).cast()));
                }
            }
        };
    }

    copy_wide!(copy_wide_sse2, "sse2", __m128i, _mm_loadu_si128, _mm_storeu_si128);
    copy_wide!(copy_wide_avx2, "avx2", __m256i, _mm256_loadu_si256, _mm256_storeu_si256);
    copy_wide!(copy_wide_avx512, "avx512f", __m512i, _mm512_loadu_si512, _mm512_storeu_si512);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Copy within a frame of sentinels, at every misalignment of either side up to a line.
    fn check(copy: CopyFn, len: usize, from: usize, to: usize) {
        let source: Vec<u8> = (0..from + len).map(|i| (i * 31 + 7) as u8).collect();
        let mut frame = vec![0xa5u8; to + len + 64];
        // SAFETY: both ranges lie within their vectors, which are distinct.
        unsafe { copy(source.as_ptr().add(from), frame.as_mut_ptr().add(to), len) };
        assert_eq!(frame[to..to + len], source[from..], "{len} bytes from +{from} to +{to}");
        assert!(frame[..to].iter().chain(&frame[to + len..]).all(|&b| b == 0xa5), "{len} bytes spilled");
    }

    #[test]
    fn copies_move_exactly_their_bytes() {
        let copies = Level::available()
            .into_iter()
            .flat_map(|l| [copy_nt_at(l), copy_wide_at(l)])
            .chain([copy as CopyFn, copy_nt as CopyFn]);
        for copy in copies {
            for len in (0..=200).chain([4096, 10_001]) {
                for (from, to) in [(0, 0), (1, 0), (0, 1), (7, 16), (16, 33), (63, 63)] {
                    check(copy, len, from, to);
                }
            }
        }
    }

    #[test]
    fn pieces_of_a_long_message_stream_and_those_of_a_short_one_do_not() {
        let copier = Copier::new(CopyPolicy { nt_from: 1 << 20 });
        let (short, long) = (copier.for_message((1 << 20) - 1), copier.for_message(1 << 20));
        assert!(!short.streams(LEAST_STREAMED) && short.streams(1 << 20));
        assert!(long.streams(LEAST_STREAMED) && !long.streams(LEAST_STREAMED - 1));
        assert!(!Copier::new(CopyPolicy::PLAIN).for_message(1 << 40).streams(1 << 40));
    }
}
