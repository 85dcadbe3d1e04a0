//! Commands `servers login`, `servers logout` and `servers auth`: the running gateway holds what
//! must stay secret, a browser and this command bring the answer back.

use std::io::{BufRead, IsTerminal, Read};
use std::time::Duration;

use oauth::token::TOKEN_BYTES_MAX;
use platform::unix_ms;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use crate::cli::{LoginArgs, RunningArgs};
use crate::commands::browser;
use crate::commands::secret::read_value;
use crate::commands::target::running_endpoint;
use crate::commands::view::{cell, texts};
use crate::remote::{Remote, api};
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;

const COLUMNS: [&str; 7] = [
    "SERVER",
    "PARTICIPANT",
    "STATE",
    "ISSUER",
    "SCOPES",
    "EXPIRES",
    "REASON",
];
/// Time that the browser may take, as long as the gateway waits.
const LOGIN_LIMIT: Duration = Duration::from_secs(600);
/// The longest pasted address, bytes; the gateway's own limit is lower.
const PASTED_BYTES_MAX: u64 = 64 * 1024;
/// The longest head of a request of the browser, bytes.
const HEAD_BYTES_MAX: usize = 32 * 1024;
/// Time that a connection of the browser may take to send its request.
const HEAD_LIMIT: Duration = Duration::from_secs(5);

/// Signs in at a server.
pub(crate) async fn login(name: &str, args: &LoginArgs, output: Output) -> Result<Exit, Failure> {
    let endpoint = running_endpoint(&args.gateway, output)?;
    if args.key {
        return enter_key(&endpoint, name, args, output).await;
    }
    let account: Value = if args.device {
        by_device(&endpoint, name, args, output).await?
    } else if args.paste {
        by_pasting(&endpoint, name, args, output).await?
    } else {
        by_browser(&endpoint, name, args, output).await?
    };
    if output.json {
        output.result_json(&account);
    } else {
        let scopes = texts(&account, "scopes").join(" ");
        let scopes = if scopes.is_empty() {
            String::new()
        } else {
            format!(" with the scopes {scopes}")
        };
        output.message(&format!("signed in at `{name}`{scopes}"));
    }
    Ok(Exit::Ok)
}

/// Enters a caller's key.
async fn enter_key(
    endpoint: &Remote,
    name: &str,
    args: &LoginArgs,
    output: Output,
) -> Result<Exit, Failure> {
    let prompt = format!("Key for `{name}` (it is not shown):");
    let read = tokio::task::spawn_blocking(move || read_value(&prompt, TOKEN_BYTES_MAX)).await;
    let typed = read.map_err(|error| Failure::new(Exit::Failed, "key", error.to_string()))??;
    let key =
        std::str::from_utf8(&typed).map_err(|_| Failure::bad_argument("the key is not UTF-8"))?;
    let body = json!({ "participant": args.participant, "key": key }).to_string();
    let account: Value = api::post(endpoint, &["servers", name, "key"], &[], body)
        .await?
        .read()?;
    if output.json {
        output.result_json(&account);
    } else {
        output.message(&format!("the key for `{name}` is kept"));
    }
    Ok(Exit::Ok)
}

/// Signs out at a server.
pub(crate) async fn logout(
    name: &str,
    participant: Option<&str>,
    gateway: &RunningArgs,
    output: Output,
) -> Result<Exit, Failure> {
    let endpoint = running_endpoint(gateway, output)?;
    let body = json!({ "participant": participant }).to_string();
    let answer: Value = api::post(&endpoint, &["servers", name, "logout"], &[], body)
        .await?
        .read()?;
    if output.json {
        output.result_json(&answer);
    } else {
        output.message(&format!("signed out at `{name}`: its tokens are forgotten"));
        if let Some(why) = answer.get("not_revoked").and_then(Value::as_str) {
            output.warn(&format!(
                "they are not revoked at the authorization server: {why}"
            ));
        }
    }
    Ok(Exit::Ok)
}

