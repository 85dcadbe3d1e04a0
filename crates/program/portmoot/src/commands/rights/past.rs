//! Options `--with`, `--grant` and `--revoke` of `participants can`: a change of policy, tried on what
//! is on record of a participant.

mod by_rules;
mod capabilities;
mod findings;
mod pins;
mod policy;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use identity::AccessState;
use model::{Capability, ParticipantId};
use serde_json::{Value, json};
use store::audit::{EntryFilter, RecordedEntry, Redaction, query};

use crate::cli::ConfigArgs;
use crate::commands::audit::directory;
use crate::commands::config::{alone, load, sources};
use by_rules::{TriedNumbers, TriedRules};
use capabilities::TriedCapabilities;
use findings::{COLUMNS, Findings, counted};
use pins::TriedPins;
use policy::{Policy, TriedGrants};

use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;
use terminal::timestamp::time_of;

/// Said of a part of the policy that changes, and of no act.
const ALIKE: &str = "would have been decided alike";

/// A change of policy that is tried on the past of a participant.
pub(crate) struct Trial<'a> {
    /// The participant.
    pub(crate) id: &'a str,
    /// The file that is laid over the configuration, or a file of rules.
    pub(crate) file: Option<PathBuf>,
    /// Capabilities that are granted.
    pub(crate) added: &'a [String],
    /// Capabilities that are revoked.
    pub(crate) removed: &'a [String],
    /// Only this topic.
    pub(crate) topic: Option<String>,
    /// Only entries since this time.
    pub(crate) since: Option<&'a str>,
}

/// Prints what a changed policy would have decided otherwise of a participant's acts.
pub(crate) fn run(trial: &Trial<'_>, config: &ConfigArgs, output: Output) -> Result<Exit, Failure> {
    let id = ParticipantId::new(trial.id)
        .map_err(|error| Failure::bad_argument(format!("`{}`: {error}", trial.id)))?;
    let dir = directory(config, output)?;
    let [before, after] = policies(trial, &id, &dir, config, output)?;
    let mut past = TriedPast::new(trial, &id, &before, &after)?;
    past.read(&dir, &before)?;
    let trial = past.concluded();
    if output.json {
        output.result_json(&trial.json());
    } else {
        output.result(&trial.words());
        output.table(&COLUMNS, trial.findings.rows());
    }
    Ok(Exit::Ok)
}

/// The policy in force, and the one that is tried.
fn policies(
    trial: &Trial<'_>,
    id: &ParticipantId,
    dir: &Path,
    config: &ConfigArgs,
    output: Output,
) -> Result<[Policy; 2], Failure> {
    let sources = sources(config);
    let loaded = load(&sources, output)?;
    alone(&loaded, "what happened in a cluster is kept by its nodes")?;
    let before = loaded.config;
    let after = match &trial.file {
        Some(file) => policy::changed(&sources, &before, file, trial.topic.as_deref())?,
        None => before.clone(),
    };
    let state = AccessState::peek(dir)?;
    let tried = TriedGrants {
        added: capabilities_in(trial.added)?,
        removed: capabilities_in(trial.removed)?,
    };
    let before = Policy::of(id, before, &state);
    let after = Policy::of(id, after, &state).granting(tried);
    Ok([before, after])
}

fn capabilities_in(texts: &[String]) -> Result<Vec<Capability>, Failure> {
    let read = |text: &String| {
        let read = Capability::parse(text);
        read.map_err(|error| Failure::bad_argument(format!("`{text}`: {error}")))
    };
    texts.iter().map(read).collect()
}

/// The parts of a policy that change, and the acts on which they are tried.
struct TriedPast<'t> {
    id: &'t ParticipantId,
    topic: Option<&'t str>,
    since_ms: Option<u64>,
    /// `None` if the participant may do what it may.
    capabilities: Option<TriedCapabilities<'t>>,
    pins: TriedPins,
    rules: Vec<TriedRules>,
    findings: Findings,
}

impl<'t> TriedPast<'t> {
    fn new(
        trial: &'t Trial<'_>,
        id: &'t ParticipantId,
        before: &'t Policy,
        after: &'t Policy,
    ) -> Result<Self, Failure> {
        let since = trial.since.map(|text| time_of("--since", text));
        let topic = trial.topic.as_deref();
        let rules = by_rules::changed(before, after, topic)
            .map_err(|error| Failure::new(Exit::Usage, "config_rules", error.to_string()))?;
        let pins = TriedPins::new(&before.config, &after.config);
        if !after.knows() && rules.is_empty() && pins.is_empty() {
            let why = format!("no participant `{id}` is configured, and none has a token");
            return Err(Failure::new(Exit::NotFound, "unknown_target", why).hint(
                "list them: portmoot participants ls; of others, rules and pins can be tried",
            ));
        }
        let is_same = before.has_capabilities_of(after);
        Ok(Self {
            id,
            topic,
            since_ms: since.transpose()?,
            capabilities: (!is_same).then(|| TriedCapabilities::new(before, after)),
            pins,
            rules,
            findings: Findings::default(),
        })
    }

