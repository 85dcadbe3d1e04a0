//! A running gateway and MCP clients.

use std::cell::{Cell, RefCell};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

use serde_json::{Value, json};

use crate::home::{Home, Ran};
use crate::http::{Connection, Events, Reply, TIMEOUT};
use crate::path_log;

/// `portmoot serve` on a free port. Dropping it kills the process.
pub(crate) struct Gateway {
    child: Child,
    scheme: &'static str,
    address: String,
    log: Arc<Mutex<String>>,
    /// The thread that reads the log; it ends with the gateway.
    keeper: Option<JoinHandle<()>>,
}

impl Gateway {
    /// Writes this configuration to `portmoot.toml` in the home, and serves it.
    #[track_caller]
    pub(crate) fn start(home: &Home, config: &str) -> Gateway {
        home.write("portmoot.toml", config);
        Gateway::start_with(home, &["--config", "portmoot.toml"])
    }

    /// Serves with these arguments.
    #[track_caller]
    pub(crate) fn start_with(home: &Home, args: &[&str]) -> Gateway {
        Gateway::serve(home.command(&[&["serve", "--listen", "127.0.0.1:0"], args].concat()))
    }

    /// Starts this command and waits for its address.
    #[track_caller]
    pub(crate) fn serve(mut command: Command) -> Gateway {
        path_log::trace(&mut command);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let mut lines = path_log::take(child.id(), lines);
        let (mut log, mut address) = (String::new(), None);
        while address.is_none() {
            let line = lines
                .next()
                .unwrap_or_else(|| panic!("the gateway ended:\n{log}"));
            let rest = ["http", "https"].into_iter().find_map(|scheme| {
                let (_, rest) = line.split_once(&format!("{scheme}://"))?;
                Some((scheme, rest.split_once("/mcp")?.0.to_owned()))
            });
            // Lines of the log, which name servers, begin with the time.
            let is_log = line.starts_with(|first: char| first.is_ascii_digit());
            let rest = rest.filter(|_| !is_log || line.contains("listening on"));
            address = rest;
            log += &(line + "\n");
        }
        let log = Arc::new(Mutex::new(log));
        let kept = Arc::clone(&log);
        let keep = move || lines.for_each(|line| *kept.lock().unwrap() += &(line + "\n"));
        let keeper = Some(std::thread::spawn(keep));
        let (scheme, address) = address.unwrap();
        Gateway {
            child,
            scheme,
            address,
            log,
            keeper,
        }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its output on stderr so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits for a line on stderr that contains this text, and returns the first.
    #[track_caller]
    pub(crate) fn receive(&self, wanted: &str) -> String {
        until(wanted, || {
            self.log()
                .lines()
                .find(|line| line.contains(wanted))
                .map(str::to_owned)
        })
    }

    /// Waits until the log reports that a server is ready.
    #[track_caller]
    pub(crate) fn ready(&self, name: &str) {
        self.receive(&format!("ready server={name:?}"));
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, name: &str) {
        signal(self.pid(), name);
    }

    /// Waits for its exit.
    #[track_caller]
    pub(crate) fn wait(&mut self) {
        until("the gateway ends", || self.child.try_wait().unwrap());
    }

    /// Ends it by a signal; whether it left a core file.
    #[track_caller]
    pub(crate) fn dumps_core(mut self, name: &str) -> bool {
        self.signal(name);
        until("the gateway ends", || self.child.try_wait().unwrap()).core_dumped()
    }

    /// Stops it and returns its exit code and output.
    #[track_caller]
    pub(crate) fn stop(mut self) -> Ran {
        self.signal("TERM");
        let status = until("the gateway ends", || self.child.try_wait().unwrap());
        self.keeper.take().unwrap().join().unwrap();
        let mut stdout = String::new();
        self.child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut stdout)
            .unwrap();
        Ran {
            code: status.code().unwrap_or(-1),
            stdout,
            stderr: self.log(),
        }
    }

    /// One plain request.
    pub(crate) fn get(&self, path: &str, token: Option<&str>) -> Reply {
        let bearer = token.map(|token| format!("Bearer {token}"));
        let headers: Vec<_> = bearer
            .iter()
            .map(|bearer| ("authorization", bearer.as_str()))
            .collect();
        Connection::open(&self.address).exchange("GET", path, &headers, "")
    }

