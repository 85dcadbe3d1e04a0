//! Causes of servers that are down, where a new user looks: the error itself, what was printed in
//! the wrong place, what is passed on.

use std::fs;

use crate::home::Home;
use crate::http::Connection;
use crate::support::{Gateway, until};

/// A server that writes these lines to stderr and ends.
fn quits(name: &str, lines: &[&str]) -> String {
    let script: String = lines
        .iter()
        .map(|line| format!("echo '{line}' >&2; "))
        .collect();
    format!(
        "[servers.{name}]\ncommand = \"sh\"\nargs = [\"-c\", {:?}]\n",
        script + "exit 2"
    )
}

const UVX: [&str; 6] = [
    "error: Failed to fetch: https://pypi.org/simple/x/",
    "  Caused by: error sending request",
    "  Caused by: client error (Connect)",
    "  Caused by: invalid peer certificate: UnknownIssuer",
    "  at one more line",
    "hint: Consider enabling use of system TLS certificates",
];
const NPM: [&str; 3] = [
    "npm error code E404",
    "npm error 404 Not Found - GET https://registry.npmjs.org/nope",
    "npm error A complete log of this run can be found in: ~/.npm/_logs/x",
];

/// A line of `servers ls`.
fn listed(home: &Home, name: &str) -> String {
    let all = home.run(&["servers", "ls"]).expect(0).stdout;
    all.lines()
        .find(|line| line.starts_with(name))
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn the_error_is_shown_and_not_the_last_line() {
    let home = Home::new();
    let gateway = Gateway::start(&home, &(quits("uvx", &UVX) + &quits("npm", &NPM)));
    for name in ["uvx", "npm"] {
        gateway.wait_for(name, "down");
    }
    let uvx = until("the cause", || {
        Some(listed(&home, "uvx")).filter(|line| line.contains("stderr"))
    });
    assert!(uvx.contains("stderr: error: Failed to fetch"), "{uvx}");
    assert!(
        uvx.contains("; a certificate is not trusted") && uvx.contains("env_pass"),
        "{uvx}"
    );
    let doctor = home.run(&["doctor"]).stdout;
    assert!(
        doctor.contains("fix: a certificate is not trusted"),
        "{doctor}"
    );
    let npm = until("the cause", || {
        Some(listed(&home, "npm")).filter(|line| line.contains("stderr"))
    });
    assert!(npm.contains("stderr: npm error 404 Not Found"), "{npm}");
    // It fails again and again, and says so.
    until("tries are counted", || {
        Some(listed(&home, "npm")).filter(|line| line.contains(" tries"))
    });
    assert!(
        listed(&home, "npm").contains("down"),
        "{}",
        listed(&home, "npm")
    );
    let status = home.run(&["status"]).stdout;
    assert!(
        status.contains("ready      yes, without any of its servers"),
        "{status}"
    );
}

#[test]
fn what_is_printed_to_stdout_is_the_reason() {
    let home = Home::new();
    let noise = "[servers.noise]\ncommand = \"sh\"\nargs = [\"-c\", \"echo Hello I am a server; exec sleep 1000\"]\nstart_timeout = \"2s\"\n";
    let gateway = Gateway::start(&home, noise);
    let said =
        "its stdout has what is no message, which belongs on stderr: \\\"Hello I am a server\\\"";
    let said = said.replace('\\', "");
    until("while it starts", || {
        Some(listed(&home, "noise")).filter(|line| line.contains(&said))
    });
    // It is logged once the session has its link.
    until("the log", || {
        let logs = home.run(&["logs", "noise"]).stdout;
        logs.contains("on stdout, no message: Hello I am a server")
            .then_some(())
    });
    gateway.wait_for("noise", "down");
    // It waits longer at each attempt, and is down for good once it has failed again.
    let line = until("the time that was waited", || {
        Some(listed(&home, "noise")).filter(|line| line.contains("s (`start_timeout`)"))
    });
    assert!(
        line.contains("no answer in ") && line.contains(&said),
        "{line}"
    );
    assert_eq!(line.matches("Hello I am a server").count(), 1, "{line}");
    let doctor = until("the doctor finds it", || {
        let found = home.run(&["doctor", "--config", "portmoot.toml"]).stdout;
        found.contains("wrong   server noise").then_some(found)
    });
    assert!(doctor.contains("Hello I am a server"), "{doctor}");
}

#[test]
fn a_server_that_closes_its_stdout_is_down_long_before_its_start_takes_too_long() {
    let home = Home::new();
    let script = "exec >&-; while read line; do :; done";
    let mute = format!(
        "[servers.mute]\ncommand = \"sh\"\nargs = [\"-c\", {script:?}]\nstart_timeout = \"600s\"\n"
    );
    let gateway = Gateway::start(&home, &mute);
    gateway.wait_for("mute", "down");
    let line = listed(&home, "mute");
    assert!(line.contains("stdout was closed"), "{line}");
}

#[test]
fn what_cannot_be_reached_is_named() {
    let home = Home::new();
    // Nothing listens on a port that was free a moment ago.
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let config = format!(
        "[servers.wrongport]\nurl = \"http://{free}/secret-path\"\n[servers.missing]\ncommand = \"/nowhere/no-such-program\"\n\
         [servers.unset]\nurl = \"http://${{NO_SUCH_HOST}}:1/\"\n"
    );
    let gateway = Gateway::start(&home, &config);
    for name in ["wrongport", "missing", "unset"] {
        gateway.wait_for(name, "down");
    }
    assert!(
        listed(&home, "wrongport").contains(&free.to_string()),
        "{}",
        listed(&home, "wrongport")
    );
    assert!(
        !listed(&home, "wrongport").contains("secret-path"),
        "{}",
        listed(&home, "wrongport")
    );
    assert!(
        listed(&home, "missing").contains("`no-such-program` was not found"),
        "{}",
        listed(&home, "missing")
    );
    for (name, expect) in [
        ("wrongport", &*free.to_string()),
        ("missing", "was not found"),
        ("unset", "cannot start"),
    ] {
        let silent = home.run(&["logs", name]).expect(0).stderr;
        assert!(
            silent.contains("it is down") && silent.contains(expect),
            "{name}: {silent}"
        );
    }
    let doctor = home
        .run(&["doctor", "--config", "portmoot.toml"])
        .expect(1)
        .stdout;
    assert!(
        doctor.contains("fix: start what is to listen there, or correct its `url`"),
        "{doctor}"
    );
    assert!(!doctor.contains("portmoot logs wrongport"), "{doctor}");
    let all = home.run(&["logs"]).expect(0);
    assert!(
        all.stderr.contains("no server has written anything"),
        "{}",
        all.stderr
    );
}

#[test]
fn variables_of_the_gateway_are_passed_on_by_one_key() {
    let home = Home::new()
        .env("SSL_CERT_FILE", "/company.pem")
        .env("OTHER", "x")
        .env("HTTPS_PROXY", "http://p:1");
    let script = home.path().join("env.sh");
    fs::write(&script, "env > \"$1\"; exec sleep 1000\n").unwrap();
    let server = |name: &str, more: &str| {
        let out = home.path().join(name);
        format!(
            "[servers.{name}]\ncommand = \"sh\"\nargs = [{:?}, {:?}]\nstart = \"always\"\n{more}",
            script.display().to_string(),
            out.display().to_string()
        )
    };
    let servers = server("plain", "") + &server("own", "env = { SSL_CERT_FILE = \"/own.pem\" }\n");
    home.write("without.toml", &servers);
    let doctor = home
        .run(&[
            "doctor",
            "--config",
            "without.toml",
            "--listen",
            "127.0.0.1:0",
        ])
        .expect(0)
        .stdout;
    assert!(
        doctor.contains("careful environment: set here, and not passed on"),
        "{doctor}"
    );
    assert!(
        doctor.contains("env_pass = [\"SSL_CERT_FILE\", \"HTTPS_PROXY\"]"),
        "{doctor}"
    );
    let pass = "[server]\nenv_pass = [\"SSL_CERT_FILE\", \"HTTPS_PROXY\", \"NOT_SET\"]\n";
    let _gateway = Gateway::start(&home, &(pass.to_owned() + &servers));
    let read = |name: &str| {
        until("its environment", || {
            let text = fs::read_to_string(home.path().join(name)).unwrap_or_default();
            text.contains("HTTPS_PROXY=").then_some(text)
        })
    };
    let plain = read("plain");
    assert!(
        plain.contains("SSL_CERT_FILE=/company.pem") && !plain.contains("OTHER="),
        "{plain}"
    );
    assert!(!plain.contains("NOT_SET"), "{plain}");
    assert!(
        read("own").contains("SSL_CERT_FILE=/own.pem"),
        "{}",
        read("own")
    );
    let doctor = home.run(&["doctor", "--config", "portmoot.toml"]).stdout;
    assert!(!doctor.contains("not passed on"), "{doctor}");
    home.write("wrong.toml", "[server]\nenv_pass = [\"A=b\"]\n");
    let wrong = home
        .run(&["config", "check", "--config", "wrong.toml"])
        .expect(2)
        .stderr;
    assert!(
        wrong.contains("is not the name of an environment variable"),
        "{wrong}"
    );
}

#[test]
fn the_doctor_asks_the_gateway_that_runs() {
    let home = Home::new();
    home.write(
        ".config/portmoot/portmoot.toml",
        "[servers.fine]\ntype = \"demo\"\n",
    );
    home.write(
        "x.toml",
        "[servers.missing]\ncommand = \"no-such-program\"\n",
    );
    let gateway = Gateway::start_with(&home, &["--config", "x.toml"]);
    gateway.wait_for("missing", "down");
    let doctor = home.run(&["doctor"]).expect(1).stdout;
    assert!(
        doctor.contains("the running gateway reads other files") && doctor.contains("x.toml"),
        "{doctor}"
    );
    assert!(
        doctor.contains("wrong   server missing: down in the running gateway"),
        "{doctor}"
    );
    // A file that the gateway could not take over is said by `status` and `doctor`.
    home.write("x.toml", "[servers.missing]\ncomand = \"x\"\n");
    gateway.signal("HUP");
    gateway.receive("the reload failed");
    let status = home.run(&["status"]).stdout;
    assert!(
        status.contains("reload     failed") && status.contains("comand"),
        "{status}"
    );
    home.write("x.toml", "[servers.fine]\ntype = \"demo\"\n");
    gateway.signal("HUP");
    gateway.wait_for("fine", "ready");
    until("it is well again", || {
        (!home.run(&["status"]).stdout.contains("reload ")).then_some(())
    });
}

#[test]
fn a_profile_of_guests_without_guests_is_a_problem() {
    let home = Home::new();
    let config = "[topics.main]\nanonymous = \"safe\"\n[profiles.safe]\ncapabilities = [\"mcp/request:*/list\"]\n";
    home.write("x.toml", config);
    let checked = home
        .run(&["config", "check", "--config", "x.toml"])
        .expect(2)
        .stderr;
    assert!(
        checked.contains("[config_anonymous]") && checked.contains("x.toml:2"),
        "{checked}"
    );
    let refused = home
        .run(&["serve", "--config", "x.toml", "--listen", "127.0.0.1:0"])
        .expect(2)
        .stderr;
    assert!(refused.contains("config_anonymous"), "{refused}");
    // With a token there are guests.
    home.run(&["token", "new", "ci", "--config", "x.toml"])
        .expect(0);
    home.run(&["config", "check", "--config", "x.toml"])
        .expect(0);
    let gateway = Gateway::start_with(&home, &["--config", "x.toml"]);
    let reply = Connection::open(gateway.address()).exchange("GET", "/api/v1/servers", &[], "");
    assert_eq!(reply.status, 401, "{reply:?}");
    gateway.stop().expect(0);
    // A gateway that is open does not take it over.
    let open = Home::new();
    let gateway = Gateway::start(&open, "[topics.main]\n");
    open.write("portmoot.toml", config);
    gateway.signal("HUP");
    gateway.receive("config_anonymous");
}
