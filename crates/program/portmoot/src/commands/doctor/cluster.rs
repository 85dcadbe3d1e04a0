//! Checks of `[cluster]`: the key, the servers of NATS, and the nodes that run.

use config::{ClusterConfig, Config};
use fabric::nats::{NatsError, NatsRights};
use node::{ClusterView, Observer, ObserverError};
use store::Directory;
use zeroize::Zeroizing;

use super::check::{Check, Severity, failed, passed};
use crate::commands::cluster::LISTEN;
use crate::run::{cluster_key, nats_config};

/// The difference of two clocks from which it is named.
const CLOCK_MS: u64 = 5_000;
/// The version of the servers from which on the doctor advises no newer one.
const RECOMMENDED: [u64; 2] = [2, 15];
const KEY: &str = "cluster key";
const NATS: &str = "cluster NATS";
const STREAM: &str = "cluster stream";
const RIGHTS: &str = "cluster rights";
const NODES: &str = "cluster nodes";
const DISKS: &str = "cluster disks";

/// All checks of the cluster that a configuration joins.
pub(super) async fn checks(config: &Config) -> Vec<Check> {
    let Some(cluster) = config.cluster.as_deref() else {
        return Vec::new();
    };
    let (key, check) = key(cluster).await;
    let mut checks = vec![check];
    let observer = match Observer::connect(&nats_config(cluster)).await {
        Ok(observer) => observer,
        Err(why) => {
            checks.push(no_nats(cluster, &why));
            return checks;
        }
    };
    checks.push(version(&observer));
    checks.extend(stream(cluster, &observer).await);
    if let Some(key) = key {
        checks.extend(nodes(config, cluster, &observer, &key).await);
    }
    checks
}

async fn key(cluster: &ClusterConfig) -> (Option<Zeroizing<[u8; 32]>>, Check) {
    match cluster_key(cluster).await {
        Ok(key) => (Some(key), passed(KEY, "read")),
        Err(failure) => {
            let fix = failure.hint.clone().unwrap_or_default();
            (None, failed(KEY, failure.message, fix))
        }
    }
}

fn no_nats(cluster: &ClusterConfig, why: &ObserverError) -> Check {
    let fix = match why {
        ObserverError::Nats(NatsError::Old(_)) => "update the servers of NATS".to_owned(),
        ObserverError::Nats(NatsError::Credentials(_)) => {
            "correct `credentials` of [cluster]".to_owned()
        }
        _ => format!(
            "start a server there, or correct `nats` of [cluster]: {}",
            cluster.servers.join(", ")
        ),
    };
    failed(NATS, why.to_string(), fix)
}

fn version(observer: &Observer) -> Check {
    let version = observer.version();
    let numbers = version.split(['.', '-']).map(|one| one.parse::<u64>().ok());
    let numbers: Option<Vec<u64>> = numbers.take(2).collect();
    if numbers.is_some_and(|numbers| numbers.as_slice() >= RECOMMENDED.as_slice()) {
        return passed(NATS, format!("reached, version {version}"));
    }
    let found = format!("reached, version {version}; 2.15 or newer is recommended");
    warning(NATS, found, "update the servers, one after the other")
}

fn warning(what: &str, found: impl Into<String>, fix: impl Into<String>) -> Check {
    Check {
        severity: Severity::Warning,
        ..failed(what, found, fix)
    }
}

/// The checks of the stream, and of what the user may do with it.
async fn stream(cluster: &ClusterConfig, observer: &Observer) -> Vec<Check> {
    let name = observer.stream_name();
    let facts = match observer.stream().await {
        Ok(Some(facts)) => facts,
        Ok(None) => {
            let found = format!("{name} is not there yet: the first node that starts makes it");
            return vec![passed(STREAM, found), disks()];
        }
        Err(why) => return vec![failed(STREAM, why.to_string(), stream_fix(cluster, &why))],
    };
    let found = format!("{name}, {}", replicas(facts.replicas));
    let check = match (cluster.replicas, facts.replicas) {
        (Some(wish), has) if wish != has => {
            let found = format!("{found}; `replicas` of [cluster] is {wish}");
            let fix = format!("nats stream edit {name} --replicas={wish}, or change `replicas`");
            warning(STREAM, found, fix)
        }
        (_, 1) => warning(
            STREAM,
            format!("{found}: the loss of its disk is the loss of all"),
            "for more than a trial: three servers of NATS as a cluster",
        ),
        _ => passed(STREAM, found),
    };
    let mut checks = vec![check, disks()];
    match observer.rights().await {
        Ok(rights) => checks.push(rights_check(cluster, rights)),
        Err(why) => checks.push(failed(RIGHTS, why.to_string(), "correct [cluster]")),
    }
    checks
}

fn replicas(count: u8) -> String {
    match count {
        1 => "1 replica".to_owned(),
        _ => format!("{count} replicas"),
    }
}

fn stream_fix(cluster: &ClusterConfig, why: &NatsError) -> String {
    match why {
        NatsError::NoJetStream => {
            "in nats.conf: jetstream { store_dir: DIRECTORY, sync_interval: always }".to_owned()
        }
        NatsError::Unfit { stream, .. } => {
            format!(
                "if nothing else uses it, remove it: nats stream rm {stream}; a node makes it anew"
            )
        }
        _ => rights_fix(&cluster.name),
    }
}

