//! An MCP server and its authorization server in the test's process: it knows which user each token
//! is for, and serves nothing without.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::exchanged::{claim, subject};
use super::jobs::Jobs;
use crate::html::pairs;
use crate::tls::TlsProxy;

/// What a code was given for.
#[derive(Debug, Clone)]
struct Code {
    user: String,
    client: String,
    redirect_uri: String,
    challenge: String,
    scope: String,
}

#[derive(Default)]
struct Books {
    codes: BTreeMap<String, Code>,
    /// Access tokens with user and scope.
    tokens: BTreeMap<String, (String, String)>,
    /// Sessions with their users.
    sessions: BTreeMap<String, String>,
    /// How often a path was asked for.
    asked: BTreeMap<String, u64>,
    /// Requests that came with a token of another user than they say, or in another user's session.
    wrong: Vec<String>,
    calls: u64,
    /// The path that fails.
    failing: String,
    /// Where requests for a path are sent on to, and with which status.
    redirects: BTreeMap<String, (u16, String)>,
    /// Tokens that were exchanged, with the audience.
    exchanged: Vec<(String, String)>,
    /// The tokens with which the MCP server was asked.
    bearers: BTreeSet<String>,
    /// What the descriptions of tools say by now.
    described: BTreeMap<String, String>,
    /// Registered redirect URIs by client.
    clients: BTreeMap<String, Vec<String>>,
}

/// The service.
#[derive(Clone)]
pub(super) struct Service {
    origin: String,
    books: Arc<Mutex<Books>>,
    next: Arc<AtomicU64>,
    /// Tasks of its users.
    pub(super) jobs: Arc<Jobs>,
}

struct Asked {
    method: String,
    path: String,
    headers: BTreeMap<String, String>,
    body: String,
}

impl Service {
    pub(super) fn start() -> Service {
        Service::at(TcpListener::bind("127.0.0.1:0").unwrap(), |address| {
            format!("http://{address}")
        })
    }

    /// Behind TLS; and the certificate to trust.
    pub(super) fn start_secure() -> (Service, String) {
        let mut pem = String::new();
        let service = Service::at(TcpListener::bind("127.0.0.1:0").unwrap(), |address| {
            let front = TlsProxy::of(address);
            pem = front.pem;
            format!("https://localhost:{}", front.port)
        });
        (service, pem)
    }

