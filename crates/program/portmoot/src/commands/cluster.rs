//! Commands `cluster status`, `accept` and `remove`. They read the configuration and speak with the
//! nodes over NATS; no gateway needs to run here.

use std::time::Duration;

use config::ClusterConfig;
use node::{ClusterView, ClusterWord, NodeAnswer, NodeView, NodesWatch, Observer, ObserverError};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::cli::{ClusterCommand, ConfigArgs};
use crate::commands::config::{load, sources};
use crate::run::{cluster_key, nats_config};
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;
use terminal::prompt::{ProcessTerminal, Terminal, confirm};

/// The time in which each node has sent several heartbeats.
pub(super) const LISTEN: Duration = Duration::from_millis(1_500);
/// The age of a heartbeat up to which a node counts as seen by another one.
const SEEN_MS: u64 = 4_000;
/// The time in which the home goes on, or has taken a member out.
const DONE_MAX: Duration = Duration::from_secs(20);

const STATUS: &str = "portmoot cluster status";

const COLUMNS: [&str; 8] = [
    "NODE", "SLOT", "STATE", "EPOCH", "NUMBER", "LAG", "UP", "HEARS",
];

pub(crate) async fn run(command: ClusterCommand, output: Output) -> Result<Exit, Failure> {
    match command {
        ClusterCommand::Status(config) => status(&config, output).await,
        ClusterCommand::Accept { yes, config } => accept(yes, &config, output).await,
        ClusterCommand::Remove { node, yes, config } => remove(&node, yes, &config, output).await,
    }
}

/// The cluster that a command is for.
pub(super) struct Looked {
    name: String,
    pub(super) watch: NodesWatch,
    pub(super) view: ClusterView,
}

impl Looked {
    pub(super) async fn of(args: &ConfigArgs, output: Output) -> Result<Self, Failure> {
        let loaded = load(&sources(args), output)?;
        let cluster = loaded.config.cluster.clone().ok_or_else(no_cluster)?;
        let key = cluster_key(&cluster).await?;
        let observer = Observer::connect(&nats_config(&cluster)).await;
        let observer = observer.map_err(|why| unreachable(&cluster, &why))?;
        let watch = observer.watch(&key).await;
        let mut watch = watch.map_err(|why| unreachable(&cluster, &why))?;
        let view = watch.look(LISTEN).await;
        if view.nodes.is_empty() {
            return Err(none_seen(&cluster, &view));
        }
        Ok(Self {
            name: cluster.name.clone(),
            watch,
            view,
        })
    }

    /// Waits until the cluster is as wished.
    async fn until(&mut self, is_so: impl Fn(&ClusterView) -> bool) -> bool {
        let end = Instant::now() + DONE_MAX;
        while Instant::now() < end {
            self.view = self.watch.look(LISTEN).await;
            if is_so(&self.view) {
                return true;
            }
        }
        false
    }

    /// The node that takes this member out.
    fn remover(&self, name: &str) -> Result<&NodeView, Failure> {
        let mut nodes = self.view.nodes.iter();
        if nodes.any(|node| *node.node.name == *name) {
            let message = format!("`{name}` runs: it is seen");
            return Err(Failure::new(Exit::Failed, "node_runs", message)
                .hint("end its process first: portmoot stop"));
        }
        self.view.home().ok_or_else(|| {
            let message = "no node is the home now: none can take a member out";
            Failure::new(Exit::Failed, "no_home", message).hint(STATUS)
        })
    }

    async fn say(&self, node: &NodeView, word: &ClusterWord) -> Result<NodeAnswer, Failure> {
        let said = self.watch.say(node, word).await;
        said.map_err(|why| {
            let message = format!("`{}` does not answer: {why}", node.node.name);
            Failure::new(Exit::Failed, "node_silent", message).hint(STATUS)
        })
    }
}

fn no_cluster() -> Failure {
    Failure::new(
        Exit::Usage,
        "no_cluster",
        "the configuration has no [cluster]",
    )
    .hint("name the file that `serve` was given with --config FILE")
}

fn unreachable(cluster: &ClusterConfig, why: &ObserverError) -> Failure {
    let message = format!("the cluster {} cannot be looked at: {why}", cluster.name);
    Failure::new(Exit::Failed, "cluster_unreachable", message)
        .hint("portmoot doctor says what is wrong with it")
}

