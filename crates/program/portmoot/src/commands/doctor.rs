//! Command `doctor`: checks everything that a gateway needs, without starting one, and asks the one
//! that runs; each failed check suggests a fix.

mod check;
mod cluster;

use std::net::TcpListener;
use std::path::Path;

use config::Config;
use identity::AccessState;
use identity::grants::{Grants, NOT_APPLIED};
use identity::identities::tokens_configured;
use notify::config::{NotifyRoute, NotifyWay};
use platform::unix_ms;
use serde_json::{Value, json};
use store::{Directory, PeekedJournal};
use tls::ClientTls;
use upstream::config::{ProtoConfig, ServerConfig, StdioConfig, Transport};

use check::{Check, Severity, failed, passed};

use crate::cli::CheckArgs;
use crate::commands::config::sources;
use crate::commands::servers::why;
use crate::commands::target::Running;
use crate::commands::view::{cell, texts};
use crate::consent;
use crate::process::env;
use crate::remote::api;
use config::{ConfigSources, Loaded, NamedSecret, Problem, Secrets, UNREAD};
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;

/// A time before the release of this program, Unix milliseconds. A clock before it is wrong, and
/// tokens would not expire.
const RELEASE_MS: u64 = 1_785_196_800_000;

/// Advice about a gateway that lacks what is there where a command runs.
const ANEW: &str = "stop the gateway, and start it anew from here";

/// Transport, as the API names it, of a server that lacks something to start.
const UNUSABLE: &str = "unusable";

pub(crate) async fn run(args: &CheckArgs, output: Output) -> Result<Exit, Failure> {
    let sources = ConfigSources {
        listen: args.listen.clone(),
        ..sources(&args.config)
    };
    let mut checks = vec![clock(unix_ms())];
    // Whether there are servers that neither a gateway nor this command has started.
    let mut unstarted = false;
    match sources.load(&env) {
        Err(problems) => checks.extend(problems.into_iter().map(problem_check)),
        Ok(mut loaded) => {
            let files: Vec<String> = loaded
                .files
                .iter()
                .map(|file| file.display().to_string())
                .collect();
            let files = if files.is_empty() {
                "no files: the gateway uses the demo server".to_owned()
            } else {
                files.join(", ")
            };
            checks.push(passed("configuration", files));
            let names_data_dir = loaded
                .found
                .as_ref()
                .is_some_and(|found| found.names_data_dir);
            checks.extend(loaded.found.as_ref().map(|found| found_file(&found.name)));
            // Without consent, nothing of a found file is followed.
            let is_foreign = names_data_dir && args.config.data_dir.is_none();
            checks.extend(secrets(&mut loaded));
            let live = if is_foreign {
                Live::Absent
            } else {
                Live::ask(&loaded.config).await
            };
            let mut servers = loaded.config.servers.iter();
            let starts =
                |one: &ServerConfig| one.enabled && !matches!(one.transport, Transport::Demo);
            unstarted = matches!(live, Live::Absent) && servers.any(starts);
            if !is_foreign {
                checks.extend(other_files(&loaded));
            }
            checks.extend(examine(&loaded.config, is_foreign, &live));
            checks.extend(cluster::checks(&loaded.config).await);
            checks.extend(passed_on(&loaded.config));
            checks.extend(loaded.config.notifications.iter().map(notifications));
        }
    }
    let healthy = checks.iter().all(|check| check.severity != Severity::Error);
    report(&checks, healthy, output);
    if healthy && unstarted {
        output.message("no server was started; to see whether they start: portmoot tools ls");
    }
    Ok(if healthy { Exit::Ok } else { Exit::Failed })
}

