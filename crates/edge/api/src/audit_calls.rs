//! Calls as the audit log has them: `/api/v1/audit/calls`. Entries that belong to one call are joined
//! by its id, and by the id that the first entry of a proposal names.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use axum::Json;
use axum::extract::{Path, State};
use model::{NamePattern, OperationId, PROPOSAL, REQUEST, Refusal, RefusalCode};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use store::audit::{
    CallLink, LogPlace, LookEnd, RecordedEntry, RecordedVerdict, SeenEntry, look_back, look_on,
};
use utoipa::ToSchema;
use wire::time::rfc3339;

use crate::audit::{
    AUDIT_ANSWER_BYTES_MAX, AUDIT_PAGE_MAX, AuditReader, InQuery, malformed, page_limit, place_of,
    unreadable,
};
use crate::error::{ApiResult, Problem};
use crate::state::{Api, Caller, blocking};

/// Calls and proposals whose entries are joined to one timeline at most.
const JOINED_MAX: usize = 64;

/// Verdicts of entries that say what became of a proposal.
const OUTCOMES: [RecordedVerdict; 6] = [
    RecordedVerdict::Approved,
    RecordedVerdict::Rejected,
    RecordedVerdict::Withdrawn,
    RecordedVerdict::Expired,
    RecordedVerdict::Completed,
    RecordedVerdict::Failed,
];
/// Verdicts of the entry with which a call begins.
const BEGINNINGS: [RecordedVerdict; 3] = [
    RecordedVerdict::Admitted,
    RecordedVerdict::Refused,
    RecordedVerdict::Held,
];

/// Whether the verdict of an entry is one of these.
fn is_among(verdicts: &[RecordedVerdict], text: &str) -> bool {
    verdicts.iter().any(|one| one.as_str() == text)
}

/// The outcomes of calls in the audit log, by which they can be listed.
#[must_use]
pub fn call_outcomes() -> Vec<&'static str> {
    let all = BEGINNINGS.iter().chain(&OUTCOMES);
    all.map(|verdict| verdict.as_str()).collect()
}

/// The verdicts of entries of the audit log, by which they can be listed.
#[must_use]
pub fn audit_verdicts() -> &'static [&'static str] {
    RecordedVerdict::names()
}

/// Verdicts that are decisions of a participant.
const DECISIONS: [RecordedVerdict; 3] = [
    RecordedVerdict::Approved,
    RecordedVerdict::Rejected,
    RecordedVerdict::Withdrawn,
];

/// Calls of tools, reads of resources, gets of prompts, and proposals, as the audit log has them, the
/// newest first. Needs `portmoot/audit`, as `/api/v1/audit`.
///
/// Of a call that waited for a decision `outcome` is what became of its proposal. A page has at most
/// `limit` calls and a mebibyte, and ends after 32 MiB of the log (`cut`). A page behind another one
/// looks for outcomes in the 32 MiB after its calls: with `later_cut` in no more.
#[utoipa::path(
    get,
    path = "/api/v1/audit/calls",
    params(
        ("topic" = Option<String>, Query),
        ("participant" = Option<String>, Query, description = "Who asked."),
        ("server" = Option<String>, Query),
        ("tool" = Option<String>, Query, description = "A name, by which it was asked for or at its server; `*` stands for any text."),
        ("outcome" = Option<String>, Query, description = "`admitted`, `refused`, `held`, `approved`, `rejected`, `withdrawn`, `expired`, `completed` or `failed`."),
        ("limit" = Option<usize>, Query, description = "From 1 to 500; without it 100."),
        ("after" = Option<String>, Query)
    ),
    responses((status = 200, body = AuditCalls), (status = "4XX", body = Problem), (status = 503, body = Problem))
)]
pub(crate) async fn calls(
    State(api): State<Api>,
    Caller(caller): Caller,
    InQuery(query): InQuery<CallQuery>,
) -> ApiResult<Json<AuditCalls>> {
    let reader = AuditReader::new(&api, &caller)?;
    let wanted = WantedCalls::read(query)?;
    Ok(Json(blocking(move || wanted.find(&reader)).await?))
}

