//! Commands that look at a cluster and say a person's word to it, with real nodes and servers of
//! NATS.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use harness::NatsServers;
use serde_json::Value;

use crate::home::{Home, Ran};
use crate::support::{Gateway, until};

/// One server of NATS, and the configurations of nodes.
pub(crate) struct SmallCluster {
    pub(crate) servers: NatsServers,
    pub(crate) home: Home,
}

impl SmallCluster {
    pub(crate) fn new() -> Self {
        Self::with("")
    }

    /// A cluster with more lines in the configuration of the server of NATS.
    pub(crate) fn with(more: &str) -> Self {
        let home = Home::new();
        home.secret("cluster.key", &"5a".repeat(32));
        Self {
            servers: NatsServers::start_with(1, more),
            home,
        }
    }

    /// Writes the configuration of a node, `NAME.toml`, and returns its text.
    pub(crate) fn configure(&self, name: &str) -> String {
        let text = configuration(name, &self.servers.address(0));
        self.home.write(&format!("{name}.toml"), &text);
        text
    }

    /// Starts a node that was configured.
    #[track_caller]
    pub(crate) fn start(&self, name: &str) -> Gateway {
        Gateway::start_with(&self.home, &["--config", &format!("{name}.toml")])
    }

    /// Runs `cluster WORDS` with the configuration of node a.
    pub(crate) fn cluster(&self, words: &[&str]) -> Ran {
        let words = [&["cluster"], words, &["--config", "a.toml"]].concat();
        self.home.run(&words)
    }

    fn status(&self) -> Value {
        serde_json::from_str(&self.cluster(&["status", "--json"]).stdout).unwrap_or_default()
    }

    /// Waits until a node has a state, and returns it as the status shows it.
    #[track_caller]
    fn wait_for(&self, name: &str, state: &str) -> Value {
        until(&format!("{name} is {state}"), || {
            let status = self.status();
            let mut nodes = status["nodes"].as_array()?.iter();
            let is = |node: &&Value| node["name"] == name && node["state"] == state;
            nodes.find(is).cloned()
        })
    }

    /// Runs a command of the operator of node a.
    fn operator(&self, words: &[&str]) -> Ran {
        self.home.run(&[words, &["--config", "a.toml"]].concat())
    }

    /// The folder in which the server stores, and one for a copy of it.
    fn stores(&self) -> [PathBuf; 2] {
        let folder = self.servers.folder();
        ["n0", "copy"].map(|name| folder.join(name))
    }
}

/// The configuration of a node.
pub(crate) fn configuration(name: &str, nats: &str) -> String {
    format!(
        "[server]\ndata_dir = \"data-{name}\"\n\
         [cluster]\nname = \"demo\"\nnats = [\"nats://{nats}\"]\nkey_file = \"cluster.key\"\nnode = \"{name}\"\n\
         [servers.demo]\ntype = \"demo\"\n"
    )
}

#[track_caller]
fn says(ran: &Ran, text: &str) {
    assert!(
        ran.stderr.contains(text) || ran.stdout.contains(text),
        "{text}\n{}\n{}",
        ran.stdout,
        ran.stderr
    );
}

#[test]
fn the_status_shows_the_nodes_and_a_dead_one_is_taken_out() {
    let cluster = SmallCluster::new();
    let other = cluster.configure("b") + "[servers.more]\ntype = \"demo\"\n";
    cluster.configure("a");
    says(
        &cluster.cluster(&["status"]).expect(5),
        "no node of demo is seen",
    );
    let _a = cluster.start("a");
    cluster.home.write("b.toml", &other);
    let b = cluster.start("b");
    cluster.wait_for("a", "home");
    let follower = cluster.wait_for("b", "ready");
    assert_eq!(follower["hears"], serde_json::json!(["a"]));
    assert_eq!(follower["config_differs"], true);
    let shown = cluster.cluster(&["status"]).expect(0);
    for text in ["NODE", "home", "ready", "`b` has another configuration"] {
        says(&shown, text);
    }
    a_dead_member_is_taken_out(&cluster, &b);
}

/// Checks that only a member whose process has ended is taken out, and by a person.
fn a_dead_member_is_taken_out(cluster: &SmallCluster, b: &Gateway) {
    says(
        &cluster.cluster(&["remove", "b", "--yes"]).expect(1),
        "`b` runs",
    );
    says(
        &cluster.cluster(&["remove", "c", "--yes"]).expect(5),
        "its members: a, b",
    );
    b.signal("KILL");
    let dead = cluster.wait_for("b", "silent");
    assert_eq!(dead["epoch"], Value::Null);
    says(
        &cluster.cluster(&["status"]).expect(0),
        "portmoot cluster remove b",
    );
    says(
        &cluster.cluster(&["remove", "b"]).expect(3),
        "consent with --yes",
    );
    says(
        &cluster.cluster(&["remove", "b", "--yes"]).expect(0),
        "no member any more",
    );
    let left = cluster.status();
    assert_eq!(left["nodes"].as_array().unwrap().len(), 1, "{left}");
}

fn copied(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-r").args([from, to]).status();
    assert!(copied.unwrap().success());
}