    /// Waits for a pending proposal, as `proposals ls` shows it with this token.
    #[track_caller]
    pub(crate) fn pending(&self, home: &Home, token: &str) -> Value {
        until("a proposal", || {
            let ls = [
                "proposals",
                "ls",
                "--json",
                "--url",
                &self.url(),
                "--token",
                token,
            ];
            let all: Value = serde_json::from_str(&home.run(&ls).expect(0).stdout).unwrap();
            let mut all = all["proposals"].as_array().unwrap().iter();
            all.find(|proposal| proposal["state"] == "pending").cloned()
        })
    }

    /// The state of a server, from the API.
    #[track_caller]
    pub(crate) fn server(&self, name: &str) -> Value {
        self.get(&format!("/api/v1/servers/{name}"), None).json()
    }

    /// Waits until a server has this state; returns the answer of the API.
    #[track_caller]
    pub(crate) fn wait_for(&self, name: &str, state: &str) -> Value {
        // One that is idle is as ready: it is listed, and a call starts it.
        let is = |server: &Value| {
            server["state"] == state || state == "ready" && server["state"] == "idle"
        };
        until(&format!("{name} is {state}"), || {
            Some(self.server(name)).filter(is)
        })
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(keeper) = self.keeper.take().filter(|_| path_log::is_on()) {
            let _ = keeper.join();
        }
        if std::thread::panicking() {
            println!("--- the gateway's log\n{}", self.log());
        }
    }
}

/// Sends a signal to a process.
pub(crate) fn signal(pid: u32, name: &str) {
    let done = Command::new("kill")
        .args(["-s", name, &pid.to_string()])
        .status()
        .unwrap();
    assert!(done.success(), "{pid} is gone");
    if name == "STOP" {
        // The signal is on its way: threads that run may still answer something.
        until("all threads are stopped", || is_stopped(pid).then_some(()));
    }
}

/// Whether all threads of this process are stopped.
fn is_stopped(pid: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    threads.into_iter().all(|thread| {
        let stat = std::fs::read_to_string(thread.unwrap().path().join("stat")).unwrap();
        let (_, state) = stat.rsplit_once(") ").unwrap();
        state.starts_with('T')
    })
}

/// Whether this process runs; a zombie does not.
pub(crate) fn is_alive(pid: u64) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| {
        !stat
            .rsplit_once(") ")
            .is_some_and(|(_, rest)| rest.starts_with('Z'))
    })
}

/// The processes below one, such as servers below the keepers of a gateway, whose command lines
/// have this word.
pub(crate) fn below(root: u32, word: &str) -> Vec<u64> {
    let read = |pid: u64, file: &str| {
        std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default()
    };
    // After the name in parentheses: the state, then the parent.
    let parent = |pid: &u64| {
        read(*pid, "stat")
            .rsplit_once(") ")?
            .1
            .split(' ')
            .nth(1)?
            .parse::<u64>()
            .ok()
    };
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u64>().ok());
    let all: Vec<(u64, u64)> = pids.filter_map(|pid| Some((pid, parent(&pid)?))).collect();
    let (mut found, mut open) = (Vec::new(), vec![u64::from(root)]);
    while let Some(of) = open.pop() {
        let children = all
            .iter()
            .filter(|(_, parent)| *parent == of)
            .map(|(pid, _)| *pid);
        open.extend(children.clone());
        found.extend(children);
    }
    found.retain(|pid| read(*pid, "cmdline").contains(word));
    found
}

/// Polls until `ask` returns a value.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + TIMEOUT;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < end, "not in time: {what}");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// A `[servers.NAME]` table that starts the fixture over stdio with these arguments.
pub(crate) fn fixture(name: &str, arguments: &[&str]) -> String {
    let command = harness::fixture_binary();
    let all: Vec<&str> = ["--stdio"].iter().chain(arguments).copied().collect();
    format!(
        "[servers.{name}]\ncommand = {:?}\nargs = {all:?}\n",
        command.display().to_string()
    )
}

/// The table of a fixture that starts to serve once a file is there.
pub(crate) fn fixture_behind(name: &str, gate: &Path) -> String {
    let script = "while [ ! -e \"$0\" ]; do sleep 0.02; done; exec \"$1\" --stdio";
    let command = harness::fixture_binary();
    let all = [
        "-c",
        script,
        &gate.display().to_string(),
        &command.display().to_string(),
    ];
    format!("[servers.{name}]\ncommand = \"sh\"\nargs = {all:?}\n")
}

const BOTH: &str = "application/json, text/event-stream";

/// A legacy client with a session over HTTP.
pub(crate) struct Client {
    address: String,
    path: String,
    bearer: Option<String>,
    pub(crate) session: String,
    revision: &'static str,
    next: Cell<u64>,
    connection: RefCell<Option<Connection>>,
}

