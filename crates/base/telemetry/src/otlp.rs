//! Messages of OTLP: what is sent to a collector, and what it answers. The types are those that the
//! OpenTelemetry project generates; spans alone, of which there are many, are written field by field.

mod logs;
mod metrics;
mod spans;

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceResponse;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceResponse;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use opentelemetry_proto::tonic::common::v1::{
    AnyValue, InstrumentationScope, KeyValue, any_value::Value,
};
use opentelemetry_proto::tonic::resource::v1::Resource as ResourceMessage;
use prost::Message;

pub use logs::logs_message;
pub use metrics::{MetricTimes, metrics_message};
pub use spans::SpanBatch;

use crate::exports::Signal;
use crate::resource::TelemetryResource;

/// The name of what measures, among others of a process.
const SCOPE: &str = "portmoot";

/// A part of a message that a collector has not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedPart {
    /// The number of values.
    pub number: i64,
    /// The reason, in the collector's words.
    pub why: String,
}

/// The part of a message that a collector has not taken, by its answer; `None` if it has taken all.
#[must_use]
pub fn rejected(signal: Signal, answer: &[u8]) -> Option<RejectedPart> {
    // A collector that answers otherwise has taken all: its status says so.
    let (number, why) = match signal {
        Signal::Metrics => {
            let answer = ExportMetricsServiceResponse::decode(answer).ok()?;
            let part = answer.partial_success?;
            (part.rejected_data_points, part.error_message)
        }
        Signal::Traces => {
            let answer = ExportTraceServiceResponse::decode(answer).ok()?;
            let part = answer.partial_success?;
            (part.rejected_spans, part.error_message)
        }
        Signal::Logs => {
            let answer = ExportLogsServiceResponse::decode(answer).ok()?;
            let part = answer.partial_success?;
            (part.rejected_log_records, part.error_message)
        }
    };
    (number > 0).then_some(RejectedPart { number, why })
}

fn scope() -> InstrumentationScope {
    InstrumentationScope {
        name: SCOPE.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    }
}

fn resource_message(resource: &TelemetryResource) -> ResourceMessage {
    let all = resource.attributes().iter();
    ResourceMessage {
        attributes: all.map(|one| attribute(&one.name, &one.value)).collect(),
        ..ResourceMessage::default()
    }
}

fn attribute(name: &str, value: &str) -> KeyValue {
    KeyValue {
        key: name.to_owned(),
        value: Some(AnyValue {
            value: Some(Value::StringValue(value.to_owned())),
        }),
        ..KeyValue::default()
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsPartialSuccess;

    use super::*;

    #[test]
    fn an_answer_says_what_was_not_taken() {
        let answer = |rejected_data_points| {
            let part = ExportMetricsPartialSuccess {
                rejected_data_points,
                error_message: "too old".to_owned(),
            };
            let answer = ExportMetricsServiceResponse {
                partial_success: Some(part),
            };
            answer.encode_to_vec()
        };
        let part = rejected(Signal::Metrics, &answer(3)).unwrap();
        assert_eq!((part.number, &*part.why), (3, "too old"));
        for taken in [answer(0), Vec::new(), b"{}".to_vec()] {
            assert_eq!(rejected(Signal::Metrics, &taken), None);
            assert_eq!(rejected(Signal::Traces, &taken), None);
        }
    }
}