#[test]
fn after_a_loss_the_cluster_goes_on_when_a_person_says_so() {
    let mut cluster = SmallCluster::new();
    cluster.configure("a");
    let _a = cluster.start("a");
    until("a token is issued", || {
        let made = cluster.operator(&["token", "new", "kept"]);
        (made.code == 0).then_some(())
    });
    says(
        &cluster.cluster(&["accept", "--yes"]).expect(1),
        "there is no loss",
    );
    let [store, copy] = cluster.stores();
    cluster.servers.kill(0);
    copied(&store, &copy);
    cluster.servers.begin(0);
    until("a token is issued", || {
        let made = cluster.operator(&["token", "new", "lost"]);
        (made.code == 0).then_some(())
    });
    // The server comes back with an older disk.
    cluster.servers.kill(0);
    fs::remove_dir_all(&store).unwrap();
    copied(&copy, &store);
    cluster.servers.begin(0);
    // Alone, it notices with the next change at the latest.
    assert_ne!(cluster.operator(&["token", "new", "later"]).code, 0);
    cluster.wait_for("a", "stopped");
    says(
        &cluster.cluster(&["status"]).expect(1),
        "portmoot cluster accept",
    );
    the_cluster_goes_on_without_it(&cluster);
}

fn the_cluster_goes_on_without_it(cluster: &SmallCluster) {
    assert_ne!(cluster.operator(&["token", "new", "more"]).code, 0);
    says(
        &cluster.cluster(&["accept"]).expect(3),
        "consent with --yes",
    );
    says(
        &cluster.cluster(&["accept", "--yes"]).expect(0),
        "the cluster goes on",
    );
    cluster.wait_for("a", "home");
    let tokens = until("the tokens", || {
        let listed = cluster.operator(&["token", "ls"]);
        (listed.code == 0).then_some(listed.stdout)
    });
    assert!(
        tokens.contains("kept") && !tokens.contains("lost"),
        "{tokens}"
    );
}

#[test]
fn commands_do_not_open_the_journal_of_a_node() {
    let home = Home::new();
    home.write("a.toml", &configuration("a", "127.0.0.1:1"));
    for words in [
        &["token", "new", "scout"][..],
        &["token", "ls"],
        &["token", "rotate", "scout"],
        &["token", "revoke", "scout"],
        &["participants", "can", "scout", "--grant", "chat"],
        &["stdio", "--data-dir", "data-a"],
    ] {
        let ran = home.run(&[words, &["--config", "a.toml"]].concat());
        assert_eq!(ran.code, 1, "{words:?} {} {}", ran.stdout, ran.stderr);
        says(&ran, "[in_cluster]");
        says(&ran, "or name one that runs: --url URL");
    }
    assert!(!home.path().join("data-a").exists());
}

/// Entries of token changes, as the audit logs of all nodes have them, with their nodes.
fn issued(cluster: &SmallCluster) -> Vec<(String, String)> {
    let words = ["audit", "query", "portmoot/tokens", "--nodes", "--json"];
    let ran = cluster.operator(&words).expect(0);
    let shown: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(shown["silent"], serde_json::json!([]), "{shown}");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let entries = shown["entries"].as_array().unwrap().iter();
    let of = |entry: &Value| (text(&entry["node"]), text(&entry["to"][0]));
    entries.map(of).collect()
}

#[test]
fn the_audit_logs_of_all_nodes_are_read_in_one_order() {
    let cluster = SmallCluster::new();
    cluster.configure("a");
    cluster.configure("b");
    let a = cluster.start("a");
    cluster.wait_for("a", "home");
    let _b = cluster.start("b");
    cluster.wait_for("b", "ready");
    cluster.operator(&["token", "new", "first"]).expect(0);
    a.signal("TERM");
    cluster.wait_for("b", "home");
    let _a = cluster.start("a");
    cluster.wait_for("a", "ready");
    cluster.operator(&["token", "new", "second"]).expect(0);
    let pair = |node: &str, to: &str| (node.to_owned(), to.to_owned());
    assert_eq!(issued(&cluster), [pair("a", "first"), pair("b", "second")]);
    let last = ["audit", "query", "--nodes", "--jsonl", "--last", "1"];
    let last = cluster.operator(&last).expect(0).stdout;
    assert!(last.starts_with(r#"{"node":"b","#), "{last}");
    let table = cluster.operator(&["audit", "query", "--nodes"]).expect(0);
    says(&table, "NODE");
    the_logs_are_whole_until_one_is_changed(&cluster);
}

fn the_logs_are_whole_until_one_is_changed(cluster: &SmallCluster) {
    let verify = ["audit", "verify", "--nodes"];
    let whole = cluster.operator(&verify).expect(0);
    for text in ["a: intact", "b: intact"] {
        says(&whole, text);
    }
    let folder = cluster.home.path().join("data-b/audit");
    let files = fs::read_dir(folder).unwrap().flatten();
    let mut logs = files.filter(|file| file.file_name().to_string_lossy().ends_with("jsonl"));
    let log = logs.next().expect("a file of the log").path();
    let text = fs::read_to_string(&log).unwrap();
    fs::write(&log, text.replacen("second", "sec0nd", 1)).unwrap();
    let changed = cluster.operator(&verify).expect(1);
    for text in ["a: intact", "b: NOT intact"] {
        says(&changed, text);
    }
}
