//! Failures for tools that do not exist, with the most similar name.

use model::RefusalCode;
use serde_json::Value;

use crate::commands::servers::say_what_is_down;
use crate::remote::{Endpoint, api};
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;

/// Least similarity of a name that is meant, from 0 to 1.
const NEAR: f64 = 0.8;
/// Greatest distance to the most similar name of others that are named too.
const CLOSE: f64 = 0.05;
/// Most names in a hint.
const NAMES_MAX: usize = 3;

/// If there is no tool of this name, the failure with the name, and a similar one as a hint.
pub(super) async fn or_similar<T>(
    result: Result<T, Failure>,
    name: &str,
    topic: &str,
    endpoint: &dyn Endpoint,
    output: Output,
) -> Result<T, Failure> {
    let Err(failure) = result else { return result };
    if failure.exit != Exit::NotFound || failure.code != RefusalCode::UnknownTarget.as_str() {
        return Err(failure);
    }
    let listed = api::get(endpoint, &["tools"], &[("topic", topic)]).await;
    let listed: Value = listed.and_then(|answer| answer.read()).unwrap_or_default();
    let tools = listed
        .get("tools")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let names = tools.filter_map(|tool| tool.get("name")?.as_str());
    // The tools of a server that has not started are not known.
    say_what_is_down(endpoint, output).await;
    let otherwise = if endpoint.is_own() {
        "list the tools with: portmoot tools ls"
    } else {
        "list the tools with: portmoot tools ls; check the servers with: portmoot servers ls"
    };
    let hint = nearest(name, names).unwrap_or_else(|| otherwise.to_owned());
    Err(Failure {
        message: format!("there is no tool `{name}`"),
        ..failure
    }
    .hint(hint))
}

/// A question about the most similar names: those that a server itself calls so, else those that
/// are spelled like it.
fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    let wanted = name.to_lowercase();
    let score = |known: &str| match known.to_lowercase().strip_suffix(&wanted) {
        Some(prefix) if prefix.ends_with('_') => 1.0,
        _ => strsim::jaro_winkler(&wanted, known),
    };
    let mut near: Vec<(f64, &str)> = names.map(|known| (score(known), known)).collect();
    near.sort_by(|one, other| other.0.total_cmp(&one.0));
    let best = near.first().map_or(0.0, |(score, _)| *score);
    near.retain(|(score, _)| *score > NEAR && *score > best - CLOSE);
    let quoted: Vec<String> = near
        .iter()
        .take(NAMES_MAX)
        .map(|(_, known)| format!("`{known}`"))
        .collect();
    let (last, others) = quoted.split_last()?;
    Some(match others {
        [] => format!("did you mean {last}?"),
        others => format!("did you mean {} or {last}?", others.join(", ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_names_are_named() {
        let names = [
            "git_status",
            "git_stash",
            "svn_status",
            "demo_echo",
            "demo_add",
        ];
        let check = |name: &str, expect: Option<&str>| {
            assert_eq!(
                nearest(name, names.into_iter()).as_deref(),
                expect,
                "{name}"
            );
        };
        check("demo_ecko", Some("did you mean `demo_echo`?"));
        check("echo", Some("did you mean `demo_echo`?"));
        check("Status", Some("did you mean `git_status` or `svn_status`?"));
        check("git_sta", Some("did you mean `git_stash` or `git_status`?"));
        check("xyz", None);
    }
}
