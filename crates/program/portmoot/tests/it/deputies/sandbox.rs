//! `sandbox` and `limits`: a server that tries what it must not do, beside the same server without
//! a sandbox.

use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};

use harness::deps;
use serde_json::{Value, json};

use crate::home::Home;
use crate::support::{Client, Gateway, is_alive, until};

/// A home with keys, a file of its own, and the server in a directory.
fn home() -> Home {
    let home = Home::new();
    home.write("server/prober.py", include_str!("prober.py"));
    home.write(".ssh/id_ed25519", "a private key");
    home.write("notes.txt", "private notes");
    home.write("shared/in.txt", "for the server");
    fs::create_dir(home.path().join("out")).unwrap();
    home
}

/// The table of a prober with more keys.
fn prober(home: &Home, name: &str, keys: &str) -> String {
    let cwd = home.path().join("server");
    format!(
        "[servers.{name}]\ncommand = \"/usr/bin/python3\"\nargs = [\"prober.py\"]\ncwd = {cwd:?}\n{keys}\n"
    )
}

const CONFINED: &str =
    "sandbox = \"files\"\nsandbox_read = [\"~/shared\"]\nsandbox_write = [\"~/out\"]\n";

/// Whether this kernel confines files. A test that needs it says so and ends where it does not.
fn confines() -> bool {
    let supported = matches!(
        client::guard::support(),
        client::sandbox::SandboxSupport::Files(_)
    );
    if !supported {
        println!("skipped: {:?}", client::guard::support());
    }
    supported
}

/// What this kernel cannot keep a server from, as `servers show` says it.
fn gaps() -> Vec<&'static str> {
    match client::guard::support() {
        client::sandbox::SandboxSupport::None(_) => Vec::new(),
        client::sandbox::SandboxSupport::Files(gaps) => gaps,
    }
}

struct Prober<'c> {
    client: &'c Client,
    name: &'static str,
}

impl Prober<'_> {
    /// What came of an attempt: what it gave, or the name of its exception.
    fn tries(&self, what: &str, of: impl AsRef<str>) -> Result<String, String> {
        let result = self.client.call(
            &format!("{}_{what}", self.name),
            json!({ "of": of.as_ref() }),
        );
        let text = result["content"][0]["text"]
            .as_str()
            .unwrap_or_else(|| panic!("{result}"))
            .to_owned();
        if result["isError"] == true {
            Err(text)
        } else {
            Ok(text)
        }
    }
}

fn journal(home: &Home) -> PathBuf {
    let found = fs::read_dir(home.path().join(".local/state/portmoot"))
        .unwrap()
        .flatten();
    let mut found = found
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().contains("journal"));
    found.next().expect("a journal")
}

