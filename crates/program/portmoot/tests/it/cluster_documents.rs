//! The commands of docs/cluster.md, as a person types them.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use harness::{deps, repository};

use crate::cluster_commands::{SmallCluster, configuration};
use crate::home::{Home, Ran};
use crate::support::until;

/// Processes that a shell runs in the background; they are killed at the end.
#[derive(Default)]
struct Background(Vec<Child>);

impl Drop for Background {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn page() -> String {
    std::fs::read_to_string(repository().join("docs/cluster.md")).unwrap()
}

/// The blocks of a page, without their fences.
fn blocks(page: &str) -> Vec<&str> {
    let fenced = page.split("\n```").skip(1).step_by(2);
    fenced
        .filter_map(|block| Some(block.split_once('\n')?.1))
        .collect()
}

/// The page's ports, each replaced by a free one.
fn with_free_ports(text: &str) -> String {
    let free: Vec<_> = [0; 3]
        .map(|_| std::net::TcpListener::bind("127.0.0.1:0").unwrap())
        .into();
    let mut text = text.to_owned();
    for (port, free) in ["4222", "7171", "7272"].iter().zip(&free) {
        let free = free.local_addr().unwrap().port().to_string();
        text = text.replace(&format!("127.0.0.1:{port}"), &format!("127.0.0.1:{free}"));
    }
    text
}

/// A command line of the page, in a shell.
fn shell(home: &Home, line: &str) -> Command {
    let folder = |program: PathBuf| program.parent().map(Path::to_owned).unwrap();
    let own = folder(env!("CARGO_BIN_EXE_portmoot").into());
    let nats = folder(deps().nats_server());
    let path = format!("{}:{}:/usr/bin:/bin", own.display(), nats.display());
    let mut command = Command::new("sh");
    command
        .args(["-c", line])
        .current_dir(home.path())
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", path)
        .stdin(Stdio::null());
    command
}

/// Writes the files of the page, each of which begins with its name.
fn write_files(home: &Home, blocks: &[&str]) {
    for block in blocks {
        let first = block.lines().next().unwrap_or_default();
        let name = first.strip_prefix("# ").filter(|name| !name.contains(' '));
        if let Some(name) = name {
            home.write(name, block);
        }
    }
}

/// Runs commands, again and again until they work; returns what the last one prints.
fn follow(home: &Home, commands: &str, background: &mut Background) -> String {
    let mut shown = String::new();
    for line in commands.lines() {
        if let Some(line) = line.strip_suffix(" &") {
            let mut command = shell(home, &format!("exec {line}"));
            command.stdout(Stdio::null()).stderr(Stdio::null());
            background.0.push(command.spawn().unwrap());
            continue;
        }
        shown = until(line, || {
            let ran = Ran::from(shell(home, line).output().unwrap());
            let is_whole = !line.contains("status") || ran.stdout.contains("ready");
            (ran.code == 0 && is_whole).then_some(ran.stdout)
        });
    }
    shown
}

fn header(table: &str) -> Vec<&str> {
    table.lines().next().unwrap().split_whitespace().collect()
}

#[test]
fn a_cluster_starts_from_its_documents() {
    let page = with_free_ports(&page());
    let home = Home::new();
    let blocks = blocks(&page);
    write_files(&home, &blocks);
    let found = |with: &str| blocks.iter().find(|block| block.contains(with)).unwrap();
    let mut background = Background::default();
    let shown = follow(&home, found("nats-server -c"), &mut background);
    assert_eq!(background.0.len(), 3);
    // Who is the home is not known before.
    assert_eq!(header(found("NODE ")), header(&shown));
    assert!(
        shown.contains("home") && shown.lines().count() == 3,
        "{shown}"
    );
    let call = "portmoot tools call demo_echo text=hello --config b.toml";
    assert!(page.contains(call));
    for call in [call.to_owned(), call.replace("b.toml", "a.toml")] {
        until(&call, || {
            let ran = Ran::from(shell(&home, &call).output().unwrap());
            (ran.stdout == "hello\n").then_some(())
        });
    }
}

#[test]
fn the_documented_rights_are_enough() {
    let page = page();
    let permissions = blocks(&page)
        .into_iter()
        .find(|block| block.starts_with("permissions: {"))
        .unwrap();
    let user = format!("{{ user: n, password: n, {permissions} }}");
    let more = format!("authorization {{ users: [{user}] }}\nno_auth_user: n\n");
    let cluster = SmallCluster::with(&more);
    cluster
        .home
        .write("b.toml", &configuration("b", &cluster.servers.address(0)));
    cluster.configure("a");
    let _nodes = [cluster.start("a"), cluster.start("b")];
    let status = until("two nodes", || {
        let status = cluster.cluster(&["status"]);
        (status.code == 0 && status.stdout.contains("ready")).then_some(status.stdout)
    });
    assert!(status.contains("home"), "{status}");
    let args = ["doctor", "--listen", "127.0.0.1:0", "--config", "b.toml"];
    let said = cluster.home.run(&args).expect(0).stdout;
    let works = "ok      cluster rights: messages, appends and reads work";
    assert!(said.contains(works), "{said}");
}
