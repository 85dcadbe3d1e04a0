//! `[telemetry]` and the variables of OpenTelemetry.

use std::time::Duration;

use hyper::header::AUTHORIZATION;
use telemetry::Signal;
use telemetry::trace::{SampledPart, TraceSettings, TrustedParents};

use super::{BASE, env, good, problems, tree};
use crate::TelemetryConfig;
use crate::check::check;
use crate::node::{DEFAULTS, Layer, SourceOrigin};
use crate::secrets::Outside;
use crate::toml_file;

/// The export of a file in an environment with these variables, and the notices about them.
fn read(toml: &str, variables: &[(&str, &str)]) -> (Option<TelemetryConfig>, Vec<String>) {
    let with = |name: &str| {
        let mut all = variables.iter();
        let found = all.find(|(known, _)| *known == name);
        found.map_or_else(|| env(name), |(_, value)| Some((*value).to_owned()))
    };
    let mut notices = Vec::new();
    let config = check(&tree(toml), &Outside::unread(&with), &mut notices);
    (config.unwrap().telemetry, notices)
}

/// The attributes of a gateway, one a line.
fn attributes(config: &TelemetryConfig) -> String {
    let all = config.resource.attributes().iter();
    let all = all.map(|one| format!("{}={}\n", one.name, one.value));
    all.collect()
}

#[test]
fn telemetry_is_off_unless_a_collector_is_named() {
    assert_eq!(read("", &[]), (None, Vec::new()));
    let named = [
        ("OTEL_SERVICE_NAME", "gw"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "5000"),
    ];
    assert_eq!(read("", &named), (None, Vec::new()));
}

#[test]
fn the_table_is_read_with_its_defaults_and_all_of_its_keys() {
    let config = good("[telemetry]\notlp = 'http://127.0.0.1:4318'\n");
    let config = config.telemetry.unwrap();
    assert_eq!(config.interval, Duration::from_secs(60));
    assert_eq!(
        config.url_of(Signal::Metrics),
        "http://127.0.0.1:4318/v1/metrics"
    );
    assert!(config.headers.is_empty() && config.allowed.is_empty());
    assert_eq!(attributes(&config), "service.name=portmoot\n");
    let config = good(
        "[telemetry]\notlp = 'https://otel.example/tenant/'\ntoken_env = 'TOKEN'\ninterval = '5s'\nallow_private = ['10.0.0.0/8']\n",
    );
    let config = config.telemetry.unwrap();
    assert_eq!(config.interval, Duration::from_secs(5));
    assert_eq!(
        config.url_of(Signal::Metrics),
        "https://otel.example/tenant/v1/metrics"
    );
    assert_eq!(config.allowed.len(), 1);
    let [header] = config.headers.as_slice() else {
        panic!("{config:?}");
    };
    assert_eq!(header.name, AUTHORIZATION);
    assert_eq!(header.value.expose(), "Bearer hush-hush-hush-hush");
    assert!(!format!("{config:?}").contains("hush"), "{config:?}");
}

#[test]
fn a_part_of_the_calls_is_traced_all_by_default() {
    let otlp = "[telemetry]\notlp = 'http://127.0.0.1:4318'\n";
    let of = |more: &str, variables: &[(&str, &str)]| {
        let (config, notices) = read(&format!("{otlp}{more}"), variables);
        (config.unwrap().traces, notices.len())
    };
    let traces = |part, parents| {
        let sampled = SampledPart::new(part).unwrap();
        Some(TraceSettings { sampled, parents })
    };
    let trusted = TrustedParents::Trusted;
    assert_eq!(of("", &[]), (traces(1.0, trusted), 0));
    assert_eq!(of("sample = 0.05", &[]), (traces(0.05, trusted), 0));
    assert_eq!(of("sample = 0", &[]), (None, 0));
    let always = traces(1.0, TrustedParents::Always);
    assert_eq!(of("parent = 'always'", &[]), (always, 0));
    let sampler = |name| ("OTEL_TRACES_SAMPLER", name);
    let part = |part| ("OTEL_TRACES_SAMPLER_ARG", part);
    let ratio = [sampler("parentbased_traceidratio"), part("0.25")];
    assert_eq!(of("", &ratio), (traces(0.25, trusted), 0));
    assert_eq!(of("sample = 0.5", &ratio), (traces(0.5, trusted), 0));
    assert_eq!(of("", &[sampler("always_off")]), (None, 0));
    assert_eq!(
        of("", &[sampler("jaeger_remote")]),
        (traces(1.0, trusted), 1)
    );
    let wrong = [sampler("traceidratio"), part("7")];
    assert_eq!(of("", &wrong), (traces(1.0, trusted), 1));
    let found = problems(&format!("{otlp}sample = 1.5"));
    assert!(
        found.contains("`telemetry.sample` must be a part from 0 to 1"),
        "{found}"
    );
}

