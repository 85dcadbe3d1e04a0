//! The audit log: `/api/v1/audit`. What a caller may read of it, its entries in pages, and the check
//! of its chain.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use auth::Participant;
use axum::Json;
use axum::extract::{FromRequestParts, Query, State};
use axum::http::request::Parts;
use config::{MOMENT, moment};
use identity::AUDIT;
use model::{Refusal, RefusalCode};
use platform::{Taken, unix_ms};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use store::StoreError;
use store::audit::{
    ChainHead, EntryFilter, EntryQuery, LogPlace, RecordedEntry, Removal, Report, SeenEntry,
    log_bytes, look_back, verify,
};
use utoipa::ToSchema;
use wire::time::rfc3339;

use crate::error::{ApiError, ApiResult, Problem};
use crate::state::{Api, Caller, blocking};

/// Entries or calls of one page, without a `limit`.
const AUDIT_PAGE: usize = 100;
/// Most entries or calls of one page.
pub const AUDIT_PAGE_MAX: usize = 500;
/// Most bytes of entries of one answer.
pub const AUDIT_ANSWER_BYTES_MAX: usize = 1024 * 1024;
/// The largest log that the API verifies, in bytes.
pub const AUDIT_VERIFIED_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// Time before `since` at which a look backward ends, in milliseconds: clocks are set back a little.
const CLOCK_SLACK_MS: u64 = 3_600_000;

/// The query of a route, whose keys are all known.
pub(crate) struct InQuery<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<Api> for InQuery<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> ApiResult<Self> {
        let Query(query) = Query::from_request_parts(parts, api).await?;
        Ok(Self(query))
    }
}

/// A look at the audit log for one caller: it sees entries of the topics in which the caller may read
/// the log, and no other.
pub(crate) struct AuditReader {
    pub(crate) dir: Arc<Path>,
    topics: HashSet<String>,
    /// Whether it may also read what happened outside of topics: about all of them.
    reads_all: bool,
    _place: Taken,
}

impl AuditReader {
    /// A look of a caller.
    ///
    /// # Errors
    /// When the caller may not read the log anywhere, there is no log, or too many look at it.
    pub(crate) fn new(api: &Api, caller: &Participant) -> Result<Self, Refusal> {
        let may_read = |topic: &_| {
            api.registry.may_enter(caller, topic) && api.holds(caller, AUDIT, Some(topic))
        };
        let all = api.registry.topics();
        let topics: HashSet<String> = all
            .iter()
            .filter(|dispatch| may_read(dispatch.name()))
            .map(|dispatch| dispatch.name().to_string())
            .collect();
        let reads_all = topics.len() == all.len() && api.holds(caller, AUDIT, None);
        if topics.is_empty() && !reads_all {
            return Err(needs(""));
        }
        let dir = api.registry.audit.dir().ok_or_else(|| no_log(api))?;
        let looks = api.audit.looks.of(caller.id.account());
        Ok(Self {
            dir: Arc::clone(dir),
            topics,
            reads_all,
            _place: looks.take(1).map_err(|_| too_many())?,
        })
    }

    /// Whether the caller may read an entry.
    pub(crate) fn may_see(&self, entry: &RecordedEntry<'_>) -> bool {
        match entry.topic.as_deref() {
            Some(topic) => self.topics.contains(topic),
            None => self.reads_all,
        }
    }
}

/// The refusal of a caller without the capability there.
fn needs(place: &str) -> Refusal {
    let why = format!("this needs the capability `{AUDIT}`{place}");
    Refusal::new(RefusalCode::CapabilityViolation, why).hint("ask the operator for it")
}

fn no_log(api: &Api) -> Refusal {
    let fix = if api.registry.journal.is_some() {
        "switch it on in the configuration: [audit] enabled = true, and restart the gateway"
    } else {
        "give the gateway a data directory: data_dir = \"DIR\" in the configuration, or --data-dir DIR"
    };
    Refusal::new(
        RefusalCode::UnknownTarget,
        "this gateway keeps no audit log",
    )
    .hint(fix)
}

fn too_many() -> Refusal {
    let why = "as many looks at the audit log as may be go on already";
    Refusal::new(RefusalCode::Overloaded, why).hint("try again in a moment")
}

/// The refusal of a look whose files cannot be read. It names no path.
pub(crate) fn unreadable(_: StoreError) -> Refusal {
    let why = "the audit log cannot be read";
    Refusal::new(RefusalCode::Internal, why)
        .hint("on the gateway's machine this says why: portmoot audit verify")
}

pub(crate) fn malformed(why: impl Into<String>) -> Refusal {
    Refusal::new(RefusalCode::Malformed, why.into())
}

/// The number of rows of a page.
pub(crate) fn page_limit(limit: Option<&str>) -> Result<usize, Refusal> {
    let Some(text) = limit else {
        return Ok(AUDIT_PAGE);
    };
    let number = text.parse::<usize>().ok().filter(|number| *number > 0);
    let why = || malformed(format!("`limit` is a number from 1 to {AUDIT_PAGE_MAX}"));
    Ok(number.ok_or_else(why)?.min(AUDIT_PAGE_MAX))
}

