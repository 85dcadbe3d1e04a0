//! Spans that are open: what a call has of its trace, and the traces of a gateway.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::{Duration, Instant};

use auth::Participant;
use memchr::{memchr_iter, memmem::Finder};
use model::{OperationId, REQUEST, Request, Target};
use platform::{Mutex, unix_ms};
use telemetry::trace::{
    CallerTrace, SpanBuffer, SpanId, SpanPlace, TraceContext, TraceSettings, TraceState,
    TrustedParents, span_of, trace_of,
};
use upstream::AtServer;

/// The traces of one gateway. Nothing is read or allocated while they are off.
#[derive(Debug, Default)]
pub struct Traces {
    is_on: AtomicBool,
    settings: Mutex<Option<TraceSettings>>,
    /// The spans that have ended.
    pub spans: SpanBuffer,
}

/// The span of a call towards its client, from its admission to its end, and that towards its server.
#[derive(Debug)]
pub(crate) struct CallSpan {
    /// Its context, by which its children name it.
    pub(crate) context: TraceContext,
    /// Its parent.
    pub(crate) parent: Option<SpanId>,
    /// Another span of its caller: one that is no parent, or that of the headers.
    pub(crate) link: Option<TraceContext>,
    /// The positions of its parent's trace in other systems.
    pub(crate) state: Option<TraceState>,
    /// The context that goes on to the server where this span is not recorded, if its caller did not
    /// write it into `_meta`.
    pub(crate) passed_on: Option<TraceContext>,
    /// Its begin.
    pub(crate) began: SpanBegin,
    /// What the topic has decided about the call.
    pub(crate) verdict: OnceLock<&'static str>,
    /// The span whose child the one at the server is, if it is not this one.
    client_parent: OnceLock<TraceContext>,
    /// The span at the server, while it is open.
    pub(crate) client: Mutex<Option<OpenClientSpan>>,
    has_ended: AtomicBool,
}

/// A span at a server that has not ended.
#[derive(Debug)]
pub(crate) struct OpenClientSpan {
    pub(crate) context: TraceContext,
    pub(crate) parent: SpanId,
    pub(crate) began: SpanBegin,
    /// The server's own name of the target, if its caller spells it otherwise.
    pub(crate) own: Option<Arc<str>>,
    pub(crate) transport: &'static str,
    /// Its stay at the server, once that is measured.
    pub(crate) at_server: Option<AtServer>,
}

/// The begin of a span: the moment, and the time of the wall clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpanBegin {
    at: Instant,
    /// Microseconds of Unix time.
    pub(crate) unix_us: u64,
}

/// The traces that a caller names with a request, and whether it sent baggage.
struct SentTraces {
    /// That of `_meta`, which goes first (SEP-414), or else of the headers.
    first: Option<CallerTrace>,
    /// That of the headers beside one in `_meta`.
    second: Option<TraceContext>,
    /// Whether `_meta` names none.
    only_in_headers: bool,
    has_baggage: bool,
}

impl SentTraces {
    fn of(meta: Option<&[u8]>, in_headers: Option<Box<CallerTrace>>) -> Self {
        let in_meta = meta.and_then(named_in);
        let only_in_headers = in_meta.is_none();
        let in_headers = in_headers.map(|trace| *trace);
        let (first, second) = match (in_meta, in_headers) {
            (Some(in_meta), beside) => (Some(in_meta), beside.map(|trace| trace.parent)),
            (None, in_headers) => (in_headers, None),
        };
        Self {
            first,
            second,
            only_in_headers,
            has_baggage: meta.is_some_and(|meta| json::at(meta, &["baggage"]).is_some()),
        }
    }
}

/// The context that params name in `_meta`.
pub(crate) fn context_in(params: &[u8]) -> Option<TraceContext> {
    let meta = json::at(params, &["_meta"])?;
    Some(named_in(meta)?.parent)
}

/// The `_meta` of a request, if it may name a trace or have baggage.
fn meta_of(request: &Request) -> Option<&[u8]> {
    let payload = &request.payload;
    // Its door has looked for it in a message, and nothing has in a body alone.
    let meta = if payload.is_message() {
        payload.marked_meta()
    } else {
        json::at(payload.body_bytes(), &["_meta"])
    };
    meta.filter(|meta| may_name_trace(meta))
}

/// The trace that a `_meta` names.
fn named_in(meta: &[u8]) -> Option<CallerTrace> {
    let member = |name| json::at(meta, &[name]).and_then(json::text);
    let parent = member("traceparent")?;
    let state = member("tracestate");
    CallerTrace::parse(&parent, state.as_deref())
}