#[test]
fn the_variables_of_opentelemetry_hold_where_the_table_says_nothing() {
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318/"),
        (
            "OTEL_EXPORTER_OTLP_HEADERS",
            "x-tenant=a%20b,authorization=Basic%20Zm9v",
        ),
        ("OTEL_SERVICE_NAME", "gw"),
        ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=prod"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "5000"),
    ];
    let (config, notices) = read("", &variables);
    let config = config.unwrap();
    assert_eq!(notices, [""; 0]);
    assert_eq!(config.endpoint.as_str(), "http://127.0.0.1:4318/");
    assert_eq!(config.interval, Duration::from_secs(5));
    assert_eq!(
        attributes(&config),
        "service.name=gw\ndeployment.environment=prod\n"
    );
    let values: Vec<_> = config
        .headers
        .iter()
        .map(|one| one.value.expose())
        .collect();
    assert_eq!(values, ["a b", "Basic Zm9v"]);
    let table = "[telemetry]\notlp = 'http://127.0.0.1:1'\ntoken_env = 'TOKEN'\ninterval = '9s'\n";
    let (config, _) = read(table, &variables);
    let config = config.unwrap();
    assert_eq!(config.endpoint.as_str(), "http://127.0.0.1:1/");
    assert_eq!(config.interval, Duration::from_secs(9));
    let values: Vec<_> = config
        .headers
        .iter()
        .map(|one| one.value.expose())
        .collect();
    assert_eq!(values, ["a b", "Bearer hush-hush-hush-hush"]);
    let (config, _) = read("[telemetry]\ninterval = '9s'\n", &variables);
    assert_eq!(config.unwrap().endpoint.as_str(), "http://127.0.0.1:4318/");
    let mut disabled = variables.to_vec();
    disabled.push(("OTEL_SDK_DISABLED", "TRUE"));
    let (config, notices) = read(table, &disabled);
    assert_eq!(config, None);
    assert_eq!(
        notices,
        ["no telemetry is exported: the environment has OTEL_SDK_DISABLED"]
    );
}

#[test]
fn a_variable_that_cannot_be_used_is_ignored_with_a_notice() {
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");
    let cases = [
        (
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            "OTEL_EXPORTER_OTLP_ENDPOINT is ignored: OTEL_EXPORTER_OTLP_PROTOCOL is grpc, and the gateway speaks http/protobuf",
        ),
        (
            ("OTEL_EXPORTER_OTLP_HEADERS", "a b=secret"),
            "OTEL_EXPORTER_OTLP_HEADERS is ignored: an entry of it is no header",
        ),
        (
            ("OTEL_EXPORTER_OTLP_HEADERS", "secret"),
            "OTEL_EXPORTER_OTLP_HEADERS is ignored: it must be `name=value,name=value`, with other characters as %XX",
        ),
        (
            ("OTEL_METRIC_EXPORT_INTERVAL", "1s"),
            "OTEL_METRIC_EXPORT_INTERVAL is ignored: it must be 100 to 86400000 milliseconds",
        ),
    ];
    for (variable, expect) in cases {
        let (config, notices) = read("", &[endpoint, variable]);
        assert_eq!(notices, [expect]);
        assert_eq!(config.is_none(), variable.1 == "grpc");
    }
    for address in ["ftp://x", "http://127.0.0.1:1/?a=b", "nothing"] {
        let (config, notices) = read("", &[("OTEL_EXPORTER_OTLP_ENDPOINT", address)]);
        assert_eq!((config, notices.len()), (None, 1));
        assert!(notices[0].starts_with("OTEL_EXPORTER_OTLP_ENDPOINT is ignored: "));
    }
}

#[test]
fn a_table_that_cannot_be_used_is_refused() {
    let with = |more: &str| format!("[telemetry]\notlp = 'http://127.0.0.1:4318'\n{more}");
    let cases = [
        (
            "[telemetry]\n".to_owned(),
            "`[telemetry]` names no collector [config_missing]",
        ),
        (
            "[telemetry]\notlp = 'ftp://x'\n".to_owned(),
            "`telemetry.otlp`: `ftp://x` cannot be fetched",
        ),
        (
            "[telemetry]\notlp = 'https://x.example/?key=1'\n".to_owned(),
            "`telemetry.otlp` has a query [config_value]",
        ),
        (
            with("interval = '10ms'"),
            "`telemetry.interval` must be 100 ms to a day [config_value]",
        ),
        (
            with("interval = '2d'"),
            "`telemetry.interval` must be 100 ms to a day [config_value]",
        ),
        (
            with("token = 'hush'"),
            "`telemetry.token`: a secret must not be in the configuration file [config_token]",
        ),
        (
            with("token_env = 'GONE'"),
            "`telemetry.token_env`: the environment variable `GONE` is not set [config_token]",
        ),
        (
            with("token_env = 'BLANK'"),
            "the token of `[telemetry]` has blanks or other characters than ASCII [config_token]",
        ),
        (with("allow_private = ['x']"), "`telemetry.allow_private`: "),
        (
            with("grpc = true"),
            "unknown key `grpc` in `[telemetry]` [config_unknown_key]",
        ),
    ];
    for (toml, expect) in cases {
        let found = problems(&toml);
        assert!(found.contains(expect), "{toml}\n{found}");
        assert_eq!(found.matches(" [config_").count(), 1, "{found}");
    }
}

#[test]
fn a_file_that_was_found_exports_no_telemetry() {
    let mut tree = toml_file::read(&Layer::file(DEFAULTS, SourceOrigin::Operator, BASE)).unwrap();
    let found = "[telemetry]\notlp = 'http://127.0.0.1:4318'\n";
    let found = Layer::file("portmoot.toml", SourceOrigin::Found, found);
    tree.overlay(toml_file::read(&found).unwrap());
    let problems = check(&tree, &Outside::unread(&env), &mut Vec::new()).unwrap_err();
    let [problem] = problems.as_slice() else {
        panic!("{problems:?}");
    };
    let expect = "`[telemetry]`: a file that you did not name exports no telemetry";
    assert!(problem.to_string().contains(expect), "{problem}");
}
