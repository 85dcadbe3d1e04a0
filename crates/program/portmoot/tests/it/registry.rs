//! The schema registry of the gateway, as the `buf` CLI uses it.

use std::convert::Infallible;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use prost::Message;
use registry::messages::module::{DownloadResponse, ModuleFile};
use registry::resolve::{
    Digests, Hosts, Http, LABEL_KEPT_MS, RegistryTokens, ResolveError, Resolved, Resolver,
    ResolverSettings,
};
use registry::{Code, Files, METHODS, ModuleSource, Shelf, Viewer};

use crate::home::Home;
use crate::support::{Gateway, fixture, until};
use crate::tls::TlsProxy;

const TOKEN: &str = "a-token-that-is-long-enough";
const OTHER: &str = "another-token-that-is-long-enough";

/// `buf` with its own configuration and cache.
pub(crate) struct Buf {
    home: Home,
}

impl Buf {
    /// Over TLS, with this root certificate only.
    pub(crate) fn trusting(pem: &str) -> Buf {
        let home = Home::new();
        let root = home.write("root.pem", pem);
        Buf::with(
            home,
            &format!(
                "tls:\n  use: local\n  root_cert_file_paths: [{:?}]\n",
                root.to_str().unwrap()
            ),
        )
    }

    pub(crate) fn plain() -> Buf {
        Buf::with(Home::new(), "tls:\n  use: \"false\"\n")
    }

    fn with(home: Home, tls: &str) -> Buf {
        home.write("config.yaml", &format!("version: v1\n{tls}"));
        Buf { home }
    }

    fn run(&self, token: Option<&str>, arguments: &[&str]) -> Output {
        let mut command = Command::new(harness::deps().buf());
        command
            .args(arguments)
            .current_dir(self.home.path())
            .env("BUF_CONFIG_DIR", self.home.path());
        command
            .env("BUF_CACHE_DIR", self.home.path().join("cache"))
            .env("HOME", self.home.path());
        command.env_remove("BUF_TOKEN").env_remove("NETRC");
        if let Some(token) = token {
            command.env("BUF_TOKEN", token);
        }
        command.output().unwrap()
    }

    #[track_caller]
    pub(crate) fn succeeds(&self, token: Option<&str>, arguments: &[&str]) -> Vec<u8> {
        let run = self.run(token, arguments);
        assert!(
            run.status.success(),
            "buf {arguments:?}: {}",
            String::from_utf8_lossy(&run.stderr)
        );
        run.stdout
    }

    #[track_caller]
    fn fails(&self, token: Option<&str>, arguments: &[&str]) -> String {
        let run = self.run(token, arguments);
        assert!(!run.status.success(), "buf {arguments:?}");
        String::from_utf8_lossy(&run.stderr).into_owned()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }
}

pub(crate) fn holds(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}

#[test]
fn buf_reads_the_tools_over_tls_with_a_private_ca() {
    let home = Home::new();
    let gateway = Gateway::start(&home, &fixture("tools", &[]));
    gateway.ready("tools");
    let front = TlsProxy::of(gateway.address());
    let (buf, host) = (
        Buf::trusting(&front.pem),
        format!("localhost:{}", front.port),
    );
    let module = format!("{host}/portmoot/tools");

    let image = buf.succeeds(None, &["build", &format!("{module}:main"), "-o", "-"]);
    assert!(holds(&image, "EchoRequest") && holds(&image, "buf/validate/validate.proto"));
    buf.succeeds(None, &["export", &format!("{module}:v1"), "-o", "out"]);
    let exported = std::fs::read_to_string(buf.path("out/tools/v1/echo.proto")).unwrap();
    let converted = home
        .run(&["proto", "convert", "tools", "--url", &gateway.url()])
        .expect(0)
        .stdout;
    let message = exported.split_once("message EchoRequest").unwrap().1;
    assert!(
        converted.contains(message.trim_end()),
        "{exported}\n{converted}"
    );
    let resolve = |reference: &str| {
        let found = buf.succeeds(
            None,
            &["registry", "module", "commit", "resolve", reference],
        );
        String::from_utf8(found).unwrap().trim().to_owned()
    };
    let commit = resolve(&module);
    let id = commit.rsplit_once(':').unwrap().1;
    assert!(
        id.len() == 32 && id.bytes().all(|digit| digit.is_ascii_hexdigit()),
        "{commit}"
    );
    assert_eq!(resolve(&commit), commit);

    let absent = buf.fails(None, &["build", &format!("{host}/portmoot/absent")]);
    assert!(absent.contains("no such module"), "{absent}");
    let stranger = Buf::trusting(&TlsProxy::of(gateway.address()).pem);
    let untrusted = stranger.fails(None, &["build", &module]);
    assert!(untrusted.contains("certificate"), "{untrusted}");
}

