//! The certainty of parameters: the known ones with intervals, and the unknown ones.

use super::subject::Subject;
use super::Section;
use crate::commands::fit::parameters::parameters as list;

/// Returns the section about parameters that the profile or description cannot tell.
pub fn unidentified(subject: &Subject) -> Section {
    let mut section = Section::new("unidentified", "What is not identifiable");
    if subject.model().unidentified.is_empty() {
        return section.missing("Nothing is missing: every parameter of the model was found.");
    }
    section.text.push("What stands in for these is marked inferred or assumed below.".to_owned());
    let rows = subject.model().unidentified.iter().map(|u| vec![u.what.clone(), u.because.clone()]);
    section.tables.push((vec!["parameter", "why not"], rows.collect()));
    section
}

/// Returns the section about the parameters for people, with intervals.
pub fn parameters(subject: &Subject) -> Section {
    let mut section = Section::new("parameters", "Parameters");
    let rows = list(subject.model()).into_iter().filter(|p| p.is_typical()).map(|p| {
        let known = p.provenance.to_string();
        vec![p.parameter.clone(), p.place(), p.value(), p.interval(), p.unit(), known, p.about.to_owned()]
    });
    let head = vec!["parameter", "where", "value", "95 % interval", "unit", "known by", "meaning"];
    section.tables.push((head, rows.collect()));
    section
}
