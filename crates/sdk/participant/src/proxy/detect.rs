//! Tools that may be the proxy tool (section 6.1): by name, then by the words of the description.

use std::cmp::Reverse;

use json::Span;
use wire::mcp::proxy::NAME;

use super::definition::Definition;

/// Tools on which a trial `list` is made, at most.
pub const TRIALS_MAX: usize = 4;

/// Words of descriptions of proxy tools, in lower case.
const WORDS: [&str; 3] = ["proxy", "proxies", "proxied"];

/// The tools on which a trial may be made, most likely first. Each has the parameters `action`,
/// which may be `list`, and `type`, which may be `tool`: one that only shares the name is not
/// called.
pub(super) fn candidates(tools: &[Definition]) -> Vec<String> {
    let mut found: Vec<_> = tools
        .iter()
        .filter(|tool| takes(tool, "action", "list") && takes(tool, "type", "tool"))
        .map(|tool| (tool.key() == NAME, has_words(tool), tool.key()))
        .filter(|(is_named, has_words, _)| *is_named || *has_words)
        .collect();
    found.sort_by_key(|(is_named, has_words, _)| Reverse((*is_named, *has_words)));
    found
        .into_iter()
        .take(TRIALS_MAX)
        .map(|(.., name)| name.to_owned())
        .collect()
}

/// Whether a tool has this parameter, with this value among those that the schema names, if it
/// names any.
fn takes(tool: &Definition, parameter: &str, value: &str) -> bool {
    let Some(schema) = json::at(
        tool.raw().get().as_bytes(),
        &["inputSchema", "properties", parameter],
    ) else {
        return false;
    };
    let Some(named) = json::at(schema, &["enum"]) else {
        return true;
    };
    let named_too = |span: &Span| json::text(span.of(named)).as_deref() == Some(value);
    json::elements(named, Span::all(named)).is_ok_and(|named| named.iter().any(named_too))
}

fn has_words(tool: &Definition) -> bool {
    let description = tool.description().unwrap_or_default().to_lowercase();
    let mut words = description.split(|letter: char| !letter.is_alphanumeric());
    words.any(|word| WORDS.contains(&word))
}
