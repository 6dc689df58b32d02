//! A model as the text that processes share.

use super::{Model, SCHEMA};
use serde::de::{Deserialize, Deserializer, Error};
use serde_json::value::RawValue;

/// Why a text is not a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// Not the JSON of a model.
    #[error("line {line}: {message}")]
    Malformed {
        /// Line of the text, from 1.
        line: usize,
        /// Message with the expected and the found text.
        message: String,
    },
    /// Another version.
    #[error("a model of schema {found}: this lineweave reads schema {SCHEMA}; fit the profile again")]
    Schema {
        /// Found.
        found: u32,
    },
    /// A model without any level has nothing to cost a transfer with.
    #[error("a model needs the costs of at least one level, and this one has none")]
    NoLevels,
}

impl Model {
    /// The text that processes share. Numbers survive it exactly.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a model holds only finite numbers and text keys")
    }

    /// The model in a text.
    ///
    /// # Errors
    /// [`ModelError`] with the line, when it is not one.
    pub fn from_json(text: &str) -> Result<Model, ModelError> {
        let model: Model = serde_json::from_str(text)
            .map_err(|e| ModelError::Malformed { line: e.line().max(1), message: e.to_string() })?;
        if model.schema != SCHEMA {
            return Err(ModelError::Schema { found: model.schema });
        }
        if model.levels.is_empty() {
            return Err(ModelError::NoLevels);
        }
        let surfaces =
            model.levels.iter().flat_map(|l| [&l.get, &l.put]).chain([&model.copy]).chain(&model.streamed);
        let surfaces = surfaces.chain(model.levels.iter().flat_map(|l| &l.stream));
        let surfaces = surfaces.chain(&model.attach).chain(&model.pinning);
        let folds = model.folds.iter().flat_map(|f| std::iter::once(&f.private).chain(&f.slot));
        if surfaces.chain(folds).any(|s| !s.is_well_formed()) {
            let message = "a surface needs ascending sizes and taus and one cost for each pair".to_owned();
            return Err(ModelError::Malformed { line: 1, message });
        }
        Ok(model)
    }

    /// Reads a model that is part of another text of JSON, by the code that reads models alone: serde makes it anew in each crate.
    ///
    /// # Errors
    /// As [`Model::from_json`].
    pub fn from_part<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Model, D::Error> {
        Model::from_json(<&RawValue>::deserialize(deserializer)?.get()).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Values;
    use super::*;

    #[test]
    fn models_survive_their_text_exactly() {
        let model = Values { exchange_paired: 1.0 / 3.0, ..Values::default() }.model();
        assert_eq!(Model::from_json(&model.to_json()), Ok(model));
    }

    #[test]
    fn malformed_models_are_refused_with_a_line() {
        let text = Values::default().model().to_json();
        assert!(matches!(
            Model::from_json(&text[..text.len() / 2]),
            Err(ModelError::Malformed { line: 1, .. })
        ));
        let other = text.replacen("\"schema\":1", "\"schema\":9", 1);
        assert_eq!(Model::from_json(&other), Err(ModelError::Schema { found: 9 }));
    }
}