    /// Reads what is on record.
    fn read(&mut self, dir: &Path, before: &Policy) -> Result<(), Failure> {
        let redaction = before.config.audit.redaction();
        // What a server had changed may be older than its calls.
        let needs_older = !self.pins.is_empty();
        let filter = EntryFilter {
            since_ms: self.since_ms.filter(|_| !needs_older),
            ..EntryFilter::default()
        };
        query(dir, &filter, |entry, _| {
            self.take(entry, &redaction);
            ControlFlow::Continue(())
        })?;
        for rules in &mut self.rules {
            rules.take_decisions(dir, self.since_ms)?;
        }
        Ok(())
    }

    fn take(&mut self, entry: &RecordedEntry<'_>, redaction: &Redaction) {
        self.pins.learn(entry);
        let is_meant = |topic: &str| entry.topic.as_deref() == Some(topic);
        let is_early = self.since_ms.is_some_and(|since| entry.at_ms < since);
        if is_early || !self.topic.is_none_or(is_meant) {
            return;
        }
        for rules in &mut self.rules {
            rules.take(entry, self.id, redaction, &mut self.findings);
        }
        // Entries that are only to it are not of its acts.
        if entry.from != self.id.as_str() {
            return;
        }
        self.pins.take(entry, &mut self.findings);
        if let Some(capabilities) = &mut self.capabilities {
            capabilities.take(entry, &mut self.findings);
        }
    }

    /// Tries the rules, and concludes.
    fn concluded(mut self) -> ConcludedTrial<'t> {
        let mut numbers = TriedNumbers::default();
        for rules in &self.rules {
            let of_topic = rules.run(self.id, &mut self.findings);
            numbers.proposals += of_topic.proposals;
            numbers.direct += of_topic.direct;
        }
        let findings = self.findings;
        let mut parts = Vec::new();
        if self.capabilities.is_some() {
            parts.push(("capabilities", capabilities::words(&findings)));
        }
        if !self.pins.is_empty() {
            parts.push(("pins", pins::words(&findings)));
        }
        if !self.rules.is_empty() {
            parts.push(("rules", by_rules::words(&numbers, &findings)));
        }
        let capabilities = self.capabilities;
        ConcludedTrial {
            id: self.id,
            requests: capabilities.as_ref().map_or(0, |tried| tried.requests),
            decisions: capabilities.as_ref().map_or(0, |tried| tried.decisions),
            numbers,
            parts,
            findings,
        }
    }
}

/// A trial that is over.
struct ConcludedTrial<'t> {
    id: &'t ParticipantId,
    requests: usize,
    decisions: usize,
    numbers: TriedNumbers,
    /// The parts of the policy that change, each with its result in words, which may be none.
    parts: Vec<(&'static str, String)>,
    findings: Findings,
}

impl ConcludedTrial<'_> {
    /// The result in a few lines.
    fn words(&self) -> String {
        let mut lines = Vec::new();
        if self.parts.is_empty() {
            lines.push(format!(
                "nothing changes for `{}`: neither capabilities nor pins nor rules",
                self.id
            ));
        }
        for (part, words) in &self.parts {
            let words = if words.is_empty() { ALIKE } else { words };
            lines.push(match *part {
                "capabilities" => format!(
                    "{part}: of {} and {} of `{}`, {words}",
                    counted(self.requests, "request"),
                    counted(self.decisions, "decision"),
                    self.id,
                ),
                _ => format!("{part}: {words}"),
            });
        }
        lines.extend(self.findings.gaps());
        lines.join("\n")
    }

    fn json(&self) -> Value {
        let parts = self.parts.iter().map(|(part, words)| {
            let words = if words.is_empty() { ALIKE } else { words };
            json!({ "part": part, "words": words })
        });
        json!({
            "requests": self.requests,
            "decisions": self.decisions,
            "proposals": self.numbers.proposals,
            "direct": self.numbers.direct,
            "changes": parts.collect::<Vec<_>>(),
            "otherwise": self.findings.otherwise_json(),
            "not_tried": self.findings.gaps_json(),
        })
    }
}
