//! Secrets that the gateway keeps itself: set, listed and removed by commands, given to the servers
//! that name them, and to nothing else.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;

use crate::home::{Home, Ran};
use crate::pty::run_at_terminal;
use crate::support::{Client, Gateway, fixture, until};

/// Every secret of these tests begins so.
const CANARY: &str = "hush-";

/// A home with a key outside of its data directory, and its configuration.
fn keyed() -> (Home, String) {
    let home = Home::new();
    let key = home.secret("key", &"07".repeat(32));
    (home, format!("[server]\nkey_file = {key:?}\n"))
}

/// Sets a secret to what is piped in.
fn set(home: &Home, name: &str, value: &str) -> Ran {
    piped(
        home.command(&["secret", "set", name, "--config", "portmoot.toml"]),
        value,
    )
}

fn piped(mut command: Command, value: &str) -> Ran {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(value.as_bytes())
        .unwrap();
    Ran::from(child.wait_with_output().unwrap())
}

/// The files below a folder that have this text.
fn with_text(folder: &Path, text: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().flatten();
    let of = |entry: fs::DirEntry| match entry.file_type().unwrap() {
        kind if kind.is_dir() => with_text(&entry.path(), text),
        kind if kind.is_file() => {
            let bytes = fs::read(entry.path()).unwrap();
            let has = bytes
                .windows(text.len())
                .any(|window| window == text.as_bytes());
            has.then(|| entry.path()).into_iter().collect()
        }
        _ => Vec::new(),
    };
    entries.flat_map(of).collect()
}

#[test]
fn a_kept_secret_is_given_to_the_servers_that_name_it_as_it_changes() {
    let (home, server) = keyed();
    let with = |name: &str, env: &str| {
        format!(
            "{}start = \"always\"\n{env}\n",
            fixture(name, &["--era", "legacy"])
        )
    };
    let config = [
        server,
        with(
            "a",
            "env = { KEY = { secret = \"crm\", prefix = \"to-\" } }",
        ),
        with("b", ""),
    ]
    .concat();
    home.write("portmoot.toml", &config);
    let args = ["--config", "portmoot.toml"];
    // Before it is set, every place says what to do.
    let next = "the secret `crm` is not set: portmoot secret set crm";
    let checked = home
        .run(&[&["config", "check"], &args[..]].concat())
        .expect(0);
    assert!(
        checked
            .stderr
            .contains(&format!("`servers.a.env.KEY`: {next}")),
        "{}",
        checked.stderr
    );
    let examined = home
        .run(&[&["doctor", "--listen", "127.0.0.1:0"], &args[..]].concat())
        .expect(1);
    assert!(
        examined
            .stdout
            .contains("secret servers.a.env.KEY: cannot be read: the secret `crm` is not set"),
        "{}",
        examined.stdout
    );
    assert!(
        examined.stdout.contains("portmoot secret set crm"),
        "{}",
        examined.stdout
    );
    let gateway = Gateway::start(&home, &config);
    let down = gateway.wait_for("a", "down");
    assert!(
        down.to_string().contains("the secret `crm` is not set"),
        "{down}"
    );
    assert!(gateway.log().contains(next), "{}", gateway.log());
    let b = gateway.wait_for("b", "ready")["pid"].clone();

    // The gateway notices by itself.
    let client = Client::plain(&gateway);
    let key = || client.record("a")["environment"]["KEY"].clone();
    for value in ["hush-first", "hush-second"] {
        let done = set(&home, "crm", &format!("{value}\n")).expect(0);
        assert!(
            done.stderr.contains("kept in a sealed file")
                && done.stderr.contains("`servers.a.env.KEY`"),
            "{}",
            done.stderr
        );
        until("the server has it", || {
            let is_ready = gateway.server("a")["state"] == "ready";
            (is_ready && key() == format!("to-{value}")).then_some(())
        });
        assert_eq!(gateway.server("b")["pid"], b, "it does not use the secret");
    }
    let folder = home.path().join(".local/state/portmoot/secrets");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&folder.join("crm"))), (0o700, 0o600));
    let listed = home
        .run(&[&["secret", "list"], &args[..]].concat())
        .expect(0)
        .stdout;
    assert!(
        listed.contains("crm") && listed.contains("file"),
        "{listed}"
    );
    let as_json = home
        .run(&[&["secret", "list", "--json"], &args[..]].concat())
        .expect(0)
        .stdout;
    let as_json: serde_json::Value = serde_json::from_str(&as_json).unwrap();
    assert_eq!(
        as_json["secrets"][0]["used_by"],
        json!(["servers.a.env.KEY"])
    );

    let removed = home
        .run(&[&["secret", "remove", "crm"], &args[..]].concat())
        .expect(0)
        .stderr;
    assert!(
        removed.contains("`servers.a.env.KEY` has no value"),
        "{removed}"
    );
    let down = gateway.wait_for("a", "down");
    assert!(
        down.to_string().contains("the secret `crm` is not set"),
        "{down}"
    );
    home.run(&[&["secret", "remove", "crm"], &args[..]].concat())
        .expect(5);
    let shown = home
        .run(&[&["config", "show"], &args[..]].concat())
        .expect(0)
        .stdout;
    assert!(shown.contains("secret = \"crm\""), "{shown}");
    let log = gateway.stop().expect(0).stderr;
    for (what, text) in [
        ("the log", log),
        ("a list", listed),
        ("the configuration", shown),
        ("a check", checked.stderr),
    ] {
        assert!(!text.contains(CANARY), "{what}: {text}");
    }
    assert_eq!(with_text(home.path(), CANARY), [""; 0].map(PathBuf::from));
}

