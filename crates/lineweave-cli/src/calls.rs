//! The algorithm that a call runs: the one place in which commands choose, so that they agree.

use crate::question::team;
use lineweave::settings::Settings;
use lineweave::tuning::{Because, Chosen, Tuning};
use lineweave_core::collective::Association;
use lineweave_core::select::{predict, select, Choice, Question, SelectError};
use lineweave_core::units::Nanos;

/// The algorithm that a call runs, and its time.
#[derive(Clone, Debug)]
pub struct Call {
    pub chosen: Chosen,
    pub predicted: Nanos,
    /// Its measured time, where it was measured at this very size.
    pub measured_ns: Option<f64>,
}

/// Returns the question that a call poses: processes reach each other's buffers through the kernel, where it lets them, and results
/// are reproducible where that is set.
pub fn posed(asked: Question, tuning: &Tuning, settings: &Settings) -> Question {
    let moves = asked.collective.moves_data();
    let attach = !asked.direct && moves && tuning.attaches(settings.attach, asked.bytes);
    let fixed = settings.reproducible && asked.collective.folds();
    Question {
        direct: asked.direct || attach,
        attach,
        association: Association::wanted(true, fixed),
        ..asked
    }
}

/// Returns the kind of team that a question is about.
pub fn team_of(question: &Question) -> &'static str {
    team(question.direct && !question.attach)
}

/// Returns the algorithm that a call runs. `choice` is the model's selection, where it is known: selecting takes long among many
/// ranks.
pub fn call(tuning: &Tuning, question: &Question, choice: Option<&Choice>) -> Result<Call, SelectError> {
    let team = team_of(question);
    // A selection has the predicted time, which would be played again else.
    let selected = match (choice, tuning.predicts(question, team)) {
        (None, true) => Some(select(&tuning.model, question)?),
        _ => None,
    };
    let choice = choice.or(selected.as_ref());
    let chosen = match choice.filter(|_| tuning.predicts(question, team)) {
        Some(choice) => Chosen::predicted(question.collective, choice)?,
        None => tuning.choose(question, team)?,
    };
    let predicted = match (chosen.because, choice) {
        (Because::Predicted, Some(choice)) => choice.predicted,
        _ => {
            predict(&tuning.model, question, chosen.algorithm.name, &chosen.params, chosen.window)?.predicted
        }
    };
    let found = tuning.choices.as_ref().and_then(|choices| {
        choices.lookup(question.collective, question.shape.ranks(), question.bytes, team)
    });
    let same = |f: &lineweave_core::select::Found| {
        f.exact && f.tuned.algorithm == chosen.algorithm.name && f.tuned.params == chosen.params
    };
    let measured_ns = found.filter(same).map(|f| f.tuned.measured_ns);
    Ok(Call { chosen, predicted, measured_ns })
}
