//! The load: `tools/call` over keep-alive connections, one call at a time on each, every answer
//! checked.
//!
//! `load --to 127.0.0.1:PORT [--path /mcp] [--era legacy|modern] [--tool NAME] [-c N] [--secs S] [--warmup S] [--size BYTES] [--fixed] [--rate CALLS_PER_S] [--pid PID]...`
//! `--fixed`: the server knows one answer; nothing is said before and only the status is checked.
//! `--flood`: asks the upstream to flood, and does not wait for an answer that will not come.
//! `--wire json|frames|grpc`: JSON-RPC, or proto-mcp; a `--child` knows the first two. The tool's
//! first argument is a text.
//! `--arguments JSON`: arguments of the calls, with `MARK` in their place of the marker.
//! `--answer TEXT`: answers have this, not the marker.
//! `--calls N`: ends after N calls in all. `--bearer TOKEN`: sent with each request.
//! `load ... --initialize N`: N sessions are opened on one connection, for every `--bearer`.
//! `--list N`: every `--bearer` gets the list of tools N times.
//! `load ... --hold SESSIONS [--streams]`: opens sessions (each with a held GET), and tells the
//! memory of the processes.
//! `load --child 'COMMAND ARGS' [--depth N]`: a server on a pipe, without anything between.

mod wires;

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use memchr::memmem;
use portmoot_bench::call::{self, Call, Era, INITIALIZE, INITIALIZED};
use portmoot_bench::flags::Flags;
use portmoot_bench::proc::{cpu_ns, rss_kib};
use portmoot_bench::reply;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio::task::LocalSet;
use wires::Wire;

/// What the connections share.
struct Shared {
    era: Era,
    wire: Wire,
    to: String,
    path: String,
    tool: String,
    arguments: String,
    /// What answers have in place of their call's marker.
    answer: Option<String>,
    size: usize,
    fixed: bool,
    flood: bool,
    connections: usize,
    rate: Option<f64>,
    calls: Option<u64>,
    bearer: String,
    seen: RefCell<Seen>,
}

impl Shared {
    fn is_over(&self) -> bool {
        let seen = self.seen.borrow();
        seen.over || self.calls.is_some_and(|calls| seen.next >= FIRST + calls)
    }

    /// The number of the next call.
    fn next(&self) -> u64 {
        let mut seen = self.seen.borrow_mut();
        seen.next += 1;
        seen.next - 1
    }
}

/// The number of the first call.
const FIRST: u64 = 1_000_000_000;

#[derive(Default)]
struct Seen {
    next: u64,
    measuring: bool,
    over: bool,
    wrong: u64,
    first_wrong: String,
    nanos: Vec<u32>,
}