#[test]
fn a_server_in_a_sandbox_reaches_nothing_of_its_user_and_its_gateway() {
    if !confines() {
        return;
    }
    let home = home();
    let config = prober(&home, "free", "") + &prober(&home, "kept", CONFINED);
    let gateway = Gateway::start(&home, &config);
    let client = Client::plain(&gateway);
    let (free, kept) = (
        Prober {
            client: &client,
            name: "free",
        },
        Prober {
            client: &client,
            name: "kept",
        },
    );
    let at = |path: &str| home.path().join(path).display().to_string();
    let journal = journal(&home).display().to_string();
    let pid = gateway.pid().to_string();
    let own = kept.tries("pid", "").unwrap();
    let keeper = kept.tries("parent", "").unwrap();
    let sibling = free.tries("pid", "").unwrap();
    // The same attempts succeed without a sandbox, but for those that need more than a user has.
    for (what, of, is_possible) in [
        ("read", &*journal, true),
        ("read", &at(".ssh/id_ed25519"), true),
        ("read", &at("notes.txt"), true),
        ("read", &at("portmoot.toml"), true),
        ("list", &at(""), true),
        ("list", &at(".local/state/portmoot"), true),
        ("list", "/", true),
        ("list", "/tmp", true),
        ("write", &at("outside.txt"), true),
        ("write", &at("server/prober2.py"), true),
        ("write", &at("shared/in2.txt"), true),
        ("write", "/dev/shm/portmoot-probe", true),
        ("truncate", &at("notes.txt"), true),
        ("remove", &at("server/prober2.py"), true),
        ("ptrace", &pid, false),
        ("ptrace", &keeper, false),
        ("ptrace", &sibling, false),
        ("descriptors", &pid, false),
        ("descriptors", &keeper, false),
        ("memory_of", &pid, false),
        ("environment_of", &pid, true),
        ("environment_of", &sibling, true),
        ("kill", &pid, true),
        ("device", &at("out/mem"), false),
        ("limit", &pid, true),
        ("limit", &keeper, false),
        ("renice", &pid, true),
        ("schedule", &pid, true),
    ] {
        let is_gap = gaps().iter().any(|gap| match what {
            "truncate" => gap.starts_with("shortening"),
            "kill" => gap.starts_with("sending"),
            _ => false,
        });
        let confined = kept.tries(what, of);
        if is_gap {
            println!("not held by this kernel: {what} {of}");
        } else {
            assert_eq!(confined, Err("PermissionError".to_owned()), "{what} {of}");
        }
        if is_possible {
            assert!(
                free.tries(what, of).is_ok(),
                "{what} {of}: {:?}",
                free.tries(what, of)
            );
        }
    }
    fs::remove_file("/dev/shm/portmoot-probe").unwrap();
    assert!(!Path::new(&at("out/mem")).exists());
    if !gaps().iter().any(|gap| gap.starts_with("sending")) {
        let name = format!("portmoot-{own}");
        let _listening =
            UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        assert_eq!(
            kept.tries("abstract", &name),
            Err("PermissionError".to_owned())
        );
        assert!(free.tries("abstract", &name).is_ok());
    }
    // A link out of a directory that it may write leads nowhere.
    std::os::unix::fs::symlink(at("notes.txt"), at("out/link")).unwrap();
    assert_eq!(
        kept.tries("read", at("out/link")),
        Err("PermissionError".to_owned())
    );
    assert!(kept.tries("link", at("notes.txt")).is_err());
    // Programs of the system run, and are confined as it is.
    assert_eq!(kept.tries("run", "/bin/true"), Ok("0".to_owned()));
    fs::copy("/bin/true", at("program")).unwrap();
    fs::set_permissions(at("program"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(
        kept.tries("run", at("program")),
        Err("PermissionError".to_owned())
    );
    assert_eq!(free.tries("run", at("program")), Ok("0".to_owned()));
    assert_eq!(kept.tries("status", "NoNewPrivs"), Ok("1".to_owned()));
    assert_eq!(free.tries("status", "NoNewPrivs"), Ok("0".to_owned()));
    assert_eq!(kept.tries("core", ""), Ok("0".to_owned()));
    let held = u64::from_str_radix(&kept.tries("status", "CapEff").unwrap(), 16).unwrap();
    assert_eq!(
        held & !0x4fb,
        0,
        "of root's capabilities it has those that act on files: {held:x}"
    );
}

#[test]
fn a_server_in_a_sandbox_does_what_its_operator_lists() {
    if !confines() {
        return;
    }
    let home = home();
    let mut gateway = Gateway::start(&home, &prober(&home, "kept", CONFINED));
    let client = Client::plain(&gateway);
    let kept = Prober {
        client: &client,
        name: "kept",
    };
    let at = |path: &str| home.path().join(path).display().to_string();
    assert_eq!(
        kept.tries("read", at("shared/in.txt")),
        Ok("for the server".to_owned())
    );
    assert_eq!(
        kept.tries("read", at("server/prober.py")).unwrap().len(),
        16
    );
    assert!(kept.tries("write", at("out/a.txt")).is_ok());
    assert_eq!(
        kept.tries("read", at("out/a.txt")),
        Ok("written".to_owned())
    );
    assert!(kept.tries("remove", at("out/a.txt")).is_ok());
    // Its temporary files have a directory of their own, which ends with it, also when the gateway
    // is killed.
    let scratch = kept.tries("scratch", "").unwrap();
    assert_ne!(Path::new(&scratch), std::env::temp_dir());
    assert_eq!(
        fs::metadata(&scratch).unwrap().permissions().mode() & 0o777,
        0o700
    );
    let own: u64 = kept.tries("pid", "").unwrap().parse().unwrap();
    let server = gateway.server("kept");
    assert_eq!(
        (&server["sandbox"], &server["pid"]),
        (&json!("files"), &json!(own))
    );
    assert_eq!(server["sandbox_gaps"], json!(gaps()));
    gateway.signal("KILL");
    gateway.wait();
    until("the server ends", || (!is_alive(own)).then_some(()));
    until("its temporary files are removed", || {
        (!Path::new(&scratch).exists()).then_some(())
    });
}

#[test]
fn a_sandbox_that_cannot_be_as_listed_starts_no_server() {
    if !confines() {
        return;
    }
    let home = home();
    let state = home
        .path()
        .join(".local/state/portmoot")
        .display()
        .to_string();
    let all = home.path().display().to_string();
    for (listed, why) in [
        (&*state, "where the gateway's own files are"),
        (&*all, "where the gateway's own files are"),
        (
            "/absent",
            "the sandbox lists `/absent`: No such file or directory",
        ),
    ] {
        for key in ["sandbox_read", "sandbox_write"] {
            let config = prober(
                &home,
                "kept",
                &format!("sandbox = \"files\"\n{key} = [{listed:?}]"),
            );
            let gateway = Gateway::start(&home, &config);
            let down = gateway.wait_for("kept", "down");
            assert!(down["cause"].as_str().unwrap().contains(why), "{down}");
        }
    }
}

#[test]
fn what_confines_a_server_is_said_before_it_starts() {
    let home = home();
    let limits = "limits = { processes_max = 9, memory_bytes_max = \"1GiB\" }\n";
    let config = prober(&home, "kept", &format!("{CONFINED}{limits}")) + &prober(&home, "free", "");
    let gateway = Gateway::start(&home, &config);
    let log = gateway.log();
    let (out, shared) = (home.path().join("out"), home.path().join("shared"));
    for line in [
        format!(
            "    sandbox: files; reads {}; writes {}",
            shared.display(),
            out.display()
        ),
        "    limits: memory_bytes_max = 1073741824, processes_max = 9".to_owned(),
    ] {
        assert!(log.contains(&line), "{line}\n{log}");
    }
    assert_eq!(gateway.server("free")["sandbox"], "none");
    for (keys, problem) in [
        (
            "sandbox_read = [\"/srv\"]",
            "has no meaning without a sandbox",
        ),
        ("sandbox = \"file\"", "did you mean `files`?"),
        ("limits = { processes_max = 0 }", "must be more than 0"),
        (
            "limits = { cpu_time_max = \"20ms\" }",
            "must be more than 0",
        ),
        ("limits = { processes = 2 }", "unknown key `processes`"),
        (
            "sandbox = \"files\"\nsandbox_write = [\"\"]",
            "lists an empty path",
        ),
    ] {
        home.write("wrong.toml", &prober(&home, "kept", keys));
        let ran = home
            .run(&["config", "check", "--config", "wrong.toml"])
            .expect(2);
        assert!(ran.stderr.contains(problem), "{keys}\n{}", ran.stderr);
    }
    home.write(
        "wrong.toml",
        "[servers.a]\nurl = \"http://127.0.0.1:1/\"\nsandbox = \"files\"\n",
    );
    let ran = home
        .run(&["config", "check", "--config", "wrong.toml"])
        .expect(2);
    assert!(
        ran.stderr.contains("has no process to confine"),
        "{}",
        ran.stderr
    );
}

#[test]
fn servers_of_a_found_file_are_confined_unless_it_says_otherwise() {
    if !confines() {
        return;
    }
    let home = home();
    let config = prober(&home, "theirs", "") + &prober(&home, "open", "sandbox = \"none\"");
    home.write(
        "portmoot.toml",
        &format!("[server]\nsandbox = \"none\"\n{config}"),
    );
    let refused = home
        .run(&["serve", "--listen", "127.0.0.1:0"])
        .expect(3)
        .stderr;
    assert!(
        refused.contains("DANGER: server `open` runs without a sandbox"),
        "{refused}"
    );
    assert!(!refused.contains("DANGER: server `theirs`"), "{refused}");
    let gateway = Gateway::start_with(&home, &["--yes"]);
    assert_eq!(gateway.wait_for("theirs", "ready")["sandbox"], "files");
    assert_eq!(gateway.wait_for("open", "ready")["sandbox"], "none");
    let client = Client::plain(&gateway);
    let key = home.path().join(".ssh/id_ed25519").display().to_string();
    let tries = |name| {
        Prober {
            client: &client,
            name,
        }
        .tries("read", &key)
    };
    assert_eq!(
        (tries("theirs"), tries("open")),
        (Err("PermissionError".into()), Ok("a private key".into()))
    );
    drop(gateway);
    // The operator's own default holds for the operator's own files.
    home.write(
        "mine.toml",
        &format!("[server]\nsandbox = \"files\"\n{config}"),
    );
    let gateway = Gateway::start_with(&home, &["--config", "mine.toml"]);
    assert_eq!(gateway.wait_for("theirs", "ready")["sandbox"], "files");
    assert_eq!(gateway.wait_for("open", "ready")["sandbox"], "none");
}

#[test]
fn a_server_has_no_more_processes_than_its_limit() {
    let home = home();
    let limits = "limits = { processes_max = 8 }\n";
    for keys in [limits.to_owned(), format!("{CONFINED}{limits}")] {
        if keys != limits && !confines() {
            continue;
        }
        let gateway = Gateway::start(&home, &prober(&home, "kept", &keys));
        let client = Client::plain(&gateway);
        let most: u64 = Prober {
            client: &client,
            name: "kept",
        }
        .tries("processes", "")
        .unwrap()
        .parse()
        .unwrap();
        assert!(
            (8 * 64..100_000).contains(&most),
            "the kernel has a bound too: {most}"
        );
        {
            let (what, of) = ("spread", "20");
            let before = gateway.wait_for("kept", "ready")["pid"].as_u64().unwrap();
            let answer = client.ask(
                "tools/call",
                json!({ "name": format!("kept_{what}"), "arguments": { "of": of } }),
            );
            assert!(
                answer["error"].is_object() || answer["result"]["isError"] == true,
                "{answer}"
            );
            until("the server ends", || (!is_alive(before)).then_some(()));
            let after = until("another is started", || {
                let server = gateway.server("kept");
                (server["state"] == "ready" && server["pid"] != before)
                    .then(|| server["pid"].as_u64().unwrap())
            });
            let said = home
                .run(&["servers", "show", "kept", "--url", &gateway.url()])
                .expect(0)
                .stdout;
            let logs = home
                .run(&["logs", "kept", "--url", &gateway.url()])
                .expect(0)
                .stdout;
            assert!(
                logs.contains("more than 8 processes (processes_max)"),
                "{said}{logs}"
            );
            let left: Vec<u64> = crate::support::below(gateway.pid(), "sleep");
            assert!(left.is_empty(), "of {what}: {left:?}");
            assert!(is_alive(after));
        }
    }
}

#[test]
fn a_process_of_a_server_has_no_more_memory_files_and_time_than_its_limits() {
    let home = home();
    let limits =
        "limits = { memory_bytes_max = \"256MiB\", open_files_max = 40, cpu_time_max = \"2s\" }\n";
    let gateway = Gateway::start(
        &home,
        &(prober(&home, "kept", limits) + &prober(&home, "free", "")),
    );
    let client = Client::plain(&gateway);
    let (free, kept) = (
        Prober {
            client: &client,
            name: "free",
        },
        Prober {
            client: &client,
            name: "kept",
        },
    );
    let half = (128_usize << 20).to_string();
    let more = (300_usize << 20).to_string();
    assert_eq!(kept.tries("memory", &half), Ok(half.clone()));
    assert_eq!(kept.tries("memory", &more), Err("MemoryError".to_owned()));
    assert_eq!(free.tries("memory", &more), Ok(more.clone()));
    assert_eq!(kept.tries("files", "20"), Ok("20".to_owned()));
    assert_eq!(kept.tries("files", "60"), Err("OSError".to_owned()));
    assert_eq!(free.tries("files", "60"), Ok("60".to_owned()));
    let before = gateway.server("kept")["pid"].as_u64().unwrap();
    let answer = client.ask(
        "tools/call",
        json!({ "name": "kept_burn", "arguments": {} }),
    );
    assert!(
        answer["error"].is_object() || answer["result"]["isError"] == true,
        "{answer}"
    );
    assert!(!is_alive(before));
}

/// The directories that a server of npm needs beside the one that it serves.
#[test]
fn an_ordinary_server_of_npm_works_in_a_sandbox() {
    if !confines() {
        return;
    }
    let home = home();
    let words = deps().server_filesystem(&home.path().join("out"));
    let packages = Path::new(&words[1])
        .ancestors()
        .find(|path| path.ends_with("node_modules"));
    let packages = packages.or_else(|| {
        Path::new(&words[0])
            .ancestors()
            .find(|path| path.ends_with("node_modules"))
    });
    let packages = packages
        .unwrap_or_else(|| panic!("{words:?}"))
        .display()
        .to_string();
    let config = format!(
        "[servers.files]\ncommand = {:?}\nargs = {:?}\ncwd = {:?}\nsandbox = \"files\"\nsandbox_read = [{packages:?}]\n\
         sandbox_write = [\"~/out\"]\nlimits = {{ memory_bytes_max = \"2GiB\", processes_max = 16 }}\n",
        words[0],
        &words[1..],
        home.path().join("server"),
    );
    let gateway = Gateway::start(&home, &config);
    gateway.wait_for("files", "ready");
    let client = Client::plain(&gateway);
    let path = |name: &str| home.path().join(name).display().to_string();
    let written = json!({ "path": path("out/a.txt"), "content": "hello" });
    let result = client.call("files_write_file", written);
    assert_ne!(result["isError"], json!(true), "{result}");
    assert_eq!(fs::read_to_string(path("out/a.txt")).unwrap(), "hello");
    let result: Value = client.call("files_read_text_file", json!({ "path": path("out/a.txt") }));
    assert_eq!(result["content"][0]["text"], "hello", "{result}");
}

#[test]
fn a_limit_that_another_program_sets_is_an_error_and_no_end_of_the_gateway() {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};

    let home = Home::new();
    let data = format!("[server]\ndata_dir = {:?}\n", home.path().join("data"));
    let gateway = Gateway::start(&home, &(data + &crate::support::fixture("a", &[])));
    gateway.ready("a");
    let client = Client::plain(&gateway);
    let pid = Pid::from_raw(i32::try_from(gateway.pid()).unwrap());
    let call = || {
        client.ask(
            "tools/call",
            json!({ "name": "a_echo", "arguments": { "text": "x" } }),
        )
    };
    assert!(call().get("result").is_some());
    let before = prlimit(
        pid,
        Resource::Fsize,
        Rlimit {
            current: Some(0),
            maximum: None,
        },
    )
    .unwrap();
    for _ in 0..3 {
        // What cannot be recorded is refused; the gateway goes on.
        let _ = client.post(&client.request(
            "tools/call",
            json!({ "name": "a_echo", "arguments": { "text": "x" } }),
        ));
        assert!(gateway.get("/healthz", None).status < 600);
    }
    prlimit(pid, Resource::Fsize, before).unwrap();
    assert!(gateway.get("/healthz", None).status == 200);
}
