//! Option `--with` of `participants can`: the capabilities of another configuration, tried on what
//! the audit log has of a participant.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;

use model::{Capabilities, GATEWAY, KindRef, PROPOSAL, REQUEST};
use serde_json::{Value, json};
use store::audit::{EntryFilter, RecordedEntry, query};
use topic::RequestWay;

use crate::cli::ConfigArgs;
use crate::commands::audit::directory;
use crate::commands::config::{load, sources};
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;
use terminal::timestamp::time_of;

const COLUMNS: [&str; 5] = ["KIND", "TO", "WAS", "WOULD BE", "TIMES"];
/// The cause of a refusal for which capabilities are the reason.
const NOT_ADMITTED: &str = "not_admitted";

/// A configuration that is tried on the past of a participant.
pub(crate) struct Trial<'a> {
    /// The participant.
    pub(crate) id: &'a str,
    /// The configuration file.
    pub(crate) file: PathBuf,
    /// Only this topic.
    pub(crate) topic: Option<String>,
    /// Only entries since this time.
    pub(crate) since: Option<&'a str>,
}

/// Prints what the capabilities of a participant in a configuration file would have decided otherwise.
pub(crate) fn run(trial: Trial<'_>, config: &ConfigArgs, output: Output) -> Result<Exit, Failure> {
    let capabilities = capabilities_in(&trial, config, output)?;
    let since_ms = trial
        .since
        .map(|text| time_of("--since", text))
        .transpose()?;
    let filter = EntryFilter {
        participant: Some(trial.id.to_owned()),
        topic: trial.topic.clone(),
        since_ms,
        ..EntryFilter::default()
    };
    let mut past = TriedPast::default();
    query(&directory(config, output)?, &filter, |entry, _| {
        // Entries that are only to it are not of its acts.
        if entry.from == trial.id {
            past.take(entry, &capabilities);
        }
        ControlFlow::Continue(())
    })?;
    if output.json {
        output.result_json(&past.json());
    } else {
        output.result(&past.words(trial.id));
        output.table(&COLUMNS, past.rows().into_iter());
    }
    Ok(Exit::Ok)
}

/// The capabilities that a configuration file gives to the participant.
fn capabilities_in(
    trial: &Trial<'_>,
    config: &ConfigArgs,
    output: Output,
) -> Result<std::sync::Arc<Capabilities>, Failure> {
    let args = ConfigArgs {
        config: Some(trial.file.clone()),
        ..config.clone()
    };
    let loaded = load(&sources(&args), output)?;
    let mut participants = loaded.config.identity.participants.iter();
    let found = participants.find(|one| one.participant.id.as_str() == trial.id);
    let found = found.filter(|one| one.capabilities_written);
    found
        .map(|one| one.participant.capabilities.clone())
        .ok_or_else(|| {
            let file = trial.file.display();
            let why = format!("{file} gives no capabilities to a participant `{}`", trial.id);
            Failure::new(Exit::NotFound, "unknown_target", why)
                .hint("what is granted, issued with a token or comes from a profile does not change with it")
        })
}

/// A decision of the past beside that of the tried capabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Otherwise {
    /// A request went one way, and would go another.
    Request(RequestWay, RequestWay),
    /// It decided a proposal, and could not.
    Decision,
}

impl Otherwise {
    fn was(self) -> &'static str {
        match self {
            Self::Request(was, _) => was.into(),
            Self::Decision => "decided",
        }
    }

    fn would_be(self) -> &'static str {
        match self {
            Self::Request(_, way) => way.into(),
            Self::Decision => "refused",
        }
    }

    /// So many of them in words: `would have held 2 requests that were made`.
    fn words(self, count: usize) -> String {
        let were = if count == 1 { "was" } else { "were" };
        match self {
            Self::Request(was, way) => {
                let (way, was): (&str, &str) = (way.into(), was.into());
                format!(
                    "would have {way} {} that {were} {was}",
                    counted(count, "request")
                )
            }
            Self::Decision => format!(
                "would not have been enough for {}",
                counted(count, "decision")
            ),
        }
    }
}

/// An act of the participant that would be decided otherwise.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct TriedAct {
    otherwise: Otherwise,
    kind: String,
    /// Its addressees, separated by commas.
    to: String,
}

/// The acts that were looked at, and how often each would be decided otherwise.
#[derive(Default)]
struct TriedPast {
    requests: usize,
    decisions: usize,
    /// Refused requests of which the log does not say to which server they would have gone.
    unjudged: usize,
    otherwise: BTreeMap<TriedAct, usize>,
}

