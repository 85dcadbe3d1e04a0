//! The buffer in which spans wait for the exporter.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use platform::Mutex;

use crate::otlp::SpanBatch;
use crate::span::SpanRecord;

/// The most spans that wait for the exporter.
pub const SPANS_MAX: usize = 4096;
/// The most spans of one message.
pub const SPANS_PER_MESSAGE: usize = 512;

/// The spans that wait for the exporter, by the messages as which they are sent. A span for which there is
/// no room is dropped and counted.
#[derive(Debug, Default)]
pub struct SpanBuffer {
    waiting: Mutex<WaitingSpans>,
    dropped: AtomicU64,
}

#[derive(Debug, Default)]
struct WaitingSpans {
    /// All but the last one are whole, and none is empty.
    batches: VecDeque<SpanBatch>,
    /// The number of spans in them.
    number: usize,
    /// The bytes of the spans that were taken last: a batch is given memory for as many, and does not
    /// grow step by step.
    usual_bytes: usize,
}

impl WaitingSpans {
    fn add(&mut self, span: &SpanRecord<'_>) {
        self.number += 1;
        match self.batches.back_mut() {
            Some(last) if last.number() < SPANS_PER_MESSAGE => last.add(span),
            _ => {
                let mut batch = SpanBatch::with_capacity(self.usual_bytes);
                batch.add(span);
                self.batches.push_back(batch);
            }
        }
    }
}

impl SpanBuffer {
    /// Adds a span.
    pub fn push(&self, span: &SpanRecord<'_>) {
        let mut waiting = self.waiting.lock();
        if waiting.number < SPANS_MAX {
            waiting.add(span);
            return;
        }
        drop(waiting);
        self.drop_spans(1);
    }

    /// Takes the oldest spans, at most [`SPANS_PER_MESSAGE`]; `None` if none waits.
    #[must_use]
    pub fn take(&self) -> Option<SpanBatch> {
        let mut waiting = self.waiting.lock();
        let batch = waiting.batches.pop_front()?;
        waiting.number -= batch.number();
        waiting.usual_bytes = batch.span_bytes();
        Some(batch)
    }

    /// The number of spans that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.lock().number
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
    use crate::context::TraceContext;
    use crate::sampling::{SpanPlace, span_of, trace_of};
    use crate::span::{SpanKind, SpanName};

    fn push(buffer: &SpanBuffer, operation: u128) {
        let name = operation.to_string();
        buffer.push(&SpanRecord {
            context: TraceContext {
                trace: trace_of(operation),
                span: span_of(operation, SpanPlace::Server),
                is_sampled: true,
            },
            parent: None,
            link: None,
            name: SpanName {
                action: &name,
                target: None,
            },
            kind: SpanKind::Server,
            start_us: 0,
            duration_us: 0,
            attributes: &[],
            is_error: false,
        });
    }

    #[test]
    fn a_full_buffer_drops_what_comes_and_counts_it() {
        let buffer = SpanBuffer::default();
        for operation in 0..SPANS_MAX + 3 {
            push(&buffer, operation as u128);
        }
        assert_eq!((buffer.len(), buffer.dropped()), (SPANS_MAX, 3));
        let taken = buffer.take().unwrap();
        assert_eq!(taken.number(), SPANS_PER_MESSAGE);
        assert_eq!(buffer.len(), SPANS_MAX - SPANS_PER_MESSAGE);
        push(&buffer, 9);
        let others = std::iter::from_fn(|| buffer.take());
        let numbers: Vec<_> = others.map(|batch| batch.number()).collect();
        // What came last did not fit into the last message.
        let mut expected = vec![SPANS_PER_MESSAGE; SPANS_MAX / SPANS_PER_MESSAGE - 1];
        expected.push(1);
        assert_eq!(numbers, expected);
        assert!(buffer.is_empty());
    }

    #[test]
    fn spans_are_taken_in_their_order() {
        let buffer = SpanBuffer::default();
        for operation in 0..SPANS_PER_MESSAGE + 1 {
            push(&buffer, operation as u128);
        }
        let names = |batch: SpanBatch| {
            let names: Vec<String> = batch
                .into_spans()
                .into_iter()
                .map(|span| span.name)
                .collect();
            (names[0].clone(), names.len())
        };
        let taken = [buffer.take().unwrap(), buffer.take().unwrap()];
        let expected = [("0".to_owned(), SPANS_PER_MESSAGE), ("512".to_owned(), 1)];
        assert_eq!(taken.map(names), expected);
        assert!(buffer.take().is_none());
    }
}