/// All entries that belong to one call or proposal, the oldest first. Needs `portmoot/audit`, as
/// `/api/v1/audit`.
///
/// `place` is that of the call in a list. Without it the newest 32 MiB of the log are looked through.
#[utoipa::path(
    get,
    path = "/api/v1/audit/calls/{id}",
    params(("id" = String, Path), ("place" = Option<String>, Query)),
    responses((status = 200, body = AuditTimeline), (status = "4XX", body = Problem), (status = 503, body = Problem))
)]
pub(crate) async fn timeline(
    State(api): State<Api>,
    Caller(caller): Caller,
    Path(id): Path<String>,
    InQuery(PlaceQuery { place }): InQuery<PlaceQuery>,
) -> ApiResult<Json<AuditTimeline>> {
    let reader = AuditReader::new(&api, &caller)?;
    let id = id.parse::<OperationId>();
    let id = id.map_err(|_| malformed("an id has 32 hexadecimal digits"))?;
    let place = place_of(place.as_deref())?;
    let found = blocking(move || AuditTimeline::find(&reader, id, place));
    Ok(Json(found.await?))
}

/// The query of a list of calls.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallQuery {
    topic: Option<String>,
    participant: Option<String>,
    server: Option<String>,
    tool: Option<String>,
    outcome: Option<String>,
    limit: Option<String>,
    after: Option<String>,
}

/// The query of a timeline.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlaceQuery {
    place: Option<String>,
}

/// A page of calls.
#[derive(Default, Serialize, ToSchema)]
pub(crate) struct AuditCalls {
    /// The newest first.
    pub calls: Vec<AuditCall>,
    /// The `after` of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Whether the look has ended before it came to more calls: older ones were not looked at.
    pub cut: bool,
    /// Whether the look for outcomes has ended early: of calls that are `held` a later one may be in
    /// the log.
    pub later_cut: bool,
}

/// A call, or a proposal without one, as the audit log has it.
#[derive(Clone, Default, Serialize, ToSchema)]
pub(crate) struct AuditCall {
    /// Its id; absent for an envelope of a room, whose answer no id joins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// The proposal that was made of it, or is it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposal: Option<String>,
    /// When, RFC 3339.
    pub at: String,
    /// The topic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// Who asked.
    pub by: String,
    /// The method.
    pub method: String,
    /// The name or URI that was asked for.
    pub target: String,
    /// The name at its server, if it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own: Option<String>,
    /// The server, or the addressees.
    pub to: Vec<String>,
    /// The verdict when it was asked for: `admitted`, `refused` or `held`.
    pub verdict: String,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The last that is known of it. The log has no answers of servers to calls that were admitted.
    pub outcome: String,
    /// Who decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    /// Its place in the log, for its timeline.
    pub place: String,
}

/// The end of a proposal, as far as it is known.
#[derive(Default, Clone)]
struct Fate {
    outcome: Option<String>,
    decided_by: Option<String>,
}

/// The calls that a request asks for.
struct WantedCalls {
    topic: Option<String>,
    participant: Option<String>,
    server: Option<String>,
    tool: Option<NamePattern>,
    outcome: Option<String>,
    limit: usize,
    after: Option<LogPlace>,
}

impl WantedCalls {
    fn read(query: CallQuery) -> Result<Self, Refusal> {
        let tool = query.tool.as_deref().map(NamePattern::parse).transpose();
        let known = call_outcomes();
        let is_outcome = |text: &String| known.contains(&text.as_str());
        if !query.outcome.as_ref().is_none_or(is_outcome) {
            let words = known.join(", ");
            return Err(malformed("there is no such outcome").hint(format!("one of: {words}")));
        }
        Ok(Self {
            tool: tool.map_err(|error| malformed(format!("`tool`: {error}")))?,
            limit: page_limit(query.limit.as_deref())?,
            after: place_of(query.after.as_deref())?,
            topic: query.topic,
            participant: query.participant,
            server: query.server,
            outcome: query.outcome,
        })
    }