fn none_seen(cluster: &ClusterConfig, view: &ClusterView) -> Failure {
    let name = &cluster.name;
    let (message, hint) = if view.refused > 0 {
        (
            format!("the nodes of {name} have another key"),
            "`key_file` of [cluster] must be the same everywhere",
        )
    } else {
        (
            format!("no node of {name} is seen"),
            "start one: portmoot serve; or see what is wrong: portmoot doctor",
        )
    };
    Failure::new(Exit::NotFound, "no_node", message).hint(hint)
}

async fn status(args: &ConfigArgs, output: Output) -> Result<Exit, Failure> {
    let looked = Looked::of(args, output).await?;
    let mut answers = Vec::new();
    for node in &looked.view.nodes {
        // A node that does not answer is shown by its heartbeats.
        answers.push(looked.watch.say(node, &ClusterWord::Tell).await.ok());
    }
    let status = shown(&looked, &answers);
    output.listing_or(&status, "nodes", &COLUMNS, "", row);
    let home = looked.view.home().and_then(|node| node.home);
    let serves = home.is_some_and(|home| !home.stopped);
    if !output.json {
        for note in notes(&looked.view, &status) {
            output.message(&note);
        }
    }
    Ok(if serves { Exit::Ok } else { Exit::Failed })
}

/// The status as an object: the nodes that are seen, and the members that are not.
fn shown(looked: &Looked, answers: &[Option<NodeAnswer>]) -> Value {
    let view = &looked.view;
    let home = view.home();
    let of_home = view.nodes.iter().zip(answers);
    let of_home = of_home.filter(|(node, _)| home.is_some_and(|home| home.node == node.node));
    let known: Vec<&NodeAnswer> = of_home.filter_map(|(_, answer)| answer.as_ref()).collect();
    let config = known.first().map(|answer| answer.config);
    let nodes = view.nodes.iter().zip(answers);
    let mut nodes: Vec<Value> = nodes
        .map(|(node, answer)| node_shown(node, home, answer.as_ref(), config))
        .collect();
    let is_seen = |name: &String| view.nodes.iter().any(|node| *node.node.name == **name);
    let members = known.first().map_or(&[][..], |answer| &answer.members);
    let silent = members.iter().filter(|name| !is_seen(name));
    nodes.extend(silent.map(|name| json!({ "name": name, "state": "silent" })));
    json!({
        "cluster": looked.name,
        "home": home.map(|home| &*home.node.name),
        "refused": view.refused,
        "nodes": nodes,
    })
}

fn node_shown(
    node: &NodeView,
    home: Option<&NodeView>,
    answer: Option<&NodeAnswer>,
    config: Option<u64>,
) -> Value {
    let lag = home
        .filter(|home| home.epoch == node.epoch)
        .map(|home| home.number.saturating_sub(node.number));
    let hears = node.hears.iter().filter(|(_, age_ms)| **age_ms < SEEN_MS);
    let hears: Vec<&String> = hears.map(|(name, _)| name).collect();
    let differs = answer.zip(config);
    json!({
        "name": &*node.node.name,
        "slot": node.slot,
        "state": state(node),
        "epoch": node.epoch,
        "number": node.number,
        "lag": lag,
        "up_seconds": node.up_ms / 1000,
        "ahead_ms": node.ahead_ms,
        "hears": hears,
        "version": answer.map(|answer| &answer.version),
        "config_differs": differs.map(|(answer, config)| answer.config != config),
    })
}

fn state(node: &NodeView) -> &'static str {
    match node.home {
        Some(home) if home.stopped => "stopped",
        Some(_) => "home",
        None if node.lost => "lost",
        None if node.draining => "leaving",
        None => "ready",
    }
}

fn row(node: &Value) -> Vec<String> {
    use crate::commands::view::{cell, texts};
    let up = node.get("up_seconds").and_then(Value::as_u64);
    let hears = texts(node, "hears").join(", ");
    vec![
        cell(node, "name"),
        cell(node, "slot"),
        cell(node, "state"),
        cell(node, "epoch"),
        cell(node, "number"),
        cell(node, "lag"),
        up.map_or_else(|| "-".to_owned(), span),
        if hears.is_empty() {
            "-".to_owned()
        } else {
            hears
        },
    ]
}

/// A time in its largest two units.
fn span(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m {}s", seconds % 60),
        (0, _, _) => format!("{hours}h {}m", minutes % 60),
        (_, _, _) => format!("{days}d {}h", hours % 24),
    }
}