impl TriedPast {
    fn take(&mut self, entry: &RecordedEntry<'_>, capabilities: &Capabilities) {
        let to = entry.to.join(",");
        // Names of the gateway's own tools need no capability.
        if to == GATEWAY {
            return;
        }
        let Ok(kind) = KindRef::parse(&entry.kind) else {
            return;
        };
        let otherwise = match (kind.head(), &*entry.verdict) {
            // The approval or rejection of another participant's proposal.
            (PROPOSAL, "approved" | "rejected") => {
                self.decisions += 1;
                let may = may_decide(entry, kind, capabilities);
                (!may).then_some(Otherwise::Decision)
            }
            // The entry of a held call has its proposal's beside it, which names the call.
            (PROPOSAL, "held") if entry.why.is_none() => {
                self.request(entry, kind, RequestWay::Held, capabilities)
            }
            (REQUEST, "admitted") => self.request(entry, kind, RequestWay::Made, capabilities),
            (REQUEST, "held") => self.request(entry, kind, RequestWay::Held, capabilities),
            (REQUEST, "refused") if is_not_admitted(entry) && entry.to.is_empty() => {
                self.unjudged += 1;
                None
            }
            (REQUEST, "refused") if is_not_admitted(entry) => {
                self.request(entry, kind, RequestWay::Refused, capabilities)
            }
            _ => None,
        };
        if let Some(otherwise) = otherwise {
            let act = TriedAct {
                otherwise,
                kind: entry.kind.to_string(),
                to,
            };
            *self.otherwise.entry(act).or_default() += 1;
        }
    }

    fn request(
        &mut self,
        entry: &RecordedEntry<'_>,
        kind: KindRef<'_>,
        was: RequestWay,
        capabilities: &Capabilities,
    ) -> Option<Otherwise> {
        self.requests += 1;
        let way = entry
            .to
            .iter()
            .map(|to| {
                RequestWay::of(
                    capabilities,
                    kind.method().unwrap_or_default(),
                    kind.context(),
                    to,
                )
            })
            // An envelope for several goes the way of the worst: it is admitted as a whole.
            .max()?;
        // A rule or a pause held what its sender could make: that is no matter of capabilities.
        let stays =
            way == was || was == RequestWay::Held && way == RequestWay::Made && is_by_rule(entry);
        (!stays).then_some(Otherwise::Request(was, way))
    }

    /// The result in a few lines.
    fn words(&self, id: &str) -> String {
        let mut times: BTreeMap<Otherwise, usize> = BTreeMap::new();
        for (act, count) in &self.otherwise {
            *times.entry(act.otherwise).or_default() += count;
        }
        let (requests, decisions) = (
            counted(self.requests, "request"),
            counted(self.decisions, "decision"),
        );
        let mut lines = vec![format!("{requests} and {decisions} of `{id}`")];
        lines.extend(
            times
                .iter()
                .map(|(otherwise, count)| otherwise.words(*count)),
        );
        if times.is_empty() {
            lines.push("would have been decided alike".to_owned());
        }
        if self.unjudged > 0 {
            let refused = counted(self.unjudged, "refused request");
            lines.push(format!(
                "not judged: {refused}, of which the log names no server"
            ));
        }
        lines.join("\n")
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let rows = self.otherwise.iter().map(|(act, times)| {
            vec![
                act.kind.clone(),
                act.to.clone(),
                act.otherwise.was().to_owned(),
                act.otherwise.would_be().to_owned(),
                times.to_string(),
            ]
        });
        rows.collect()
    }

    fn json(&self) -> Value {
        let rows = self.otherwise.iter().map(|(act, times)| {
            json!({
                "kind": act.kind,
                "to": act.to,
                "was": act.otherwise.was(),
                "would_be": act.otherwise.would_be(),
                "times": times,
            })
        });
        json!({
            "requests": self.requests,
            "decisions": self.decisions,
            "unjudged": self.unjudged,
            "otherwise": rows.collect::<Vec<_>>(),
        })
    }
}

/// A number of things: `1 request`, `2 requests`.
fn counted(count: usize, thing: &str) -> String {
    let end = if count == 1 { "" } else { "s" };
    format!("{count} {thing}{end}")
}

fn is_not_admitted(entry: &RecordedEntry<'_>) -> bool {
    let cause = entry.why.as_deref().and_then(|why| why.split(':').next());
    cause == Some(NOT_ADMITTED)
}

fn is_by_rule(entry: &RecordedEntry<'_>) -> bool {
    let why = entry.why.as_deref();
    why.is_some_and(|why| why.starts_with("by rule ") || why == "paused")
}

/// Whether capabilities are enough to decide about a proposal, at all that it is to. Which name they mean
/// depends on the wire, so either does.
fn may_decide(entry: &RecordedEntry<'_>, kind: KindRef<'_>, capabilities: &Capabilities) -> bool {
    let names = [kind.context(), entry.own.as_deref()];
    let method = kind.method().unwrap_or_default();
    let is_admitted = |to: &[&str]| {
        let mut names = names.into_iter().flatten();
        names.any(|name| capabilities.admits_deciding(method, Some(name), to))
    };
    // One to no participant in particular is judged as such.
    if entry.to.is_empty() {
        return is_admitted(&[]);
    }
    entry.to.iter().all(|to| is_admitted(&[to]))
}