/// Reads the secrets that the configuration names: a check of each, without anything of it.
fn secrets(loaded: &mut Loaded) -> Vec<Check> {
    let what = |secret: &NamedSecret| format!("secret {}", secret.key);
    if loaded.found.is_some() {
        let unread = |secret| {
            passed(
                &what(secret),
                "not read: a file that you did not name asks for it",
            )
        };
        return loaded.secrets.iter().map(unread).collect();
    }
    let read = Secrets::default();
    let problems = loaded.read_secrets(&env, &read).err().unwrap_or_default();
    let mut checks: Vec<Check> = Vec::new();
    for secret in &loaded.secrets {
        checks.push(match read.trouble(&secret.source) {
            None => passed(&what(secret), format!("read from {}", secret.source)),
            Some(none) => failed(
                &what(secret),
                format!("cannot be read: {}", none.why),
                none.fix,
            ),
        });
    }
    // Those of what was read, such as a token that is too short.
    let other = problems
        .into_iter()
        .filter(|problem| problem.code != UNREAD);
    checks.extend(other.map(problem_check));
    checks
}

fn problem_check(problem: Problem) -> Check {
    let location = problem
        .location
        .as_ref()
        .map(|location| format!(" at {location}"))
        .unwrap_or_default();
    let fix = problem.hint.unwrap_or_else(|| "correct that line".into());
    failed(
        "configuration",
        format!("{}{location}", problem.message),
        fix,
    )
}

fn examine(config: &Config, is_foreign: bool, live: &Live) -> Vec<Check> {
    let mut checks = if is_foreign {
        vec![
            passed(
                "data directory",
                "not examined: a file that you did not name chooses it",
            ),
            port(config, None),
        ]
    } else {
        let (data, state, runs) = data_dir(config);
        // The nodes of a cluster have their state in common, elsewhere.
        let state = state.filter(|_| config.cluster.is_none());
        let grants = state.as_ref().and_then(|state| grants(config, state));
        [data, port(config, runs), tokens(config, state.as_ref())]
            .into_iter()
            .chain(grants)
            .collect()
    };
    checks.extend(live.check());
    checks.extend(
        config
            .servers
            .iter()
            .map(|one| live.judge(one, server(one))),
    );
    checks.extend(live.beside(config));
    checks
}

/// A warning if the running gateway reads other files than the ones that were checked, or did not
/// take over what they say now.
fn other_files(loaded: &Loaded) -> Option<Check> {
    let owner = Directory::owner(loaded.config.data_dir.as_deref()?)
        .ok()
        .flatten()?;
    let warning = |found: String, fix: &str| {
        Some(Check {
            severity: Severity::Warning,
            ..failed("configuration", found, fix)
        })
    };
    let here = std::env::current_dir().unwrap_or_default();
    let watched: Vec<String> = loaded
        .watched()
        .iter()
        .map(|file| here.join(file).display().to_string())
        .collect();
    if let Some(why) = &owner.reload_failed {
        let found =
            format!("the running gateway did not take over its files as they are now: {why}");
        let fix = if owner.files == watched {
            // They were read before this check: what is wrong is where the gateway runs.
            format!("they are valid in this terminal: {ANEW}, with what it lacks")
        } else {
            "correct the file; the gateway reads it again by itself".to_owned()
        };
        return warning(found, &fix);
    }
    if owner.files.is_empty() || owner.files == watched {
        return None;
    }
    let found = format!(
        "the running gateway reads other files: {}",
        owner.files.join(", ")
    );
    warning(
        found,
        "to check those, name them as for `serve`: portmoot doctor --config FILE",
    )
}

/// Variables about certificates, proxies and package registries that programs of servers read.
const OFTEN_NEEDED: [&str; 19] = [
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "https_proxy",
    "http_proxy",
    "all_proxy",
    "no_proxy",
    "NPM_CONFIG_REGISTRY",
    "npm_config_registry",
    "PIP_INDEX_URL",
    "UV_INDEX_URL",
    "UV_DEFAULT_INDEX",
    "UV_NATIVE_TLS",
];

