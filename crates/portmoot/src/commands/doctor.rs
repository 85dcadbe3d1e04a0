//! `doctor`: looks at everything that a gateway needs, without starting one. Each thing that is wrong has a way to mend it.

use std::env::split_paths;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use gateway::config::Config;
use gateway::tokens::tokens_configured;
use serde_json::json;
use store::{Directory, Journal, State};
use upstream::config::{ServerConfig, StdioConfig, Transport};

use crate::cli::DoctorArgs;
use crate::commands::config::sources;
use crate::config::Sources;
use crate::consent;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::machine::{env, now_ms};
use crate::output::Output;

/// When this was written; a clock before it is wrong, and tokens would not expire.
const WRITTEN_MS: u64 = 1_785_196_800_000;

/// One thing that was looked at.
struct Finding {
    what: String,
    verdict: Verdict,
    found: String,
    fix: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Good,
    Careful,
    Wrong,
}

pub(crate) fn run(args: &DoctorArgs, output: Output) -> Result<Exit, Failure> {
    let sources = Sources { listen: args.listen.clone(), ..sources(&args.config) };
    let mut findings = vec![clock(now_ms())];
    match sources.load(&env) {
        Err(problems) => findings.extend(problems.into_iter().map(|problem| {
            let place = problem.place.as_ref().map(|place| format!(" at {place}")).unwrap_or_default();
            let fix = problem.hint.clone().unwrap_or_else(|| "mend that line".into());
            wrong("configuration", format!("{}{place}", problem.message), fix)
        })),
        Ok(loaded) => {
            let files: Vec<String> = loaded.files.iter().map(|file| file.display().to_string()).collect();
            let files = if files.is_empty() {
                "none: the demo server stands in".to_owned()
            } else {
                files.join(", ")
            };
            findings.push(good("configuration", files));
            findings.extend(examine(&loaded.config));
        }
    }
    let healthy = findings.iter().all(|finding| finding.verdict != Verdict::Wrong);
    report(&findings, healthy, output);
    Ok(if healthy { Exit::Ok } else { Exit::Failed })
}

fn examine(config: &Config) -> Vec<Finding> {
    let (data, state, runs) = data_dir(config);
    let mut findings = vec![data, port(config, runs), tokens(config, state.as_ref())];
    findings.extend(config.servers.iter().map(server));
    findings
}

fn clock(now_ms: u64) -> Finding {
    match now_ms >= WRITTEN_MS {
        true => good("clock", "plausible"),
        false => {
            wrong("clock", "it stands before this program was written", "set the time: tokens expire by it")
        }
    }
}

/// The finding, what the journal says if it could be read, and where a gateway runs that owns it.
fn data_dir(config: &Config) -> (Finding, Option<State>, Option<String>) {
    const WHAT: &str = "data directory";
    let Some(dir) = &config.data_dir else {
        return (wrong(WHAT, "there is none", "set HOME, or name one: --data-dir DIR"), None, None);
    };
    if let Some(owner) = Directory::owner(dir) {
        let listen = owner.listen.unwrap_or_default();
        let found = format!("{}: process {} owns it, a gateway runs {listen}", dir.display(), owner.pid);
        return (good(WHAT, found), None, Some(listen));
    }
    if !dir.exists() {
        return (new_data_dir(dir), Some(State::default()), None);
    }
    match Journal::open(dir) {
        Ok(journal) => (good(WHAT, dir.display().to_string()), Some(journal.state().clone()), None),
        Err(error) => {
            let fix = Failure::from(error).hint.unwrap_or_else(|| "choose another: --data-dir DIR".into());
            (wrong(WHAT, format!("{} cannot be used", dir.display()), fix), None, None)
        }
    }
}

/// The doctor makes nothing: the nearest directory that exists must be writable.
fn new_data_dir(dir: &Path) -> Finding {
    let parent = dir.ancestors().skip(1).find(|parent| parent.is_dir());
    let writable =
        parent.and_then(|parent| parent.metadata().ok()).is_some_and(|data| !data.permissions().readonly());
    match writable {
        true => good("data directory", format!("{} will be made", dir.display())),
        false => wrong(
            "data directory",
            format!("{} cannot be made", dir.display()),
            "choose another: --data-dir DIR",
        ),
    }
}