#[test]
fn a_participant_sees_the_tools_of_its_lists_and_a_wrong_token_nothing() {
    let home = Home::new().env("ADMIN", TOKEN).env("SCOUT", OTHER);
    let people = "[participants.admin]\ntoken_env = \"ADMIN\"\ncapabilities = [\"mcp/*\"]\n\
        [participants.scout]\ntoken_env = \"SCOUT\"\ncapabilities = [\"mcp/request:tools/call:tools_echo\"]\n";
    let gateway = Gateway::start(
        &home,
        &[&fixture("tools", &[]), &fixture("hidden", &[]), people].concat(),
    );
    gateway.ready("tools");
    gateway.ready("hidden");
    let (buf, host) = (Buf::plain(), gateway.address());
    let module = format!("{host}/portmoot/tools");
    let build = ["build", module.as_str(), "-o", "-"];

    for wrong in [None, Some("a-wrong-token-of-a-stranger")] {
        let refused = buf.fails(wrong, &build);
        assert!(
            refused.contains("not logged in") || refused.contains("BUF_TOKEN"),
            "{refused}"
        );
    }
    let all = buf.succeeds(Some(TOKEN), &build);
    assert!(holds(&all, "EchoRequest") && holds(&all, "AddRequest"));
    let bound = format!("{OTHER}@{host}");
    let own = buf.succeeds(Some(&bound), &build);
    assert!(holds(&own, "EchoRequest") && !holds(&own, "AddRequest"));
    let hidden = format!("{host}/portmoot/hidden");
    buf.succeeds(Some(TOKEN), &["build", &hidden, "-o", "-"]);
    let absent = buf.fails(Some(OTHER), &["build", &hidden, "-o", "-"]);
    assert!(absent.contains("no such module"), "{absent}");
    let commit = buf.succeeds(
        Some(TOKEN),
        &["registry", "module", "commit", "resolve", &module],
    );
    let commit = String::from_utf8(commit).unwrap();
    let foreign = buf.fails(
        Some(OTHER),
        &["registry", "module", "commit", "resolve", commit.trim()],
    );
    assert!(foreign.contains("does not exist"), "{foreign}");
}

/// A registry of the test with one module, whose answers a hook may change.
pub(crate) struct TestRegistry {
    pub(crate) address: String,
    /// Bodies of requests to other paths.
    calls: Arc<Mutex<Vec<Bytes>>>,
    /// The number of its answers.
    answers: Arc<AtomicUsize>,
}

/// The one module.
pub(crate) struct One;

impl ModuleSource for One {
    fn names(&self) -> Vec<String> {
        vec!["one".to_owned()]
    }

    fn files(&self, module: &str) -> Option<Files> {
        let text =
            "syntax = \"proto3\";\npackage one.v1;\nmessage EchoRequest {\n  string text = 1;\n}\n";
        (module == "one").then(|| Files::from([("one/v1/echo.proto".to_owned(), text.into())]))
    }
}

impl TestRegistry {
    pub(crate) fn answers(&self) -> usize {
        self.answers.load(Ordering::SeqCst)
    }

    pub(crate) fn start(
        change: impl Fn(&str, Bytes) -> Bytes + Send + Sync + 'static,
    ) -> TestRegistry {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let calls: Arc<Mutex<Vec<Bytes>>> = Arc::default();
        let (seen, answers) = (Arc::clone(&calls), Arc::<AtomicUsize>::default());
        let counted = Arc::clone(&answers);
        let change = Arc::new(move |path: &str, answer: Bytes| {
            counted.fetch_add(1, Ordering::SeqCst);
            change(path, answer)
        });
        // The thread ends with the test process.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                let shelf = Arc::new(Shelf::default());
                while let Ok((stream, _)) = listener.accept().await {
                    let (shelf, seen, change) =
                        (Arc::clone(&shelf), Arc::clone(&seen), Arc::clone(&change));
                    let service = service_fn(move |request| {
                        one_call(
                            request,
                            Arc::clone(&shelf),
                            Arc::clone(&seen),
                            Arc::clone(&change),
                        )
                    });
                    let serving = hyper::server::conn::http1::Builder::new();
                    tokio::spawn(serving.serve_connection(TokioIo::new(stream), service));
                }
            });
        });
        TestRegistry {
            address,
            calls,
            answers,
        }
    }
}

