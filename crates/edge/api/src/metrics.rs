//! Metrics in the OpenMetrics text format: `/metrics`.

use axum::response::{IntoResponse, Response};
use axum::{extract::State, http::header};
use exporter::{MetricsViewer, OPEN_METRICS, gather, openmetrics};
use identity::SERVERS;

use crate::error::ApiResult;
use crate::state::{Api, Caller};

/// Metrics of the gateway, its servers, and the topics that the caller may know of.
///
/// Needs a token if the gateway requires tokens: the metrics name topics, and servers to callers
/// with `portmoot/servers`.
#[utoipa::path(
    get,
    path = "/metrics",
    responses((status = 200, body = String, content_type = "application/openmetrics-text"))
)]
pub(crate) async fn metrics(State(api): State<Api>, Caller(caller): Caller) -> ApiResult<Response> {
    let viewer = MetricsViewer::Participant {
        participant: &caller,
        sees_servers: api.holds(&caller, SERVERS, None),
    };
    let text = openmetrics(gather(&api.registry, viewer));
    Ok(([(header::CONTENT_TYPE, OPEN_METRICS)], text).into_response())
}