/// Whether a route of notifications can be tried.
fn notifications(route: &NotifyRoute) -> Check {
    let what = format!("notifications {}", route.name);
    match &route.way {
        NotifyWay::Exec(words) => {
            let program = words.first().map_or("", String::as_str);
            match client::find_program(program, None) {
                Some(path) => passed(&what, format!("runs {}", path.display())),
                None => failed(
                    &what,
                    format!("there is no program `{program}`"),
                    "install it, or write its whole path",
                ),
            }
        }
        NotifyWay::Request(target) => {
            let host = target.url.host_str().unwrap_or_default();
            let try_it = format!(
                "goes to {host}; to try it: portmoot notifications test {}",
                route.name
            );
            passed(&what, try_it)
        }
    }
}

/// A warning if such variables are set here, and the programs of servers do not get them.
fn passed_on(config: &Config) -> Option<Check> {
    let mut children = config
        .servers
        .iter()
        .filter(|one| one.enabled)
        .filter_map(|one| one.transport.child())
        .peekable();
    children.peek()?;
    let children: Vec<&StdioConfig> = children.collect();
    let lacks = |name: &&&str| {
        let gets = |child: &&StdioConfig| child.env.iter().any(|(known, _)| known == **name);
        env(name).is_some_and(|value| !value.is_empty()) && !children.iter().all(gets)
    };
    let names: Vec<&str> = OFTEN_NEEDED.iter().filter(lacks).copied().collect();
    if names.is_empty() {
        return None;
    }
    let found = format!(
        "set here, and not passed on to all servers: {}",
        names.join(", ")
    );
    let quoted: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    let fix = format!(
        "if servers need them to reach the network: [server] env_pass = [{}]",
        quoted.join(", ")
    );
    Some(Check {
        severity: Severity::Warning,
        ..failed("environment", found, fix)
    })
}

