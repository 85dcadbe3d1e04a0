//! Spans that have ended, and the buffer in which they wait for the exporter.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use platform::Mutex;

use crate::context::{SpanId, TraceContext};
use crate::span_attributes::SpanAttributes;

/// The most spans that wait for the exporter.
pub const SPANS_MAX: usize = 4096;

/// The side of a request on which a span is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// It serves the request of a client.
    Server,
    /// It makes a request to a server.
    Client,
    /// Neither.
    Internal,
}

/// A span that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpanRecord {
    /// Its ids.
    pub context: TraceContext,
    /// Its parent in the same trace.
    pub parent: Option<SpanId>,
    /// Another span that it has to do with.
    pub link: Option<TraceContext>,
    /// Its name: the method, and what it is about.
    pub name: String,
    /// Its side of a request.
    pub kind: SpanKind,
    /// Its begin, in microseconds of Unix time.
    pub start_us: u64,
    /// Its duration, in microseconds.
    pub duration_us: u64,
    /// Its attributes.
    pub attributes: SpanAttributes,
    /// Whether it is an error.
    pub is_error: bool,
}

impl SpanRecord {
    /// Adds an attribute that is a text.
    pub fn text(&mut self, name: &str, value: impl AsRef<str>) {
        self.attributes.text(name, value.as_ref());
    }
}

/// The spans that wait for the exporter. A span for which there is no room is dropped and counted.
#[derive(Debug, Default)]
pub struct SpanBuffer {
    waiting: Mutex<VecDeque<SpanRecord>>,
    dropped: AtomicU64,
}

impl SpanBuffer {
    /// Adds a span.
    pub fn push(&self, span: SpanRecord) {
        let mut waiting = self.waiting.lock();
        if waiting.len() < SPANS_MAX {
            waiting.push_back(span);
            return;
        }
        drop(waiting);
        self.drop_spans(1);
    }

    /// Takes the oldest spans, at most so many.
    #[must_use]
    pub fn take(&self, most: usize) -> Vec<SpanRecord> {
        let mut waiting = self.waiting.lock();
        let count = waiting.len().min(most);
        waiting.drain(..count).collect()
    }

    /// The number of spans that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.lock().len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Counts spans that reach no collector.
    pub fn drop_spans(&self, number: usize) {
        let number = u64::try_from(number).unwrap_or(u64::MAX);
        self.dropped.fetch_add(number, Ordering::Relaxed);
    }

    /// The number of spans that were dropped.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::{SpanPlace, span_of, trace_of};

    fn span(operation: u128) -> SpanRecord {
        SpanRecord {
            context: TraceContext {
                trace: trace_of(operation),
                span: span_of(operation, SpanPlace::Server),
                is_sampled: true,
            },
            parent: None,
            link: None,
            name: operation.to_string(),
            kind: SpanKind::Server,
            start_us: 0,
            duration_us: 0,
            attributes: SpanAttributes::default(),
            is_error: false,
        }
    }

    #[test]
    fn a_full_buffer_drops_what_comes_and_counts_it() {
        let buffer = SpanBuffer::default();
        for operation in 0..SPANS_MAX + 3 {
            buffer.push(span(operation as u128));
        }
        assert_eq!((buffer.len(), buffer.dropped()), (SPANS_MAX, 3));
        let taken = buffer.take(2);
        assert_eq!([&*taken[0].name, &*taken[1].name], ["0", "1"]);
        buffer.push(span(9));
        assert_eq!((buffer.len(), buffer.dropped()), (SPANS_MAX - 1, 3));
        assert_eq!(buffer.take(usize::MAX).len(), SPANS_MAX - 1);
        assert!(buffer.is_empty());
    }
}
