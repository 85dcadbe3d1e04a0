//! The doctor and a cluster, with real servers of NATS.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};

use crate::cluster_commands::{SmallCluster, configuration};
use crate::home::Home;
use crate::support::Gateway;

/// A stream that can be the log.
const STREAM: &str = r#"{"name":"PM_demo","subjects":["pm.demo.j.>"],"retention":"limits","storage":"file","discard":"new","num_replicas":1,"duplicate_window":120000000000,"allow_direct":true}"#;

/// Makes a stream, as a client of NATS.
fn make_stream(address: &str, config: &str) {
    let mut client = TcpStream::connect(address).unwrap();
    let length = config.len();
    write!(
        client,
        "CONNECT {{\"verbose\":false}}\r\nSUB _INBOX.pm.demo.t 1\r\n\
         PUB $JS.API.STREAM.CREATE.PM_demo _INBOX.pm.demo.t {length}\r\n{config}\r\n"
    )
    .unwrap();
    let mut lines = BufReader::new(client).lines().map_while(Result::ok);
    let answer = lines.find(|line| line.contains("stream_create_response"));
    assert!(answer.unwrap().contains("\"config\""));
}

/// The output of the doctor for the configuration of a node.
fn doctor(home: &Home, name: &str) -> String {
    let file = format!("{name}.toml");
    let ran = home.run(&["doctor", "--listen", "127.0.0.1:0", "--config", &file]);
    ran.stdout + &ran.stderr
}

#[track_caller]
fn has(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn doctor_names_what_is_wrong_with_a_cluster() {
    let home = Home::new();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = closed.local_addr().unwrap().to_string();
    drop(closed);
    home.write("a.toml", &configuration("a", &address));
    let key = "wrong   cluster key: [cluster]: the key cannot be read: ";
    let server = "wrong   cluster NATS: no NATS server is reached";
    has(&doctor(&home, "a"), &[key, server]);
    home.secret("cluster.key", &"5a".repeat(31));
    has(
        &doctor(&home, "a"),
        &["wrong   cluster key: ", "is not 32 bytes"],
    );

    let cluster = SmallCluster::new();
    cluster.configure("a");
    let first = doctor(&cluster.home, "a");
    has(
        &first,
        &[
            "ok      cluster key: read",
            "cluster NATS: reached, version 2.",
            "ok      cluster stream: PM_demo is not there yet",
            "fix: in nats.conf of each server: jetstream { sync_interval: always }",
            "ok      cluster nodes: none runs",
            "all checks passed",
        ],
    );
    let _a = cluster.start("a");
    let running = doctor(&cluster.home, "a");
    has(
        &running,
        &[
            "careful cluster stream: PM_demo, 1 replica: the loss of its disk",
            "ok      cluster rights: messages, appends and reads work",
            "ok      cluster nodes: a; the home is a",
            "all checks passed",
        ],
    );
    other_nodes_are_seen(&cluster);
}

/// A node with another key, and two with one name.
fn other_nodes_are_seen(cluster: &SmallCluster) {
    let text = cluster.configure("a");
    cluster.home.secret("other.key", &"a5".repeat(32));
    cluster
        .home
        .write("other.toml", &text.replace("cluster.key", "other.key"));
    has(
        &doctor(&cluster.home, "other"),
        &["wrong   cluster key: another node has another key"],
    );
    let twin = text.replace("data-a", "data-twin");
    cluster.home.write("twin.toml", &twin);
    has(
        &doctor(&cluster.home, "twin"),
        &["wrong   cluster nodes: a node with the name `a` runs elsewhere"],
    );
}

#[test]
fn doctor_names_two_processes_with_one_name() {
    let cluster = SmallCluster::new();
    let text = cluster.configure("a");
    let twin = text.replace("data-a", "data-twin");
    cluster.home.write("twin.toml", &twin);
    let _nodes: Vec<Gateway> = ["a", "twin"].map(|name| cluster.start(name)).into();
    has(
        &doctor(&cluster.home, "a"),
        &["wrong   cluster nodes: two processes have the name `a`"],
    );
}

#[test]
fn doctor_names_what_is_wrong_with_the_stream() {
    let cluster = SmallCluster::new();
    cluster.configure("a");
    let expiring = STREAM.replace("\"retention\"", "\"max_age\":100000000000,\"retention\"");
    let expiring = expiring.replace("120000000000", "100000000000");
    make_stream(&cluster.servers.address(0), &expiring);
    has(
        &doctor(&cluster.home, "a"),
        &[
            "wrong   cluster stream: the stream PM_demo cannot be the log: its records expire",
            "fix: if nothing else uses it, remove it: nats stream rm PM_demo",
        ],
    );

    let cluster = SmallCluster::with("jetstream: disabled\n");
    cluster.configure("a");
    has(
        &doctor(&cluster.home, "a"),
        &["wrong   cluster stream: JetStream is not enabled"],
    );
}

/// Rights that are denied to the user of NATS, and the words of the doctor about that.
const DENIED: [(&str, &str); 4] = [
    (
        "publish: { deny: [\"pm.demo.j.>\"] }",
        "nothing can be appended",
    ),
    (
        "publish: { deny: [\"$JS.API.DIRECT.>\"] }",
        "the stream cannot be read",
    ),
    (
        "publish: { deny: [\"$JS.API.STREAM.PURGE.>\"] }",
        "old records of the stream cannot be removed",
    ),
    (
        "subscribe: { deny: [\"pm.demo.>\"] }",
        "messages between nodes do not arrive",
    ),
];

#[track_caller]
fn missing_right_is_named(denied: &str, found: &str) {
    let user = format!(
        "authorization {{ users: [{{ user: n, password: n, permissions: {{ {denied} }} }}] }}\nno_auth_user: n\n"
    );
    let cluster = SmallCluster::with(&user);
    cluster.configure("a");
    make_stream(&cluster.servers.address(0), STREAM);
    let said = doctor(&cluster.home, "a");
    has(
        &said,
        &["wrong   cluster rights: ", found, "_INBOX.pm.demo.>"],
    );
}

#[test]
fn doctor_names_rights_that_are_missing() {
    std::thread::scope(|scope| {
        for (denied, found) in DENIED {
            scope.spawn(move || missing_right_is_named(denied, found));
        }
    });
}
