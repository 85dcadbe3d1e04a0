//! Table `[telemetry]`, and the environment variables of OpenTelemetry below it.

use std::fmt;
use std::time::Duration;

use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue};
use oauth::Secret;
use oauth::dialer::{Subnet, parse_url};
use telemetry::trace::{SampledPart, TraceSettings, TrustedParents};
use telemetry::{ResourceAttribute, Signal, TelemetryResource};
use url::Url;

use crate::expand::Env;
use crate::node::SourceOrigin;
use crate::reader::Table;
use crate::secrets::Outside;
use crate::services::{TOKEN, allowed, secret, sendable, url};

const KEY: &str = "telemetry";
const EXAMPLE: &str = "for example \"http://127.0.0.1:4318\"";

/// The time between two messages of metrics, unless another is configured.
const TELEMETRY_INTERVAL: Duration = Duration::from_secs(60);
/// The shortest time between two messages of metrics.
const TELEMETRY_INTERVAL_MIN: Duration = Duration::from_millis(100);
/// The longest time between two messages of metrics.
const TELEMETRY_INTERVAL_MAX: Duration = Duration::from_secs(86_400);

// Variables of OpenTelemetry, by their names in its specification.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const PROTOCOL: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
const SERVICE_NAME: &str = "OTEL_SERVICE_NAME";
const RESOURCE_ATTRIBUTES: &str = "OTEL_RESOURCE_ATTRIBUTES";
const INTERVAL: &str = "OTEL_METRIC_EXPORT_INTERVAL";
const SAMPLER: &str = "OTEL_TRACES_SAMPLER";
const SAMPLER_ARG: &str = "OTEL_TRACES_SAMPLER_ARG";
const DISABLED: &str = "OTEL_SDK_DISABLED";

/// The protocol of OTLP that the gateway speaks.
const HTTP_PROTOBUF: &str = "http/protobuf";

/// The words of `parent`.
const PARENTS: [(&str, TrustedParents); 3] = [
    ("trusted", TrustedParents::Trusted),
    ("always", TrustedParents::Always),
    ("link", TrustedParents::Link),
];

/// A header of each message to a collector.
#[derive(Clone, PartialEq, Eq)]
pub struct ExportHeader {
    /// Its name.
    pub name: HeaderName,
    /// Its value, which is often a credential.
    pub value: Secret,
}

impl fmt::Debug for ExportHeader {
    /// Without the value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ExportHeader").field(&self.name).finish()
    }
}

/// The export of telemetry to a collector.
#[derive(Debug, Clone, PartialEq)]
pub struct TelemetryConfig {
    /// The address of the collector, to which the paths of OTLP over HTTP are added.
    pub endpoint: Url,
    /// Headers of each message.
    pub headers: Vec<ExportHeader>,
    /// The private networks in which the collector may be.
    pub allowed: Vec<Subnet>,
    /// The time between two messages of metrics.
    pub interval: Duration,
    /// The traces; `None` sends none.
    pub traces: Option<TraceSettings>,
    /// The attributes of this gateway.
    pub resource: TelemetryResource,
    /// Whether the collector gets the entries of the audit log.
    pub audit: bool,
}

impl TelemetryConfig {
    /// The address to which the messages of a signal go.
    #[must_use]
    pub fn url_of(&self, signal: Signal) -> String {
        let base = self.endpoint.as_str().trim_end_matches('/');
        format!("{base}/v1/{}", signal.as_str())
    }
}

/// Reads the table and the environment; `None` unless one of both names a collector.
pub(crate) fn read(
    root: &Table<'_>,
    outside: &Outside<'_>,
    notices: &mut Vec<String>,
) -> Option<TelemetryConfig> {
    let table = root.table(KEY);
    let mut environment = Environment {
        env: outside.env,
        notices,
    };
    let is_disabled = environment.is_disabled();
    let config = match &table {
        Some(table) => of_table(table, outside, &mut environment),
        None => environment
            .endpoint()
            .map(|endpoint| environment.config(endpoint)),
    };
    if is_disabled && config.is_some() {
        notices.push(format!(
            "no telemetry is exported: the environment has {DISABLED}"
        ));
        return None;
    }
    config
}

