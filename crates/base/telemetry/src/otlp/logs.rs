//! Records of a log as the message of OTLP.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::logs::v1::{
    LogRecord as RecordMessage, ResourceLogs, ScopeLogs, SeverityNumber,
};
use prost::Message;

use super::{resource_message, scope};
use crate::log_record::{LogAttribute, LogRecord, LogValue};
use crate::resource::TelemetryResource;

/// The message that has these records: an encoded `ExportLogsServiceRequest`.
#[must_use]
pub fn logs_message(records: Vec<LogRecord>, resource: &TelemetryResource) -> Vec<u8> {
    let of_scope = ScopeLogs {
        scope: Some(scope()),
        log_records: records.into_iter().map(record).collect(),
        ..ScopeLogs::default()
    };
    let of_resource = ResourceLogs {
        resource: Some(resource_message(resource)),
        scope_logs: vec![of_scope],
        ..ResourceLogs::default()
    };
    let request = ExportLogsServiceRequest {
        resource_logs: vec![of_resource],
    };
    request.encode_to_vec()
}

fn record(record: LogRecord) -> RecordMessage {
    let at_ns = record.at_ms.saturating_mul(1_000_000);
    let severity = if record.is_warning {
        SeverityNumber::Warn
    } else {
        SeverityNumber::Info
    };
    let trace = record.trace.map(|trace| trace.bytes().to_vec());
    RecordMessage {
        time_unix_nano: at_ns,
        observed_time_unix_nano: at_ns,
        severity_number: severity as i32,
        event_name: record.event.to_owned(),
        body: Some(text(record.body)),
        attributes: record.attributes.into_iter().map(attribute).collect(),
        trace_id: trace.unwrap_or_default(),
        ..RecordMessage::default()
    }
}

fn attribute(attribute: LogAttribute) -> KeyValue {
    let value = match attribute.value {
        LogValue::Text(value) => text(value),
        LogValue::Number(number) => AnyValue {
            value: Some(Value::IntValue(i64::try_from(number).unwrap_or(i64::MAX))),
        },
    };
    KeyValue {
        key: attribute.name.to_owned(),
        value: Some(value),
        ..KeyValue::default()
    }
}

fn text(text: String) -> AnyValue {
    AnyValue {
        value: Some(Value::StringValue(text)),
    }
}
