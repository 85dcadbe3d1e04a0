//! Messages to the collector, over the guarded dialer.

use std::time::Duration;

use bytes::Bytes;
use config::TelemetryConfig;
use http::header::{ACCEPT, RETRY_AFTER};
use http::{HeaderMap, HeaderValue};
use oauth::dialer::{AllowedAddresses, DialError, Dialer, FetchRequest, Fetched};
use telemetry::{ExportOutcome, Signal, otlp};
use tls::ClientTls;

const PROTOBUF: &str = "application/x-protobuf";
/// The longest answer that is read, in bytes.
const EXPORT_ANSWER_BYTES_MAX: usize = 64 * 1024;
/// The longest time for which a collector is left alone at its wish.
pub(crate) const EXPORT_PAUSE_MAX: Duration = Duration::from_secs(3600);

/// The end of one message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ExportEnd {
    pub(crate) outcome: ExportOutcome,
    /// The time for which the collector wants no other message.
    pub(crate) pause: Option<Duration>,
    /// Why it has not arrived whole, in words; empty if it has.
    pub(crate) why: String,
    /// The number of values that were not taken of one that arrived in part.
    pub(crate) rejected: u64,
}

/// Sends to one collector.
#[derive(Debug)]
pub(crate) struct CollectorClient {
    config: TelemetryConfig,
    reach: AllowedAddresses,
    dialer: Dialer,
}

impl CollectorClient {
    pub(crate) fn new(config: TelemetryConfig) -> Self {
        Self {
            reach: AllowedAddresses::of(&config.endpoint, &config.allowed),
            dialer: Dialer::new(ClientTls::of_machine()),
            config,
        }
    }

    /// Sends a message, once. It ends within the dialer's limit.
    pub(crate) async fn send(&self, signal: Signal, message: Bytes) -> ExportEnd {
        let bytes = message.len();
        let fetched = match self.request(signal, message) {
            Ok(request) => self.dialer.fetch(request, &self.reach).await,
            Err(error) => Err(error),
        };
        match fetched {
            Ok(fetched) => answered(signal, bytes, &fetched),
            Err(error) => not_answered(&error),
        }
    }

    fn request(&self, signal: Signal, message: Bytes) -> Result<FetchRequest, DialError> {
        let url = self.config.url_of(signal);
        let request = FetchRequest::post(&url, PROTOBUF, message)?;
        let mut request = request
            .bytes_max(EXPORT_ANSWER_BYTES_MAX)
            .header(ACCEPT, HeaderValue::from_static(PROTOBUF));
        for header in &self.config.headers {
            if let Ok(mut value) = HeaderValue::from_str(header.value.expose()) {
                value.set_sensitive(true);
                request = request.header(header.name.clone(), value);
            }
        }
        Ok(request)
    }
}

/// The end of a message that was answered.
fn answered(signal: Signal, bytes: usize, fetched: &Fetched) -> ExportEnd {
    let status = fetched.status.as_u16();
    let pause = matches!(status, 429 | 502 | 503 | 504)
        .then(|| pause(&fetched.headers))
        .flatten();
    let mut rejected = 0;
    let (outcome, why) = match status {
        200..=299 => match otlp::rejected(signal, &fetched.body) {
            None => (ExportOutcome::Sent, String::new()),
            Some(part) => {
                let words = json::visible::line(&part.why);
                rejected = u64::try_from(part.number).unwrap_or_default();
                let why = format!("{} values were not taken: {words}", part.number);
                (ExportOutcome::Partial, why)
            }
        },
        413 => {
            let why = format!("the answer to {bytes} bytes has the status 413");
            (ExportOutcome::TooLarge, why)
        }
        _ => {
            let outcome = match status {
                429 => ExportOutcome::Throttled,
                _ if pause.is_some() => ExportOutcome::Throttled,
                400..=499 => ExportOutcome::Refused,
                _ => ExportOutcome::Failed,
            };
            (outcome, format!("the answer has the status {status}"))
        }
    };
    ExportEnd {
        outcome,
        pause,
        why,
        rejected,
    }
}

/// The end of a message without an answer.
fn not_answered(error: &DialError) -> ExportEnd {
    let (outcome, why) = match error {
        // Where it points to may have a secret in it.
        DialError::Redirected { host, .. } => {
            let why = format!("`{host}` redirects, which is not followed");
            (ExportOutcome::Refused, why)
        }
        error => (ExportOutcome::Failed, error.to_string()),
    };
    ExportEnd {
        outcome,
        pause: None,
        why,
        rejected: 0,
    }
}

/// The time that `Retry-After` asks for, in seconds; one that is a date is not read.
fn pause(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let seconds = Duration::from_secs(seconds.parse().ok()?);
    Some(seconds.min(EXPORT_PAUSE_MAX))
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    fn end(status: u16, retry_after: Option<&'static str>) -> ExportEnd {
        let mut headers = HeaderMap::new();
        if let Some(text) = retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from_static(text));
        }
        let fetched = Fetched {
            status: StatusCode::from_u16(status).unwrap(),
            headers,
            body: Bytes::new(),
        };
        answered(Signal::Metrics, 7, &fetched)
    }

    #[test]
    fn each_status_has_its_outcome() {
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        let cases = [
            (200, None, ExportOutcome::Sent, None),
            (202, Some("9"), ExportOutcome::Sent, None),
            (400, Some("9"), ExportOutcome::Refused, None),
            (401, None, ExportOutcome::Refused, None),
            (413, None, ExportOutcome::TooLarge, None),
            (429, None, ExportOutcome::Throttled, None),
            (429, Some("7"), ExportOutcome::Throttled, seconds(7)),
            (429, Some("999999"), ExportOutcome::Throttled, seconds(3600)),
            (429, Some("soon"), ExportOutcome::Throttled, None),
            (503, Some("2"), ExportOutcome::Throttled, seconds(2)),
            (503, None, ExportOutcome::Failed, None),
            (500, Some("2"), ExportOutcome::Failed, None),
        ];
        for (status, retry_after, outcome, pause) in cases {
            let end = end(status, retry_after);
            assert_eq!((end.outcome, end.pause), (outcome, pause), "{status}");
            assert_eq!(end.why.is_empty(), outcome == ExportOutcome::Sent);
        }
    }
}