async fn one_call(
    request: Request<Incoming>,
    shelf: Arc<Shelf>,
    seen: Arc<Mutex<Vec<Bytes>>>,
    change: Arc<impl Fn(&str, Bytes) -> Bytes>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let proto = |body| {
        Response::builder()
            .header("content-type", "application/proto")
            .body(Full::new(body))
    };
    if !METHODS.contains(&path.as_str()) {
        seen.lock().unwrap().push(body);
        return Ok(proto(Bytes::new()).unwrap());
    }
    let viewer = Viewer {
        id: "ann",
        source: &One,
        now_ms: 1,
    };
    Ok(match shelf.answer(&path, &body, &viewer) {
        Ok(answer) => proto(change(&path, answer)).unwrap(),
        Err(error) => {
            let mut response = Response::new(Full::new(error.body().into()));
            *response.status_mut() = StatusCode::BAD_REQUEST;
            response
        }
    })
}

#[test]
fn buf_notices_a_module_that_does_not_match_its_digest() {
    let build = |registry: &TestRegistry| {
        let module = format!("{}/portmoot/one", registry.address);
        Buf::plain().run(None, &["build", &module, "-o", "-"])
    };
    let right = build(&TestRegistry::start(|_, answer| answer));
    assert!(
        right.status.success() && holds(&right.stdout, "EchoRequest"),
        "{right:?}"
    );
    let tampered = build(&TestRegistry::start(|path, answer| {
        if !path.ends_with("/Download") {
            return answer;
        }
        let mut answer = DownloadResponse::decode(answer).unwrap();
        for ModuleFile { content, .. } in &mut answer.contents[0].files {
            content.extend(b"// and more\n");
        }
        answer.encode_to_vec().into()
    }));
    let why = String::from_utf8_lossy(&tampered.stderr);
    assert!(
        !tampered.status.success() && why.contains("digest"),
        "{tampered:?}"
    );
}

#[test]
fn buf_notices_another_digest_in_its_lock_file() {
    let registry = TestRegistry::start(|_, answer| answer);
    let module = format!("{}/portmoot/one", registry.address);
    let commit = registry::Commit::new("one", One.files("one").unwrap(), 1);
    let build = |digest: &str| {
        let buf = Buf::plain();
        buf.home
            .write("buf.yaml", &format!("version: v2\ndeps:\n  - {module}\n"));
        let entry = format!(
            "  - name: {module}\n    commit: {}\n    digest: {digest}\n",
            commit.id()
        );
        buf.home
            .write("buf.lock", &format!("version: v2\ndeps:\n{entry}"));
        let own = "syntax = \"proto3\";\nimport \"one/v1/echo.proto\";\nmessage Mine {\n  one.v1.EchoRequest echo = 1;\n}\n";
        buf.home.write("mine.proto", own);
        buf.run(None, &["build", "-o", "-"])
    };
    let right = build(&commit.digest());
    assert!(
        right.status.success() && holds(&right.stdout, "EchoRequest"),
        "{right:?}"
    );
    let wrong = build(&format!("b5:{}", "00".repeat(64)));
    let why = String::from_utf8_lossy(&wrong.stderr);
    assert!(
        !wrong.status.success() && why.to_lowercase().contains("digest"),
        "{wrong:?}"
    );
}

#[test]
fn buf_curl_writes_arguments_with_a_schema_of_the_registry() {
    let registry = TestRegistry::start(|_, answer| answer);
    let buf = Buf::plain();
    let service = "syntax = \"proto3\";\npackage calls.v1;\nimport \"google/protobuf/any.proto\";\n\
        message CallRequest {\n  google.protobuf.Any arguments = 1;\n}\nmessage CallResponse {}\n\
        service Calls {\n  rpc Call(CallRequest) returns (CallResponse);\n}\n";
    buf.home.write("calls.proto", service);
    let module = format!("{}/portmoot/one:main", registry.address);
    let url = format!("http://{}/calls.v1.Calls/Call", registry.address);
    let arguments =
        r#"{"arguments":{"@type":"type.googleapis.com/one.v1.EchoRequest","text":"hello"}}"#;
    buf.succeeds(
        None,
        &[
            "curl",
            "--schema",
            "calls.proto",
            "--schema",
            &module,
            &url,
            "-d",
            arguments,
        ],
    );
    let calls = registry.calls.lock().unwrap();
    assert!(
        holds(&calls[0], "one.v1.EchoRequest\x12\x07\x0a\x05hello"),
        "{calls:?}"
    );
}

