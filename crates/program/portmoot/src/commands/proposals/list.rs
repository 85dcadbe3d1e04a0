//! Lists of proposals: once, and as they change.

use std::collections::HashMap;
use std::time::Duration;

use ::chat::{claimants, span};
use platform::unix_ms;
use review::ProposalDetails;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::remote::{Endpoint, Remote, api};
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;

const COLUMNS: [&str; 9] = [
    "ID",
    "STATE",
    "BY",
    "REQUEST",
    "ARGUMENTS",
    "TO",
    "AGE",
    "LEFT",
    "LOOKS",
];
/// Fewest digits of an id in a table.
const ID_DIGITS: usize = 8;
/// Longest beginning of the arguments in a table, in characters.
const ARGUMENTS_CHARS: usize = 40;
/// Cell of arguments that are too long for a list: `proposals show` has them.
const LONG_ARGUMENTS: &str = "(long)";
/// Time between two looks of `--watch`.
const LOOK: Duration = Duration::from_millis(500);

/// Proposals that are asked for at once: the most that the gateway gives.
const PAGE: &str = "500";

/// The answer to `GET proposals`: a page, each proposal in the form that is wanted.
#[derive(Deserialize)]
struct ProposalPage<P> {
    proposals: Vec<P>,
    next: Option<String>,
}

/// The proposals of all pages that a query finds.
///
/// # Errors
/// As [`api::get`], or when the answer has another form.
pub(crate) async fn pages<P: DeserializeOwned>(
    gateway: &dyn Endpoint,
    query: &[(&str, &str)],
) -> Result<Vec<P>, Failure> {
    let mut found = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let mut asked = query.to_vec();
        asked.push(("limit", PAGE));
        asked.extend(after.as_deref().map(|after| ("after", after)));
        let answer = api::get(gateway, &["proposals"], &asked).await?;
        let page: ProposalPage<P> = answer.read()?;
        found.extend(page.proposals);
        after = page.next;
        if after.is_none() {
            return Ok(found);
        }
    }
}

/// The proposals of a topic, or of all, as the gateway spells them.
async fn fetch(
    remote: &Remote,
    topic: Option<&str>,
    all: bool,
) -> Result<Vec<Box<RawValue>>, Failure> {
    let mut query: Vec<(&str, &str)> = topic.map(|topic| ("topic", topic)).into_iter().collect();
    query.extend(all.then_some(("all", "true")));
    pages(remote, &query).await
}

/// The same proposals, read.
fn details(listed: &[Box<RawValue>]) -> Result<Vec<ProposalDetails>, Failure> {
    let read = listed.iter().map(|raw| serde_json::from_str(raw.get()));
    let read: Result<Vec<_>, _> = read.collect();
    read.map_err(|_| api::not_portmoot())
}

/// Prints the list.
pub(super) async fn once(
    remote: &Remote,
    topic: Option<&str>,
    all: bool,
    output: Output,
) -> Result<Exit, Failure> {
    let listed = fetch(remote, topic, all).await?;
    if output.json {
        let texts: Vec<&str> = listed.iter().map(|raw| raw.get()).collect();
        output.result_json_text(&format!("{{\"proposals\":[{}]}}", texts.join(",")));
    } else {
        let proposals = details(&listed)?;
        let digits = digits(&proposals);
        output.table(&COLUMNS, proposals.iter().map(|one| row(one, digits)));
    }
    Ok(Exit::Ok)
}

