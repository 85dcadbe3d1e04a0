//! Guard process and child processes, with this test binary as gateway and as guard.
//!
//! The guard's hidden argument reaches the test harness as a filter, and the harness then runs the
//! test of that name.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use portmoot_client::{Flow, Guard, LinkError, LinkInbox, ServerLink, StdioSpec, guard};

/// The guard itself, when started as such: without any environment.
#[test]
fn __guard() {
    assert_eq!(guard::ARG, "__guard");
    if std::env::var_os("PATH").is_none() {
        guard::run().unwrap();
    }
}

/// Ignores what arrives.
struct NullInbox;

impl LinkInbox for NullInbox {
    fn frame(&self, _: Bytes, _: Option<u64>) -> Flow {
        Flow::Settled
    }

    fn failed(&self, _: u64, _: LinkError) {}

    fn closed(&self, _: LinkError) {}
}

fn spec(script: &str) -> StdioSpec {
    StdioSpec {
        name: "child".into(),
        command: "sh".to_owned(),
        args: vec!["-c".to_owned(), script.to_owned()],
        env: Vec::new(),
        cwd: None,
        confinement: portmoot_client::Confinement::default(),
        framing: portmoot_client::Framing::Lines,
        line_bytes_max: 16 << 20,
        queue_len_max: 4096,
    }
}

/// A gateway: prints the process ids of its guard and its children, then waits to be killed.
#[test]
#[ignore = "started by the other test"]
fn fake_gateway() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let guard = Guard::shared(std::env::current_exe().unwrap()).unwrap();
        // One ends when its stdin is closed; the other ignores that and SIGTERM, and has a child of
        // its own.
        let scripts = [
            "sleep 300",
            "trap '' TERM; sleep 300 & while true; do sleep 1; done",
        ];
        let links: Vec<ServerLink> = scripts
            .iter()
            .map(|script| {
                ServerLink::stdio(
                    &spec(script),
                    Arc::new(NullInbox),
                    Some(guard.clone()),
                    Arc::default(),
                )
                .unwrap()
            })
            .collect();
        // A killed guard is started again and gets all groups.
        let first = guard.pid().unwrap();
        Command::new("kill")
            .args(["-9", &first.to_string()])
            .status()
            .unwrap();
        let limit = Instant::now() + Duration::from_secs(20);
        while guard.pid().is_none_or(|pid| pid == first) {
            assert!(Instant::now() < limit, "the guard is not started again");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let pids: Vec<String> = links
            .iter()
            .map(|link| link.pid().unwrap().to_string())
            .collect();
        println!("\npids {} {}", guard.pid().unwrap(), pids.join(" "));
        std::future::pending::<()>().await;
    });
}

fn start_gateway() -> (Child, Vec<u32>) {
    let mut gateway = Command::new(std::env::current_exe().unwrap())
        .args(["guard::fake_gateway", "--exact", "--ignored", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(gateway.stdout.take().unwrap()).lines();
    let line = lines
        .map_while(Result::ok)
        .find(|line| line.starts_with("pids "))
        .unwrap();
    let pids = line
        .split_whitespace()
        .skip(1)
        .map(|pid| pid.parse().unwrap())
        .collect();
    (gateway, pids)
}

/// Processes of a group, without zombies.
fn members(group: u32) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let stats =
        processes.filter_map(|process| std::fs::read_to_string(process.path().join("stat")).ok());
    stats
        .filter(|stat| {
            let mut fields = stat.rsplit(')').next().unwrap().split_whitespace();
            let state = fields.next();
            state != Some("Z") && fields.nth(1) == Some(group.to_string().as_str())
        })
        .count()
}

fn until(what: &str, check: impl Fn() -> bool) {
    let limit = Instant::now() + Duration::from_secs(20);
    while !check() {
        assert!(Instant::now() < limit, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whether the guard has begun: it catches SIGQUIT, the last signal for which it installs a
/// handler. Only Linux shows it.
fn has_begun(guard: u32) -> bool {
    let Ok(status) = std::fs::read_to_string(format!("/proc/{guard}/status")) else {
        return true;
    };
    let caught = status
        .lines()
        .find_map(|line| line.strip_prefix("SigCgt:"))
        .unwrap();
    u64::from_str_radix(caught.trim(), 16).unwrap() & (1 << 2) != 0
}

#[test]
fn no_child_outlives_a_killed_gateway() {
    let (mut gateway, pids) = start_gateway();
    let [guard, obedient, stubborn] = pids[..] else {
        panic!("{pids:?}")
    };
    until("the children run", || {
        members(obedient) > 0 && members(stubborn) > 1
    });
    until("the guard has begun", || has_begun(guard));
    for signal in ["-INT", "-TERM"] {
        Command::new("kill")
            .args([signal, &guard.to_string()])
            .status()
            .unwrap();
    }
    gateway.kill().unwrap();
    gateway.wait().unwrap();
    until("the children have ended", || {
        members(obedient) == 0 && members(stubborn) == 0
    });
    until("the guard has ended", || members(guard) == 0);
}

#[tokio::test]
async fn closing_ends_a_stubborn_child_and_its_descendants() {
    let script = "trap '' TERM; sleep 300 & while true; do sleep 1; done";
    let link = ServerLink::stdio(&spec(script), Arc::new(NullInbox), None, Arc::default()).unwrap();
    let pid = link.pid().unwrap();
    until("the grandchild runs", || members(pid) > 1);
    link.close().await;
    until("the group has ended", || members(pid) == 0);
}

#[tokio::test]
async fn a_dropped_link_ends_its_child() {
    let link = ServerLink::stdio(&spec("cat"), Arc::new(NullInbox), None, Arc::default()).unwrap();
    let pid = link.pid().unwrap();
    drop(link);
    let limit = Instant::now() + Duration::from_secs(20);
    while members(pid) > 0 {
        assert!(Instant::now() < limit, "the child is still running");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_full_queue_rejects_messages_and_does_not_wait() {
    let link = ServerLink::stdio(
        &spec("sleep 300"),
        Arc::new(NullInbox),
        None,
        Arc::default(),
    )
    .unwrap();
    let frame = Bytes::from(vec![b'1'; 500_000]);
    let taken = (0..1000)
        .take_while(|_| {
            link.send(frame.clone(), portmoot_client::SendMeta::default())
                .is_ok()
        })
        .count();
    assert!((10..100).contains(&taken), "{taken} messages taken");
    assert_eq!(
        link.send(frame, portmoot_client::SendMeta::default()),
        Err(portmoot_client::SendError::Busy)
    );
}