/// What the table says, and the environment where it says nothing.
fn of_table(
    table: &Table<'_>,
    outside: &Outside<'_>,
    environment: &mut Environment<'_>,
) -> Option<TelemetryConfig> {
    if table.location().layer.origin == SourceOrigin::Found {
        // Consent is to the configuration: what is measured would go to whom its author chose.
        let message = format!(
            "{}: a file that you did not name exports no telemetry",
            table.name()
        );
        let hint = "name your configuration with --config FILE";
        table.wrong("config_value", message, hint);
        return None;
    }
    let endpoint = endpoint(table);
    let token = secret(table, TOKEN, outside);
    let allowed = allowed(table);
    let interval = interval(table);
    let sampled = sampled(table);
    let parents = table.choice("parent", &PARENTS).unwrap_or_default();
    let audit = table.flag("audit").unwrap_or(false);
    table.finish_by_ref();
    let endpoint = match endpoint {
        Some(written) => written?,
        None => environment.endpoint().or_else(|| {
            let message = format!("{} names no collector", table.name());
            let hint = "write `otlp`, or set OTEL_EXPORTER_OTLP_ENDPOINT";
            table.wrong("config_missing", message, hint);
            None
        })?,
    };
    let mut config = environment.config(endpoint);
    if let Some(token) = sendable(table, token.ok()?)? {
        let bearer = Secret::new(format!("Bearer {}", token.expose()));
        config.headers.retain(|header| header.name != AUTHORIZATION);
        config.headers.push(ExportHeader {
            name: AUTHORIZATION,
            value: bearer,
        });
    }
    config.allowed = allowed;
    config.audit = audit;
    config.interval = interval.unwrap_or(config.interval);
    config.traces = traces(
        sampled.or(config.traces.map(|traces| traces.sampled)),
        parents,
    );
    Some(config)
}

/// The address under `otlp`; `Some(None)` of one that cannot be used, which is noted.
fn endpoint(table: &Table<'_>) -> Option<Option<Url>> {
    table.get("otlp")?;
    let written = url(table, "otlp", EXAMPLE);
    let has_query = written.as_ref().is_some_and(|url| url.query().is_some());
    if has_query {
        let message = format!("`{}` has a query", table.full("otlp"));
        let hint = "the gateway adds the path of each signal: secrets go into `token`";
        table.note_value("otlp", message, hint);
    }
    Some(written.filter(|_| !has_query))
}

/// The part of operations that is traced.
fn sampled(table: &Table<'_>) -> Option<SampledPart> {
    let part = table.decimal("sample")?;
    let sampled = SampledPart::new(part);
    if sampled.is_none() {
        let message = format!("`{}` must be a part from 0 to 1", table.full("sample"));
        table.note_value("sample", message, "for example 0.05");
    }
    sampled
}

/// Traces of this part; none of no part.
fn traces(sampled: Option<SampledPart>, parents: TrustedParents) -> Option<TraceSettings> {
    let sampled = sampled.filter(|sampled| *sampled != SampledPart::NONE)?;
    Some(TraceSettings { sampled, parents })
}

fn interval(table: &Table<'_>) -> Option<Duration> {
    let interval = table.duration("interval")?;
    let range = TELEMETRY_INTERVAL_MIN..=TELEMETRY_INTERVAL_MAX;
    if !range.contains(&interval) {
        let message = format!("`{}` must be 100 ms to a day", table.full("interval"));
        table.note_value("interval", message, "for example \"60s\"");
    }
    Some(interval)
}

/// The variables of OpenTelemetry. One that cannot be used is ignored with a notice, as its
/// specification wants it: no program fails to start because of it.
struct Environment<'e> {
    env: Env<'e>,
    notices: &'e mut Vec<String>,
}

