//! A gateway in memory for tests: an API with a few answers, and a browser.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use auth::{Peer, Sealer};
use axum::Router;
use axum::body::Body;
use axum::extract::Query;
use axum::http::{HeaderMap, Method, Request, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use model::ParticipantId;
use oauth::metadata::AuthorizationServer;
use oauth::person::{
    Asked as AskedWho, AskingClient, Awaited, BegunPerson, PersonError, PersonSignIn, PersonTokens,
    PersonWish, SignInPlace,
};
use oauth::{Secret, Trouble};
use platform::Mutex;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::router;
use crate::home::{ConsoleHome, ConsoleSettings, ConsoleSignIn, TokenBearer};

/// Time for which a proof counts, in milliseconds.
pub(crate) const PROOF_MS: u64 = 900_000;

/// ConsoleSettings of a gateway on loopback whose callers need tokens.
pub(crate) fn settings() -> ConsoleSettings {
    ConsoleSettings {
        enabled: None,
        proof_ms: PROOF_MS,
        listen: "127.0.0.1:7070".parse().unwrap(),
        has_tls: false,
        public_url: None,
        needs_token: true,
        places: Vec::new(),
    }
}

/// A place that signs people in with the tokens that a test has put there, by code.
pub(crate) struct TestPlace {
    issuer: &'static str,
    /// A lock that a test holds while renewals are to wait.
    pub(crate) busy: tokio::sync::Mutex<()>,
    /// Answers at the end of a sign-in or in a renewal, by code or refresh token; the place refuses a
    /// code or token that is not here.
    pub(crate) outcomes: Mutex<HashMap<String, Result<PersonTokens, PersonError>>>,
    /// Renewals that were asked for.
    pub(crate) renewed: Mutex<Vec<String>>,
    /// Refresh tokens that were given up.
    pub(crate) given_up: Mutex<Vec<String>>,
    /// Ages in seconds that were asked for.
    pub(crate) ages: Mutex<Vec<u64>>,
}

/// The issuer of the test's place.
pub(crate) const ISSUER: &str = "https://idp.example";

/// Tokens for ten minutes, with these texts.
pub(crate) fn tokens(access: &str, refresh: &str, expires_ms: u64) -> PersonTokens {
    PersonTokens {
        access: Secret::new(access.to_owned()),
        refresh: Some(Secret::new(refresh.to_owned())),
        expires_ms: Some(expires_ms),
        lifetime_ms: Some(600_000),
        asked: AskedWho::Unknown,
    }
}

impl TestPlace {
    /// A place with this issuer.
    pub(crate) fn of(issuer: &'static str) -> Self {
        Self {
            issuer,
            busy: tokio::sync::Mutex::default(),
            outcomes: Mutex::default(),
            renewed: Mutex::default(),
            given_up: Mutex::default(),
            ages: Mutex::default(),
        }
    }

    fn outcome(&self, by: &str) -> Result<PersonTokens, PersonError> {
        let known = self.outcomes.lock().get(by).cloned();
        known.unwrap_or_else(|| {
            let refused = Trouble::Refused {
                host: "idp.example".to_owned(),
                error: "invalid_grant".to_owned(),
                description: None,
            };
            Err(refused.into())
        })
    }

    fn server() -> AuthorizationServer {
        AuthorizationServer {
            authorization_endpoint: Some(format!("{ISSUER}/authorize")),
            authorization_response_iss_parameter_supported: true,
            ..AuthorizationServer::bare(ISSUER)
        }
    }
}

impl SignInPlace for TestPlace {
    fn issuer(&self) -> &str {
        self.issuer
    }

    fn begin<'a>(&'a self, wish: PersonWish<'a>) -> Awaited<'a, Result<BegunPerson, PersonError>> {
        self.ages.lock().push(wish.max_age_secs);
        let client = AskingClient {
            id: "gw",
            scopes: &[],
            params: &[],
            has_resource: true,
        };
        let begun = BegunPerson::new(&Self::server(), &client, &wish).unwrap();
        Box::pin(async move { Ok(begun) })
    }

    fn end<'a>(
        &'a self,
        sign_in: &'a PersonSignIn,
        answer: &'a str,
    ) -> Awaited<'a, Result<PersonTokens, PersonError>> {
        Box::pin(async move {
            let code = sign_in.code(&Self::server(), answer)?;
            self.outcome(code.expose())
        })
    }

    fn renew<'a>(
        &'a self,
        refresh: &'a Secret,
        _: &'a str,
    ) -> Awaited<'a, Result<PersonTokens, PersonError>> {
        Box::pin(async move {
            self.renewed.lock().push(refresh.expose().to_owned());
            let _turn = self.busy.lock().await;
            self.outcome(refresh.expose())
        })
    }

    fn give_up(&self, tokens: PersonTokens) -> Awaited<'_, ()> {
        Box::pin(async move {
            let refresh = tokens.refresh.unwrap();
            self.given_up.lock().push(refresh.expose().to_owned());
        })
    }
}