/// A place in the log, as an earlier answer has it.
pub(crate) fn place_of(text: Option<&str>) -> Result<Option<LogPlace>, Refusal> {
    let place = text.map(str::parse::<LogPlace>).transpose();
    let fix = "take it from the answer before, or leave it out";
    place.map_err(|error| malformed(error.to_string()).hint(fix))
}

fn moment_of(key: &str, text: Option<&str>) -> Result<Option<u64>, Refusal> {
    let Some(text) = text else { return Ok(None) };
    let read = moment(text, unix_ms());
    let why = || malformed(format!("`{key}` must be {MOMENT}"));
    Ok(Some(read.ok_or_else(why)?))
}

/// Entries of the audit log, the newest first, in pages. Needs `portmoot/audit`.
///
/// With it in a topic a caller sees the entries of that topic. Entries outside of topics are for those
/// who hold it outside of topics, and may enter every topic and hold it there.
///
/// A page has at most `limit` entries and a mebibyte. One look reads 32 MiB of the log: with `cut` it
/// has ended there, and what is older was not looked at. `after` is the `next` of the page before.
#[utoipa::path(
    get,
    path = "/api/v1/audit",
    params(
        ("kinds" = Option<String>, Query, description = "A pattern of kinds, such as `mcp/request:tools/call:read_*` or `system/*`."),
        ("participant" = Option<String>, Query, description = "Who sent it, or to whom it went."),
        ("topic" = Option<String>, Query),
        ("verdict" = Option<String>, Query),
        ("operation" = Option<String>, Query, description = "The id of an operation, or its beginning."),
        ("since" = Option<String>, Query, description = "`2h` (ago), `2026-07-28` or `2026-07-28T12:30:00Z`. A look ends an hour before it."),
        ("until" = Option<String>, Query, description = "In the same formats."),
        ("limit" = Option<usize>, Query, description = "From 1 to 500; without it 100."),
        ("after" = Option<String>, Query)
    ),
    responses((status = 200, body = AuditPage), (status = "4XX", body = Problem), (status = 503, body = Problem))
)]
pub(crate) async fn entries(
    State(api): State<Api>,
    Caller(caller): Caller,
    InQuery(query): InQuery<AuditQuery>,
) -> ApiResult<Json<AuditPage>> {
    let reader = AuditReader::new(&api, &caller)?;
    let filter = query.filter()?;
    let limit = page_limit(query.limit.as_deref())?;
    let before = place_of(query.after.as_deref())?;
    let page = blocking(move || AuditPage::read(&reader, &filter, limit, before));
    Ok(Json(page.await?))
}

/// The query of a page of entries.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AuditQuery {
    kinds: Option<String>,
    participant: Option<String>,
    topic: Option<String>,
    verdict: Option<String>,
    operation: Option<String>,
    since: Option<String>,
    until: Option<String>,
    limit: Option<String>,
    after: Option<String>,
}

impl AuditQuery {
    fn filter(&self) -> Result<EntryFilter, Refusal> {
        let read = EntryFilter::read(&EntryQuery {
            kinds: self.kinds.as_deref(),
            participant: self.participant.as_deref(),
            topic: self.topic.as_deref(),
            verdict: self.verdict.as_deref(),
            operation: self.operation.as_deref(),
            since_ms: moment_of("since", self.since.as_deref())?,
            until_ms: moment_of("until", self.until.as_deref())?,
        });
        read.map_err(|error| malformed(error.to_string()).hint(error.hint()))
    }
}

/// A page of the audit log.
#[derive(Default, Serialize, ToSchema)]
pub(crate) struct AuditPage {
    /// Lines of the log, the newest first, as `portmoot audit query --json` has them.
    #[schema(value_type = Vec<Object>)]
    pub entries: Vec<Box<RawValue>>,
    /// The `after` of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Whether the look has ended before it came to more entries: older ones were not looked at.
    pub cut: bool,
    /// The number of entries of more than a mebibyte, which are left out.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: usize,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl AuditPage {
    fn read(
        reader: &AuditReader,
        filter: &EntryFilter,
        limit: usize,
        before: Option<LogPlace>,
    ) -> Result<Self, Refusal> {
        let mut page = Self::default();
        let mut bytes = 0;
        let mut is_over = false;
        let oldest_ms = filter.since_ms.unwrap_or(0).saturating_sub(CLOCK_SLACK_MS);
        let end = look_back(&reader.dir, before, |seen| {
            is_over = seen.entry.at_ms < oldest_ms;
            if is_over {
                return ControlFlow::Break(());
            }
            if !reader.may_see(seen.entry) || !filter.matches(seen.entry) {
                return ControlFlow::Continue(());
            }
            page.take(&seen, limit, &mut bytes)
        });
        let end = end.map_err(unreadable)?;
        page.next = end.next.filter(|_| !is_over).map(|next| next.to_string());
        page.cut = end.is_cut;
        Ok(page)
    }