/// A warning if a client's own session at a running server did not open last.
fn own_sessions(server: &Value, check: &Check) -> Option<Check> {
    let (found, fix) = match (server.get("shares_one"), server.get("own_session_failed")) {
        (Some(why), _) => (
            format!(
                "a second process does not start ({}): all clients share one, and it can ask none of them",
                text(why)
            ),
            "if that is how it is, say so: sessions = \"shared\"",
        ),
        (None, Some(why)) => (
            format!("a client's own session did not open: {}", text(why)),
            "see what it says, or let all clients share one process: sessions = \"shared\"",
        ),
        (None, None) => return None,
    };
    let found = format!("{}; {found}", check.found);
    Some(Check {
        severity: Severity::Warning,
        ..failed(&check.what, found, fix)
    })
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A warning if a running server has tools whose schemas cannot be used: each with the reason.
fn tools_beyond_use(server: &Value, check: &Check) -> Option<Check> {
    let named = |list: &str, what: &str| {
        let tools = server
            .get(list)
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let lines =
            tools.map(|tool| format!("{}: {what}: {}", cell(tool, "name"), cell(tool, "reason")));
        lines.collect::<Vec<_>>()
    };
    let mut lines = named("unlisted_tools", "not listed");
    lines.extend(named("untyped_tools", "takes any object"));
    if lines.is_empty() {
        return None;
    }
    let found = format!(
        "{}; tools whose schemas cannot be used:\n{}",
        check.found,
        lines.join("\n")
    );
    let fix = "correct these schemas, or ask the author of the server to";
    Some(Check {
        severity: Severity::Warning,
        ..failed(&check.what, found, fix)
    })
}

fn found_file(name: &str) -> Check {
    let found = format!("`{name}` was found in this directory: it is used only with your consent");
    let fix = format!("if you trust it, name it: --config {name}");
    Check {
        severity: Severity::Warning,
        ..failed("configuration", found, fix)
    }
}

/// The servers of the gateway that runs with the data directory, as it sees them.
enum Live {
    /// None runs.
    Absent,
    /// It does not say.
    Silent(Failure),
    Known(Vec<Value>),
}

impl Live {
    async fn ask(config: &Config) -> Self {
        let token = env("PORTMOOT_TOKEN");
        let running = match Running::of_directory(
            config.data_dir.clone(),
            token.as_deref(),
            &ClientTls::of_machine(),
        ) {
            Ok(Some(running)) => running,
            Ok(None) => return Self::Absent,
            Err(failure) => return Self::Silent(failure),
        };
        let asked = async {
            api::get(&running.endpoint()?, &["servers"], &[])
                .await?
                .read::<Value>()
        };
        match asked.await {
            Ok(mut answer) => match answer.get_mut("servers").map(Value::take) {
                Some(Value::Array(servers)) => Self::Known(servers),
                _ => Self::Known(Vec::new()),
            },
            Err(failure) => Self::Silent(failure),
        }
    }

    /// A warning if the gateway does not say.
    fn check(&self) -> Option<Check> {
        let Self::Silent(failure) = self else {
            return None;
        };
        let fix = "pass a token with the capability portmoot/servers in PORTMOOT_TOKEN";
        let found = format!(
            "the running gateway does not say how its servers are: {}",
            failure.message
        );
        Some(Check {
            severity: Severity::Warning,
            ..failed("servers", found, fix)
        })
    }

    /// The check of a server, unless the running gateway holds it down.
    fn judge(&self, server: &ServerConfig, check: Check) -> Check {
        let Self::Known(servers) = self else {
            return check;
        };
        let named = |one: &&Value| {
            one.get("name")
                .is_some_and(|name| name == server.name.as_str())
        };
        let Some(one) = servers.iter().find(named) else {
            return check;
        };
        // One that is being started again has a cause too.
        let fails =
            one.get("cause").is_some() || ["down", "degraded"].contains(&&*cell(one, "state"));
        if check.severity != Severity::Ok {
            return check;
        }
        if !fails && cell(one, "state") == "starting" {
            let found = format!("still starting in the running gateway; {}", check.found);
            let fix = format!("wait, or see what it says: portmoot logs {}", server.name);
            return Check {
                severity: Severity::Warning,
                ..failed(&check.what, found, fix)
            };
        }
        if !fails {
            return own_sessions(one, &check)
                .or_else(|| tools_beyond_use(one, &check))
                .unwrap_or(check);
        }
        let found = format!(
            "{} in the running gateway: {}",
            cell(one, "state"),
            why(one)
        );
        // What is lacking there is not lacking here: the check of this server has passed.
        if cell(one, "transport") == UNUSABLE {
            let fix = format!("nothing is lacking in this terminal: {ANEW}");
            return failed(&check.what, found, fix);
        }
        failed(
            &check.what,
            found,
            fix_of(one, server.transport.child().is_some()),
        )
    }

    /// The servers that the running gateway has and the checked configuration does not.
    fn beside(&self, config: &Config) -> Vec<Check> {
        let Self::Known(servers) = self else {
            return Vec::new();
        };
        let is_known = |one: &Value| {
            let name = cell(one, "name");
            config
                .servers
                .iter()
                .any(|known| known.name.as_str() == name)
                || config
                    .identity
                    .participants
                    .iter()
                    .any(|known| known.participant.id.as_str() == name)
        };
        let check = |one: &Value| {
            let name = cell(one, "name");
            let state = cell(one, "state");
            let what = format!("server {name}");
            if ["ready", "idle"].contains(&state.as_str()) {
                return passed(&what, format!("{state} in the running gateway"));
            }
            let found = format!("{state} in the running gateway: {}", why(one));
            failed(&what, found, fix_of(one, cell(one, "sandbox") != "-"))
        };
        servers
            .iter()
            .filter(|one| !is_known(one))
            .map(check)
            .collect()
    }
}

/// Advice about a server that fails in the running gateway.
fn fix_of(server: &Value, has_process: bool) -> String {
    let name = cell(server, "name");
    if let Some(hint) = server.get("hint").and_then(Value::as_str) {
        return hint.to_owned();
    }
    if !texts(server, "stderr").is_empty() {
        return format!("see what it says: portmoot logs {name}");
    }
    if has_process {
        format!("correct its `command`, or see what it says: portmoot logs {name}")
    } else {
        "start what is to listen there, or correct its `url`".to_owned()
    }
}

fn clock(now_ms: u64) -> Check {
    if now_ms >= RELEASE_MS {
        return passed("clock", "plausible");
    }
    let fix = "set the system time; the expiry of tokens depends on it";
    failed(
        "clock",
        "the system time is before the release of this program",
        fix,
    )
}

/// The check, the state of the journal if it could be read, and the listen address of the gateway
/// that owns the directory.
fn data_dir(config: &Config) -> (Check, Option<AccessState>, Option<String>) {
    const WHAT: &str = "data directory";
    const OTHER: &str = "choose another directory: --data-dir DIR";
    let Some(dir) = &config.data_dir else {
        let fix = "set HOME, or choose a directory: --data-dir DIR";
        return (
            failed(WHAT, "not configured", fix),
            Some(AccessState::default()),
            None,
        );
    };
    let shown = dir.display();
    let owner = match Directory::owner(dir) {
        Ok(owner) => owner,
        Err(error) => {
            let found = error.to_string();
            let fix = Failure::from(error).hint.unwrap_or_else(|| OTHER.into());
            return (failed(WHAT, found, fix), None, None);
        }
    };
    if let Some(owner) = owner {
        let listen = owner.listen.unwrap_or_default();
        let found = format!(
            "{shown}: used by the gateway with process id {}, on {listen}",
            owner.pid
        );
        return (passed(WHAT, found), None, Some(listen));
    }
    if !dir.exists() {
        // Without creating it: its nearest existing ancestor must be writable.
        let mut parents = dir.ancestors().skip(1);
        let parent = parents.find(|parent| parent.as_os_str().is_empty() || parent.is_dir());
        // The parent of a lone name is this directory.
        let parent = parent.map(|parent| Path::new(".").join(parent));
        let parent = parent.and_then(|parent| parent.metadata().ok());
        let check = if parent.is_some_and(|data| !data.permissions().readonly()) {
            passed(
                WHAT,
                format!("{shown} does not exist yet; the gateway will create it"),
            )
        } else {
            failed(WHAT, format!("cannot create {shown}"), OTHER)
        };
        return (check, Some(AccessState::default()), None);
    }
    // Without taking it: a gateway may start meanwhile, and what is to be repaired is left to it.
    match PeekedJournal::check(dir).and_then(|journal| journal.fold()) {
        Ok(state) => (passed(WHAT, shown.to_string()), Some(state), None),
        Err(error) => {
            let fix = Failure::from(error).hint.unwrap_or_else(|| OTHER.into());
            (
                failed(WHAT, format!("cannot open {shown}"), fix),
                None,
                None,
            )
        }
    }
}

fn port(config: &Config, runs: Option<String>) -> Check {
    let listen = config.doors.listen.to_string();
    if runs.as_deref() == Some(listen.as_str()) {
        return passed("port", format!("{listen}: used by the running gateway"));
    }
    match TcpListener::bind(config.doors.listen) {
        Ok(_) => passed("port", format!("{listen} is free")),
        Err(error) => failed(
            "port",
            format!("{listen}: {error}"),
            "choose another address: --listen 127.0.0.1:PORT",
        ),
    }
}

fn tokens(config: &Config, state: Option<&AccessState>) -> Check {
    let Some(state) = state else {
        return passed(
            "tokens",
            "managed by the running gateway; to list them: portmoot token ls",
        );
    };
    let asked = tokens_configured(&config.identity, state);
    if let Err(refusal) = auth::check_listen_address(config.doors.listen, asked) {
        let fix = refusal.hint.unwrap_or_default().into_owned();
        return failed("tokens", refusal.message.into_owned(), fix);
    }
    let expired = state
        .tokens()
        .iter()
        .filter(|token| token.expires_ms.is_some_and(|end| end <= unix_ms()));
    let expired: Vec<&str> = expired.map(|token| token.name.as_str()).collect();
    if !expired.is_empty() {
        let fix = format!(
            "portmoot token revoke {}",
            expired.first().copied().unwrap_or_default()
        );
        return Check {
            severity: Severity::Warning,
            ..failed("tokens", format!("expired: {}", expired.join(", ")), fix)
        };
    }
    if asked {
        passed("tokens", "required from all callers")
    } else {
        passed(
            "tokens",
            "none: connections from this machine act as the local user",
        )
    }
}

/// A warning if there are grants that configured participants do not get.
fn grants(config: &Config, state: &AccessState) -> Option<Check> {
    let grants = Grants::read(state, &config.identity);
    let names: Vec<&str> = grants.not_applied().collect();
    let first = names.first()?;
    let found = format!("{}: {NOT_APPLIED}", names.join(", "));
    let fix =
        format!("grant again what it shall have: portmoot participants grant {first} CAPABILITY");
    Some(Check {
        severity: Severity::Warning,
        ..failed("grants", found, fix)
    })
}

fn server(server: &ServerConfig) -> Check {
    let what = format!("server {}", server.name);
    if !server.enabled {
        return passed(&what, "disabled");
    }
    match &server.transport {
        Transport::Stdio(child) | Transport::Proto(ProtoConfig::Child { child, .. }) => {
            command(&what, child, server)
        }
        Transport::Unusable { why, fix } => {
            failed(&what, format!("{why}, so it cannot start"), fix.clone())
        }
        Transport::Proto(
            ProtoConfig::Tcp(_) | ProtoConfig::WebSocket(_) | ProtoConfig::Grpc(_),
        )
        | Transport::Http(_)
        | Transport::Sse(_)
        | Transport::OpenApi(_)
        | Transport::Demo
        | Transport::Participant => passed(&what, consent::describe(server)),
    }
}

fn command(what: &str, child: &StdioConfig, server: &ServerConfig) -> Check {
    if let Some(cwd) = child.cwd.as_ref().filter(|cwd| !cwd.is_dir()) {
        let fix = "create the directory, or change `cwd`";
        return failed(
            what,
            format!("the working directory {} does not exist", cwd.display()),
            fix,
        );
    }
    match client::find_program(&child.command, child.cwd.as_deref()) {
        Some(_) => passed(what, consent::describe(server)),
        None => {
            let fix = format!(
                "install `{}`, or set `command` to its full path",
                child.command
            );
            let lacks = if child.command.contains('/') {
                "is no program that can be run"
            } else {
                "is not on PATH"
            };
            failed(what, format!("`{}` {lacks}", child.command), fix)
        }
    }
}

fn report(checks: &[Check], healthy: bool, output: Output) {
    if output.json {
        let rows = checks.iter().map(|check| {
            json!({ "what": check.what, "verdict": check.severity.word(), "found": check.found, "fix": check.fix })
        });
        return output.result_json(&json!({ "ok": healthy, "findings": rows.collect::<Vec<_>>() }));
    }
    for check in checks {
        let found = json::visible::lines(&check.found);
        // Further lines of a text stand under the first.
        let found: Vec<&str> = found.lines().map(str::trim_start).collect();
        let padded = format!("{:7}", check.severity.word());
        let word = output.painted_result(&padded, check.severity.color());
        let text = format!("{padded} {}: {}", check.what, found.join("\n        "));
        output.indented_with(&text, 8, &padded, &word);
        if let Some(fix) = &check.fix {
            output.indented(&format!("        fix: {}", json::visible::lines(fix)), 13);
        }
    }
    output.message(if healthy {
        "all checks passed"
    } else {
        "some checks failed; each has a `fix` above"
    });
}
