//! Table `[cluster]`: this process as a node of a cluster.

use std::path::PathBuf;
use std::time::Duration;

use oauth::key::KeySource;
use url::Url;

use crate::node::{Node, SourceOrigin};
use crate::problem::Problem;
use crate::reader::{ListedText, Table};
use crate::servers::auth;
use crate::values::{Env, plain_path_at, plain_text_at};

const KEY: &str = "cluster";
/// The longest name of a cluster, in characters.
const NAME_CHARS_MAX: usize = 32;
/// The longest name of a node, in characters.
const NODE_CHARS_MAX: usize = 63;
/// The most servers of NATS that are listed.
const SERVERS_MAX: usize = 16;
/// The most servers of NATS that keep each record.
const REPLICAS_MAX: u8 = 5;
/// The time without contact after which a node serves nothing, unless another is configured.
const CUT_OFF: Duration = Duration::from_secs(10);
/// The shortest such time.
const CUT_OFF_MIN: Duration = Duration::from_secs(5);
/// The longest such time.
const CUT_OFF_MAX: Duration = Duration::from_secs(600);

const NAME_HINT: &str =
    "use lower-case letters, digits, `-` and `_`, 32 at most, the same on all nodes";
const NODE_HINT: &str =
    "use letters, digits, `-`, `_` and `.`, 63 at most, on each node another name";
const SERVERS_HINT: &str = "for example [\"nats://127.0.0.1:4222\"]";

/// The files of a certificate that a node shows to the servers of NATS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeCertificate {
    /// The certificate, followed by those that lead to its authority.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// A node of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterConfig {
    /// The name of the cluster: one token of NATS subjects, of lower-case letters, digits, `-` and
    /// `_`.
    pub name: String,
    /// URLs of the servers of NATS, `nats://` or `tls://`, without a user or password.
    pub servers: Vec<String>,
    /// The file with the credentials for these servers.
    pub credentials: Option<PathBuf>,
    /// The file with the authorities to trust, in place of those that this machine trusts.
    pub ca: Option<PathBuf>,
    /// The certificate to show.
    pub client: Option<NodeCertificate>,
    /// Source of the key that all nodes share: `key_file`, `key_command`.
    pub key: KeySource,
    /// The name of this node: another one on each node.
    pub node: String,
    /// Time without contact after which a node serves nothing.
    pub cut_off: Duration,
    /// The number of servers of NATS that keep each record; `None` leaves it to the servers: 3 of
    /// several, 1 of one.
    pub replicas: Option<u8>,
}

/// Reads the table; `None` if there is none, or after a problem.
pub(crate) fn read(root: &Table<'_>, env: Env<'_>) -> Option<ClusterConfig> {
    let table = root.table(KEY)?;
    if table.location().layer.origin == SourceOrigin::Found {
        // Consent is to the configuration: all of the gateway would go to whom its author chose,
        // who has the key too.
        let message = format!(
            "{}: a file that you did not name joins no cluster",
            table.name()
        );
        let hint = "name your configuration with --config FILE";
        table.wrong("config_value", message, hint);
        return None;
    }
    let name = name(&table);
    let servers = servers(&table);
    let credentials = plain_path_at(&table, "credentials", env);
    let ca = plain_path_at(&table, "ca", env);
    let client = client(&table, env);
    let key = key(&table, env);
    let node = node(&table, env);
    let cut_off = cut_off(&table);
    let replicas = replicas(&table);
    table.finish();
    Some(ClusterConfig {
        name: name?,
        servers: servers?,
        credentials,
        ca,
        client,
        key: key?,
        node: node?,
        cut_off,
        replicas,
    })
}

/// The problem of a node that keeps nothing on disk.
pub(crate) fn without_data_dir(tree: &Node) -> Problem {
    let message = "`[cluster]` needs a data directory: set `server.data_dir`";
    Problem::new("config_missing", message)
        .at(tree.place(&[KEY]))
        .hint("or set HOME, or give --data-dir DIR; `portmoot stdio` has none by itself")
}