/// Gets a one-time code for connect pages.
pub(crate) async fn connect_code(gateway: &RunningArgs, output: Output) -> Result<Exit, Failure> {
    let endpoint = running_endpoint(gateway, output)?;
    let answer: Value = api::post(&endpoint, &["connect-code"], &[], "{}".to_owned())
        .await?
        .read()?;
    if output.json {
        output.result_json(&answer);
        return Ok(Exit::Ok);
    }
    let expires = answer
        .get("expires_ms")
        .and_then(Value::as_u64)
        .unwrap_or_default();
    let left = expires.saturating_sub(unix_ms()).div_ceil(60_000);
    let name = cell(&answer, "name");
    output.message(&format!(
        "type this at the connect page as `{name}`; it is good once, for {left} minutes:"
    ));
    output.result(&cell(&answer, "code"));
    Ok(Exit::Ok)
}

/// Lists the accounts at one server, or at all.
pub(crate) async fn auth(
    name: Option<&str>,
    gateway: &RunningArgs,
    output: Output,
) -> Result<Exit, Failure> {
    let endpoint = running_endpoint(gateway, output)?;
    let query: Vec<(&str, &str)> = name.map(|name| ("server", name)).into_iter().collect();
    let answer: Value = api::get(&endpoint, &["accounts"], &query).await?.read()?;
    let row = |row: &Value| {
        let member = |column: &&str| match *column {
            "SCOPES" => Some(texts(row, "scopes").join(" "))
                .filter(|scopes| !scopes.is_empty())
                .unwrap_or("-".into()),
            "PARTICIPANT" if row.get("participant").is_none() => "(all)".to_owned(),
            column => cell(row, &column.to_lowercase()),
        };
        COLUMNS.iter().map(member).collect()
    };
    output.listing(&answer, "accounts", &COLUMNS, row);
    Ok(Exit::Ok)
}

/// Asks the gateway to begin.
async fn begin(
    endpoint: &Remote,
    path: &[&str],
    args: &LoginArgs,
    port: Option<u16>,
) -> Result<Value, Failure> {
    let body = json!({ "participant": args.participant, "scopes": args.scopes, "port": port });
    api::post(endpoint, path, &[], body.to_string())
        .await?
        .read()
}

/// Hands the gateway what the browser was sent to.
async fn complete(endpoint: &Remote, name: &str, callback: &str) -> Result<Value, Failure> {
    let body = json!({ "callback": callback }).to_string();
    api::post(endpoint, &["servers", name, "login", "complete"], &[], body)
        .await?
        .read()
}

async fn by_pasting(
    endpoint: &Remote,
    name: &str,
    args: &LoginArgs,
    output: Output,
) -> Result<Value, Failure> {
    let begun = begin(endpoint, &["servers", name, "login"], args, None).await?;
    output.message("open this address in a browser, on any machine, and sign in:");
    output.message(&cell(&begun, "url"));
    output.message(
        "at the end the browser shows an address that it cannot open: paste the whole of it here",
    );
    let read = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        let mut input = std::io::stdin().lock().take(PASTED_BYTES_MAX);
        std::io::BufReader::new(&mut input)
            .read_line(&mut line)
            .map(|_| line)
    });
    let line = match timeout(LOGIN_LIMIT, read).await {
        Ok(Ok(Ok(line))) if !line.trim().is_empty() => line,
        Ok(_) => return Err(Failure::bad_argument("nothing was pasted")),
        Err(_) => return Err(too_late(name)),
    };
    complete(endpoint, name, line.trim()).await
}

async fn by_browser(
    endpoint: &Remote,
    name: &str,
    args: &LoginArgs,
    output: Output,
) -> Result<Value, Failure> {
    let (listener, port) = listener(endpoint, name).await?;
    let begun = begin(endpoint, &["servers", name, "login"], args, Some(port)).await?;
    let url = cell(&begun, "url");
    let is_opened = !args.no_browser && std::io::stderr().is_terminal() && browser::open(&url);
    let how = if is_opened {
        "a browser opens this address; sign in there:"
    } else {
        "open this address in a browser on this machine, and sign in:"
    };
    output.message(how);
    output.message(&url);
    let (callback, mut stream) = timeout(LOGIN_LIMIT, callback(&listener, port))
        .await
        .map_err(|_| too_late(name))?;
    let completed = complete(endpoint, name, &callback).await;
    let said = match &completed {
        Ok(_) => "You are signed in. You may close this window.",
        Err(_) => "The sign-in has failed. The command that began it says why.",
    };
    answer(&mut stream, "200 OK", said).await;
    completed
}