#[test]
fn a_gateway_that_stores_nothing_reads_kept_secrets_too() {
    let (home, server) = keyed();
    home.write(
        "portmoot.toml",
        &[
            server,
            fixture("a", &["--era", "legacy"]),
            "env = { KEY = { secret = \"crm\" } }\n".to_owned(),
        ]
        .concat(),
    );
    set(&home, "crm", "hush-first").expect(0);
    let ran = home
        .run(&[
            "tools",
            "call",
            "a_record",
            "--config",
            "portmoot.toml",
            "--json",
        ])
        .expect(0);
    assert!(ran.stdout.contains("hush-first"), "{}", ran.stdout);
}

#[test]
fn what_cannot_be_kept_is_refused_with_what_to_do() {
    let (home, server) = keyed();
    home.write("portmoot.toml", &server);
    for (name, value, code, expect) in [
        ("../crm", "hush-a", 2, "a name of a secret has"),
        (&"x".repeat(65), "hush-a", 2, "1 to 64 letters"),
        ("crm", "", 1, "it is empty"),
        ("crm", "hush-\0", 1, "it has a NUL"),
        (
            "crm",
            &format!("hush-{}", "x".repeat(16 << 10)),
            1,
            "more than 16384 bytes",
        ),
    ] {
        let refused = set(&home, name, value).expect(code).stderr;
        assert!(
            refused.contains(expect) && !refused.contains(CANARY),
            "{refused}"
        );
    }
    // Without a key outside and without a keyring nothing is written.
    home.write("portmoot.toml", "");
    let refused = set(&home, "crm", "hush-a").expect(1).stderr;
    for expect in [
        "[secret_not_kept]",
        "no key",
        "key_file",
        "openssl rand -hex 32",
    ] {
        assert!(refused.contains(expect), "{expect}: {refused}");
    }
    assert!(
        !home
            .path()
            .join(".local/state/portmoot/secrets/crm")
            .exists()
    );
    // A file that was found and not named may not say where secrets go.
    home.write("portmoot.toml", &server);
    let refused = piped(home.command(&["secret", "set", "crm"]), "hush-a")
        .expect(3)
        .stderr;
    assert!(refused.contains("[consent_needed]"), "{refused}");
    home.write("value", "hush-file\n");
    home.run(&[
        "secret",
        "set",
        "crm",
        "--from-file",
        "value",
        "--config",
        "portmoot.toml",
    ])
    .expect(0);
    home.run(&[
        "secret",
        "set",
        "crm",
        "--from-file",
        "none",
        "--config",
        "portmoot.toml",
    ])
    .expect(2);
}

