//! The nearest call that was approved before, of one participant and tool: what of a proposed call is
//! new beside it.

use std::collections::{HashMap, HashSet};

use maud::{Markup, html};
use review::{Leaf, LeafKind, ProposalDetails, leaves};
use serde::Deserialize;

use crate::api_client::Problem;
use crate::arguments::{Marked, counted, shortened};
use crate::state::{At, Visit};
use crate::times;

/// The latest proposals, among which approved calls are looked for.
const LATEST: &str = "/api/v1/proposals?all=true&latest=true&limit=200";
/// Approved calls of its participant and tool with which a call is compared, the latest ones.
pub const COMPARED_CALLS_MAX: usize = 20;
/// Values of a call that is compared; one with more is compared with none.
const VALUES_MAX: usize = 200;
/// Bytes of the values of a call that is compared, and of their places.
const VALUES_BYTES_MAX: usize = 64 * 1024;
/// Places that are named of values which the call before had, and this one has not.
const GONE_SHOWN_MAX: usize = 6;

/// Calls that were approved of late, the latest first.
#[derive(Default)]
pub(crate) struct ApprovedCalls(Vec<ProposalDetails>);

/// A list of the API.
#[derive(Deserialize)]
struct ProposalList {
    proposals: Vec<ProposalDetails>,
}

impl ApprovedCalls {
    /// Asks for them, if something waits for a decision.
    ///
    /// # Errors
    /// If the session has ended. Without the list nothing is compared.
    pub(crate) async fn if_needed(visit: &Visit, is_needed: bool) -> Result<Self, Problem> {
        if !is_needed {
            return Ok(Self::default());
        }
        match visit.api.get::<ProposalList>(LATEST).await {
            Ok(list) => Ok(Self::of(list.proposals)),
            Err(refused) if refused.ends_session() => Err(refused),
            Err(_) => Ok(Self::default()),
        }
    }

    /// Those among proposals.
    fn of(proposals: Vec<ProposalDetails>) -> Self {
        let approved = proposals.into_iter().filter(|one| {
            let ran = matches!(one.state.as_str(), "running" | "completed" | "failed");
            ran && one.decided_by.is_some()
        });
        Self(approved.collect())
    }

    /// The call that differs least from a proposed one; of several the latest.
    pub(crate) fn nearest(&self, call: &ProposalDetails) -> Option<Nearest> {
        let arguments = call.arguments()?;
        let values = values(arguments.get())?;
        let alike = self.0.iter().filter(|before| is_alike(before, call));
        let mut nearest: Option<Nearest> = None;
        for before in alike.take(COMPARED_CALLS_MAX) {
            let Some(differs) = Nearest::between(before, &values) else {
                continue;
            };
            if nearest
                .as_ref()
                .is_none_or(|nearest| differs.distance() < nearest.distance())
            {
                nearest = Some(differs);
            }
        }
        nearest
    }
}

/// Whether two calls are of one tool, asked for by one participant.
fn is_alike(one: &ProposalDetails, other: &ProposalDetails) -> bool {
    let of = |call: &ProposalDetails| {
        (
            call.topic.clone(),
            call.by.clone(),
            call.to.clone(),
            call.method.clone(),
            call.context.clone(),
        )
    };
    one.id != other.id && of(one) == of(other)
}

/// The values of a JSON text by their places; `None` if there are too many to compare.
fn values(json: &str) -> Option<HashMap<String, (LeafKind, String)>> {
    let mut values = HashMap::new();
    let mut bytes = VALUES_BYTES_MAX;
    for leaf in leaves(json) {
        bytes = bytes.checked_sub(leaf.place.len() + leaf.text.len())?;
        let Leaf { place, kind, text } = leaf;
        values.insert(place.to_string(), (kind, text.into_owned()));
        if values.len() > VALUES_MAX {
            return None;
        }
    }
    Some(values)
}

/// The nearest approved call, and what differs from it.
pub(crate) struct Nearest {
    id: String,
    at: String,
    values: usize,
    /// Places of values that it did not have.
    new: HashSet<String>,
    /// Places of values that it had, and the proposed call has not.
    gone: Vec<String>,
}

impl Nearest {
    /// The differences between a call as it ran and proposed values.
    fn between(
        before: &ProposalDetails,
        proposed: &HashMap<String, (LeafKind, String)>,
    ) -> Option<Self> {
        let mut ran = before.clone();
        if let Some(edited) = ran.edited.take() {
            ran.params = Some(edited);
        }
        let had = values(ran.arguments()?.get())?;
        let new = proposed
            .iter()
            .filter(|(place, value)| had.get(*place) != Some(value));
        let mut gone: Vec<String> = had
            .keys()
            .filter(|place| !proposed.contains_key(*place))
            .cloned()
            .collect();
        gone.sort_unstable();
        Some(Self {
            id: ran.id,
            at: ran.at,
            values: proposed.len(),
            new: new.map(|(place, _)| place.clone()).collect(),
            gone,
        })
    }

    fn distance(&self) -> usize {
        self.new.len() + self.gone.len()
    }