/// A home in which tokens can be revoked.
pub(crate) struct TestHome {
    sealer: Sealer,
    pub(crate) settings: Mutex<ConsoleSettings>,
    /// Participants by token; the empty one is no token.
    pub(crate) tokens: Mutex<HashMap<String, String>>,
    /// Its clock, which stands still until a test moves it.
    pub(crate) clock_ms: AtomicU64,
    /// Recorded acts: who, whether refused, why.
    pub(crate) records: Mutex<Vec<(Option<String>, bool, String)>>,
    /// The place `corp`.
    pub(crate) corp: Arc<TestPlace>,
    /// The place `corp` after a reload of the configuration.
    pub(crate) reloaded: Mutex<Option<Arc<TestPlace>>>,
    /// Whether issuers can be asked about tokens.
    pub(crate) is_asked: AtomicBool,
    /// Tokens about which no issuer answers.
    pub(crate) unsure: Mutex<HashSet<String>>,
    /// Tokens that were asked about.
    pub(crate) looks: Mutex<Vec<String>>,
}

impl Default for TestHome {
    fn default() -> Self {
        let tokens = [("t-ann", "ann"), ("t-bob", "bob")];
        let owned = tokens.map(|(token, name)| (token.to_owned(), name.to_owned()));
        Self {
            sealer: Sealer::new(&[7; 32], None),
            settings: Mutex::new(settings()),
            tokens: Mutex::new(owned.into()),
            clock_ms: AtomicU64::new(platform::unix_ms()),
            records: Mutex::default(),
            corp: Arc::new(TestPlace::of(ISSUER)),
            reloaded: Mutex::default(),
            is_asked: AtomicBool::new(true),
            unsure: Mutex::default(),
            looks: Mutex::default(),
        }
    }
}

impl ConsoleHome for TestHome {
    fn settings(&self) -> ConsoleSettings {
        self.settings.lock().clone()
    }

    fn sealer(&self) -> &Sealer {
        &self.sealer
    }

    fn participant(&self, bearer: Option<&str>) -> Option<String> {
        self.tokens.lock().get(bearer.unwrap_or_default()).cloned()
    }

    fn bearer_of<'a>(
        &'a self,
        bearer: Option<&'a str>,
        _: Option<IpAddr>,
    ) -> Awaited<'a, TokenBearer> {
        Box::pin(async move {
            self.looks.lock().extend(bearer.map(str::to_owned));
            let is_unsure = bearer.is_some_and(|bearer| self.unsure.lock().contains(bearer));
            if is_unsure || !self.is_asked.load(Ordering::Relaxed) {
                return TokenBearer::Unsure;
            }
            let known = self.participant(bearer);
            let unknown = || TokenBearer::Unknown("`eve` has no place here".to_owned());
            known.map_or_else(unknown, TokenBearer::Participant)
        })
    }

    fn place(&self, name: &str) -> Option<Arc<dyn SignInPlace>> {
        let settings = self.settings.lock();
        settings.places.iter().find(|place| place.name == name)?;
        let reloaded = self.reloaded.lock().clone();
        Some(reloaded.unwrap_or_else(|| Arc::clone(&self.corp)))
    }

    fn now_ms(&self) -> u64 {
        self.clock_ms.load(Ordering::Relaxed)
    }

    fn stopped(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::pending())
    }

    fn record(&self, sign_in: &ConsoleSignIn<'_>) {
        let who = sign_in.participant.map(str::to_owned);
        let record = (who, sign_in.is_refused, sign_in.why.to_owned());
        self.records.lock().push(record);
    }
}

