//! Messages from one rank to another. Calls that were started are carried on while one waits, but need not be over: the
//! other rank may want the message before it makes them.

use crate::communicator::{Communicator, Message};
use crate::error::Error;
use crate::kernel::Element;
use crate::p2p::{Exchange, RecvOp, SendOp};

impl Communicator {
    /// Sends `message` to `rank` under a tag. A short one is on its way when this returns; a longer one was received.
    ///
    /// Messages from one rank to another with one tag are received in the order in which they were sent. A rank may
    /// send to itself what fits the ring between two ranks, some 32 KiB, and receives it later.
    ///
    /// # Errors
    /// [`Error::NoRank`], [`Error::Memory`] when there is no room for the ring between these two ranks;
    /// [`Error::PeerLost`] and [`Error::Timeout`] when the message is not taken.
    ///
    /// ```
    /// let got = lineweave::team::threads(2, |mut comm| {
    ///     let mut got = [0u64; 3];
    ///     match comm.rank() {
    ///         0 => comm.send(&[1u64, 2, 3], 1, 7)?,
    ///         _ => assert_eq!(comm.recv(&mut got, 0, 7)?, 3),
    ///     }
    ///     Ok(got)
    /// })?;
    /// assert_eq!(got[1], [1, 2, 3]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    pub fn send<T: Element>(&mut self, message: &[T], rank: usize, tag: u32) -> Result<(), Error> {
        // SAFETY: the slice is borrowed for the call.
        unsafe { self.send_bytes(message.as_ptr().cast(), size_of_val(message), rank, tag) }
    }

    /// Receives the next message of `rank` with this tag, and returns how many elements it has. There is no receiving
    /// from any rank or with any tag.
    ///
    /// # Errors
    /// [`Error::NoRank`]; [`Error::Truncated`] when the message is longer than the buffer, and [`Error::Unexpected`] when too
    /// many others came first, after both of which the communicator can be used on; [`Error::Memory`],
    /// [`Error::PeerLost`], [`Error::Timeout`].
    ///
    /// ```
    /// use lineweave::Error;
    /// let ends = lineweave::team::threads(2, |mut comm| {
    ///     if comm.rank() == 0 {
    ///         comm.send(&[1.5f32, 2.5], 1, 0)?;
    ///         comm.send(&[0u8; 100], 1, 1)?;
    ///         return Ok(None);
    ///     }
    ///     let mut numbers = [0f32; 10]; // Room for more than comes.
    ///     assert_eq!(comm.recv(&mut numbers, 0, 0)?, 2);
    ///     Ok(comm.recv(&mut [0u8; 10], 0, 1).err())
    /// })?;
    /// assert!(matches!(ends[1], Some(Error::Truncated { sent: 100, room: 10, .. })));
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    pub fn recv<T: Element>(&mut self, buffer: &mut [T], rank: usize, tag: u32) -> Result<usize, Error> {
        // SAFETY: the slice is exclusively borrowed for the call.
        let bytes = unsafe { self.recv_bytes(buffer.as_mut_ptr().cast(), size_of_val(buffer), rank, tag) }?;
        Ok(bytes / size_of::<T>())
    }

    /// Sends one message and receives another at the same time, so that ranks can exchange messages of any length, or
    /// pass them round a ring. Returns the elements received.
    ///
    /// # Errors
    /// The errors of [`Communicator::send`] and [`Communicator::recv`].
    ///
    /// ```
    /// let got = lineweave::team::threads(3, |mut comm| {
    ///     let (rank, ranks) = (comm.rank(), comm.ranks());
    ///     let mut got = [0u64];
    ///     comm.sendrecv(&[rank as u64], (rank + 1) % ranks, 0, &mut got, (rank + ranks - 1) % ranks, 0)?;
    ///     Ok(got[0])
    /// })?;
    /// assert_eq!(got, [2, 0, 1]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    pub fn sendrecv<T: Element, U: Element>(
        &mut self,
        message: &[T],
        to: usize,
        send_tag: u32,
        buffer: &mut [U],
        from: usize,
        recv_tag: u32,
    ) -> Result<usize, Error> {
        let (start, bytes) = (message.as_ptr().cast(), size_of_val(message));
        let (room_start, room) = (buffer.as_mut_ptr().cast(), size_of_val(buffer));
        // SAFETY: both slices are borrowed for the call.
        let got =
            unsafe { self.sendrecv_bytes((start, bytes, to, send_tag), (room_start, room, from, recv_tag)) }?;
        Ok(got / size_of::<U>())
    }

    fn known(&self, what: &'static str, rank: usize) -> Result<(), Error> {
        match rank < self.ranks() {
            true => Ok(()),
            false => Err(Error::NoRank { what, rank, ranks: self.ranks() }),
        }
    }

    /// Returns whether `rank` can read this one's memory: it is a thread of the same process.
    fn reaches(&self, rank: usize) -> bool {
        self.segment().is_here(rank) && rank != self.rank()
    }

    fn outgoing(&self, to: usize, tag: u32, start: *const u8, bytes: usize) -> Result<SendOp, Error> {
        self.known("send", to)?;
        let cell = self.segment().geometry().mail_cell();
        Ok(SendOp::new(to, tag, start, bytes, self.reaches(to), cell))
    }

    fn incoming(&self, from: usize, tag: u32, start: *mut u8, room: usize) -> Result<RecvOp, Error> {
        self.known("recv", from)?;
        Ok(RecvOp::new(from, tag, start, room))
    }

    /// [`Communicator::send`] of raw bytes.
    ///
    /// # Errors
    /// The errors of [`Communicator::send`].
    ///
    /// # Safety
    /// `start` must be valid for reads of `bytes` bytes, and nobody else may write them during the call.
    pub unsafe fn send_bytes(
        &mut self,
        start: *const u8,
        bytes: usize,
        rank: usize,
        tag: u32,
    ) -> Result<(), Error> {
        let out = self.outgoing(rank, tag, start, bytes)?;
        if self.goes_beside() {
            self.expect_room(&out)?;
            // SAFETY: the caller's, and it is over when this returns.
            let message = unsafe { self.start_sending(out, rank, tag) }?;
            return self.wait_message(&message).map(|_| ());
        }
        // SAFETY: the caller's, and it is over when this returns.
        let exchange = unsafe { Exchange::new(Some(out), None) };
        self.engine().exchange("send", exchange).map(|_| ())
    }

    /// [`Communicator::recv`] of raw bytes: at most `room` of them; returns how many came.
    ///
    /// # Errors
    /// The errors of [`Communicator::recv`].
    ///
    /// # Safety
    /// `start` must be valid for writes of `room` bytes, and nobody else may use them during the call.
    pub unsafe fn recv_bytes(
        &mut self,
        start: *mut u8,
        room: usize,
        rank: usize,
        tag: u32,
    ) -> Result<usize, Error> {
        let want = self.incoming(rank, tag, start, room)?;
        if self.goes_beside() {
            // SAFETY: the caller's, and it is over when this returns.
            let message = unsafe { self.start_receiving(want, rank, tag) }?;
            return self.wait_message(&message);
        }
        // SAFETY: the caller's, and it is over when this returns.
        let exchange = unsafe { Exchange::new(None, Some(want)) };
        self.engine().exchange("recv", exchange)
    }

    /// [`Communicator::sendrecv`] of raw bytes: start, length, rank and tag of either message.
    ///
    /// # Errors
    /// The errors of [`Communicator::sendrecv`].
    ///
    /// # Safety
    /// The conditions of [`Communicator::send_bytes`] and [`Communicator::recv_bytes`], and the buffers may not overlap.
    pub unsafe fn sendrecv_bytes(
        &mut self,
        (start, bytes, to, send_tag): (*const u8, usize, usize, u32),
        (room_start, room, from, recv_tag): (*mut u8, usize, usize, u32),
    ) -> Result<usize, Error> {
        let out = self.outgoing(to, send_tag, start, bytes)?;
        let want = self.incoming(from, recv_tag, room_start, room)?;
        if self.goes_beside() {
            if from != self.rank() {
                self.expect_room(&out)?;
            }
            // SAFETY: the caller's, and both are over when this returns, in whatever way.
            let sent = unsafe { self.start_sending(out, to, send_tag) }?;
            // SAFETY: as above.
            let received = unsafe { self.start_receiving(want, from, recv_tag) };
            let received = received.and_then(|message| self.wait_message(&message));
            self.wait_message(&sent)?;
            return received;
        }
        // SAFETY: the caller's, and it is over when this returns.
        let exchange = unsafe { Exchange::new(Some(out), Some(want)) };
        self.engine().exchange("sendrecv", exchange)
    }

    /// Starts [`Communicator::send_bytes`]: it is carried on whenever this rank waits or tests, in whatever call, and by the
    /// helper thread if there is one. Messages to one rank go out in the order in which they were started. When the communicator is
    /// dropped, what is not on its way by then is lost.
    ///
    /// # Errors
    /// [`Error::NoRank`]; how the communicator failed before.
    ///
    /// # Safety
    /// The conditions of [`Communicator::send_bytes`] hold until [`Communicator::test_message`] or [`Communicator::wait_message`] says that it is
    /// over, or the communicator is dropped.
    ///
    /// ```
    /// let got = lineweave::team::threads(2, |mut comm| {
    ///     let (mine, mut other) = (vec![comm.rank() as u64; 100_000], vec![0u64; 100_000]);
    ///     let (bytes, peer) = (size_of_val(&mine[..]), 1 - comm.rank());
    ///     // SAFETY: both live until both messages are over.
    ///     let (sent, mut got) = unsafe {
    ///         let sent = comm.isend_bytes(mine.as_ptr().cast(), bytes, peer, 0)?;
    ///         (sent, comm.irecv_bytes(other.as_mut_ptr().cast(), bytes, peer, 0)?)
    ///     };
    ///     while comm.test_message(&mut got)?.is_none() { /* something else */ }
    ///     comm.wait_message(&sent)?;
    ///     Ok(other[99_999])
    /// })?;
    /// assert_eq!(got, [1, 0]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    pub unsafe fn isend_bytes(
        &mut self,
        start: *const u8,
        bytes: usize,
        rank: usize,
        tag: u32,
    ) -> Result<Message, Error> {
        let out = self.outgoing(rank, tag, start, bytes)?;
        // SAFETY: the caller's.
        unsafe { self.start_sending(out, rank, tag) }
    }

    /// Starts [`Communicator::recv_bytes`]. What comes from a rank goes to the first receive that was started and asks for its tag.
    /// [`Communicator::isend_bytes`] has an example.
    ///
    /// # Errors
    /// The errors of [`Communicator::isend_bytes`].
    ///
    /// # Safety
    /// The conditions of [`Communicator::recv_bytes`] hold for as long as [`Communicator::isend_bytes`] says.
    pub unsafe fn irecv_bytes(
        &mut self,
        start: *mut u8,
        room: usize,
        rank: usize,
        tag: u32,
    ) -> Result<Message, Error> {
        let want = self.incoming(rank, tag, start, room)?;
        // SAFETY: the caller's.
        unsafe { self.start_receiving(want, rank, tag) }
    }
}
