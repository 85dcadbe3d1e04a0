//! HTTP/1.1 client: one or many exchanges per connection, whole answers or event streams.

use std::cell::OnceCell;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use serde_json::Value;

/// Timeout of every wait in the tests, long enough for a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// Header names are lower case.
pub(crate) type Headers = Vec<(String, String)>;

/// An HTTP answer.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Headers,
    /// The whole body, or the data of the last event of a stream.
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|why| panic!("{why}: {self:?}"))
    }
}

/// The headers and the body of a request to the API.
pub(crate) struct ApiRequest {
    bearer: String,
    /// Empty in place of `null`.
    pub(crate) body: String,
}

impl ApiRequest {
    pub(crate) fn new(token: &str, body: &Value) -> ApiRequest {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        ApiRequest {
            bearer: format!("Bearer {token}"),
            body,
        }
    }

    pub(crate) fn headers(&self) -> [(&str, &str); 2] {
        [
            ("authorization", self.bearer.as_str()),
            ("content-type", "application/json"),
        ]
    }
}

/// A connection that stays open between requests.
pub(crate) struct Connection {
    reader: BufReader<TcpStream>,
}

impl Connection {
    pub(crate) fn open(address: &str) -> Connection {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        Connection {
            reader: BufReader::new(stream),
        }
    }

    /// Sends one request and reads its whole answer.
    #[track_caller]
    pub(crate) fn exchange(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Reply {
        self.exchange_at("localhost", method, path, headers, body)
    }

    /// Sends one request to the API and reads its whole answer.
    #[track_caller]
    pub(crate) fn api(&mut self, method: &str, path: &str, token: &str, body: &Value) -> Reply {
        let request = ApiRequest::new(token, body);
        self.exchange(method, path, &request.headers(), &request.body)
    }

    /// The same under another name of the server.
    #[track_caller]
    pub(crate) fn exchange_at(
        &mut self,
        host: &str,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Reply {
        self.reader
            .get_ref()
            .set_read_timeout(Some(TIMEOUT))
            .unwrap();
        self.write(host, method, path, headers, body);
        let mut reply = self.head().expect("an answer");
        let mut body = Vec::new();
        self.body(&reply, |part| body.extend_from_slice(part));
        reply.body = String::from_utf8(body).unwrap();
        if is_events(&reply) {
            let mut data = reply
                .body
                .lines()
                .filter_map(|line| line.strip_prefix("data: "));
            reply.body = data
                .rfind(|data| !data.is_empty())
                .unwrap_or_default()
                .to_owned();
        }
        reply
    }

    /// Sends one request and reads its answer as a stream of messages.
    pub(crate) fn stream(
        mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Events {
        self.write("localhost", method, path, headers, body);
        let (send, messages) = channel();
        let (send_head, heads) = channel();
        let socket = self.reader.get_ref().try_clone().unwrap();
        std::thread::spawn(move || {
            let Some(of) = self.head() else { return };
            let _ = send_head.send(of.clone());
            let mut rest = Vec::new();
            self.body(&of, |part| {
                rest.extend_from_slice(part);
                if is_events(&of) {
                    send_messages(&mut rest, &send);
                }
            });
            if let Ok(message) = serde_json::from_slice(&rest) {
                let _ = send.send(message);
            }
        });
        Events {
            heads,
            head: OnceCell::new(),
            messages,
            socket,
        }
    }

    fn write(
        &mut self,
        host: &str,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) {
        let mut text = format!(
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\ncontent-length: {}\r\n",
            body.len()
        );
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        text.push_str(body);
        self.reader.get_mut().write_all(text.as_bytes()).unwrap();
    }

    /// The answer's status and headers, unless the connection ends first.
    fn head(&mut self) -> Option<Reply> {
        let mut line = String::new();
        self.reader.read_line(&mut line).ok()?;
        let status = line.split(' ').nth(1)?.parse().ok()?;
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            self.reader.read_line(&mut line).ok()?;
            let Some((name, value)) = line.trim().split_once(':') else {
                break;
            };
            headers.push((name.to_lowercase(), value.trim().to_owned()));
        }
        Some(Reply {
            status,
            headers,
            body: String::new(),
        })
    }

    /// Reads the body until its end or the end of the connection.
    fn body(&mut self, head: &Reply, mut part: impl FnMut(&[u8])) {
        if head.header("transfer-encoding") == Some("chunked") {
            loop {
                let mut line = String::new();
                if self.reader.read_line(&mut line).unwrap_or(0) == 0 {
                    return;
                }
                let length = usize::from_str_radix(line.trim(), 16).unwrap_or(0);
                let mut chunk = vec![0; length + 2];
                if self.reader.read_exact(&mut chunk).is_err() || length == 0 {
                    return;
                }
                part(&chunk[..length]);
            }
        }
        let length = head
            .header("content-length")
            .map_or(0, |length| length.parse().unwrap());
        let mut whole = vec![0; length];
        if self.reader.read_exact(&mut whole).is_ok() {
            part(&whole);
        }
    }
}

fn is_events(head: &Reply) -> bool {
    head.header("content-type")
        .is_some_and(|kind| kind.starts_with("text/event-stream"))
}

/// Sends the messages of all complete events to the channel.
fn send_messages(rest: &mut Vec<u8>, send: &Sender<Value>) {
    while let Some(end) = rest.windows(2).position(|two| two == b"\n\n") {
        let event: Vec<u8> = rest.drain(..end + 2).collect();
        let event = String::from_utf8(event).unwrap();
        for data in event.lines().filter_map(|line| line.strip_prefix("data: ")) {
            if let Ok(message) = serde_json::from_str(data) {
                let _ = send.send(message);
            }
        }
    }
}

/// The messages of one answer. Dropping it closes the connection.
pub(crate) struct Events {
    heads: Receiver<Reply>,
    head: OnceCell<Reply>,
    messages: Receiver<Value>,
    socket: TcpStream,
}

impl Events {
    /// The answer's status and headers.
    #[track_caller]
    pub(crate) fn head(&self) -> &Reply {
        self.head
            .get_or_init(|| self.heads.recv_timeout(TIMEOUT).expect("an answer in time"))
    }

    /// The next message.
    #[track_caller]
    pub(crate) fn next(&self) -> Value {
        self.messages
            .recv_timeout(TIMEOUT)
            .expect("a message in time")
    }

    /// The next message with this method; others are skipped.
    #[track_caller]
    pub(crate) fn next_of(&self, method: &str) -> Value {
        loop {
            let message = self.next();
            if message["method"] == method {
                return message;
            }
        }
    }

    /// Waits until the stream has ended; returns the remaining messages.
    #[track_caller]
    pub(crate) fn rest(&self) -> Vec<Value> {
        let mut rest = Vec::new();
        loop {
            match self.messages.recv_timeout(TIMEOUT) {
                Ok(message) => rest.push(message),
                Err(RecvTimeoutError::Disconnected) => return rest,
                Err(RecvTimeoutError::Timeout) => {
                    panic!("the stream did not end; it said {rest:?}")
                }
            }
        }
    }

    /// The messages received so far, without waiting.
    pub(crate) fn so_far(&self) -> Vec<Value> {
        self.messages.try_iter().collect()
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
    }
}