/// A proposal of the API, with other members in place of these.
pub(crate) fn proposal(id: &str, more: &Value) -> Value {
    let mut all = json!({
        "id": id, "topic": "main", "state": "pending", "by": "scout", "to": ["files"], "method": "tools/call",
        "context": "write_file", "envelope": "e", "params": { "name": "write_file", "arguments": { "path": "/a" } },
        "tool": { "name": "write_file", "description": "Writes." }, "digest": format!("d-{id}"), "held": true,
        "at": "2026-07-28T12:30:00.000Z", "expires": "2099-07-28T12:35:00.000Z", "decided_by": null,
        "edited": null, "reason": null, "answer": null,
    });
    for (name, value) in more.as_object().unwrap() {
        all[name] = value.clone();
    }
    all
}

/// The rule that the API makes of the like of a proposal.
fn drafted_like(id: &str) -> Value {
    json!({
        "rule": format!("like-{id}.1"), "sentence": "scout may <b>call</b>",
        "text": format!("id = \"like-{id}\"\nversion = 1\n"), "expires": null,
    })
}

/// An act that the API was asked for: path, `Authorization`, body.
pub(crate) type Act = (String, String, String);

/// A gateway's console, and what it asked of the API.
pub(crate) struct Stage {
    pub(crate) home: Arc<TestHome>,
    pub(crate) router: Router,
    pub(crate) codes: Arc<api::ConsoleCodes>,
    /// Acts that the API was asked for: path, `Authorization`, body.
    pub(crate) acts: Arc<Mutex<Vec<Act>>>,
    /// Its proposals; an API without them fails.
    pub(crate) proposals: Arc<Mutex<Option<Vec<Value>>>>,
    /// Ids of proposals that the console says to have shown.
    pub(crate) looked: Arc<Mutex<Vec<String>>>,
    /// Its other answers, by method, path and query.
    pub(crate) answers: Arc<Mutex<HashMap<String, Value>>>,
}

impl Stage {
    pub(crate) fn new(proposals: Vec<Value>) -> Self {
        let home = Arc::new(TestHome::default());
        let codes = Arc::<api::ConsoleCodes>::default();
        let proposals = Arc::new(Mutex::new(Some(proposals)));
        let looked = Arc::<Mutex<Vec<String>>>::default();
        let acts = Arc::<Mutex<Vec<Act>>>::default();
        let answers = Arc::<Mutex<HashMap<String, Value>>>::default();
        let api = fake_api(&proposals, &acts, &looked);
        let api = with_answers(api, &answers, &acts);
        let router = router(
            Arc::clone(&home) as Arc<dyn ConsoleHome>,
            api,
            Arc::clone(&codes),
        );
        Self {
            home,
            router,
            codes,
            acts,
            proposals,
            looked,
            answers,
        }
    }

    /// Lets the API answer a request, such as `GET /api/v1/tokens`.
    pub(crate) fn answers(&self, request: &str, answer: Value) {
        self.answers.lock().insert(request.to_owned(), answer);
    }

    /// The host, with its port, that is a participant's own.
    pub(crate) fn host(&self, who: &str) -> String {
        format!("{}:7070", self.codes.host(who))
    }