/// A hint: no server says over NATS whether it syncs.
fn disks() -> Check {
    Check {
        fix: Some("in nats.conf of each server: jetstream { sync_interval: always }".to_owned()),
        ..passed(
            DISKS,
            "NATS does not say whether its servers sync each record to the disk",
        )
    }
}

fn rights_check(cluster: &ClusterConfig, rights: NatsRights) -> Check {
    let NatsRights {
        bus,
        append,
        read,
        purge,
    } = rights;
    let missing = [
        (bus, "messages between nodes do not arrive"),
        (append, "nothing can be appended to the stream"),
        (read, "the stream cannot be read"),
        (purge, "old records of the stream cannot be removed"),
    ];
    let missing = missing.iter().filter(|(has, _)| !has);
    let missing: Vec<&str> = missing.map(|(_, what)| *what).collect();
    if missing.is_empty() {
        return passed(RIGHTS, "messages, appends and reads work");
    }
    failed(RIGHTS, missing.join("; "), rights_fix(&cluster.name))
}

fn rights_fix(name: &str) -> String {
    format!(
        "the user of NATS needs: publish and subscribe on pm.{name}.> and _INBOX.pm.{name}.>, publish on $JS.API.STREAM.*.PM_{name} and $JS.API.DIRECT.GET.PM_{name}.>, and $JS.API.DIRECT.GET.PM_{name}"
    )
}

/// The checks of the nodes that run.
async fn nodes(
    config: &Config,
    cluster: &ClusterConfig,
    observer: &Observer,
    key: &Zeroizing<[u8; 32]>,
) -> Vec<Check> {
    let mut watch = match observer.watch(key).await {
        Ok(watch) => watch,
        Err(why) => return vec![failed(NODES, why.to_string(), rights_fix(&cluster.name))],
    };
    let view = watch.look(LISTEN).await;
    let mut checks = vec![seen(&view)];
    if view.refused > 0 {
        checks.push(failed(
            KEY,
            "another node has another key: its messages cannot be opened",
            "give all nodes one key file, and start those that had another one anew",
        ));
    }
    checks.extend(names(config, cluster, &view));
    checks.extend(clocks(&view));
    checks
}

fn seen(view: &ClusterView) -> Check {
    let names: Vec<&str> = view.nodes.iter().map(|node| &*node.node.name).collect();
    let home = view.home();
    match (names.is_empty(), home) {
        (true, _) if view.refused > 0 => passed(NODES, "none runs that has this key"),
        (true, _) => passed(NODES, "none runs"),
        (false, Some(home)) if home.home.is_some_and(|home| home.stopped) => failed(
            NODES,
            "the servers of NATS have lost messages: nothing is served",
            "look at the servers, then: portmoot cluster accept",
        ),
        (false, Some(home)) => {
            let found = format!("{}; the home is {}", names.join(", "), home.node.name);
            passed(NODES, found)
        }
        (false, None) => failed(
            NODES,
            format!("{}; none is the home", names.join(", ")),
            "wait a moment, then see: portmoot cluster status",
        ),
    }
}

/// Names that several processes have.
fn names(config: &Config, cluster: &ClusterConfig, view: &ClusterView) -> Vec<Check> {
    const FIX: &str = "give each node a `node` of its own in [cluster]";
    let doubled = view.doubled();
    let twice = |name: &&str| failed(NODES, format!("two processes have the name `{name}`"), FIX);
    let mut checks: Vec<Check> = doubled.iter().map(twice).collect();
    let runs_here = config.data_dir.as_deref().map(Directory::owner);
    let runs_here = matches!(runs_here, Some(Ok(Some(_)) | Err(_)));
    let is_seen = view
        .nodes
        .iter()
        .any(|node| *node.node.name == cluster.node);
    if is_seen && !runs_here && doubled.is_empty() {
        let found = format!(
            "a node with the name `{}` runs elsewhere: with another data directory",
            cluster.node
        );
        checks.push(failed(NODES, found, FIX));
    }
    checks
}

/// Nodes whose clocks differ from this one's.
fn clocks(view: &ClusterView) -> Vec<Check> {
    let nodes = view.nodes.iter();
    nodes
        .filter_map(|node| clock(&node.node.name, node.ahead_ms))
        .collect()
}

/// A node's clock, if it differs.
fn clock(name: &str, ahead_ms: i64) -> Option<Check> {
    let apart_ms = ahead_ms.unsigned_abs();
    let side = if ahead_ms > 0 { "ahead of" } else { "behind" };
    let found = format!(
        "that of `{name}` is {} s {side} this machine's",
        apart_ms / 1000
    );
    let fix = "set the time of both machines, by NTP: nodes whose clocks differ do not join";
    (apart_ms > CLOCK_MS).then(|| failed("cluster clock", found, fix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_differs_is_named() {
        let found = |ahead_ms| clock("b", ahead_ms).map(|check| check.found);
        assert_eq!((found(5_000), found(-5_000)), (None, None));
        let ahead = "that of `b` is 7 s ahead of this machine's";
        assert_eq!(found(7_200).as_deref(), Some(ahead));
        let behind = "that of `b` is 3600 s behind this machine's";
        assert_eq!(found(-3_600_000).as_deref(), Some(behind));
    }
}
