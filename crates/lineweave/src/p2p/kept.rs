//! Messages that nobody has asked for yet, of one rank.

use super::MOST_KEPT;
use std::collections::{BTreeMap, VecDeque};

/// Unexpected messages, by tag: a rank may wait for one tag while thousands of messages with other tags come.
#[derive(Debug, Default)]
pub(super) struct Kept {
    messages: BTreeMap<u32, VecDeque<Vec<u8>>>,
    bytes: usize,
}

impl Kept {
    /// Keeps a message behind those of its tag.
    pub fn put(&mut self, tag: u32, message: Vec<u8>) {
        self.bytes += message.len();
        self.messages.entry(tag).or_default().push_back(message);
    }

    /// Takes the message of this tag that came first.
    pub fn take(&mut self, tag: u32) -> Option<Vec<u8>> {
        let of_tag = self.messages.get_mut(&tag)?;
        let message = of_tag.pop_front()?;
        if of_tag.is_empty() {
            self.messages.remove(&tag);
        }
        self.bytes -= message.len();
        Some(message)
    }

    /// The length of the message that would be taken.
    pub fn length(&self, tag: u32) -> Option<usize> {
        Some(self.messages.get(&tag)?.front()?.len())
    }

    /// The bytes of all.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns whether there is room for a message of so many bytes.
    pub fn has_room(&self, bytes: usize) -> bool {
        bytes <= MOST_KEPT - self.bytes
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn messages_of_a_tag_stay_in_order_and_room_comes_back() {
        let mut kept = Kept::default();
        for (tag, byte) in [(7, 1), (8, 2), (7, 3)] {
            kept.put(tag, vec![byte; 1000]);
        }
        assert_eq!((kept.bytes(), kept.length(7), kept.length(9)), (3000, Some(1000), None));
        assert!(kept.has_room(MOST_KEPT - 3000) && !kept.has_room(MOST_KEPT - 2999));
        let taken = [7, 7, 7, 8].map(|tag| kept.take(tag).map(|message| message[0]));
        assert_eq!(taken, [Some(1), Some(3), None, Some(2)]);
        assert!(kept.messages.is_empty() && kept.has_room(MOST_KEPT));
    }
}
