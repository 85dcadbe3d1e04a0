//! Servers: `/api/v1/servers`.

use auth::Participant;
use axum::Json;
use axum::extract::{Path, State};
use model::{Refusal, RefusalCode};

use crate::error::ApiResult;
use crate::schema::{Problem, Server, Servers};
use crate::state::{Api, Caller};

const SERVERS: &str = "portmoot/servers";

/// All servers. Needs `portmoot/servers`.
#[utoipa::path(
    get,
    path = "/api/v1/servers",
    responses((status = 200, body = Servers), (status = "4XX", body = Problem))
)]
pub(crate) async fn servers(State(api): State<Api>, Caller(caller): Caller) -> ApiResult<Json<Servers>> {
    api.authorize(&caller, SERVERS, None)?;
    Ok(Json(Servers { servers: all_servers(&api, &caller) }))
}

/// One server. Needs `portmoot/servers`.
#[utoipa::path(
    get,
    path = "/api/v1/servers/{name}",
    params(("name" = String, Path)),
    responses((status = 200, body = Server), (status = "4XX", body = Problem))
)]
pub(crate) async fn server(
    State(api): State<Api>,
    Caller(caller): Caller,
    Path(name): Path<String>,
) -> ApiResult<Json<Server>> {
    api.authorize(&caller, SERVERS, None)?;
    let named = all_servers(&api, &caller).into_iter().filter(|server| server.name == name);
    // A participant may serve in several topics: where it is connected, if anywhere.
    let found = named.min_by_key(|server| server.state == upstream::State::Down.as_str());
    let unknown = || {
        Refusal::new(RefusalCode::UnknownTarget, format!("there is no server `{name}`"))
            .hint("list them: portmoot servers ls")
    };
    Ok(Json(found.ok_or_else(unknown)?))
}

/// The configured servers, then the participants that serve, once for each topic that the caller may know of.
fn all_servers(api: &Api, caller: &Participant) -> Vec<Server> {
    let configured = api.registry.upstreams();
    let mut servers: Vec<Server> = configured.iter().map(|upstream| Server::of(upstream, None)).collect();
    for dispatch in api.sorted_topics(|topic| api.registry.may_know(caller, topic)) {
        let serving = dispatch.servers().into_iter().filter(|server| server.serves());
        servers.extend(serving.map(|server| Server::of(&server.upstream, Some(dispatch.name().as_str()))));
    }
    servers
}
