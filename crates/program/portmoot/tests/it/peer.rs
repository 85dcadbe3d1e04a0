//! A scripted upstream, byte for byte.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};

type Script = dyn Fn(&Value) -> Vec<Vec<u8>> + Send + Sync;

/// A scripted upstream. It keeps the messages that it received.
pub(crate) struct Peer {
    port: u16,
    received: Arc<Mutex<Vec<String>>>,
    /// Its open connections, and ended ones.
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Peer {
    /// A child process whose pipes are connected to the test. `script` returns the lines to send
    /// after each received line.
    pub(crate) fn stdio(script: impl Fn(&Value) -> Vec<Vec<u8>> + Send + Sync + 'static) -> Peer {
        Self::listen(script, |stream, received, script| {
            let mut out = stream.try_clone().unwrap();
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                let said = script(&read(&line));
                received.lock().unwrap().push(line);
                for mut line in said {
                    line.push(b'\n');
                    if out.write_all(&line).is_err() {
                        return;
                    }
                }
            }
        })
    }

    /// An HTTP server. `script` returns one whole response (head and body) for each body; whole
    /// requests are kept.
    pub(crate) fn http(script: impl Fn(&Value) -> Vec<Vec<u8>> + Send + Sync + 'static) -> Peer {
        Self::listen(script, |stream, received, script| {
            let mut out = stream.try_clone().unwrap();
            let mut reader = BufReader::new(stream);
            loop {
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") {
                    if reader.read_line(&mut head).unwrap_or(0) == 0 {
                        return;
                    }
                }
                let length = head.lines().find_map(|line| {
                    line.to_lowercase()
                        .strip_prefix("content-length: ")?
                        .parse()
                        .ok()
                });
                let mut body = vec![0; length.unwrap_or(0)];
                if reader.read_exact(&mut body).is_err() {
                    return;
                }
                let said = script(&serde_json::from_slice(&body).unwrap_or_default());
                received
                    .lock()
                    .unwrap()
                    .push(format!("{head}{}", String::from_utf8_lossy(&body)));
                for bytes in said {
                    if out.write_all(&bytes).is_err() {
                        return;
                    }
                }
            }
        })
    }

    fn listen(
        script: impl Fn(&Value) -> Vec<Vec<u8>> + Send + Sync + 'static,
        serve: fn(TcpStream, &Mutex<Vec<String>>, &Script),
    ) -> Peer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let received: Arc<Mutex<Vec<String>>> = Arc::default();
        let (kept, script) = (Arc::clone(&received), Arc::new(script));
        let streams: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let open = Arc::clone(&streams);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                open.lock().unwrap().push(stream.try_clone().unwrap());
                let (kept, script) = (Arc::clone(&kept), Arc::clone(&script));
                std::thread::spawn(move || serve(stream, &kept, &*script));
            }
        });
        Peer {
            port,
            received,
            streams,
        }
    }

    /// The table of the server in the configuration, as a child process.
    pub(crate) fn child(&self, name: &str, prefix: &str) -> String {
        let bridge = "exec 3<>/dev/tcp/127.0.0.1/$0; cat <&3 & exec cat >&3";
        let table = crate::socket::stdio_server(
            name,
            prefix,
            "bash",
            &["-c", bridge, &self.port.to_string()],
        );
        format!("{table}era = \"legacy\"\n")
    }

    /// Breaks every connection, as the end of an HTTP server does.
    pub(crate) fn cut(&self) {
        for stream in std::mem::take(&mut *self.streams.lock().unwrap()) {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }

    /// Sends a line on every open connection.
    pub(crate) fn say(&self, line: &Value) {
        for stream in self.streams.lock().unwrap().iter_mut() {
            let _ = stream.write_all(format!("{line}\n").as_bytes());
        }
    }

    /// Its port.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Its URL.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    /// The messages received so far.
    pub(crate) fn received(&self) -> Vec<String> {
        self.received.lock().unwrap().clone()
    }

    /// The number of received calls of this tool.
    pub(crate) fn calls(&self, tool: &str) -> usize {
        let named = format!("\"name\":\"{tool}\"");
        self.received()
            .iter()
            .filter(|line| line.contains("tools/call") && line.contains(&named))
            .count()
    }
}

/// Parses a message; values that `Value` cannot hold are left out.
fn read(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|_| around(line, 3))
}

fn around(text: &str, depth: usize) -> Value {
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(text).unwrap_or_default();
    let inner = |raw: &RawValue| match serde_json::from_str(raw.get()) {
        Err(_) if depth > 0 => around(raw.get(), depth - 1),
        read => read.unwrap_or_default(),
    };
    members
        .into_iter()
        .map(|(key, raw)| (key, inner(raw)))
        .collect()
}

/// The answers of a small legacy server to everything but calls; `tools` is the JSON array of its
/// tools.
pub(crate) fn small(message: &Value, tools: &str) -> Option<String> {
    let result = match message["method"].as_str()? {
        "initialize" => format!(
            r#"{{"protocolVersion":"{}","capabilities":{{"tools":{{"listChanged":true}},"resources":{{}},"logging":{{}}}},"serverInfo":{{"name":"peer","version":"1"}}}}"#,
            message["params"]["protocolVersion"]
                .as_str()
                .unwrap_or("2025-11-25")
        ),
        "tools/list" => format!(r#"{{"tools":{tools}}}"#),
        "resources/list" => r#"{"resources":[]}"#.to_owned(),
        "resources/templates/list" => r#"{"resourceTemplates":[]}"#.to_owned(),
        "ping" | "logging/setLevel" => "{}".to_owned(),
        _ => return None,
    };
    Some(answer(message, &result))
}

/// A result for this request.
pub(crate) fn answer(message: &Value, result: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#,
        message["id"]
    )
}

/// A tool without arguments.
pub(crate) fn tool(name: &str) -> String {
    format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}}}}"#)
}

/// A server that answers every call after a delay and records it.
pub(crate) fn worker() -> Peer {
    Peer::stdio(|message| {
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": "worker", "version": "1"}}),
            "tools/list" => json!({"tools": [{"name": "work", "inputSchema": {"type": "object"}}]}),
            "tools/call" => {
                // Long enough for a kill to fall between a call and its answer.
                std::thread::sleep(Duration::from_millis(3));
                json!({"content": []})
            }
            _ => return Vec::new(),
        };
        let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
        vec![answer.to_string().into_bytes()]
    })
}