impl Seen {
    fn done(&mut self, since: Instant, right: bool, what: impl FnOnce() -> String) {
        if !right {
            self.wrong += 1;
            if self.first_wrong.is_empty() {
                self.first_wrong = what();
            }
        }
        if self.measuring {
            self.nanos
                .push(u32::try_from(since.elapsed().as_nanos()).unwrap_or(u32::MAX));
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let flags = Flags::read();
    let pids: Vec<u32> = flags
        .all("--pid")
        .iter()
        .map(|pid| pid.parse().expect("a process id"))
        .collect();
    let shared = Rc::new(Shared {
        era: Era::read(flags.text("--era", "legacy")),
        wire: Wire::read(flags.text("--wire", "json")),
        to: flags.text("--to", "127.0.0.1:7070").to_owned(),
        path: flags.text("--path", "/mcp").to_owned(),
        tool: flags.text("--tool", "echo").to_owned(),
        arguments: flags.text("--arguments", call::ARGUMENTS).to_owned(),
        answer: flags.all("--answer").first().map(|&text| text.to_owned()),
        size: flags.get("--size", 400),
        fixed: flags.has("--fixed"),
        flood: flags.has("--flood"),
        connections: flags.get("-c", 16),
        rate: flags
            .all("--rate")
            .first()
            .map(|rate| rate.parse().expect("a rate")),
        calls: flags
            .all("--calls")
            .first()
            .map(|calls| calls.parse().expect("a count")),
        bearer: authorization(flags.text("--bearer", "")),
        seen: RefCell::new(Seen {
            next: FIRST,
            ..Seen::default()
        }),
    });
    if flags.has("--initialize") {
        return initialize(
            &shared,
            &flags.all("--bearer"),
            flags.get("--initialize", 0),
        )
        .await;
    }
    if flags.has("--list") {
        return list(&shared, &flags.all("--bearer"), flags.get("--list", 1)).await;
    }
    if flags.has("--hold") {
        return hold(
            &shared,
            flags.get("--hold", 0),
            flags.has("--streams"),
            &pids,
        )
        .await;
    }
    let local = LocalSet::new();
    let mut pids = pids;
    if let Some(command) = flags.all("--child").first() {
        pids.push(child(&local, &shared, command, flags.get("--depth", 16))?);
    } else {
        for at in 0..shared.connections {
            let shared = Rc::clone(&shared);
            local.spawn_local(async move {
                if let Err(error) = connection(&shared, at).await {
                    eprintln!("load: a connection broke: {error}");
                    shared.seen.borrow_mut().wrong += 1;
                }
            });
        }
    }
    if shared.calls.is_some() {
        local.await;
        let seen = shared.seen.borrow();
        println!(
            "calls={} wrong={} first_wrong={:?}",
            seen.next - FIRST,
            seen.wrong,
            seen.first_wrong
        );
        return Ok(());
    }
    local
        .run_until(measure(
            &shared,
            &pids,
            flags.get("--warmup", 0.5),
            flags.get("--secs", 2.0),
        ))
        .await;
    // Sessions are ended, so that the next run finds an empty gateway.
    let _ = tokio::time::timeout(Duration::from_secs(2), local).await;
    Ok(())
}

async fn measure(shared: &Shared, pids: &[u32], warmup: f64, secs: f64) {
    tokio::time::sleep(Duration::from_secs_f64(warmup)).await;
    shared.seen.borrow_mut().measuring = true;
    let (begun, before) = (Instant::now(), cpu_ns(pids));
    tokio::time::sleep(Duration::from_secs_f64(secs)).await;
    let (took, cpu) = (
        begun.elapsed().as_secs_f64(),
        cpu_ns(pids).saturating_sub(before),
    );
    let mut seen = shared.seen.borrow_mut();
    seen.measuring = false;
    seen.over = true;
    seen.nanos.sort_unstable();
    let calls = seen.nanos.len();
    let at = |share: f64| {
        seen.nanos
            .get(((calls as f64 * share) as usize).min(calls.saturating_sub(1)))
            .copied()
            .unwrap_or(0)
    };
    println!(
        "calls={calls} wrong={} calls_per_s={:.0} cpu_us={:.3} share={:.2} p50_us={:.1} p99_us={:.1} max_us={:.1} rss_kib={} first_wrong={:?}",
        seen.wrong,
        calls as f64 / took,
        cpu as f64 / 1000.0 / calls.max(1) as f64,
        cpu as f64 / 1e9 / took,
        f64::from(at(0.5)) / 1000.0,
        f64::from(at(0.99)) / 1000.0,
        f64::from(at(1.0)) / 1000.0,
        rss_kib(pids),
        seen.first_wrong,
    );
}

/// One connection with its own session.
struct Client<'s> {
    shared: &'s Shared,
    socket: TcpStream,
    buffer: Vec<u8>,
    extra: String,
}

impl<'s> Client<'s> {
    async fn connect(shared: &'s Shared) -> io::Result<Self> {
        let socket = TcpStream::connect(&shared.to).await?;
        socket.set_nodelay(true)?;
        Ok(Self {
            shared,
            socket,
            buffer: Vec::with_capacity(16 << 10),
            extra: String::new(),
        })
    }

    async fn say(&mut self, body: &str) -> io::Result<reply::Reply> {
        let text = call::post(
            self.shared.era,
            &self.shared.to,
            &self.shared.path,
            &self.extra,
            body,
        );
        self.socket.write_all(text.as_bytes()).await?;
        reply::read(&mut self.socket, &mut self.buffer).await
    }

