//! The upstream: one tool `echo`. `echo http PORT ERA` or `echo stdio ERA`; ERA is `legacy` or
//! `modern`.
//! `echo frames`: a server of proto-mcp on a pipe.
//! `echo stdio ERA --tools N`: N tools, of which the others do the same.
//! `echo stdio ERA --flood` also says a log message without end once it was called with `flood` in
//! the text.

mod frames;

use std::borrow::Cow;
use std::convert::Infallible;
use std::io::{self, BufWriter, Read, Write};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, body::Incoming};
use hyper_util::rt::TokioIo;
use memchr::{memchr, memmem};
use portmoot_bench::flags::Flags;
use serde::Deserialize;
use serde_json::value::RawValue;

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().collect();
    match words[1].as_str() {
        "http" => http(words[2].parse().expect("a port"), words[3] == "modern"),
        "frames" => frames::serve(),
        _ => {
            let flags = Flags::read();
            stdio(
                words[2] == "modern",
                flags.has("--flood"),
                &tools(flags.get("--tools", 1)),
            )
        }
    }
}

#[derive(Deserialize)]
struct Message<'m> {
    #[serde(borrow)]
    id: Option<&'m RawValue>,
    #[serde(borrow)]
    method: Cow<'m, str>,
    #[serde(borrow)]
    params: Option<&'m RawValue>,
}

#[derive(Deserialize)]
struct Params<'m> {
    #[serde(borrow)]
    arguments: Arguments<'m>,
}

#[derive(Deserialize)]
struct Arguments<'m> {
    #[serde(borrow)]
    text: &'m RawValue,
}

/// The list of this many tools. The description makes each as long as tools are.
fn tools(count: usize) -> String {
    let tool = |at: usize| {
        let name = if at == 0 {
            "echo".to_owned()
        } else {
            format!("tool_{at:05}")
        };
        let about = if count > 1 {
            format!(r#""description":"{}","#, "Echoes. ".repeat(22))
        } else {
            String::new()
        };
        format!(
            r#"{{"name":"{name}",{about}"inputSchema":{{"type":"object","properties":{{"text":{{"type":"string"}}}}}}}}"#
        )
    };
    format!(
        r#""tools":[{}]"#,
        (0..count).map(tool).collect::<Vec<_>>().join(",")
    )
}

/// Appends the answer, if the message needs one; says whether the method is known.
fn answer(frame: &[u8], modern: bool, tools: &str, out: &mut Vec<u8>) -> Option<bool> {
    let message: Message<'_> = serde_json::from_slice(frame).ok()?;
    let id = message.id?;
    let kind = if modern {
        r#","resultType":"complete""#
    } else {
        ""
    };
    let lasting = if modern {
        r#","ttlMs":3600000,"cacheScope":"public""#
    } else {
        ""
    };
    let id = id.get();
    let mut known = true;
    let _ = match &*message.method {
        "tools/call" => {
            let params = message
                .params
                .and_then(|raw| serde_json::from_str::<Params<'_>>(raw.get()).ok());
            let text = params.map_or("\"\"", |params| params.arguments.text.get());
            write!(
                out,
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":{text}}}]{kind}}}}}"#
            )
        }
        "tools/list" => write!(
            out,
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{{tools}{kind}{lasting}}}}}"#
        ),
        "initialize" if !modern => write!(
            out,
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"echo","version":"1"}}}}}}"#
        ),
        "server/discover" if modern => write!(
            out,
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"supportedVersions":["2026-07-28"],"capabilities":{{"tools":{{}}}}{kind}{lasting},"_meta":{{"io.modelcontextprotocol/serverInfo":{{"name":"echo","version":"1"}}}}}}}}"#
        ),
        "ping" => write!(out, r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#),
        _ => {
            known = false;
            write!(
                out,
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"method not found"}}}}"#
            )
        }
    };
    Some(known)
}

fn stdio(modern: bool, floods: bool, tools: &str) -> io::Result<()> {
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    let (mut waiting, mut out, mut buffer) = (Vec::new(), Vec::new(), vec![0; 64 << 10]);
    loop {
        let count = input.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        waiting.extend_from_slice(&buffer[..count]);
        let mut at = 0;
        while let Some(end) = memchr(b'\n', &waiting[at..]) {
            let line = &waiting[at..at + end];
            if floods && memmem::find(line, b"flood").is_some() {
                return flood(&mut output);
            }
            if answer(line, modern, tools, &mut out).is_some() {
                out.push(b'\n');
            }
            at += end + 1;
        }
        waiting.drain(..at);
        output.write_all(&out)?;
        output.flush()?;
        out.clear();
    }
}

/// Log messages as fast as the pipe takes them.
fn flood(output: &mut impl Write) -> io::Result<()> {
    let mut output = BufWriter::with_capacity(64 << 10, output);
    loop {
        output.write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":\"flood\"}}\n")?;
    }
}

#[tokio::main(flavor = "current_thread")]
async fn http(port: u16, modern: bool) -> io::Result<()> {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let service = service_fn(move |request: Request<Incoming>| async move {
            let mut response = Response::new(Full::new(Bytes::new()));
            if request.method() != Method::POST {
                *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
                return Ok::<_, Infallible>(response);
            }
            let body = request
                .into_body()
                .collect()
                .await
                .map(|body| body.to_bytes())
                .unwrap_or_default();
            let mut out = Vec::with_capacity(body.len() + 64);
            if let Some(known) = answer(&body, modern, &tools(1), &mut out) {
                // A modern server gives the status that a legacy one has no use for.
                if modern && !known {
                    *response.status_mut() = StatusCode::NOT_FOUND;
                }
                response
                    .headers_mut()
                    .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                *response.body_mut() = Full::new(out.into());
            } else {
                *response.status_mut() = StatusCode::ACCEPTED;
            }
            Ok(response)
        });
        tokio::spawn(
            hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(socket), service),
        );
    }
}
