//! Files of TOML, in the form that all types are read from: values that know where they stand.
//!
//! Serde makes code for each type and each deserializer that reads it. By that of toml, which moves values and asks each table whether it is a
//! date, text of liblineweave_c.so had 5.89 MB, by this one 5.26 (`size`).

use crate::names::line_of;
use serde::de::value::{MapAccessDeserializer, SeqDeserializer, StrDeserializer};
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, Error, Expected, IntoDeserializer};
use serde::de::{MapAccess, Unexpected, Visitor};
use serde::forward_to_deserialize_any;
use toml::de::{DeString, DeTable, DeValue};
use toml::map::Iter;
use toml::Spanned;

/// Parses a text; what is wrong with it is told with its line, from 1.
pub(crate) fn parse(text: &str) -> Result<DeTable<'_>, (usize, String)> {
    let fault = |e: toml::de::Error| Fault { at: e.span().map(|s| s.start), message: e.message().to_owned() };
    DeTable::parse(text).map(Spanned::into_inner).map_err(|e| fault(e).of(text))
}

/// Reads what a text says that was parsed; what is wrong with it is told with its line, from 1, and with the key if its value is wrong.
pub(crate) fn read<T: DeserializeOwned>(text: &str, table: &DeTable<'_>) -> Result<T, (usize, String)> {
    T::deserialize(MapAccessDeserializer::new(entries(table))).map_err(|fault| fault.of(text))
}

/// Fault of a text, and the byte where it is.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
struct Fault {
    at: Option<usize>,
    message: String,
}

impl Fault {
    /// Adds the place, unless it is known more closely.
    fn at<T>(self, place: &Spanned<T>) -> Fault {
        Fault { at: self.at.or(Some(place.span().start)), ..self }
    }

    fn of(self, text: &str) -> (usize, String) {
        let at = self.at.unwrap_or(0);
        let before = text.get(..at).and_then(|before| before.lines().last()).unwrap_or_default();
        let message = self.message.replace('\n', ", ");
        let message = match before.rsplit(['{', ',']).next().and_then(|before| before.split_once('=')) {
            Some((key, "" | " ")) => format!("`{}`: {message}", key.trim()),
            _ => message,
        };
        (line_of(text, at), message)
    }
}

impl Error for Fault {
    fn custom<T: std::fmt::Display>(message: T) -> Fault {
        Fault { at: None, message: message.to_string() }
    }
}

/// Names of fields or variants.
type Names = &'static [&'static str];

/// A value.
struct Node<'a>(&'a Spanned<DeValue<'a>>);

impl<'a> Node<'a> {
    /// Returns the value in serde's words.
    fn plain(&self) -> Unexpected<'a> {
        match self.0.get_ref() {
            DeValue::String(text) => Unexpected::Str(text),
            DeValue::Integer(n) => i64::from_str_radix(n.as_str(), n.radix())
                .map_or(Unexpected::Other("a whole number beyond 64 bits"), Unexpected::Signed),
            DeValue::Float(x) => x.as_str().parse().map_or(Unexpected::Other("no number"), Unexpected::Float),
            DeValue::Boolean(b) => Unexpected::Bool(*b),
            DeValue::Datetime(_) => Unexpected::Other("a date or time"),
            DeValue::Array(_) => Unexpected::Seq,
            DeValue::Table(_) => Unexpected::Map,
        }
    }

    fn unlike(&self, expected: &dyn Expected) -> Fault {
        Fault::invalid_type(self.plain(), expected).at(self.0)
    }
}

impl<'de> Deserializer<'de> for Node<'_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match (self.0.get_ref(), self.plain()) {
            (_, Unexpected::Str(text)) => visitor.visit_str(text),
            (_, Unexpected::Signed(n)) => visitor.visit_i64(n),
            (_, Unexpected::Float(x)) => visitor.visit_f64(x),
            (_, Unexpected::Bool(b)) => visitor.visit_bool(b),
            (DeValue::Array(list), _) => visitor.visit_seq(SeqDeserializer::new(list.iter().map(Node))),
            (DeValue::Table(table), _) => visitor.visit_map(entries(table)),
            _ => Err(self.unlike(&visitor)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(self, _: &str, _: Names, visitor: V) -> Result<V::Value, Fault> {
        match self.0.get_ref() {
            DeValue::Table(table) => visitor.visit_map(entries(table)).map_err(|fault| fault.at(self.0)),
            _ => Err(self.unlike(&visitor)),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(self, _: &str, _: Names, visitor: V) -> Result<V::Value, Fault> {
        match self.0.get_ref() {
            DeValue::String(text) => visitor.visit_enum(StrDeserializer::new(text)),
            _ => Err(self.unlike(&visitor)),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct newtype_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

impl IntoDeserializer<'_, Fault> for Node<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// Entries of a table that were not read yet, and the last that was begun.
struct Entries<'a> {
    rest: Iter<'a, Spanned<DeString<'a>>, Spanned<DeValue<'a>>>,
    value: Option<&'a Spanned<DeValue<'a>>>,
}

fn entries<'a>(table: &'a DeTable<'a>) -> Entries<'a> {
    Entries { rest: table.iter(), value: None }
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        let Some((key, value)) = self.rest.next() else { return Ok(None) };
        self.value = Some(value);
        seed.deserialize(StrDeserializer::new(key.get_ref())).map(Some).map_err(|fault: Fault| fault.at(key))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let value = self.value.take().ok_or_else(|| Fault::custom("a value without its key"))?;
        seed.deserialize(Node(value)).map_err(|fault| fault.at(value))
    }
}
