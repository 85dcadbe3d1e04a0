//! Spans: their contexts, which of them are recorded, and the buffer in which they wait.

pub use crate::context::{SpanId, TraceContext, TraceId, Traceparent};
pub use crate::digits::OperationDigits;
pub use crate::sampling::{SampledPart, SpanPlace, span_of, trace_of};
pub use crate::settings::{TraceSettings, TrustedParents};
pub use crate::span::{SpanKind, SpanName, SpanRecord};
pub use crate::span_attributes::{SpanAttribute, SpanAttributes};
pub use crate::span_buffer::{SPANS_MAX, SPANS_PER_MESSAGE, SpanBuffer};
pub use crate::state::{CallerTrace, TraceState};