    /// What comes before the first call.
    async fn begin(&mut self) -> io::Result<()> {
        match self.shared.era {
            Era::Modern => {
                let (bearer, tool) = (&self.shared.bearer, &self.shared.tool);
                self.extra = format!("{bearer}Mcp-Method: tools/call\r\nMcp-Name: {tool}\r\n");
            }
            Era::Legacy if self.shared.fixed => {}
            Era::Legacy => {
                let bearer = self.shared.bearer.clone();
                self.initialize(bearer).await?;
                self.say(INITIALIZED).await?;
            }
        }
        Ok(())
    }

    /// Opens a session.
    async fn initialize(&mut self, bearer: String) -> io::Result<()> {
        self.extra.clone_from(&bearer);
        let reply = self.say(INITIALIZE).await?;
        if reply.status != 200 {
            return Err(io::Error::other(format!(
                "initialize: {}",
                String::from_utf8_lossy(&reply.body)
            )));
        }
        let session = reply.session.map(|id| format!("Mcp-Session-Id: {id}\r\n"));
        self.extra = bearer + &session.unwrap_or_default();
        Ok(())
    }

    /// Opens the event stream of the session.
    async fn open_stream(&self) -> io::Result<TcpStream> {
        let shared = self.shared;
        let mut stream = TcpStream::connect(&shared.to).await?;
        let text = format!(
            "GET {} HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\nMCP-Protocol-Version: 2025-11-25\r\n{}\r\n",
            shared.path, shared.to, self.extra
        );
        stream.write_all(text.as_bytes()).await?;
        let mut first = [0; 1024];
        let count = stream.read(&mut first).await?;
        let first = &first[..count];
        assert!(
            first.starts_with(b"HTTP/1.1 200"),
            "{}",
            String::from_utf8_lossy(first)
        );
        Ok(stream)
    }

