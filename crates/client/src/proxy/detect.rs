//! Tools that may be the proxy tool (section 6.1): by name, then by the words of the description.

use std::cmp::Reverse;

use wire::mcp::proxy::NAME;

use super::definition::Definition;

/// Tools on which a trial `list` is made, at most.
pub const TRIALS_MAX: usize = 4;

/// Words of descriptions of proxy tools, in lower case.
const WORDS: [&str; 3] = ["proxy", "proxies", "proxied"];

/// The tools on which a trial may be made, most likely first. Each has `action` and `type` among its parameters: a tool that only
/// shares the name is not called.
pub(super) fn candidates(tools: &[Definition]) -> Vec<String> {
    let mut found: Vec<_> = tools
        .iter()
        .filter(|tool| takes(tool, "action") && takes(tool, "type"))
        .map(|tool| (tool.key() == NAME, has_words(tool), tool.key()))
        .filter(|(is_named, has_words, _)| *is_named || *has_words)
        .collect();
    found.sort_by_key(|(is_named, has_words, _)| Reverse((*is_named, *has_words)));
    found.into_iter().take(TRIALS_MAX).map(|(.., name)| name.to_owned()).collect()
}

fn takes(tool: &Definition, parameter: &str) -> bool {
    json::at(tool.raw().get().as_bytes(), &["inputSchema", "properties", parameter]).is_some()
}

fn has_words(tool: &Definition) -> bool {
    let description = tool.description().unwrap_or_default().to_lowercase();
    let mut words = description.split(|letter: char| !letter.is_alphanumeric());
    words.any(|word| WORDS.contains(&word))
}