/// Notes that a required key is not written.
fn note_missing(table: &Table<'_>, key: &'static str, hint: &str) {
    if table.get(key).is_none() {
        let message = format!("{} needs `{key}`", table.name());
        table.wrong("config_missing", message, hint);
    }
}

fn name(table: &Table<'_>) -> Option<String> {
    let Some(name) = table.text("name") else {
        note_missing(table, "name", NAME_HINT);
        return None;
    };
    if !is_name(name) {
        let message = format!(
            "`{}`: `{name}` is no name for a cluster",
            table.full("name")
        );
        table.note_at("name", "config_name", message, NAME_HINT);
        return None;
    }
    Some(name.to_owned())
}

fn is_name(name: &str) -> bool {
    (1..=NAME_CHARS_MAX).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte))
}

fn servers(table: &Table<'_>) -> Option<Vec<String>> {
    let Some(written) = table.texts("nats") else {
        note_missing(table, "nats", SERVERS_HINT);
        return None;
    };
    if !(1..=SERVERS_MAX).contains(&written.len()) {
        let message = format!(
            "`{}` must list 1 to {SERVERS_MAX} servers",
            table.full("nats")
        );
        table.note_value("nats", message, SERVERS_HINT);
        return None;
    }
    let mut servers: Vec<String> = Vec::new();
    for one in written {
        check_server(table, one, &servers);
        servers.push(one.text.to_owned());
    }
    Some(servers)
}

/// Notes what is wrong with the URL of a server that is listed after others.
fn check_server(table: &Table<'_>, one: ListedText<'_>, earlier: &[String]) {
    let ListedText { text, location } = one;
    let full = table.full("nats");
    if text.contains('@') {
        // Neither the message nor an excerpt of the line has the password.
        let message = format!("`{full}`: a URL has a user or a password");
        let hint = "name a file with them: `credentials`, or `client_cert` and `client_key`";
        table.wrong("config_value", message, hint);
    } else if !is_server(text) {
        let message = format!("`{full}`: `{text}` is no address of a NATS server");
        let hint = "write nats://HOST:PORT, or tls://HOST:PORT";
        table.problems().note_value(location, message, hint);
    } else if earlier.iter().any(|known| known == text) {
        let message = format!("`{full}`: `{text}` is listed twice");
        let problem = Problem::new("config_twice", message).at(location);
        table.problems().note(problem.hint("remove one of them"));
    }
}

fn is_server(text: &str) -> bool {
    // The parser would drop tabs and line ends.
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic());
    let Ok(url) = Url::parse(text) else {
        return false;
    };
    is_plain
        && ["nats", "tls"].contains(&url.scheme())
        && url.host_str().is_some_and(|host| !host.is_empty())
        && url.port() != Some(0)
        && ["", "/"].contains(&url.path())
        && url.query().is_none()
        && url.fragment().is_none()
}

/// The files under `client_cert` and `client_key`, of which one alone is a problem.
fn client(table: &Table<'_>, env: Env<'_>) -> Option<NodeCertificate> {
    let [certificate, key] =
        ["client_cert", "client_key"].map(|key| plain_path_at(table, key, env));
    for [present, missing] in [["client_cert", "client_key"], ["client_key", "client_cert"]] {
        if table.get(present).is_some() && table.get(missing).is_none() {
            let message = format!("{} has `{present}` and no `{missing}`", table.name());
            let hint = "name the files of the certificate and of its key, or neither";
            table.note_at(present, "config_missing", message, hint);
        }
    }
    Some(NodeCertificate {
        certificate: certificate?,
        key: key?,
    })
}