    /// Takes an entry, if the page has room for it.
    fn take(&mut self, seen: &SeenEntry<'_>, limit: usize, bytes: &mut usize) -> ControlFlow<()> {
        let length = seen.line.len();
        if length > AUDIT_ANSWER_BYTES_MAX {
            self.left_out += 1;
            return ControlFlow::Continue(());
        }
        if self.entries.len() == limit || *bytes + length > AUDIT_ANSWER_BYTES_MAX {
            return ControlFlow::Break(());
        }
        if let Ok(line) = RawValue::from_string(seen.line.to_owned()) {
            *bytes += length;
            self.entries.push(line);
        }
        ControlFlow::Continue(())
    }
}

/// Checks the chain of the whole audit log. Needs `portmoot/audit` outside of topics and in every topic.
///
/// `head` is one that was kept elsewhere, which the log must contain. A log of more than a gibibyte is
/// checked at a terminal alone: `portmoot audit verify`.
#[utoipa::path(
    get,
    path = "/api/v1/audit/verify",
    params(("head" = Option<String>, Query, description = "`SEQ:HEX`, as an earlier check has it.")),
    responses((status = 200, body = AuditReport), (status = "4XX", body = Problem), (status = 503, body = Problem))
)]
pub(crate) async fn check(
    State(api): State<Api>,
    Caller(caller): Caller,
    InQuery(CheckQuery { head }): InQuery<CheckQuery>,
) -> ApiResult<Json<AuditReport>> {
    let reader = AuditReader::new(&api, &caller)?;
    if !reader.reads_all {
        return Err(needs(", outside of topics and in every topic").into());
    }
    let head = head.map(|head| head.parse::<ChainHead>()).transpose();
    let head = head.map_err(|error| malformed(format!("`head`: {error}")))?;
    let checks = api.audit.checks.of(caller.id.account());
    let place = checks.take(1).map_err(|_| too_many())?;
    let report = blocking(move || {
        let _place = place;
        checked(&reader.dir, head)
    });
    Ok(Json(report.await?))
}

fn checked(dir: &Path, head: Option<ChainHead>) -> Result<AuditReport, Refusal> {
    if log_bytes(dir).map_err(unreadable)? > AUDIT_VERIFIED_BYTES_MAX {
        let why = "the audit log is too large to be checked here";
        let fix = "on the gateway's machine: portmoot audit verify";
        return Err(Refusal::new(RefusalCode::TooLarge, why).hint(fix));
    }
    let report = verify(dir, head).map_err(unreadable)?;
    Ok(AuditReport::of(&report.unwrap_or_default()))
}

/// The query of a check.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckQuery {
    head: Option<String>,
}

/// The result of a check of the audit log, as `portmoot audit verify --json` has it.
#[derive(Serialize, ToSchema)]
pub(crate) struct AuditReport {
    /// Whether the log has no defect.
    pub intact: bool,
    /// The number of entries.
    pub entries: u64,
    /// The head of the chain, to be kept elsewhere.
    pub head: String,
    /// Bytes of an unfinished entry at the end.
    pub unfinished_bytes: u64,
    /// The first 100 defects, in words.
    pub findings: Vec<String>,
    /// The number of all defects.
    pub findings_count: u64,
    /// The part before the first entry, which retention has removed.
    pub removed: Option<RemovedEntries>,
    /// Whether the given head is of that part, so that the log cannot be compared with it any more.
    pub head_is_removed: bool,
}

/// The entries that retention has removed: all from the first one on.
#[derive(Serialize, ToSchema)]
pub(crate) struct RemovedEntries {
    /// Their number.
    pub entries: u64,
    /// The head of the chain after the last of them.
    pub head: String,
    /// The time of the first, RFC 3339.
    pub from: String,
    /// The time of the last, RFC 3339.
    pub until: String,
    /// When they were removed, RFC 3339.
    pub at: String,
    /// The number of the entry that proves it.
    pub entry: u64,
}

impl RemovedEntries {
    fn of(removed: &Removal) -> Self {
        Self {
            entries: removed.part.entries,
            head: removed.part.head.to_string(),
            from: rfc3339(removed.part.from_ms),
            until: rfc3339(removed.part.to_ms),
            at: rfc3339(removed.at_ms),
            entry: removed.seq,
        }
    }
}

impl AuditReport {
    fn of(report: &Report) -> Self {
        Self {
            intact: report.is_whole(),
            entries: report.entries,
            head: report.head.to_string(),
            unfinished_bytes: report.unfinished_bytes,
            findings: report.findings.iter().map(ToString::to_string).collect(),
            findings_count: report.findings_count,
            removed: report.removed.as_ref().map(RemovedEntries::of),
            head_is_removed: report.head_is_removed,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