    fn find(&self, reader: &AuditReader) -> Result<AuditCalls, Refusal> {
        let mut found = FoundCalls::default();
        let end = look_back(&reader.dir, self.after, |seen| {
            if reader.may_see(seen.entry) {
                found.take_older(self, &seen)
            } else {
                ControlFlow::Continue(())
            }
        });
        let end = end.map_err(unreadable)?;
        let later = self.after.filter(|_| !found.calls.is_empty());
        let later = later.map(|place| found.look_for_later(reader, place));
        let later = later.transpose()?;
        let mut calls = found.calls;
        calls.retain(|call| self.has_outcome(call));
        Ok(AuditCalls {
            calls,
            next: end.next.map(|next| next.to_string()),
            cut: end.is_cut,
            later_cut: later.is_some_and(|later| later.is_cut),
        })
    }

    /// Whether it wants a call, whatever became of it.
    fn wants(&self, call: &AuditCall) -> bool {
        let is_target = |pattern: &NamePattern| {
            let own = call.own.as_deref();
            pattern.matches(&call.target) || own.is_some_and(|own| pattern.matches(own))
        };
        let is_there = |server: &String| call.to.contains(server);
        (self.topic.is_none() || self.topic == call.topic)
            && self.participant.as_ref().is_none_or(|by| *by == call.by)
            && self.server.as_ref().is_none_or(is_there)
            && self.tool.as_ref().is_none_or(is_target)
    }

    fn has_outcome(&self, call: &AuditCall) -> bool {
        let wanted = self.outcome.as_ref();
        wanted.is_none_or(|outcome| *outcome == call.outcome)
    }
}

/// Calls that a look has found.
#[derive(Default)]
struct FoundCalls {
    calls: Vec<AuditCall>,
    /// Bytes of their texts.
    bytes: usize,
    /// Places of calls and proposals among them, by id.
    at: HashMap<String, Vec<usize>>,
    /// Ends of proposals, by id.
    fates: HashMap<String, Fate>,
    /// Proposals by the calls that wait for them.
    proposals: HashMap<String, String>,
}

impl FoundCalls {
    /// Takes an entry that is older than all that were taken.
    fn take_older(&mut self, wanted: &WantedCalls, seen: &SeenEntry<'_>) -> ControlFlow<()> {
        let entry = seen.entry;
        let operation = entry.operation.as_deref();
        if is_of(entry, PROPOSAL)
            && let Some(id) = operation
        {
            if let Some(link) = CallLink::of(entry) {
                let call = link.call().to_string();
                self.proposals.insert(call, id.to_owned());
                return ControlFlow::Continue(());
            }
            if entry.verdict != "held" {
                self.fates
                    .entry(id.to_owned())
                    .or_default()
                    .take_older(entry);
                return ControlFlow::Continue(());
            }
        } else if !is_of(entry, REQUEST) || entry.verdict == "shadow" {
            return ControlFlow::Continue(());
        }
        if let Some(places) = operation.and_then(|id| self.at.get(id)) {
            // It was refused after it had been admitted: this is how it began.
            let first = places.first().and_then(|at| self.calls.get_mut(*at));
            if let Some(call) = first {
                call.verdict = entry.verdict.to_string();
                call.at = rfc3339(entry.at_ms);
                call.place = seen.place.to_string();
            }
            return ControlFlow::Continue(());
        }
        self.add(wanted, self.call_of(seen))
    }

    /// The call of its first entry.
    fn call_of(&self, seen: &SeenEntry<'_>) -> AuditCall {
        let mut call = AuditCall::begun(seen);
        let id = call.operation.as_deref();
        call.proposal = if is_of(seen.entry, PROPOSAL) {
            call.operation.clone()
        } else {
            id.and_then(|id| self.proposals.get(id)).cloned()
        };
        let fate = call.proposal.as_ref().and_then(|id| self.fates.get(id));
        if let Some(fate) = fate.cloned() {
            call.follow(fate);
        }
        call
    }