/// A listener that answers each request with this head, and keeps the requests.
pub(crate) fn keeping(head: String) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, seen): (_, Arc<Mutex<Vec<String>>>) =
        (listener.local_addr().unwrap().to_string(), Arc::default());
    let kept = Arc::clone(&seen);
    // The thread ends with the test process.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = vec![0; 4096];
            let read = stream.read(&mut request).unwrap();
            kept.lock()
                .unwrap()
                .push(String::from_utf8_lossy(&request[..read]).into_owned());
            stream.write_all(head.as_bytes()).unwrap();
        }
    });
    (address, seen)
}

pub(crate) fn resolver(hosts: &[&str], tokens: &str) -> Resolver {
    let hosts = Hosts::new(hosts.iter().copied()).unwrap();
    let tokens = RegistryTokens::read(tokens, "").unwrap();
    Resolver::new(
        ResolverSettings {
            hosts,
            tokens,
            digests: Digests::default(),
            label_kept_ms: LABEL_KEPT_MS,
        },
        Http::default(),
    )
}

pub(crate) fn resolve(resolver: &Resolver, reference: &str) -> Result<Resolved, ResolveError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(resolver.resolve(&reference.parse().unwrap(), 0))
}

#[test]
fn a_reference_resolves_at_the_gateway_with_the_token_of_its_host() {
    let home = Home::new().env("ADMIN", TOKEN);
    let people = "[participants.admin]\ntoken_env = \"ADMIN\"\ncapabilities = [\"mcp/*\"]\n";
    let gateway = Gateway::start(&home, &[&fixture("tools", &[]), people].concat());
    gateway.ready("tools");
    let host = gateway.address();
    let (plain, reference) = (
        format!("http://{host}"),
        format!("{host}/portmoot/tools/tools.v1.EchoRequest:v1"),
    );
    let right = resolver(&[&plain], &format!("{TOKEN}@{host}"));
    let resolved = resolve(&right, &reference).unwrap();
    assert!(holds(&resolved.set, "EchoRequest") && !holds(&resolved.set, "AddRequest"));
    assert_eq!(resolve(&right, &reference), Ok(resolved));
    for wrong in [
        "",
        &format!("a-wrong-token-of-a-stranger@{host}"),
        &format!("{TOKEN}@127.0.0.1"),
    ] {
        let refused = resolve(&resolver(&[&plain], wrong), &reference);
        let is_refused = |error: &ResolveError| matches!(error, ResolveError::Refused(error) if error.code == Code::Unauthenticated);
        assert!(refused.as_ref().is_err_and(is_refused), "{refused:?}");
    }
}

#[test]
fn a_foreign_host_sees_no_connection_and_a_redirect_no_token() {
    let (foreign, at_foreign) = keeping("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_owned());
    let redirect =
        format!("HTTP/1.1 307 Moved\r\nlocation: http://{foreign}/x\r\ncontent-length: 0\r\n\r\n");
    let (allowed, at_allowed) = keeping(redirect);
    let resolver = resolver(
        &[&format!("http://{allowed}")],
        &format!("{TOKEN}@{allowed}"),
    );
    let refused = resolve(
        &resolver,
        &format!("{foreign}/portmoot/tools/tools.v1.EchoRequest"),
    );
    assert_eq!(refused, Err(ResolveError::ForeignHost(foreign.clone())));
    let moved = resolve(
        &resolver,
        &format!("{allowed}/portmoot/tools/tools.v1.EchoRequest"),
    );
    assert_eq!(moved, Err(ResolveError::Status(307)));
    let seen = at_allowed.lock().unwrap();
    assert!(
        seen.len() == 1 && seen[0].contains(&format!("authorization: Bearer {TOKEN}")),
        "{seen:?}"
    );
    // Connections are seen in their order: this one is the first.
    std::net::TcpStream::connect(&foreign)
        .unwrap()
        .write_all(b"x")
        .unwrap();
    until("a connection is seen", || {
        (!at_foreign.lock().unwrap().is_empty()).then_some(())
    });
    assert_eq!(*at_foreign.lock().unwrap(), ["x"]);
}