    /// The origin of a participant's own host.
    pub(crate) fn origin(&self, who: &str) -> String {
        format!("http://{}", self.host(who))
    }

    /// Sends a request of a browser on this machine, to ann's host if it names none.
    pub(crate) async fn send(&self, request: Request<Body>) -> Reply {
        let (mut parts, body) = request.into_parts();
        let host = self.host("ann").parse().unwrap();
        parts.headers.entry("host").or_insert(host);
        parts.extensions.insert(Peer("127.0.0.1".parse().unwrap()));
        let response = self
            .router
            .clone()
            .oneshot(Request::from_parts(parts, body))
            .await;
        Reply::of(response.unwrap()).await
    }

    pub(crate) async fn get(&self, path: &str, cookie: &str) -> Reply {
        let request = Request::builder().uri(path).header("cookie", cookie);
        self.send(request.body(Body::empty()).unwrap()).await
    }

    /// Posts a form as a page of the console does.
    pub(crate) async fn post(&self, path: &str, cookie: &str, form: &[(&str, &str)]) -> Reply {
        self.post_as("ann", path, cookie, form).await
    }

    /// Posts a form as a page of another participant's console does.
    pub(crate) async fn post_as(
        &self,
        who: &str,
        path: &str,
        cookie: &str,
        form: &[(&str, &str)],
    ) -> Reply {
        let (host, origin) = (self.host(who), self.origin(who));
        let headers = [("host", &*host), ("origin", &*origin)];
        self.post_from(path, cookie, form, &headers).await
    }

    pub(crate) async fn post_from(
        &self,
        path: &str,
        cookie: &str,
        form: &[(&str, &str)],
        headers: &[(&str, &str)],
    ) -> Reply {
        let body = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(form)
            .finish();
        let mut request = Request::builder()
            .method("POST")
            .uri(path)
            .header("cookie", cookie);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(Body::from(body)).unwrap()).await
    }

    /// Signs in at a participant's own host; returns the cookie.
    pub(crate) async fn sign_in(&self, who: &str) -> String {
        let token = format!("t-{who}");
        let form = [("code", &*token)];
        let reply = self.post_as(who, "/console/login", "", &form).await;
        assert_eq!(reply.status, StatusCode::SEE_OTHER, "{}", reply.body);
        reply.cookie()
    }

    /// Signs in as ann; returns the cookie and the token of her forms.
    pub(crate) async fn ann(&self) -> (String, String) {
        let cookie = self.sign_in("ann").await;
        let page = self.get("/console", &cookie).await;
        let token = page.field("token");
        (cookie, token)
    }
}

/// Proposals of a page of the fake API.
const FAKE_PAGE: usize = 40;

/// A page of proposals, without params where they are long.
fn page_of(all: &[Value], after: Option<&String>) -> Value {
    let at = all
        .iter()
        .position(|one| Some(&one["id"]) == after.map(|id| json!(id)).as_ref());
    let rest = &all[at.map_or(0, |at| at + 1)..];
    let page = &rest[..FAKE_PAGE.min(rest.len())];
    let next = (page.len() < rest.len()).then(|| &page[FAKE_PAGE - 1]["id"]);
    let listed = page.iter().cloned().map(|mut one| {
        if one["params"].to_string().len() > 8 << 10 {
            one["params"] = Value::Null;
            one["in_full"] = json!(false);
        }
        one
    });
    json!({ "proposals": listed.collect::<Vec<_>>(), "next": next })
}