    async fn end(&mut self) -> io::Result<()> {
        let text = format!(
            "DELETE {} HTTP/1.1\r\nHost: {}\r\n{}\r\n",
            self.shared.path, self.shared.to, self.extra
        );
        self.socket.write_all(text.as_bytes()).await
    }
}

async fn connection(shared: &Shared, at: usize) -> io::Result<()> {
    match shared.wire {
        Wire::Json => json(shared, at).await,
        Wire::Frames => wires::frames(shared).await,
        Wire::Grpc => wires::grpc(shared).await,
    }
}

async fn json(shared: &Shared, at: usize) -> io::Result<()> {
    let mut client = Client::connect(shared).await?;
    client.begin().await?;
    let mut body = call::body(shared.era, &shared.tool, &shared.arguments, shared.size);
    if shared.flood {
        body = body.replace("xxxxx", "flood");
    }
    let mut call = Call::new(call::post(
        shared.era,
        &shared.to,
        &shared.path,
        &client.extra,
        &body,
    ));
    let pause = shared
        .rate
        .map(|rate| Duration::from_secs_f64(shared.connections as f64 / rate));
    let mut due = Instant::now()
        + pause
            .unwrap_or_default()
            .mul_f64(at as f64 / shared.connections as f64);
    while !shared.is_over() {
        if let Some(pause) = pause {
            tokio::time::sleep_until(due.into()).await;
            due += pause;
        }
        let number = shared.next();
        let since = Instant::now();
        client.socket.write_all(call.number(number)).await?;
        let reply = reply::read(&mut client.socket, &mut client.buffer).await?;
        let right = reply.status == 200
            && (shared.fixed || call::is_answer(&reply.body, number, shared.answer.as_deref()));
        let what = || format!("{} {}", reply.status, String::from_utf8_lossy(&reply.body));
        shared.seen.borrow_mut().done(since, right, what);
    }
    if shared.era == Era::Legacy && client.extra.contains("Mcp-Session-Id") {
        client.end().await?;
        reply::read(&mut client.socket, &mut client.buffer).await?;
    }
    Ok(())
}

/// The header of a token.
fn authorization(token: &str) -> String {
    if token.is_empty() {
        String::new()
    } else {
        format!("Authorization: Bearer {token}\r\n")
    }
}

/// Opens as many sessions of each token as asked, and leaves them.
async fn initialize(shared: &Shared, tokens: &[&str], sessions: usize) -> io::Result<()> {
    let mut client = Client::connect(shared).await?;
    let tokens = if tokens.is_empty() { &[""] } else { tokens };
    for token in tokens {
        for _ in 0..sessions {
            client.initialize(authorization(token)).await?;
        }
    }
    println!("calls={} wrong=0", tokens.len() * sessions);
    Ok(())
}

/// Fetches the whole list of tools, page by page, as often as asked for each token.
async fn list(shared: &Shared, tokens: &[&str], times: usize) -> io::Result<()> {
    let (mut pages, mut tools) = (0, 0);
    for token in tokens {
        let mut client = Client::connect(shared).await?;
        client.initialize(authorization(token)).await?;
        for _ in 0..times {
            let mut cursor = Some(String::new());
            while let Some(at) = cursor {
                let reply = client.say(&call::list(&at)).await?;
                if reply.status != 200 || memmem::find(&reply.body, b"\"tools\"").is_none() {
                    return Err(io::Error::other(
                        String::from_utf8_lossy(&reply.body).into_owned(),
                    ));
                }
                pages += 1;
                tools += memmem::find_iter(&reply.body, b"\"inputSchema\"").count();
                cursor = call::next_cursor(&reply.body);
            }
        }
    }
    println!("calls={pages} tools={tools} wrong=0");
    Ok(())
}

/// Opens sessions, holds them, and tells what they cost.
async fn hold(shared: &Shared, sessions: usize, streams: bool, pids: &[u32]) -> io::Result<()> {
    let mut client = Client::connect(shared).await?;
    client.begin().await?;
    // What the first session and the first stream cost once is not a session's.
    let mut held = Vec::new();
    if streams {
        held.push(client.open_stream().await?);
    }
    let before = rss_kib(pids);
    for _ in 0..sessions {
        client.begin().await?;
        if streams {
            held.push(client.open_stream().await?);
        }
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let after = rss_kib(pids);
    println!(
        "sessions={sessions} streams={} before_kib={before} after_kib={after} kib_each={:.2}",
        held.len(),
        after.saturating_sub(before) as f64 / sessions as f64
    );
    Ok(())
}

/// A server on a pipe: a window of calls, refilled as answers come.
fn child(local: &LocalSet, shared: &Rc<Shared>, command: &str, depth: usize) -> io::Result<u32> {
    let mut words = command.split_whitespace();
    let child = Command::new(words.next().unwrap_or_default())
        .args(words)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let pid = child.id().unwrap_or(0);
    let shared = Rc::clone(shared);
    local.spawn_local(async move {
        // Taken whole: dropping the child ends it.
        let mut child = child;
        let (Some(mut input), Some(mut output)) = (child.stdin.take(), child.stdout.take()) else {
            return;
        };
        if shared.wire == Wire::Frames {
            if let Err(error) = wires::pipe(&shared, input, output, depth).await {
                eprintln!("load: the pipe broke: {error}");
                shared.seen.borrow_mut().wrong += 1;
            }
            return;
        }
        let mut call = Call::new(call::body(
            shared.era,
            &shared.tool,
            &shared.arguments,
            shared.size,
        ));
        let (mut buffer, mut out, mut open) = (
            Vec::with_capacity(64 << 10),
            Vec::new(),
            std::collections::HashMap::new(),
        );
        // Its answer is not that of a call, and is passed over below.
        out.extend_from_slice(
            [INITIALIZE, INITIALIZED]
                .map(|line| format!("{line}\n"))
                .concat()
                .as_bytes(),
        );
        while !shared.seen.borrow().over {
            while open.len() < depth {
                let number = shared.next();
                out.extend_from_slice(call.number(number));
                out.push(b'\n');
                open.insert(number, Instant::now());
            }
            if input.write_all(&out).await.is_err()
                || !matches!(output.read_buf(&mut buffer).await, Ok(1..))
            {
                break;
            }
            out.clear();
            let mut at = 0;
            while let Some(end) = memchr::memchr(b'\n', &buffer[at..]) {
                let line = &buffer[at..at + end];
                if let Some((number, since)) =
                    call::answered(line).and_then(|n| Some((n, open.remove(&n)?)))
                {
                    let right = call::is_answer(line, number, shared.answer.as_deref());
                    shared
                        .seen
                        .borrow_mut()
                        .done(since, right, || String::from_utf8_lossy(line).into_owned());
                }
                at += end + 1;
            }
            buffer.drain(..at);
        }
    });
    Ok(pid)
}
