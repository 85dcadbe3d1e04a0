//! Paths of a description: their texts and variables.

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use crate::refs::Unusable;

/// What is encoded of a path as the description writes it. A `%` begins what is encoded already.
const NO_PATH: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'`').add(b'\\').add(b'^').add(b'|');

/// A part of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// This text, encoded.
    Text(String),
    /// The parameter at this place in the list.
    Parameter(usize),
}

/// The names of the variables in a path of the description.
pub(crate) fn variables(path: &str) -> Result<Vec<String>, Unusable> {
    let mut names: Vec<String> = Vec::new();
    pieces(path, |piece| {
        if let Err(name) = piece
            && !names.iter().any(|known| known == name)
        {
            names.push(name.to_owned());
        }
    })?;
    Ok(names)
}

/// The parts of a path: that of the base, then that of the description.
pub(crate) fn template(
    base: &str,
    path: &str,
    parameters: &BTreeMap<&str, usize>,
) -> Result<Vec<Part>, Unusable> {
    let mut parts = vec![Part::Text(base.trim_end_matches('/').to_owned())];
    let mut unknown = false;
    pieces(path, |piece| match piece {
        Ok(text) => parts.push(Part::Text(utf8_percent_encode(text, NO_PATH).to_string())),
        Err(name) => match parameters.get(name) {
            Some(at) => parts.push(Part::Parameter(*at)),
            None => unknown = true,
        },
    })?;
    if unknown || path.contains(['?', '#']) {
        return Err(Unusable::because("its path cannot be read"));
    }
    if path.split('/').any(is_step) {
        return Err(Unusable::because("its path leads to another one"));
    }
    Ok(parts)
}

/// Calls `each` with the texts of a path, and with its variables as errors.
fn pieces<'p>(path: &'p str, mut each: impl FnMut(Result<&'p str, &'p str>)) -> Result<(), Unusable> {
    let mut rest = path;
    while let Some((text, after)) = rest.split_once('{') {
        let (name, after) =
            after.split_once('}').ok_or_else(|| Unusable::because("its path cannot be read"))?;
        each(Ok(text));
        each(Err(name));
        rest = after;
    }
    each(Ok(rest));
    Ok(())
}

/// Whether a segment of a path is `.` or `..`, in any spelling: some servers and proxies resolve these.
pub(crate) fn is_step(segment: &str) -> bool {
    matches!(segment.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..")
}
