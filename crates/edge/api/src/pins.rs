//! Pins of servers' definitions: `/api/v1/pins`.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use identity::PINS;
use model::{Refusal, RefusalCode};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use vetting::{KnownDefinition, Pin, diff};

use crate::error::{ApiResult, Problem};
use crate::state::{Api, Body, Caller, Source, blocking};

/// What is pinned of all servers, and what waits for an approval. Needs `portmoot/pins`.
#[utoipa::path(
    get,
    path = "/api/v1/pins",
    responses((status = 200, body = PinList), (status = "4XX", body = Problem))
)]
pub(crate) async fn pins(State(api): State<Api>, Caller(by): Caller) -> ApiResult<Json<PinList>> {
    api.authorize(&by, PINS, None)?;
    let pins = &api.registry.pins;
    let all = pins.servers().into_iter().flat_map(|server| {
        let rows = pins.rows(&server);
        rows.into_iter()
            .map(move |row| PinRow::of(&server, &row, false))
    });
    Ok(Json(PinList {
        pins: all.collect(),
    }))
}

/// What is pinned of one server, and how what it lists differs. Needs `portmoot/pins`.
#[utoipa::path(
    get,
    path = "/api/v1/pins/{server}",
    params(("server" = String, Path)),
    responses((status = 200, body = PinList), (status = "4XX", body = Problem))
)]
pub(crate) async fn of_server(
    State(api): State<Api>,
    Caller(by): Caller,
    Path(server): Path<String>,
) -> ApiResult<Json<PinList>> {
    api.authorize(&by, PINS, None)?;
    known(&api, &server)?;
    let rows = api.registry.pins.rows(&server);
    Ok(Json(PinList {
        pins: rows
            .iter()
            .map(|row| PinRow::of(&server, row, true))
            .collect(),
    }))
}

/// Approves definitions that wait, by their digests: what the caller has seen, and nothing else.
/// Needs `portmoot/pins`.
#[utoipa::path(
    post,
    path = "/api/v1/pins/{server}/approve",
    params(("server" = String, Path)),
    request_body = PinApproval,
    responses((status = 200, body = ApprovedPins), (status = "4XX", body = Problem))
)]
pub(crate) async fn approve(
    State(api): State<Api>,
    Caller(by): Caller,
    Source(address): Source,
    Path(server): Path<String>,
    body: ApiResult<Body<PinApproval>>,
) -> ApiResult<Json<ApprovedPins>> {
    api.authorize_giving(&by, PINS, None)?;
    known(&api, &server)?;
    let Body(PinApproval { digests }) = body?;
    let registry = Arc::clone(&api.registry);
    let approved = blocking(move || {
        let approved = registry.pins.approve(&server, &digests, &by, address)?;
        registry.list_again(&server);
        Ok(approved)
    });
    let approved = approved.await?.into_iter().map(|pin| ApprovedPin {
        part: pin.definition.part.as_str().to_owned(),
        name: pin.definition.name,
        digest: pin.digest,
    });
    Ok(Json(ApprovedPins {
        approved: approved.collect(),
    }))
}

/// Forgets what is pinned of a server: what it lists next is seen for the first time. Needs
/// `portmoot/pins`.
#[utoipa::path(
    delete,
    path = "/api/v1/pins/{server}",
    params(("server" = String, Path)),
    responses((status = 200, body = Reset), (status = "4XX", body = Problem))
)]
pub(crate) async fn reset(
    State(api): State<Api>,
    Caller(by): Caller,
    Source(address): Source,
    Path(server): Path<String>,
) -> ApiResult<Json<Reset>> {
    api.authorize_giving(&by, PINS, None)?;
    known(&api, &server)?;
    let registry = Arc::clone(&api.registry);
    let name = server.clone();
    blocking(move || {
        registry.pins.reset(&name, &by, address)?;
        registry.list_again(&name);
        Ok(())
    })
    .await?;
    Ok(Json(Reset { reset: server }))
}

/// Refuses a server that is neither configured nor pinned.
fn known(api: &Api, server: &str) -> Result<(), Refusal> {
    let is_configured = api
        .registry
        .upstreams()
        .iter()
        .any(|upstream| upstream.spec().name() == server);
    if is_configured || !api.registry.pins.rows(server).is_empty() {
        return Ok(());
    }
    Err(Refusal::new(
        RefusalCode::UnknownTarget,
        format!("there is no server `{server}`"),
    )
    .hint("list them: portmoot servers ls"))
}

/// Pinned and waiting definitions.
#[derive(Serialize, ToSchema)]
pub(crate) struct PinList {
    /// By server, part and name.
    pub pins: Vec<PinRow>,
}

/// A definition that is pinned, or waits.
#[derive(Serialize, ToSchema)]
pub(crate) struct PinRow {
    /// The server.
    pub server: String,
    /// `tool`, `prompt` or `instructions`.
    pub part: String,
    /// The server's own name of it. The server writes it: untrusted.
    pub name: String,
    /// `pinned`, `changed`, `new` or `gone`.
    pub state: String,
    /// SHA-256 of the pinned definition, with what tells its server from others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned: Option<String>,
    /// The digest of the definition that waits: what an approval names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<String>,
    /// How it differs from what is pinned. The server writes it: untrusted; hidden characters are
    /// escaped.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Difference>,
}

/// One difference of two definitions.
#[derive(Serialize, ToSchema)]
pub(crate) struct Difference {
    /// Where it is, as a JSON Pointer such as `/inputSchema/properties/path/description`; empty for
    /// the whole.
    pub path: String,
    /// JSON of the pinned definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// JSON of the one that waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// An approval of definitions.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PinApproval {
    /// The digests of the definitions, as they are listed as `waiting`.
    pub digests: Vec<String>,
}

/// The definitions that an approval has pinned.
#[derive(Serialize, ToSchema)]
pub(crate) struct ApprovedPins {
    /// The definitions.
    pub approved: Vec<ApprovedPin>,
}

/// A definition that is pinned now.
#[derive(Serialize, ToSchema)]
pub(crate) struct ApprovedPin {
    /// `tool`, `prompt` or `instructions`.
    pub part: String,
    /// The server's own name of it.
    pub name: String,
    /// Its digest.
    pub digest: String,
}

/// A server whose pins are forgotten.
#[derive(Serialize, ToSchema)]
pub(crate) struct Reset {
    /// The server.
    pub reset: String,
}

impl PinRow {
    fn of(server: &str, row: &KnownDefinition, in_full: bool) -> Self {
        let text = |pin: &Option<Pin>| {
            pin.as_ref()
                .map(|pin| pin.definition.text.clone())
                .unwrap_or_default()
        };
        let shows = in_full && row.waiting.is_some();
        let changes = if shows {
            diff(&text(&row.pin), &text(&row.waiting))
        } else {
            Vec::new()
        };
        let changes = changes.into_iter().map(|change| Difference {
            path: change.path,
            before: change.before,
            after: change.after,
        });
        Self {
            server: server.to_owned(),
            part: row.key.0.as_str().to_owned(),
            name: row.key.1.clone(),
            state: <&str>::from(row.standing).to_owned(),
            pinned: row.pin.as_ref().map(|pin| pin.digest.clone()),
            waiting: row.waiting.as_ref().map(|pin| pin.digest.clone()),
            changes: changes.collect(),
        }
    }
}