/// Whether a `_meta` may name a trace or have baggage: most do not, and are not read for it. A key may be
/// written with escapes.
fn may_name_trace(meta: &[u8]) -> bool {
    static MARKS: LazyLock<[Finder<'static>; 2]> =
        LazyLock::new(|| ["traceparent", "baggage"].map(Finder::new));
    MARKS.iter().any(|mark| mark.find(meta).is_some()) || has_escaped_letter(meta)
}

/// Whether a letter may be written as its number.
fn has_escaped_letter(params: &[u8]) -> bool {
    memchr_iter(b'\\', params).any(|at| params.get(at + 1) == Some(&b'u'))
}

impl SpanBegin {
    pub(crate) fn now() -> Self {
        Self {
            at: Instant::now(),
            unix_us: unix_ms().saturating_mul(1_000),
        }
    }

    /// The begin of a child, now: the wall clock is not read again, so that a child is never outside
    /// of its parent.
    pub(crate) fn of_child(self) -> Self {
        let at = Instant::now();
        let since = at.saturating_duration_since(self.at);
        Self {
            at,
            unix_us: self.unix_us.saturating_add(micros(since)),
        }
    }

    /// Microseconds since then.
    pub(crate) fn elapsed_us(self) -> u64 {
        micros(self.at.elapsed())
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

impl CallSpan {
    fn new(context: TraceContext) -> Self {
        Self {
            context,
            parent: None,
            link: None,
            state: None,
            passed_on: None,
            began: SpanBegin::now(),
            verdict: OnceLock::new(),
            client_parent: OnceLock::new(),
            client: Mutex::default(),
            has_ended: AtomicBool::new(false),
        }
    }

    /// The span of a call that carries out a proposal of this context, behind which no caller waits:
    /// it is towards the server alone.
    pub(crate) fn of_proposal(proposal: TraceContext) -> Box<Self> {
        let span = Self::new(proposal);
        span.has_ended.store(true, Ordering::Relaxed);
        Box::new(span)
    }

    /// Makes the span at its server a child of a proposal that the call carries out.
    pub(crate) fn follow(&self, proposal: Option<TraceContext>) {
        if let Some(proposal) = proposal {
            let _ = self.client_parent.set(proposal);
        }
    }

    /// Notes the stay of the call at its server.
    pub(crate) fn note_server(&self, at_server: AtServer) {
        if let Some(open) = self.client.lock().as_mut() {
            open.at_server = Some(at_server);
        }
    }

    /// The context of the span whose child the one at the server is.
    pub(crate) fn parent_of_client(&self) -> TraceContext {
        self.client_parent.get().copied().unwrap_or(self.context)
    }

    /// Its context, if it is recorded.
    pub(crate) fn sampled(&self) -> Option<TraceContext> {
        self.context.is_sampled.then_some(self.context)
    }

    /// Whether its end is to be recorded. It ends once.
    pub(crate) fn ends_now(&self) -> bool {
        self.context.is_sampled && !self.has_ended.swap(true, Ordering::Relaxed)
    }
}

impl Traces {
    /// Traces by these settings from now on, or not at all.
    pub fn put_in_force(&self, settings: Option<TraceSettings>) {
        *self.settings.lock() = settings;
        self.is_on.store(settings.is_some(), Ordering::Relaxed);
    }

    /// Whether anything is traced.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// The span of a request that names a tool, a prompt or a resource, while traces are on; `None`
    /// if it is not traced.
    pub(crate) fn begin(
        &self,
        id: OperationId,
        by: &Participant,
        request: &Request,
        in_headers: Option<Box<CallerTrace>>,
    ) -> Option<Box<CallSpan>> {
        // Looks at tasks are many, and their calls have spans.
        let is_about_task = matches!(request.target.as_ref()?, Target::Task(_));
        let settings = (*self.settings.lock())?;
        let meta = meta_of(request);
        let is_of_part = settings.sampled.has(id.0);
        // As most calls are where few are recorded.
        if meta.is_none() && in_headers.is_none() && !is_of_part {
            return None;
        }
        let sent = SentTraces::of(meta, in_headers);
        let (caller, link) = match sent.first {
            Some(first) if trusts(settings.parents, by) => (Some(first), sent.second),
            first => (None, first.map(|trace| trace.parent)),
        };
        let parent = caller.as_ref().map(|caller| caller.parent);
        let is_sampled = match parent {
            _ if is_about_task => false,
            Some(parent) => parent.is_sampled,
            None => is_of_part,
        };
        // One that is not recorded is there so that its baggage goes nowhere, and its context on.
        let passed_on = parent.filter(|_| sent.only_in_headers);
        if !is_sampled && !sent.has_baggage && passed_on.is_none() {
            return None;
        }
        let context = TraceContext {
            trace: parent.map_or_else(|| trace_of(id.0), |parent| parent.trace),
            span: span_of(id.0, SpanPlace::Server),
            is_sampled,
        };
        Some(Box::new(CallSpan {
            parent: parent.map(|parent| parent.span),
            link,
            state: caller.and_then(|caller| caller.state),
            passed_on,
            ..CallSpan::new(context)
        }))
    }

    /// The context of a proposal that no call is behind; `None` if it is not traced.
    pub(crate) fn root_of(&self, proposal: OperationId) -> Option<TraceContext> {
        if !self.is_on() {
            return None;
        }
        let settings = (*self.settings.lock())?;
        settings.sampled.has(proposal.0).then(|| TraceContext {
            trace: trace_of(proposal.0),
            span: span_of(proposal.0, SpanPlace::Proposal),
            is_sampled: true,
        })
    }
}

/// Whether a participant's trace context is taken as a parent: it decides what is recorded, and
/// which trace that is written into.
fn trusts(parents: TrustedParents, by: &Participant) -> bool {
    match parents {
        TrustedParents::Always => true,
        TrustedParents::Link => false,
        TrustedParents::Trusted => !by.id.is_guest() && by.capabilities.admits_head(REQUEST),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meta_is_read_for_a_trace_also_if_its_key_is_escaped() {
        let named = [
            r#"{"traceparent":"00-1"}"#,
            r#"{"baggage":"a=b"}"#,
            r#"{"\u0062aggage":"a=b"}"#,
            r#"{"tracep\u0061rent":"00-1"}"#,
        ];
        assert!(named.iter().all(|meta| may_name_trace(meta.as_bytes())));
        assert!(!may_name_trace(br#"{"progressToken":1}"#));
    }
}