impl Environment<'_> {
    fn get(&self, name: &str) -> Option<String> {
        (self.env)(name).filter(|value| !value.trim().is_empty())
    }

    fn ignore(&mut self, name: &str, why: &str) {
        self.notices.push(format!("{name} is ignored: {why}"));
    }

    fn is_disabled(&self) -> bool {
        self.get(DISABLED)
            .is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
    }

    fn endpoint(&mut self) -> Option<Url> {
        let written = self.get(ENDPOINT)?;
        let protocol = self.get(PROTOCOL);
        if let Some(other) = protocol.filter(|protocol| protocol.trim() != HTTP_PROTOBUF) {
            let other = json::visible::line(&other);
            let why = format!("{PROTOCOL} is {other}, and the gateway speaks {HTTP_PROTOBUF}");
            self.ignore(ENDPOINT, &why);
            return None;
        }
        match parse_url(written.trim()) {
            Ok(url) if url.query().is_none() => Some(url),
            Ok(_) => {
                self.ignore(ENDPOINT, "it has a query");
                None
            }
            Err(error) => {
                self.ignore(ENDPOINT, &error.to_string());
                None
            }
        }
    }

    /// The export to a collector as the environment wants it.
    fn config(&mut self, endpoint: Url) -> TelemetryConfig {
        let attributes = self.list(RESOURCE_ATTRIBUTES);
        let service_name = self.get(SERVICE_NAME);
        TelemetryConfig {
            endpoint,
            headers: self.headers(),
            allowed: Vec::new(),
            interval: self.interval().unwrap_or(TELEMETRY_INTERVAL),
            traces: traces(Some(self.sampled()), TrustedParents::default()),
            resource: TelemetryResource::new(attributes, service_name.as_deref()),
            audit: false,
        }
    }

    fn list(&mut self, name: &str) -> Vec<ResourceAttribute> {
        let Some(text) = self.get(name) else {
            return Vec::new();
        };
        ResourceAttribute::list(&text).unwrap_or_else(|error| {
            self.ignore(name, &error.to_string());
            Vec::new()
        })
    }

    fn headers(&mut self) -> Vec<ExportHeader> {
        let mut headers = Vec::new();
        for ResourceAttribute { name, value } in self.list(HEADERS) {
            // The value may be a secret, and is in no message.
            let parsed = name.parse::<HeaderName>();
            match parsed {
                Ok(name) if HeaderValue::from_str(&value).is_ok() => headers.push(ExportHeader {
                    name,
                    value: Secret::new(value),
                }),
                Ok(_) | Err(_) => self.ignore(HEADERS, "an entry of it is no header"),
            }
        }
        headers
    }

    fn sampled(&mut self) -> SampledPart {
        let Some(sampler) = self.get(SAMPLER) else {
            return SampledPart::ALL;
        };
        // Whether a parent decides is said by `parent`.
        match sampler.trim().trim_start_matches("parentbased_") {
            "always_on" => return SampledPart::ALL,
            "always_off" => return SampledPart::NONE,
            "traceidratio" => {}
            _ => {
                self.ignore(SAMPLER, "it is no sampler that the gateway has");
                return SampledPart::ALL;
            }
        }
        let part = self.get(SAMPLER_ARG).map(|part| part.trim().parse());
        let sampled = match part {
            None => Some(SampledPart::ALL),
            Some(part) => part.ok().and_then(SampledPart::new),
        };
        sampled.unwrap_or_else(|| {
            self.ignore(SAMPLER_ARG, "it must be a part from 0 to 1");
            SampledPart::ALL
        })
    }

    fn interval(&mut self) -> Option<Duration> {
        let written = self.get(INTERVAL)?;
        let interval = written.trim().parse().ok().map(Duration::from_millis);
        let range = TELEMETRY_INTERVAL_MIN..=TELEMETRY_INTERVAL_MAX;
        let usable = interval.filter(|interval| range.contains(interval));
        if usable.is_none() {
            self.ignore(INTERVAL, "it must be 100 to 86400000 milliseconds");
        }
        usable
    }
}