/// The notes on a status, for a person.
fn notes(view: &ClusterView, status: &Value) -> Vec<String> {
    let mut notes = Vec::new();
    match view.home().map(|node| node.home.is_some_and(|home| home.stopped)) {
        None => notes.push("no node is the home: nothing is served".to_owned()),
        Some(true) => notes.push(
            "the servers of NATS have lost messages: nothing is served; look at them, then: portmoot cluster accept"
                .to_owned(),
        ),
        Some(false) => {}
    }
    let nodes = status.get("nodes").and_then(Value::as_array);
    for node in nodes.into_iter().flatten() {
        let name = crate::commands::view::cell(node, "name");
        if node.get("config_differs") == Some(&Value::Bool(true)) {
            notes.push(format!(
                "`{name}` has another configuration than the home, or another version"
            ));
        }
        if node.get("state").is_some_and(|state| state == "silent") {
            notes.push(format!(
                "`{name}` is a member and is not seen; if its process has ended for good: portmoot cluster remove {name}"
            ));
        }
    }
    for name in view.doubled() {
        notes.push(format!(
            "two processes have the name `{name}`: give each its own `node`"
        ));
    }
    if view.refused > 0 {
        notes.push("another node has another key: portmoot doctor".to_owned());
    }
    notes
}

async fn accept(yes: bool, args: &ConfigArgs, output: Output) -> Result<Exit, Failure> {
    let mut looked = Looked::of(args, output).await?;
    let stopped = looked.view.nodes.iter();
    let stopped = stopped.filter(|node| node.home.is_some_and(|home| home.stopped));
    let Some(home) = stopped.max_by_key(|node| node.home.map(|home| home.epoch)) else {
        let message = "no home has stopped: there is no loss to accept";
        return Err(Failure::new(Exit::Failed, "nothing_lost", message).hint(STATUS));
    };
    let name = home.node.name.clone();
    consent(
        yes,
        "nothing was accepted",
        "Go on without the messages that are lost?",
    )?;
    looked.say(home, &ClusterWord::Accept).await?;
    let serves = |view: &ClusterView| {
        let home = view.home().and_then(|node| node.home);
        home.is_some_and(|home| !home.stopped)
    };
    if !looked.until(serves).await {
        let message = format!("`{name}` has the word, and serves nothing yet");
        return Err(Failure::new(Exit::Failed, "still_stopped", message)
            .hint("portmoot cluster status; its log says why"));
    }
    let now = looked.view.home().map(|node| &*node.node.name);
    if output.json {
        output.result_json(&json!({ "accepted": true, "home": now }));
    } else {
        let now = now.map(ToString::to_string).unwrap_or_default();
        output.message(&format!("the cluster goes on: `{now}` is the home"));
    }
    Ok(Exit::Ok)
}

async fn remove(name: &str, yes: bool, args: &ConfigArgs, output: Output) -> Result<Exit, Failure> {
    let looked = Looked::of(args, output).await?;
    let home = looked.remover(name)?;
    let known = looked.say(home, &ClusterWord::Tell).await?;
    if !known.has(name) {
        let message = format!("`{name}` is no member of {}", looked.name);
        let hint = format!("its members: {}", known.members.join(", "));
        return Err(Failure::new(Exit::NotFound, "unknown_node", message).hint(hint));
    }
    let question = format!("Does the process of `{name}` not run any more, on any machine?");
    consent(yes, "no member was taken out", &question)?;
    let word = ClusterWord::Remove {
        name: name.to_owned(),
    };
    looked.say(home, &word).await?;
    let end = Instant::now() + DONE_MAX;
    while looked.say(home, &ClusterWord::Tell).await?.has(name) {
        if Instant::now() > end {
            let message = format!("`{name}` is still a member");
            return Err(Failure::new(Exit::Failed, "still_member", message).hint(STATUS));
        }
        tokio::time::sleep(LISTEN).await;
    }
    if output.json {
        output.result_json(&json!({ "removed": name }));
    } else {
        output.message(&format!("`{name}` is no member any more"));
    }
    Ok(Exit::Ok)
}

fn consent(yes: bool, otherwise: &str, question: &str) -> Result<(), Failure> {
    let mut terminal = ProcessTerminal;
    if yes {
        return Ok(());
    }
    if !terminal.is_interactive() {
        let message = format!("{otherwise}: it needs your consent");
        let failure = Failure::new(Exit::Refused, "consent_needed", message);
        return Err(failure.hint("consent with --yes"));
    }
    if confirm(&mut terminal, question) {
        Ok(())
    } else {
        Err(Failure::new(Exit::Refused, "consent_refused", otherwise))
    }
}