fn fake_api(
    proposals: &Arc<Mutex<Option<Vec<Value>>>>,
    acts: &Arc<Mutex<Vec<Act>>>,
    looked: &Arc<Mutex<Vec<String>>>,
) -> Router {
    let listed = Arc::clone(proposals);
    let found = Arc::clone(proposals);
    let acts = Arc::clone(acts);
    let one = move |id: &str| {
        let all = found.lock();
        all.iter().flatten().find(|one| one["id"] == id).cloned()
    };
    let (shown, looked) = (one.clone(), Arc::clone(looked));
    let unknown = || {
        (
            StatusCode::NOT_FOUND,
            axum::Json(json!({ "message": "unknown" })),
        )
            .into_response()
    };
    Router::new()
        .route(
            "/api/v1/proposals",
            get(
                move |Query(query): Query<HashMap<String, String>>| async move {
                    let all = listed.lock().clone();
                    all.map_or_else(
                        || {
                            let why = json!({ "message": "too much" });
                            (StatusCode::SERVICE_UNAVAILABLE, axum::Json(why)).into_response()
                        },
                        |all| axum::Json(page_of(&all, query.get("after"))).into_response(),
                    )
                },
            ),
        )
        .route(
            "/api/v1/proposals/{id}",
            get(
                move |axum::extract::Path(id): axum::extract::Path<String>,
                      Query(query): Query<HashMap<String, String>>| async move {
                    if !query.contains_key("shown") {
                        looked.lock().push(id.clone());
                    }
                    shown(&id).map_or_else(unknown, |one| axum::Json(one).into_response())
                },
            ),
        )
        .route(
            "/api/v1/proposals/{id}/{act}",
            post(
                move |axum::extract::Path((id, act)): axum::extract::Path<(String, String)>,
                      headers: HeaderMap,
                      body: String| async move {
                    let authorization = headers["authorization"].to_str().unwrap().to_owned();
                    acts.lock()
                        .push((format!("{id}/{act}"), authorization, body));
                    if act == "like" {
                        return axum::Json(drafted_like(&id)).into_response();
                    }
                    one(&id).map_or_else(unknown, |one| axum::Json(one).into_response())
                },
            ),
        )
}

/// Answers other requests as they are set: those that change something are noted as acts, and one
/// without an answer is refused.
fn with_answers(
    api: Router,
    answers: &Arc<Mutex<HashMap<String, Value>>>,
    acts: &Arc<Mutex<Vec<Act>>>,
) -> Router {
    let (answers, acts) = (Arc::clone(answers), Arc::clone(acts));
    api.fallback(
        move |method: Method, uri: Uri, headers: HeaderMap, body: String| async move {
            let asked = format!("{method} {uri}");
            let Some(answer) = answers.lock().get(&asked).cloned() else {
                let why = json!({ "message": format!("you may not {asked}") });
                let status = if uri.path() == "/" {
                    StatusCode::NOT_FOUND
                } else {
                    StatusCode::FORBIDDEN
                };
                return (status, axum::Json(why)).into_response();
            };
            if method != Method::GET {
                let authorization = headers["authorization"].to_str().unwrap().to_owned();
                acts.lock().push((asked, authorization, body));
            }
            match answer {
                Value::Null => StatusCode::NO_CONTENT.into_response(),
                answer => axum::Json(answer).into_response(),
            }
        },
    )
}

/// An answer of the console.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
    /// The participant that it names to the door.
    pub(crate) participant: Option<String>,
}

impl Reply {
    async fn of(response: Response) -> Self {
        let status = response.status();
        let named = response.extensions().get::<ParticipantId>();
        let participant = named.map(ToString::to_string);
        let headers = response.headers().clone();
        let body = axum::body::to_bytes(response.into_body(), usize::MAX)
            .await
            .unwrap();
        Self {
            status,
            headers,
            body: String::from_utf8(body.into()).unwrap(),
            participant,
        }
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    /// The cookie that it sets.
    pub(crate) fn cookie(&self) -> String {
        self.header("set-cookie")
            .split(';')
            .next()
            .unwrap()
            .to_owned()
    }

    /// The value of the first hidden field of this name.
    pub(crate) fn field(&self, name: &str) -> String {
        let mark = format!("name=\"{name}\" value=\"");
        let rest = self
            .body
            .split_once(&mark)
            .unwrap_or_else(|| panic!("no {name}: {}", self.body))
            .1;
        rest.split('"').next().unwrap().to_owned()
    }
}
