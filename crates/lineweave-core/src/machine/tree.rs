//! A TOML document with the line of every key and value, so that errors can name it.

use super::MachineError;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;
use toml::Spanned;

/// A value of a TOML document.
#[derive(Clone, Debug)]
pub(super) enum Node {
    Text(String),
    Number(f64),
    Bool(bool),
    List(Vec<Spanned<Node>>),
    Table(Vec<(Spanned<String>, Spanned<Node>)>),
}

impl Node {
    /// Returns a description of the node, for messages.
    pub(super) fn describe(&self) -> String {
        match self {
            Node::Text(text) => {
                let shown: String = text.chars().take(40).collect();
                format!("the string {shown:?}")
            }
            Node::Number(n) => n.to_string(),
            Node::Bool(b) => b.to_string(),
            Node::List(_) => "an array".to_owned(),
            Node::Table(_) => "a table".to_owned(),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, number, truth value, array or table (dates have no meaning here)")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = seq.next_element()? {
            list.push(item);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut table = Vec::new();
        while let Some(entry) = map.next_entry()? {
            table.push(entry);
        }
        Ok(Node::Table(table))
    }
}

/// A table being read: its place in words, its line, and the text for counting lines.
#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    pub(super) name: &'a str,
    pub(super) line: usize,
    entries: &'a [(Spanned<String>, Spanned<Node>)],
    text: &'a str,
}

/// A key's value and line.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a> {
    pub(super) key: &'a str,
    pub(super) line: usize,
    pub(super) node: &'a Node,
    text: &'a str,
}

/// Reads a document; its root is a table.
pub(super) fn document(text: &str) -> Result<Node, MachineError> {
    toml::from_str(text).map_err(|e| MachineError::Syntax {
        line: e.span().map_or(1, |span| line_of(text, span.start)),
        message: e.message().to_owned(),
    })
}

fn line_of(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    // A place just past a final newline belongs to the last line.
    let before = &text.as_bytes()[..at];
    let line = 1 + before.iter().filter(|&&b| b == b'\n').count();
    line.min(text.lines().count().max(1))
}

impl<'a> Table<'a> {
    /// The table at the root of a document.
    pub(super) fn root(node: &'a Node, text: &'a str) -> Result<Table<'a>, MachineError> {
        Entry { key: "the file", line: 1, node, text }.table("the file")
    }

    /// The entry of a key, if there is one.
    pub(super) fn find(&self, key: &str) -> Option<Entry<'a>> {
        let (key, node) = self.entries.iter().find(|(k, _)| k.get_ref() == key)?;
        let line = line_of(self.text, key.span().start);
        Some(Entry { key: key.get_ref(), line, node: node.get_ref(), text: self.text })
    }

    /// The entry of a key that must be there.
    pub(super) fn get(&self, key: &str) -> Result<Entry<'a>, MachineError> {
        self.find(key).ok_or_else(|| MachineError::Missing {
            line: self.line,
            table: self.name.to_owned(),
            key: key.to_owned(),
        })
    }

    /// The table of a key that must be there.
    pub(super) fn table(&self, key: &'a str) -> Result<Table<'a>, MachineError> {
        self.get(key)?.table(key)
    }

    /// Checks that there are no keys but these.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), MachineError> {
        match self.entries.iter().find(|(key, _)| !known.contains(&key.get_ref().as_str())) {
            None => Ok(()),
            Some((key, _)) => Err(MachineError::UnknownKey {
                line: line_of(self.text, key.span().start),
                table: self.name.to_owned(),
                key: key.get_ref().clone(),
                expected: known.join(", "),
            }),
        }
    }
}

impl<'a> Entry<'a> {
    /// The error that this entry is not what was expected.
    pub(super) fn bad(&self, expected: impl Into<String>) -> MachineError {
        MachineError::BadValue {
            line: self.line,
            key: self.key.to_owned(),
            expected: expected.into(),
            found: self.node.describe(),
        }
    }

    /// This entry as a table.
    pub(super) fn table(&self, name: &'a str) -> Result<Table<'a>, MachineError> {
        match self.node {
            Node::Table(entries) => Ok(Table { name, line: self.line, entries, text: self.text }),
            Node::Text(_) | Node::Number(_) | Node::Bool(_) | Node::List(_) => Err(self.bad("a table")),
        }
    }

    /// This entry as a string that is not blank.
    pub(super) fn text(&self) -> Result<&'a str, MachineError> {
        match self.node {
            Node::Text(text) if !text.trim().is_empty() => Ok(text),
            Node::Text(_) | Node::Number(_) | Node::Bool(_) | Node::List(_) | Node::Table(_) => {
                Err(self.bad("a string that is not blank"))
            }
        }
    }

    /// This entry as a finite number of at least 0, or above 0 where `zero` is not allowed.
    pub(super) fn number(&self, zero: bool) -> Result<f64, MachineError> {
        match self.node {
            Node::Number(n) if n.is_finite() && (*n > 0.0 || zero && *n == 0.0) => Ok(*n),
            Node::Text(_) | Node::Number(_) | Node::Bool(_) | Node::List(_) | Node::Table(_) => {
                Err(self.bad(if zero { "a number of at least 0" } else { "a number above 0" }))
            }
        }
    }

    /// The items of this entry, which is an array.
    pub(super) fn items(&self) -> Result<Vec<Entry<'a>>, MachineError> {
        match self.node {
            Node::List(list) => Ok(list
                .iter()
                .map(|item| Entry {
                    key: self.key,
                    line: line_of(self.text, item.span().start),
                    node: item.get_ref(),
                    text: self.text,
                })
                .collect()),
            Node::Text(_) | Node::Number(_) | Node::Bool(_) | Node::Table(_) => Err(self.bad("an array")),
        }
    }
}