    /// Adds a call if it is wanted. What became of one before a place is known later.
    fn add(&mut self, wanted: &WantedCalls, call: AuditCall) -> ControlFlow<()> {
        let is_settled = wanted.after.is_none();
        if !wanted.wants(&call) || is_settled && !wanted.has_outcome(&call) {
            return ControlFlow::Continue(());
        }
        let bytes = call.bytes();
        let is_full = self.bytes + bytes > AUDIT_ANSWER_BYTES_MAX && !self.calls.is_empty();
        if self.calls.len() == wanted.limit || is_full {
            return ControlFlow::Break(());
        }
        self.bytes += bytes;
        let ids = [&call.operation, &call.proposal];
        let mut ids: Vec<String> = ids.into_iter().flatten().cloned().collect();
        ids.dedup();
        for id in ids {
            self.at.entry(id).or_default().push(self.calls.len());
        }
        self.calls.push(call);
        ControlFlow::Continue(())
    }

    /// Looks after a place for what became of the calls before it.
    fn look_for_later(
        &mut self,
        reader: &AuditReader,
        place: LogPlace,
    ) -> Result<LookEnd, Refusal> {
        let end = look_on(&reader.dir, place, |seen| {
            if reader.may_see(seen.entry) {
                self.take_newer(seen.entry);
            }
            ControlFlow::Continue(())
        });
        end.map_err(unreadable)
    }

    fn take_newer(&mut self, entry: &RecordedEntry<'_>) {
        let Some(id) = entry.operation.as_deref() else {
            return;
        };
        if let Some(link) = CallLink::of(entry) {
            let Some(places) = self.at.get(&link.call().to_string()).cloned() else {
                return;
            };
            for at in &places {
                if let Some(call) = self.calls.get_mut(*at) {
                    call.proposal = Some(id.to_owned());
                }
            }
            self.at.entry(id.to_owned()).or_default().extend(places);
            return;
        }
        let is_refused = is_of(entry, REQUEST) && entry.verdict == "refused";
        let is_outcome = is_of(entry, PROPOSAL) && is_among(&OUTCOMES, &entry.verdict);
        for at in self.at.get(id).into_iter().flatten() {
            let call = self.calls.get_mut(*at).filter(|_| is_refused || is_outcome);
            if let Some(call) = call {
                call.outcome = entry.verdict.to_string();
                if is_outcome && is_among(&DECISIONS, &entry.verdict) {
                    call.decided_by = Some(entry.from.to_string());
                }
            }
        }
    }
}

impl Fate {
    /// Takes an entry that is older than those that were taken.
    fn take_older(&mut self, entry: &RecordedEntry<'_>) {
        if is_among(&OUTCOMES, &entry.verdict) && self.outcome.is_none() {
            self.outcome = Some(entry.verdict.to_string());
        }
        if is_among(&DECISIONS, &entry.verdict) && self.decided_by.is_none() {
            self.decided_by = Some(entry.from.to_string());
        }
    }
}

impl AuditCall {
    /// A call as its entry has it.
    fn begun(seen: &SeenEntry<'_>) -> Self {
        let entry = seen.entry;
        let mut parts = entry.kind.splitn(3, ':').skip(1);
        let mut part = || parts.next().unwrap_or_default().to_owned();
        Self {
            operation: entry.operation.as_deref().map(str::to_owned),
            proposal: None,
            at: rfc3339(entry.at_ms),
            topic: entry.topic.as_deref().map(str::to_owned),
            by: entry.from.to_string(),
            method: part(),
            target: part(),
            own: entry.own.as_deref().map(str::to_owned),
            to: entry.to.iter().map(ToString::to_string).collect(),
            verdict: entry.verdict.to_string(),
            why: entry.why.as_deref().map(str::to_owned),
            outcome: entry.verdict.to_string(),
            decided_by: None,
            place: seen.place.to_string(),
        }
    }

    fn follow(&mut self, fate: Fate) {
        if let Some(outcome) = fate.outcome {
            self.outcome = outcome;
        }
        self.decided_by = fate.decided_by;
    }