    /// On this listener, with the origin that belongs to its address.
    fn at(listener: TcpListener, origin: impl FnOnce(&str) -> String) -> Service {
        let origin = origin(&listener.local_addr().unwrap().to_string());
        let service = Service {
            origin,
            books: Arc::default(),
            next: Arc::default(),
            jobs: Arc::default(),
        };
        let serving = service.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let serving = serving.clone();
                std::thread::spawn(move || serving.serve(stream));
            }
        });
        service
    }

    pub(super) fn origin(&self) -> String {
        self.origin.clone()
    }

    /// The URL of the MCP server.
    pub(super) fn url(&self) -> String {
        format!("{}/mcp", self.origin())
    }

    /// A person signs in as this user at the page to which a browser was sent. Returns where the
    /// browser is sent back.
    #[track_caller]
    pub(super) fn approve(&self, authorize: &str, user: &str) -> String {
        let (page, query) = authorize.split_once('?').unwrap();
        assert_eq!(page, format!("{}/authorize", self.origin()));
        let asked: BTreeMap<String, String> = pairs(query);
        assert_eq!(
            (
                asked["response_type"].as_str(),
                asked["code_challenge_method"].as_str()
            ),
            ("code", "S256")
        );
        assert_eq!(asked["resource"], self.url());
        let registered = self.books.lock().unwrap().clients[&asked["client_id"]].clone();
        let (redirect_uri, code) = (
            asked["redirect_uri"].clone(),
            format!("code-{}", self.number()),
        );
        // Byte for byte, as many authorization servers do.
        assert!(
            registered.contains(&redirect_uri),
            "{redirect_uri} {registered:?}"
        );
        let given = Code {
            user: user.to_owned(),
            client: asked["client_id"].clone(),
            redirect_uri: redirect_uri.clone(),
            challenge: asked["code_challenge"].clone(),
            scope: asked.get("scope").cloned().unwrap_or_default(),
        };
        self.books.lock().unwrap().codes.insert(code.clone(), given);
        format!(
            "{redirect_uri}?code={code}&state={}&iss={}",
            asked["state"],
            self.origin()
        )
    }

    pub(super) fn asked(&self, path: &str) -> u64 {
        self.books
            .lock()
            .unwrap()
            .asked
            .get(path)
            .copied()
            .unwrap_or(0)
    }

    /// Calls that were served.
    pub(super) fn calls(&self) -> u64 {
        self.books.lock().unwrap().calls
    }

    /// Requests that came with a wrong token.
    pub(super) fn wrong(&self) -> Vec<String> {
        self.books.lock().unwrap().wrong.clone()
    }

    /// Users that have got tokens, each once.
    pub(super) fn users(&self) -> Vec<String> {
        let mut users: Vec<String> = self
            .books
            .lock()
            .unwrap()
            .tokens
            .values()
            .map(|(user, _)| user.clone())
            .collect();
        users.sort();
        users.dedup();
        users
    }

    /// Tokens that were exchanged, with the audience that was asked for.
    pub(super) fn exchanged(&self) -> Vec<(String, String)> {
        self.books.lock().unwrap().exchanged.clone()
    }

    /// The tokens with which the MCP server was asked.
    pub(super) fn bearers(&self) -> BTreeSet<String> {
        self.books.lock().unwrap().bearers.clone()
    }

    /// Has requests for this path fail from now on, and no others.
    pub(super) fn fail(&self, path: &str) {
        path.clone_into(&mut self.books.lock().unwrap().failing);
    }

    /// Redirects requests for the first of these places to the next, and so on. The last one is
    /// served as the first one would be if it is a path. Ends all earlier redirects.
    pub(super) fn redirect(&self, status: u16, places: &[&str]) {
        let mut books = self.books.lock().unwrap();
        let steps = places
            .windows(2)
            .map(|pair| (pair[0].to_owned(), (status, pair[1].to_owned())));
        books.redirects = steps.collect();
        if let [first, .., last] = places {
            books
                .redirects
                .insert((*last).to_owned(), (200, (*first).to_owned()));
        }
    }

    /// Has a tool say this of itself from now on.
    pub(super) fn describe(&self, tool: &str, says: &str) {
        self.books
            .lock()
            .unwrap()
            .described
            .insert(tool.to_owned(), says.to_owned());
    }

    /// Ends all tokens of a user.
    pub(super) fn revoke(&self, user: &str) {
        self.books
            .lock()
            .unwrap()
            .tokens
            .retain(|_, (of, _)| of != user);
    }

    fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::SeqCst)
    }

    fn serve(&self, stream: TcpStream) {
        stream.set_nodelay(true).unwrap();
        let mut out = stream.try_clone().unwrap();
        let mut reader = BufReader::new(stream);
        while let Some(asked) = read(&mut reader) {
            *self
                .books
                .lock()
                .unwrap()
                .asked
                .entry(asked.path.clone())
                .or_default() += 1;
            let (status, more, body) = self.answer(&asked);
            let head = format!(
                "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n{more}\r\n",
                body.len()
            );
            if out.write_all(format!("{head}{body}").as_bytes()).is_err() {
                return;
            }
        }
    }

    fn answer(&self, asked: &Asked) -> (u16, String, String) {
        if self.books.lock().unwrap().failing == asked.path {
            return (503, String::new(), "{}".to_owned());
        }
        let step = self
            .books
            .lock()
            .unwrap()
            .redirects
            .get(&asked.path)
            .cloned();
        let path = match &step {
            Some((200, path)) => path.as_str(),
            Some((status, to)) => return (*status, format!("location: {to}\r\n"), "{}".to_owned()),
            None => asked.path.as_str(),
        };
        let origin = self.origin();
        let plain = |body: Value| (200, String::new(), body.to_string());
        match path {
            "/.well-known/oauth-protected-resource/mcp" => plain(json!({
                "resource": self.url(), "authorization_servers": [origin], "scopes_supported": ["read"],
            })),
            "/.well-known/oauth-authorization-server" => plain(json!({
                "issuer": origin,
                "authorization_endpoint": format!("{origin}/authorize"),
                "token_endpoint": format!("{origin}/token"),
                "registration_endpoint": format!("{origin}/register"),
                "revocation_endpoint": format!("{origin}/revoke"),
                "response_types_supported": ["code"],
                "grant_types_supported": ["authorization_code", "refresh_token"],
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"],
                "authorization_response_iss_parameter_supported": true,
            })),
            "/register" => {
                let wish: Value = serde_json::from_str(&asked.body).unwrap();
                let uris = wish["redirect_uris"].as_array().unwrap().iter();
                let uris = uris.map(|uri| uri.as_str().unwrap().to_owned()).collect();
                let id = format!("client-{}", self.number());
                self.books.lock().unwrap().clients.insert(id.clone(), uris);
                (
                    201,
                    String::new(),
                    json!({ "client_id": id, "token_endpoint_auth_method": "none" }).to_string(),
                )
            }
            "/token" => self.token(&pairs(&asked.body)),
            "/revoke" => {
                let form = pairs(&asked.body);
                self.books.lock().unwrap().tokens.remove(&form["token"]);
                plain(json!({}))
            }
            "/mcp" => self.mcp(asked),
            _ => (404, String::new(), "{}".to_owned()),
        }
    }

    fn token(&self, form: &BTreeMap<String, String>) -> (u16, String, String) {
        let refused = |why: &str| (400, String::new(), json!({ "error": why }).to_string());
        if form["grant_type"] == "urn:ietf:params:oauth:grant-type:token-exchange" {
            return self.exchange(form);
        }
        if form["grant_type"] != "authorization_code" {
            return refused("unsupported_grant_type");
        }
        // A code is good once.
        let Some(code) = self.books.lock().unwrap().codes.remove(&form["code"]) else {
            return refused("invalid_grant");
        };
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(&form["code_verifier"]));
        if challenge != code.challenge
            || form["redirect_uri"] != code.redirect_uri
            || form["client_id"] != code.client
        {
            return refused("invalid_grant");
        }
        let access = format!("access-{}-{}", code.user, self.number());
        let body = json!({ "access_token": access, "token_type": "Bearer", "expires_in": 3600, "scope": code.scope });
        self.books
            .lock()
            .unwrap()
            .tokens
            .insert(access, (code.user, code.scope));
        (200, String::new(), body.to_string())
    }

    /// Issues a token for the subject of another one.
    fn exchange(&self, form: &BTreeMap<String, String>) -> (u16, String, String) {
        let access_token = "urn:ietf:params:oauth:token-type:access_token";
        assert_eq!(
            (
                form["client_id"].as_str(),
                form["subject_token_type"].as_str()
            ),
            ("gateway", access_token)
        );
        assert_eq!(form["resource"], self.url());
        let Some(user) = subject(&form["subject_token"]) else {
            return (
                400,
                String::new(),
                json!({ "error": "invalid_grant" }).to_string(),
            );
        };
        let access = format!("access-{user}-{}", self.number());
        // No more than the token that is given in exchange.
        let scope = claim(&form["subject_token"], "scope").unwrap_or_else(|| form["scope"].clone());
        let body = json!({ "access_token": access, "token_type": "Bearer", "expires_in": 3600,
            "issued_token_type": access_token, "scope": scope });
        let mut books = self.books.lock().unwrap();
        books
            .exchanged
            .push((form["subject_token"].clone(), form["audience"].clone()));
        books.tokens.insert(access, (user, scope));
        (200, String::new(), body.to_string())
    }

    fn mcp(&self, asked: &Asked) -> (u16, String, String) {
        let metadata = format!("{}/.well-known/oauth-protected-resource/mcp", self.origin());
        let token = asked
            .headers
            .get("authorization")
            .and_then(|line| line.strip_prefix("Bearer "));
        self.books
            .lock()
            .unwrap()
            .bearers
            .extend(token.map(str::to_owned));
        let known = token.and_then(|token| self.books.lock().unwrap().tokens.get(token).cloned());
        let Some((user, scope)) = known else {
            let challenge = format!(
                "www-authenticate: Bearer resource_metadata=\"{metadata}\", scope=\"read\"\r\n"
            );
            return (401, challenge, "{}".to_owned());
        };
        if let Some(session) = asked.headers.get("mcp-session-id") {
            let mut books = self.books.lock().unwrap();
            let owner = books.sessions.get(session).cloned();
            if owner.as_ref() != Some(&user) {
                books
                    .wrong
                    .push(format!("{user} in the session of {owner:?}"));
            }
        }
        if asked.method != "POST" {
            return (405, String::new(), "{}".to_owned());
        }
        let message: Value = serde_json::from_str(&asked.body).unwrap();
        let (id, params) = (message["id"].clone(), &message["params"]);
        if id.is_null() {
            return (202, String::new(), String::new());
        }
        let result = |result: Value| {
            (
                200,
                String::new(),
                json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string(),
            )
        };
        let said = |text: &str| result(json!({ "content": [{ "type": "text", "text": text }] }));
        match message["method"].as_str().unwrap() {
            "initialize" => {
                let session = format!("session-{}", self.number());
                self.books
                    .lock()
                    .unwrap()
                    .sessions
                    .insert(session.clone(), user);
                let (status, _, body) = result(json!({ "protocolVersion": "2025-11-25",
                    "capabilities": { "tools": {}, "tasks": { "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } } },
                    "serverInfo": { "name": "service", "version": "1" } }));
                (status, format!("mcp-session-id: {session}\r\n"), body)
            }
            "tools/list" => {
                let described = self.books.lock().unwrap().described.clone();
                let tool = |name: &str| {
                    let says = described.get(name).map_or("Does it.", String::as_str);
                    let mut tool = json!({ "name": name, "description": says, "inputSchema": { "type": "object" } });
                    if name.starts_with("only_") {
                        tool["inputSchema"]["properties"] = json!({ "as": { "type": "string" } });
                    }
                    if name == "whoami" {
                        tool["execution"] = json!({ "taskSupport": "optional" });
                    }
                    tool
                };
                let mut tools = vec![tool("whoami"), tool("write"), tool(&format!("only_{user}"))];
                if user == "user-of-many" {
                    tools.extend((0..1_000).map(|number| tool(&format!("tool_{number}"))));
                }
                result(json!({ "tools": tools }))
            }
            "tools/call" => {
                let mut books = self.books.lock().unwrap();
                books.calls += 1;
                if let Some(expected) = params["arguments"]["as"]
                    .as_str()
                    .filter(|expected| *expected != user)
                {
                    books
                        .wrong
                        .push(format!("a call of {expected} with the token of {user}"));
                }
                drop(books);
                match params["name"].as_str().unwrap() {
                    "write" if !scope.split(' ').any(|one| one == "write") => {
                        let challenge = format!(
                            "www-authenticate: Bearer error=\"insufficient_scope\", scope=\"write\", resource_metadata=\"{metadata}\"\r\n"
                        );
                        (403, challenge, "{}".to_owned())
                    }
                    "whoami" if params["task"].is_object() => {
                        result(self.jobs.begin(&user, &format!("{user} with {scope}")))
                    }
                    "whoami" | "write" => said(&format!("{user} with {scope}")),
                    name if name == format!("only_{user}") => said("mine"),
                    name => {
                        let error = json!({ "code": -32602, "message": format!("no tool {name}") });
                        (
                            200,
                            String::new(),
                            json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string(),
                        )
                    }
                }
            }
            method if method.starts_with("tasks/") => {
                let named = params["taskId"].as_str().unwrap_or_default();
                match self.jobs.answer(&user, method, named) {
                    Ok(answer) => result(answer),
                    Err(why) => {
                        let error = json!({ "code": -32602, "message": why });
                        let body = json!({ "jsonrpc": "2.0", "id": id, "error": error });
                        (200, String::new(), body.to_string())
                    }
                }
            }
            _ => {
                let error = json!({ "code": -32601, "message": "method not found" });
                (
                    200,
                    String::new(),
                    json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string(),
                )
            }
        }
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Asked> {
    let mut line = String::new();
    (reader.read_line(&mut line).ok()? > 0).then_some(())?;
    let mut words = line.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(':') else {
            break;
        };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let length = headers
        .get("content-length")
        .map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let path = target.split('?').next().unwrap().to_owned();
    Some(Asked {
        method,
        path,
        headers,
        body: String::from_utf8(body).unwrap(),
    })
}