#[test]
fn a_secret_is_typed_without_being_shown() {
    let (home, server) = keyed();
    home.write("portmoot.toml", &server);
    let args = ["secret", "set", "crm", "--config", "portmoot.toml"];
    let typed = run_at_terminal(&home, &args, &[("it is not shown", "hush-typed")]);
    assert_eq!(typed.code, 0, "{}", typed.stderr);
    assert!(
        typed.stderr.contains("is kept") && !typed.stderr.contains(CANARY),
        "{}",
        typed.stderr
    );
    let given_up = run_at_terminal(&home, &args, &[("it is not shown", "hush-typed\x03")]);
    assert_eq!(given_up.code, 2, "{}", given_up.stderr);
}

/// A shell in a session with an unlocked keyring; `None`, with a message, where the programs for it
/// are missing.
fn with_keyring(home: &Home, script: &str) -> Option<Ran> {
    let path = std::env::var("PATH").unwrap_or_default();
    let is_there =
        |program: &str| std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    if !(is_there("dbus-run-session") && is_there("gnome-keyring-daemon")) {
        println!("skipped: dbus-run-session and gnome-keyring-daemon are not installed");
        return None;
    }
    let runtime = home.path().join("runtime");
    fs::create_dir_all(&runtime).unwrap();
    fs::set_permissions(&runtime, fs::Permissions::from_mode(0o700)).unwrap();
    let start = "printf keyring | gnome-keyring-daemon --unlock --components=secrets >&2 &&";
    let mut command = Command::new("dbus-run-session");
    command
        .args(["--", "sh", "-ec", &format!("{start} {script}")])
        .env_clear()
        .env("HOME", home.path());
    if let Some(libraries) = std::env::var_os("LD_LIBRARY_PATH") {
        command.env("LD_LIBRARY_PATH", libraries);
    }
    command
        .env("PATH", path)
        .env("XDG_RUNTIME_DIR", &runtime)
        .env("PM", env!("CARGO_BIN_EXE_portmoot"));
    Some(Ran::from(
        command
            .current_dir(home.path())
            .stdin(Stdio::null())
            .output()
            .unwrap(),
    ))
}

#[test]
fn the_keyring_of_a_session_keeps_a_secret() {
    let home = Home::new();
    let config = [
        fixture("a", &["--era", "legacy"]),
        "env = { KEY = { secret = \"crm\" } }\n".to_owned(),
    ]
    .concat();
    home.write("portmoot.toml", &config);
    let script = "printf hush-ring | $PM secret set crm --config portmoot.toml; \
                  $PM secret list --config portmoot.toml; \
                  $PM tools call a_record --config portmoot.toml --json; \
                  printf hush-other | $PM secret set crm --config portmoot.toml; \
                  $PM tools call a_record --config portmoot.toml --json; \
                  $PM secret remove crm --config portmoot.toml; \
                  $PM secret list --config portmoot.toml";
    let Some(ran) = with_keyring(&home, script) else {
        return;
    };
    let ran = ran.expect(0);
    assert!(
        ran.stderr.contains("kept in the keyring") && ran.stderr.contains("is removed"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stdout.contains("hush-ring") && ran.stdout.contains("hush-other"),
        "{}",
        ran.stdout
    );
    assert!(!ran.stderr.contains(CANARY), "{}", ran.stderr);
    assert_eq!(
        with_text(&home.path().join(".local/state"), CANARY),
        [""; 0].map(PathBuf::from)
    );
    // Outside of the session it says so.
    home.write("portmoot.toml", &config);
    let Some(kept) = with_keyring(
        &home,
        "printf hush-ring | $PM secret set crm --config portmoot.toml",
    ) else {
        return;
    };
    kept.expect(0);
    let examined = home
        .run(&[
            "doctor",
            "--listen",
            "127.0.0.1:0",
            "--config",
            "portmoot.toml",
        ])
        .expect(1)
        .stdout;
    assert!(
        examined.contains("the keyring of the system cannot be reached")
            && examined.contains("--in file"),
        "{examined}"
    );
}