fn port(config: &Config, runs: Option<String>) -> Finding {
    let listen = config.listen.to_string();
    if runs.as_deref() == Some(listen.as_str()) {
        return good("port", format!("{listen}: the gateway that runs has it"));
    }
    match TcpListener::bind(config.listen) {
        Ok(_) => good("port", format!("{listen} is free")),
        Err(error) => wrong("port", format!("{listen}: {error}"), "choose another: --listen 127.0.0.1:PORT"),
    }
}

fn tokens(config: &Config, state: Option<&State>) -> Finding {
    let Some(state) = state else {
        return good("tokens", "kept by the gateway that runs: portmoot token ls");
    };
    let asked = tokens_configured(config, state);
    if let Err(refusal) = auth::may_listen(config.listen, asked) {
        let fix = refusal.hint.unwrap_or_default().into_owned();
        return wrong("tokens", refusal.message.into_owned(), fix);
    }
    let expired = state.tokens().iter().filter(|token| token.expires_ms.is_some_and(|end| end <= now_ms()));
    let expired: Vec<&str> = expired.map(|token| token.name.as_str()).collect();
    if !expired.is_empty() {
        let fix = format!("portmoot token revoke {}", expired.first().copied().unwrap_or_default());
        return Finding {
            verdict: Verdict::Careful,
            ..wrong("tokens", format!("expired: {}", expired.join(", ")), fix)
        };
    }
    match asked {
        true => good("tokens", "callers must show one"),
        false => good("tokens", "none: this machine's users come in as the local user"),
    }
}

fn server(server: &ServerConfig) -> Finding {
    let what = format!("server {}", server.name);
    if !server.enabled {
        return good(&what, "disabled");
    }
    match &server.transport {
        Transport::Stdio(child) => command(&what, child, server),
        Transport::Http(_) | Transport::Sse(_) | Transport::Demo | Transport::Participant => {
            good(&what, consent::describe(server))
        }
    }
}

fn command(what: &str, child: &StdioConfig, server: &ServerConfig) -> Finding {
    if let Some(cwd) = child.cwd.as_ref().filter(|cwd| !cwd.is_dir()) {
        let fix = "make it, or change `cwd`";
        return wrong(what, format!("its directory {} does not exist", cwd.display()), fix);
    }
    let path = child.env.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.expose().to_owned());
    let path = path.or_else(|| env("PATH")).unwrap_or_default();
    match find(&child.command, &path, child.cwd.as_deref()) {
        Some(_) => good(what, consent::describe(server)),
        None => {
            let fix = format!("install `{}`, or write its whole path into `command`", child.command);
            wrong(what, format!("`{}` is not on PATH", child.command), fix)
        }
    }
}

/// The program that a command names, as `execvp` finds it.
fn find(command: &str, path: &str, cwd: Option<&Path>) -> Option<PathBuf> {
    let runs = |file: &PathBuf| {
        file.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    if command.contains('/') {
        let file = cwd.unwrap_or(Path::new("")).join(command);
        return Some(file).filter(runs);
    }
    split_paths(path).map(|dir| dir.join(command)).find(runs)
}

fn report(findings: &[Finding], healthy: bool, output: Output) {
    if output.json {
        let rows = findings.iter().map(|finding| {
            json!({ "what": finding.what, "verdict": finding.verdict.word(), "found": finding.found, "fix": finding.fix })
        });
        return output.result_json(&json!({ "ok": healthy, "findings": rows.collect::<Vec<_>>() }));
    }
    for finding in findings {
        let found = crate::visible::lines(&finding.found);
        output.result(&format!("{:7} {}: {found}", finding.verdict.word(), finding.what));
        if let Some(fix) = &finding.fix {
            output.result(&format!("        fix: {}", crate::visible::lines(fix)));
        }
    }
    output.talk(if healthy { "nothing is wrong" } else { "something is wrong: see `fix` above" });
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Verdict::Good => "ok",
            Verdict::Careful => "careful",
            Verdict::Wrong => "wrong",
        }
    }
}

fn good(what: &str, found: impl Into<String>) -> Finding {
    Finding { what: what.to_owned(), verdict: Verdict::Good, found: found.into(), fix: None }
}

fn wrong(what: &str, found: impl Into<String>, fix: impl Into<String>) -> Finding {
    Finding { what: what.to_owned(), verdict: Verdict::Wrong, found: found.into(), fix: Some(fix.into()) }
}