/// Prints the list, then each proposal that comes or changes its state, until interrupted. With
/// `--json`, one object a line.
pub(super) async fn watch(
    remote: &Remote,
    topic: Option<&str>,
    all: bool,
    output: Output,
) -> Result<Exit, Failure> {
    let mut known: HashMap<String, String> = HashMap::new();
    let mut is_first = true;
    let mut was_away = false;
    loop {
        match fetch(remote, topic, true).await {
            Ok(listed) => {
                if std::mem::take(&mut was_away) {
                    output.message("the gateway is there again");
                }
                let proposals = details(&listed)?;
                let digits = digits(&proposals);
                let mut rows = Vec::new();
                for (one, raw) in proposals.iter().zip(&listed) {
                    let was = known.insert(one.id.clone(), one.state.clone());
                    // What was over before is no news.
                    let is_old = is_first && !all && one.is_over();
                    if was.as_ref() == Some(&one.state) || is_old {
                        continue;
                    }
                    if output.json {
                        output.result_json_text(raw.get())
                    } else {
                        rows.push(row(one, digits))
                    }
                }
                known.retain(|id, _| proposals.iter().any(|one| one.id == *id));
                if !output.json && is_first {
                    output.table(&COLUMNS, rows.into_iter());
                } else {
                    rows.into_iter().for_each(|row| output.row(&row));
                }
                is_first = false;
            }
            Err(failure) if is_first || failure.exit != Exit::Failed => return Err(failure),
            Err(failure) if !was_away => {
                was_away = true;
                output.message(&format!("{}; trying again", failure.message));
            }
            Err(_) => {}
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Digits in which all ids differ, as git shortens them.
fn digits(proposals: &[ProposalDetails]) -> usize {
    let mut ids: Vec<&str> = proposals.iter().map(|one| one.id.as_str()).collect();
    ids.sort_unstable();
    let same = |(one, other): (&&str, &&str)| {
        one.bytes()
            .zip(other.bytes())
            .take_while(|(a, b)| a == b)
            .count()
    };
    let longest = ids.iter().zip(ids.iter().skip(1)).map(same).max();
    longest.map_or(ID_DIGITS, |same| ID_DIGITS.max(same + 1))
}

fn row(one: &ProposalDetails, digits: usize) -> Vec<String> {
    let act = match &one.context {
        Some(context) => format!("{}:{context}", one.method),
        None => one.method.clone(),
    };
    let act = match &one.plan {
        Some(plan) if one.steps.is_empty() => {
            format!("{act} (step {} of {})", plan.step, plan.of)
        }
        Some(plan) => format!("a plan of {} steps", plan.of),
        None => act,
    };
    let now_ms = unix_ms();
    let left = if one.is_pending() {
        span(one.expires_ms().saturating_sub(now_ms))
    } else {
        "-".to_owned()
    };
    vec![
        one.id.chars().take(digits).collect(),
        one.shown_state().to_owned(),
        one.by.clone(),
        act,
        arguments(one),
        one.to.join(", "),
        span(now_ms.saturating_sub(one.at_ms())),
        left,
        claimants(one).unwrap_or_else(|| "-".to_owned()),
    ]
}

/// The beginning of the arguments, on one line. Long ones are not in a list.
fn arguments(one: &ProposalDetails) -> String {
    if !one.in_full && one.params.is_none() && one.steps.is_empty() {
        return LONG_ARGUMENTS.to_owned();
    }
    let raw = one
        .arguments()
        .or_else(|| one.params.clone())
        .filter(|_| one.method == "tools/call");
    let Some(raw) = raw else {
        return "-".to_owned();
    };
    let text = json::visible::value(raw.get());
    let begin: String = text.chars().take(ARGUMENTS_CHARS).collect();
    if begin.len() < text.len() {
        begin + "..."
    } else {
        begin
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn proposal(id: &str, arguments: &Value) -> ProposalDetails {
        let all = json!({
            "id": id, "topic": "main", "state": "pending", "by": "scout", "to": ["worker"], "method": "tools/call",
            "context": "echo", "envelope": "e", "params": { "name": "echo", "arguments": arguments }, "tool": null,
            "digest": "d", "held": false, "at": "2026-07-28T12:30:00Z", "expires": "2026-07-28T12:35:00Z",
            "decided_by": null, "edited": null, "reason": null, "answer": null,
        });
        serde_json::from_str(&all.to_string()).unwrap()
    }

    #[test]
    fn ids_are_as_long_as_they_differ() {
        let of = |ids: &[&str]| {
            digits(
                &ids.iter()
                    .map(|id| proposal(id, &json!({})))
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(of(&[]), 8);
        assert_eq!(of(&["0123456789", "1123456789"]), 8);
        assert_eq!(of(&["0123456789", "ffffffffff", "0123456780"]), 10);
    }

    #[test]
    fn arguments_are_shortened_and_their_hidden_characters_visible() {
        for (arguments, expect) in [
            (json!({ "a": 1 }), r#"{"a":1}"#.to_owned()),
            (
                json!({ "a": "\u{202e}" }),
                r#"{"a":"\\u{202e}"}"#.to_owned(),
            ),
            (
                json!({ "a": "x".repeat(60) }),
                format!("{{\"a\":\"{}...", "x".repeat(34)),
            ),
        ] {
            assert_eq!(super::arguments(&proposal("1", &arguments)), expect);
        }
        let mut long = proposal("1", &json!({}));
        (long.params, long.in_full) = (None, false);
        assert_eq!(super::arguments(&long), LONG_ARGUMENTS);
    }
}