    /// The rows that are marked.
    pub(crate) fn marked(&self) -> Marked<'_> {
        Marked {
            places: &self.new,
            word: "new",
        }
    }

    /// The comparison in words.
    pub(crate) fn words(&self, visit: &Visit) -> Markup {
        let page = At::Proposal {
            id: self.id.clone(),
            all: false,
            edit: false,
        };
        let before = html! { a href={ (visit.base) (page.address()) } { "the nearest approved call" } " of " (times::day(&self.at)) };
        let count = counted(self.values, "value", "values");
        html! {
            p class="nearest" data-testid="nearest" {
                @match (self.new.len(), self.values) {
                    (0, _) => { "No value is new beside " (before) }
                    (new, all) if new == all => { "All " (count) (if all == 1 { " is" } else { " are" }) " new beside " (before) }
                    (new, _) => { strong { (new) " of " (count) } (if new == 1 { " is" } else { " are" }) " new beside " (before) }
                }
                @if self.gone.is_empty() { "." } @else {
                    ", which had " (counted(self.gone.len(), "value more", "values more")) ":"
                    @for place in self.gone.iter().take(GONE_SHOWN_MAX) { " " (shortened(place)) }
                    @if self.gone.len() > GONE_SHOWN_MAX { " …" }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::routes::tests_support::proposal;

    fn details(id: &str, more: &Value) -> ProposalDetails {
        serde_json::from_value(proposal(id, more)).unwrap()
    }

    fn ran(id: &str, arguments: &Value) -> ProposalDetails {
        let params = json!({ "name": "write_file", "arguments": arguments });
        details(
            id,
            &json!({ "state": "completed", "decided_by": "ann", "params": params }),
        )
    }

    fn asked(arguments: &Value) -> ProposalDetails {
        details(
            "now",
            &json!({ "params": { "name": "write_file", "arguments": arguments } }),
        )
    }

    /// The id of the nearest call, places that are new, and places that are gone.
    fn nearest(before: Vec<ProposalDetails>, now: &Value) -> Option<(String, String, String)> {
        let found = ApprovedCalls::of(before).nearest(&asked(now))?;
        let mut new: Vec<String> = found.new.into_iter().collect();
        new.sort_unstable();
        Some((found.id, new.join(" "), found.gone.join(" ")))
    }

    #[test]
    fn the_nearest_call_differs_least_and_of_several_it_is_the_latest() {
        let before = || {
            vec![
                ran("3", &json!({ "path": "/x", "lines": 9, "mode": "a" })),
                ran("2", &json!({ "path": "/a", "lines": 1, "mode": "w" })),
                ran("1", &json!({ "path": "/a", "lines": 2, "mode": "w" })),
            ]
        };
        let of = |id: &str, new: &str, gone: &str| Some((id.into(), new.into(), gone.into()));
        assert_eq!(
            nearest(before(), &json!({ "path": "/a", "lines": 3, "mode": "w" })),
            of("2", "/lines", "")
        );
        assert_eq!(
            nearest(before(), &json!({ "path": "/a", "lines": "2", "to": [1] })),
            of("2", "/lines /to/0", "/mode"),
            "a number is no text"
        );
        assert_eq!(
            nearest(before(), &json!({ "path": "/a", "lines": 2, "mode": "w" })),
            of("1", "", "")
        );
        assert_eq!(nearest(vec![], &json!({})), None);
    }

    #[test]
    fn only_approved_calls_of_one_proposer_and_tool_count_as_they_ran() {
        let path = json!({ "path": "/a" });
        let with = |more: Value| {
            let mut one = json!({ "state": "completed", "decided_by": "ann",
                "params": { "name": "write_file", "arguments": path } });
            for (name, value) in more.as_object().unwrap() {
                one[name] = value.clone();
            }
            details("1", &one)
        };
        for other in [
            json!({ "state": "rejected" }),
            json!({ "state": "expired", "decided_by": null }),
            json!({ "by": "worker" }),
            json!({ "to": ["mail"] }),
            json!({ "context": "read_file" }),
            json!({ "topic": "other" }),
            json!({ "params": null }),
        ] {
            assert_eq!(nearest(vec![with(other.clone())], &path), None, "{other}");
        }
        let edited = json!({ "edited": { "name": "write_file", "arguments": { "path": "/b" } } });
        let found = nearest(vec![with(edited)], &path).unwrap();
        assert_eq!(found.1, "/path", "it ran with another path");
        assert!(nearest(vec![with(json!({ "decided_by": "rules" }))], &path).is_some());
    }

    #[test]
    fn very_many_values_are_not_compared() {
        let many: Vec<usize> = (0..=VALUES_MAX).collect();
        let long = "x".repeat(VALUES_BYTES_MAX + 1);
        for now in [json!({ "a": many }), json!({ "a": long })] {
            assert_eq!(nearest(vec![ran("1", &now)], &now), None);
        }
        let one = json!({ "a": 1 });
        let far = (0..COMPARED_CALLS_MAX).map(|at| ran(&at.to_string(), &json!({ "b": at })));
        let before: Vec<_> = far.chain([ran("same", &one)]).collect();
        assert_ne!(nearest(before, &one).unwrap().0, "same");
    }
}