/// A listener for the browser, at the port with which the gateway's client is registered: many
/// authorization servers accept no other. Another port is registered if that one is taken, unless
/// it is configured.
async fn listener(endpoint: &Remote, name: &str) -> Result<(TcpListener, u16), Failure> {
    // A gateway that does not say it, or a caller who may not know it, goes on with any port.
    let answer = api::get(endpoint, &["servers", name, "login"], &[]).await;
    let registered: Value = answer.and_then(|answer| answer.read()).unwrap_or_default();
    let port = registered
        .get("port")
        .and_then(Value::as_u64)
        .and_then(|port| u16::try_from(port).ok());
    let is_fixed = registered
        .get("fixed")
        .and_then(Value::as_bool)
        .unwrap_or_default();
    let mut bound = TcpListener::bind(("127.0.0.1", port.unwrap_or(0))).await;
    if bound.is_err() && !is_fixed {
        bound = TcpListener::bind(("127.0.0.1", 0)).await;
    }
    let unusable = |error: std::io::Error| {
        let at = port
            .filter(|_| is_fixed)
            .map(|port| format!(" at port {port}"))
            .unwrap_or_default();
        Failure::new(
            Exit::Failed,
            "cannot_listen",
            format!("cannot wait for the browser{at}: {error}"),
        )
        .hint("use --paste")
    };
    let listener = bound.map_err(unusable)?;
    let port = listener.local_addr().map_err(unusable)?.port();
    Ok((listener, port))
}

async fn by_device(
    endpoint: &Remote,
    name: &str,
    args: &LoginArgs,
    output: Output,
) -> Result<Value, Failure> {
    let path = ["servers", name, "login", "device"];
    let begun = begin(endpoint, &path, args, None).await?;
    output.message(&format!(
        "open {} on any device, and type the code {}",
        cell(&begun, "url"),
        cell(&begun, "user_code")
    ));
    let id = cell(&begun, "id");
    let mut wait_ms = begun
        .get("interval_seconds")
        .and_then(Value::as_u64)
        .unwrap_or(5)
        * 1_000;
    loop {
        sleep(Duration::from_millis(wait_ms)).await;
        let path = ["servers", name, "login", "device", &id];
        let mut asked: Value = api::post(endpoint, &path, &[], String::new())
            .await?
            .read()?;
        match asked.get_mut("account") {
            Some(account) => return Ok(account.take()),
            None => {
                wait_ms = asked
                    .get("retry_after_ms")
                    .and_then(Value::as_u64)
                    .unwrap_or(wait_ms)
            }
        }
    }
}

fn too_late(name: &str) -> Failure {
    Failure::new(
        Exit::Failed,
        "login_expired",
        "the sign-in has taken longer than 10 minutes",
    )
    .hint(format!("begin again: portmoot servers login {name}"))
}

/// Waits for the browser to come back, and returns the address to which it was sent. Its connection
/// is still open.
async fn callback(listener: &TcpListener, port: u16) -> (String, TcpStream) {
    loop {
        let Ok((mut stream, _)) = listener.accept().await else {
            continue;
        };
        match timeout(HEAD_LIMIT, target(&mut stream)).await {
            Ok(Some(target)) if target.starts_with("/callback?") => {
                return (format!("http://127.0.0.1:{port}{target}"), stream);
            }
            Ok(_) | Err(_) => answer(&mut stream, "404 Not Found", "There is nothing here.").await,
        }
    }
}

/// The target of a GET request.
async fn target(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut chunk = [0; 4096];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let count = stream
            .read(&mut chunk)
            .await
            .ok()
            .filter(|count| *count > 0)?;
        head.extend_from_slice(chunk.get(..count)?);
        if head.len() > HEAD_BYTES_MAX {
            return None;
        }
    }
    let line = std::str::from_utf8(&head).ok()?.lines().next()?;
    let target = line.strip_prefix("GET ")?.split(' ').next()?;
    Some(target.to_owned())
}

/// Answers the browser with a page that loads nothing.
async fn answer(stream: &mut TcpStream, status: &str, said: &str) {
    let page = html::simple("Portmoot", said);
    let text = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\
         cache-control: no-store\r\nreferrer-policy: no-referrer\r\n\
         content-security-policy: default-src 'none'; frame-ancestors 'none'\r\n\r\n{page}",
        page.len()
    );
    // The browser may have gone.
    let _ = stream.write_all(text.as_bytes()).await;
    let _ = stream.shutdown().await;
}