/// Source of the key that all nodes share.
fn key(table: &Table<'_>, env: Env<'_>) -> Option<KeySource> {
    let key = auth::key(table, env);
    let is_written = ["key_file", "key_command"]
        .iter()
        .any(|key| table.get(key).is_some());
    if !is_written {
        let message = format!("{} needs `key_file` or `key_command`", table.name());
        let hint = "make a key, the same for all nodes: openssl rand -hex 32 > FILE; chmod 600 FILE; then key_file = \"FILE\"";
        table.wrong("config_missing", message, hint);
    }
    key
}

/// The name of this node: as it is written, or that of this machine.
fn node(table: &Table<'_>, env: Env<'_>) -> Option<String> {
    let written = plain_text_at(table, "node", env);
    if table.get("node").is_none() {
        return of_host(table, host_name(env));
    }
    let node = written?;
    if !is_node(&node) {
        let message = format!("`{}`: `{node}` is no name for a node", table.full("node"));
        table.note_at("node", "config_name", message, NODE_HINT);
        return None;
    }
    Some(node)
}

/// The name of this machine as that of the node; one that cannot be used is noted.
fn of_host(table: &Table<'_>, host: Option<String>) -> Option<String> {
    let (why, hint) = match host {
        Some(host) if is_node(&host) => return Some(host),
        Some(host) => (
            format!("the name of this machine, `{host}`, is no name for a node"),
            format!("set `{}`: {NODE_HINT}", table.full("node")),
        ),
        None => (
            "this machine has no name that can be read".to_owned(),
            format!("set `{}`, or HOSTNAME", table.full("node")),
        ),
    };
    table.wrong("config_missing", format!("{}: {why}", table.name()), hint);
    None
}

fn is_node(name: &str) -> bool {
    (1..=NODE_CHARS_MAX).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

/// The name of this machine. Only Linux has the file.
fn host_name(env: Env<'_>) -> Option<String> {
    let of_kernel = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = of_kernel.or_else(|| env("HOSTNAME"))?;
    Some(name.trim().to_owned())
}

fn cut_off(table: &Table<'_>) -> Duration {
    let cut_off = table.duration("cut_off").unwrap_or(CUT_OFF);
    if !(CUT_OFF_MIN..=CUT_OFF_MAX).contains(&cut_off) {
        let message = format!(
            "`{}` must be 5 seconds to 10 minutes",
            table.full("cut_off")
        );
        table.note_value("cut_off", message, "for example \"10s\"");
    }
    cut_off
}

fn replicas(table: &Table<'_>) -> Option<u8> {
    let written = table.count("replicas")?;
    let replicas = u8::try_from(written).ok();
    let usable = replicas.filter(|replicas| (1..=REPLICAS_MAX).contains(replicas));
    if usable.is_none() {
        let message = format!("`{}` must be 1 to {REPLICAS_MAX}", table.full("replicas"));
        table.note_value("replicas", message, "with 3 one of them can be lost");
    }
    usable
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Layer;
    use crate::reader::Problems;

    #[test]
    fn the_name_of_the_machine_is_that_of_the_node_if_it_can_be() {
        let tree = Node::empty(&Layer::new("file", SourceOrigin::Operator));
        let of = |host: Option<&str>| {
            let problems = Problems::default();
            let node = of_host(&Table::root(&tree, &problems), host.map(str::to_owned));
            let texts = problems.into_inner();
            (
                node,
                texts.iter().map(ToString::to_string).collect::<String>(),
            )
        };
        let longest = "x".repeat(NODE_CHARS_MAX);
        for name in ["a", "Node-1_b.example", &longest] {
            assert_eq!(of(Some(name)), (Some(name.to_owned()), String::new()));
        }
        for name in ["", "(none)", "a b", "ä", &format!("{longest}x")] {
            let (node, text) = of(Some(name));
            let expect = format!("the name of this machine, `{name}`, is no name for a node");
            assert!(node.is_none() && text.contains(&expect), "{text}");
            assert!(text.contains("hint: set `node`: use letters"), "{text}");
        }
        let (node, text) = of(None);
        assert!(
            node.is_none() && text.contains("hint: set `node`, or HOSTNAME"),
            "{text}"
        );
    }
}