    /// Bytes of its texts.
    fn bytes(&self) -> usize {
        let texts = [&self.by, &self.method, &self.target].into_iter();
        let optional = [&self.topic, &self.own, &self.why].into_iter().flatten();
        texts.chain(optional).chain(&self.to).map(String::len).sum()
    }
}

/// Whether an entry has a kind with this beginning.
fn is_of(entry: &RecordedEntry<'_>, head: &str) -> bool {
    let rest = entry.kind.strip_prefix(head);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
}

/// The entries of one call, with those of its proposal.
#[derive(Serialize, ToSchema)]
pub(crate) struct AuditTimeline {
    /// Lines of the log, the oldest first: at most 500 and a mebibyte, the oldest of them where the
    /// look went on from a place, else the newest.
    #[schema(value_type = Vec<Object>)]
    pub entries: Vec<Box<RawValue>>,
    /// Whether there may be more entries than the look has come to.
    pub cut: bool,
}

impl AuditTimeline {
    fn find(
        reader: &AuditReader,
        id: OperationId,
        place: Option<LogPlace>,
    ) -> Result<Self, Refusal> {
        let mut joined = Joined::new(id);
        let mut end = joined.look(reader, place)?;
        if joined.has_grown {
            // Entries of what was joined later were passed over.
            joined.begin_again();
            end = joined.look(reader, place)?;
        }
        if joined.entries.is_empty() {
            let why =
                "there is no entry of this operation in the part of the log that was looked at";
            let hint = format!("on the gateway's machine: portmoot audit query --operation {id}");
            return Err(Refusal::new(RefusalCode::UnknownTarget, why).hint(hint));
        }
        if place.is_none() {
            joined.entries.reverse();
        }
        Ok(Self {
            entries: joined.entries,
            cut: end.is_cut || joined.is_full,
        })
    }
}

/// Entries that are joined by ids.
struct Joined {
    ids: HashSet<String>,
    has_grown: bool,
    entries: Vec<Box<RawValue>>,
    bytes: usize,
    is_full: bool,
}

impl Joined {
    fn new(id: OperationId) -> Self {
        Self {
            ids: HashSet::from([id.to_string()]),
            has_grown: false,
            entries: Vec::new(),
            bytes: 0,
            is_full: false,
        }
    }

    fn begin_again(&mut self) {
        self.entries.clear();
        self.bytes = 0;
        self.is_full = false;
    }

    fn look(&mut self, reader: &AuditReader, place: Option<LogPlace>) -> Result<LookEnd, Refusal> {
        let each = |seen: SeenEntry<'_>| {
            if reader.may_see(seen.entry) {
                self.take(&seen)
            } else {
                ControlFlow::Continue(())
            }
        };
        let end = match place {
            Some(place) => look_on(&reader.dir, place, each),
            None => look_back(&reader.dir, None, each),
        };
        end.map_err(unreadable)
    }

    fn take(&mut self, seen: &SeenEntry<'_>) -> ControlFlow<()> {
        let Some(id) = seen.entry.operation.as_deref() else {
            return ControlFlow::Continue(());
        };
        if let Some(link) = CallLink::of(seen.entry) {
            self.join(id, &link.call().to_string());
        }
        if !self.ids.contains(id) {
            return ControlFlow::Continue(());
        }
        let length = seen.line.len();
        self.is_full =
            self.entries.len() == AUDIT_PAGE_MAX || self.bytes + length > AUDIT_ANSWER_BYTES_MAX;
        if self.is_full {
            return ControlFlow::Break(());
        }
        if let Ok(line) = RawValue::from_string(seen.line.to_owned()) {
            self.bytes += length;
            self.entries.push(line);
        }
        ControlFlow::Continue(())
    }

    /// Joins a proposal and a call, if one of them is among what is looked for.
    fn join(&mut self, proposal: &str, call: &str) {
        let (has_one, has_other) = (self.ids.contains(proposal), self.ids.contains(call));
        if has_one != has_other && self.ids.len() < JOINED_MAX {
            let other = if has_one { call } else { proposal };
            self.ids.insert(other.to_owned());
            self.has_grown = true;
        }
    }
}

#[cfg(test)]
mod tests;