impl Client {
    /// A client without capabilities.
    #[track_caller]
    pub(crate) fn plain(gateway: &Gateway) -> Client {
        Client::open(gateway, None, "/mcp", json!({}))
    }

    /// A client with this token and no capabilities.
    #[track_caller]
    pub(crate) fn of(gateway: &Gateway, token: &str) -> Client {
        Client::open(gateway, Some(token), "/mcp", json!({}))
    }

    /// Opens a session.
    #[track_caller]
    pub(crate) fn open(
        gateway: &Gateway,
        token: Option<&str>,
        path: &str,
        capabilities: Value,
    ) -> Client {
        Client::resume(gateway, token, path, "").opened(capabilities)
    }

    /// Opens a session of an older revision.
    #[track_caller]
    pub(crate) fn of_revision(gateway: &Gateway, token: &str, revision: &'static str) -> Client {
        Client::open_revision(gateway, token, revision, json!({}))
    }

    /// The same with capabilities.
    #[track_caller]
    pub(crate) fn open_revision(
        gateway: &Gateway,
        token: &str,
        revision: &'static str,
        capabilities: Value,
    ) -> Client {
        let client = Client {
            revision,
            ..Client::resume(gateway, Some(token), "/mcp", "")
        };
        client.opened(capabilities)
    }

    #[track_caller]
    fn opened(self, capabilities: Value) -> Client {
        let mut client = self;
        let reply = client.initialize(capabilities);
        assert_eq!(reply.status, 200, "{reply:?}");
        client.session = reply.header("mcp-session-id").unwrap().to_owned();
        client.notify("notifications/initialized", json!({}));
        client
    }

    /// A client that already has a session id.
    pub(crate) fn resume(
        gateway: &Gateway,
        token: Option<&str>,
        path: &str,
        session: &str,
    ) -> Client {
        Client {
            address: gateway.address().to_owned(),
            path: path.to_owned(),
            bearer: token.map(|token| format!("Bearer {token}")),
            session: session.to_owned(),
            revision: "2025-11-25",
            next: Cell::new(0),
            connection: RefCell::default(),
        }
    }

    fn initialize(&self, capabilities: Value) -> Reply {
        let info = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": self.revision, "capabilities": capabilities, "clientInfo": info });
        self.post(&self.request("initialize", params))
    }

    fn headers(&self) -> Vec<(&str, &str)> {
        let mut headers = vec![("accept", BOTH), ("content-type", "application/json")];
        headers.extend(
            self.bearer
                .iter()
                .map(|bearer| ("authorization", bearer.as_str())),
        );
        if !self.session.is_empty() {
            headers.push(("mcp-session-id", &self.session));
            headers.push(("mcp-protocol-version", self.revision));
        }
        headers
    }

    /// A request with the next id.
    pub(crate) fn request(&self, method: &str, params: Value) -> Value {
        self.next.set(self.next.get() + 1);
        json!({ "jsonrpc": "2.0", "id": self.next.get(), "method": method, "params": params })
    }

    /// Posts a message on the kept connection.
    #[track_caller]
    pub(crate) fn post(&self, message: &Value) -> Reply {
        self.post_text(&message.to_string())
    }

    /// The same with a message as it is spelled.
    #[track_caller]
    pub(crate) fn post_text(&self, message: &str) -> Reply {
        self.exchange(&[], message)
    }

    /// Posts a message with these headers beside those of MCP.
    #[track_caller]
    pub(crate) fn post_with(&self, headers: &[(&str, &str)], message: &Value) -> Reply {
        self.exchange(headers, &message.to_string())
    }

    #[track_caller]
    fn exchange(&self, more: &[(&str, &str)], message: &str) -> Reply {
        let mut connection = self.connection.borrow_mut();
        let connection = connection.get_or_insert_with(|| Connection::open(&self.address));
        let mut headers = self.headers();
        headers.extend(more);
        connection.exchange("POST", &self.path, &headers, message)
    }

    /// Sends a request; returns its answer, a JSON-RPC message.
    #[track_caller]
    pub(crate) fn ask(&self, method: &str, params: Value) -> Value {
        let reply = self.post(&self.request(method, params));
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json()
    }

    /// Sends a request; returns the status of its HTTP answer.
    pub(crate) fn status(&self, method: &str, params: Value) -> u16 {
        self.post(&self.request(method, params)).status
    }

