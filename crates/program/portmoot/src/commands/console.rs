//! Command `console`: opens the console in the browser.

use std::io::IsTerminal as _;
use std::net::IpAddr;

use serde_json::{Value, json};

use crate::cli::RunningArgs;
use crate::commands::browser;
use crate::commands::target::running;
use crate::commands::view::cell;
use crate::remote::api;
use hyper::Uri;
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;

pub(crate) async fn run(
    no_browser: bool,
    gateway: &RunningArgs,
    output: Output,
) -> Result<Exit, Failure> {
    let running = running(gateway, output)?;
    let remote = running.endpoint()?;
    let answer: Value = api::post(&remote, &["console-codes"], &[], "{}".to_owned())
        .await?
        .read()?;
    let code = cell(&answer, "code");
    let base = console_of(&running.url, &cell(&answer, "host"));
    let url = format!("{base}#{code}");
    if output.json {
        let expires = answer.get("expires").cloned().unwrap_or_default();
        let participant = answer.get("participant").cloned().unwrap_or_default();
        output.result_json(
            &json!({ "url": url, "code": code, "participant": participant, "expires": expires }),
        );
        return Ok(Exit::Ok);
    }
    let opened = !no_browser && std::io::stderr().is_terminal() && browser::open_secret(&url);
    let who = cell(&answer, "participant");
    output.message(&if opened {
        format!("the console is opened in the browser as `{who}`; if it is not, open this within a minute:")
    } else {
        format!("open this in a browser within a minute, to be signed in as `{who}`:")
    });
    output.result(&url);
    Ok(Exit::Ok)
}

/// The address of the console of a gateway at a URL. A loopback address becomes the participant's own
/// name of this machine, which no other program knows; below it a path stays, as a proxy may have one.
fn console_of(url: &str, own_name: &str) -> String {
    let Ok(uri) = url.parse::<Uri>() else {
        return format!("{url}/console");
    };
    let scheme = match uri.scheme_str() {
        Some("https" | "wss") => "https",
        Some(_) | None => "http",
    };
    let host = uri.host().unwrap_or_default();
    let bare = host.trim_matches(['[', ']']);
    let is_here = bare == "localhost"
        || bare
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback() || address.is_unspecified());
    let name = if is_here && scheme == "http" {
        own_name
    } else {
        host
    };
    let port = uri.port().map_or(String::new(), |port| format!(":{port}"));
    let path = uri.path().trim_end_matches('/');
    let path = path.strip_suffix("/mcp").unwrap_or(path);
    format!("{scheme}://{name}{port}{path}/console")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_console_is_at_the_name_of_its_own_on_this_machine() {
        for (url, expect) in [
            (
                "http://127.0.0.1:7070",
                "http://pm-0.localhost:7070/console",
            ),
            (
                "http://[::1]:7070/mcp",
                "http://pm-0.localhost:7070/console",
            ),
            (
                "http://localhost:7070/",
                "http://pm-0.localhost:7070/console",
            ),
            ("ws://0.0.0.0:7070", "http://pm-0.localhost:7070/console"),
            ("https://127.0.0.1:7070", "https://127.0.0.1:7070/console"),
            ("https://gw.example/a/mcp", "https://gw.example/a/console"),
            ("https://gw.example", "https://gw.example/console"),
        ] {
            assert_eq!(console_of(url, "pm-0.localhost"), expect, "{url}");
        }
    }
}