    /// A notification.
    #[track_caller]
    pub(crate) fn notify(&self, method: &str, params: Value) {
        let reply = self.post(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
        assert_eq!(reply.status, 202, "{reply:?}");
    }

    /// Answers a question of a server.
    #[track_caller]
    pub(crate) fn answer(&self, question: &Value, result: Value) {
        let reply = self.post(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": result }));
        assert_eq!(reply.status, 202, "{reply:?}");
    }

    /// A tool's result.
    #[track_caller]
    pub(crate) fn call(&self, name: &str, arguments: Value) -> Value {
        let answer = self.ask(
            "tools/call",
            json!({ "name": name, "arguments": arguments }),
        );
        assert!(answer["result"].is_object(), "{name}: {answer}");
        answer["result"].clone()
    }

    /// The result of the fixture's tool `record`.
    #[track_caller]
    pub(crate) fn record(&self, server: &str) -> Value {
        self.call(&format!("{server}_record"), json!({}))["structuredContent"].clone()
    }

    /// Begins a request on a connection of its own.
    #[track_caller]
    pub(crate) fn begin(&self, message: &Value) -> Events {
        Connection::open(&self.address).stream(
            "POST",
            &self.path,
            &self.headers(),
            &message.to_string(),
        )
    }

    /// Begins a tool call; its answer is a stream of messages.
    pub(crate) fn begin_call(&self, name: &str, arguments: Value) -> Events {
        let meta = json!({ "progressToken": format!("p{}", self.next.get()) });
        let params = json!({ "name": name, "arguments": arguments, "_meta": meta });
        self.begin(&self.request("tools/call", params))
    }

    /// The GET stream.
    #[track_caller]
    pub(crate) fn listen(&self) -> Events {
        let events = Connection::open(&self.address).stream("GET", &self.path, &self.headers(), "");
        assert_eq!(events.head().status, 200, "{:?}", events.head());
        events
    }

    /// Ends the session; returns the status.
    pub(crate) fn delete(&self) -> u16 {
        Connection::open(&self.address)
            .exchange("DELETE", &self.path, &self.headers(), "")
            .status
    }

    /// The names on a list, in its order.
    #[track_caller]
    pub(crate) fn names(&self, list: &str) -> Vec<String> {
        let (method, key, name) = match list {
            "tools" => ("tools/list", "tools", "name"),
            "prompts" => ("prompts/list", "prompts", "name"),
            "resources" => ("resources/list", "resources", "uri"),
            "templates" => (
                "resources/templates/list",
                "resourceTemplates",
                "uriTemplate",
            ),
            other => panic!("no list `{other}`"),
        };
        let answer = self.ask(method, json!({}));
        let items = answer["result"][key]
            .as_array()
            .unwrap_or_else(|| panic!("{answer}"));
        items
            .iter()
            .map(|item| item[name].as_str().unwrap().to_owned())
            .collect()
    }
}

/// Sends one request of a modern client; returns its HTTP answer.
pub(crate) fn modern(gateway: &Gateway, token: Option<&str>, method: &str, params: Value) -> Reply {
    let (headers, body) = modern_request(token, method, params);
    let headers: Vec<(&str, &str)> = headers
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    Connection::open(gateway.address()).exchange("POST", "/mcp", &headers, &body)
}

/// The same; the answer is a stream of messages.
pub(crate) fn modern_stream(
    gateway: &Gateway,
    token: Option<&str>,
    method: &str,
    params: Value,
) -> Events {
    let (headers, body) = modern_request(token, method, params);
    let headers: Vec<(&str, &str)> = headers
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    Connection::open(gateway.address()).stream("POST", "/mcp", &headers, &body)
}

pub(crate) fn modern_request(
    token: Option<&str>,
    method: &str,
    mut params: Value,
) -> (Vec<(&'static str, String)>, String) {
    let mut headers = vec![
        ("accept", BOTH.to_owned()),
        ("content-type", "application/json".to_owned()),
        ("mcp-protocol-version", "2026-07-28".to_owned()),
        ("mcp-method", method.to_owned()),
    ];
    let named = ["name", "uri", "taskId"]
        .iter()
        .find_map(|key| params.get(key));
    if let Some(name) = named.and_then(Value::as_str) {
        headers.push(("mcp-name", name.to_owned()));
    }
    headers.extend(token.map(|token| ("authorization", format!("Bearer {token}"))));
    let meta = &mut params["_meta"];
    if meta.is_null() {
        *meta = json!({});
    }
    meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    let able = &mut meta["io.modelcontextprotocol/clientCapabilities"];
    if able.is_null() {
        *able = json!({});
    }
    meta["io.modelcontextprotocol/clientInfo"] = json!({ "name": "test", "version": "1" });
    (
        headers,
        json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string(),
    )
}
