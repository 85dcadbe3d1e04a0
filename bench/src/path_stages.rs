//! Stages of a call's path: which source files belong to which, and the cost of each in a profile.

use std::collections::HashMap;

use crate::callgrind::{FunctionId, Profile};

/// A stage, by the crates whose code it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PathStage {
    /// hyper and its parts, both ways.
    Http,
    /// tokio and mio.
    Runtime,
    /// `doors`.
    Doors,
    /// `gateway`, and the program that starts it.
    Gateway,
    /// `topic` and `model`.
    Topic,
    /// `wire` and `json`.
    Wire,
    /// `upstream` and `client`.
    Upstream,
    /// `room`.
    Room,
    /// `store`: the audit log and the journal.
    Store,
    /// `auth`, and the ciphers of sealed ids.
    Auth,
    /// What cannot be told.
    Other,
}

/// All stages, in the order of the table.
pub const STAGES: [(PathStage, &str); 11] = [
    (PathStage::Http, "HTTP (hyper, http, httparse, bytes)"),
    (PathStage::Runtime, "tokio, mio"),
    (PathStage::Doors, "doors"),
    (PathStage::Gateway, "gateway"),
    (PathStage::Topic, "topic, model"),
    (PathStage::Wire, "wire, json"),
    (PathStage::Upstream, "upstream, client"),
    (PathStage::Room, "room"),
    (PathStage::Store, "store (audit) without SHA-256"),
    (PathStage::Auth, "auth"),
    (PathStage::Other, "other"),
];

/// The share of each stage in something.
type Shares = HashMap<PathStage, f64>;

/// Rounds in which shares travel from callers to what they call.
const ROUNDS: usize = 24;

/// The stage of a source file. `None` for libraries that work for their callers: the standard
/// library, libc, locks, tables.
fn stage_of(file: &str) -> Option<PathStage> {
    if let Some((_, rest)) = file
        .rsplit_once("crates/")
        .filter(|(_, rest)| rest.contains("/src/"))
    {
        let (place, path) = rest.split_once("/src/")?;
        // The crate's folder stands in that of its area, and did not always.
        let name = place.rsplit('/').next().unwrap_or(place);
        return own(name, path);
    }
    let folder = file
        .split("/src/index.crates.io-")
        .nth(1)?
        .split('/')
        .nth(1)?;
    let name = folder.rsplit_once('-').map_or(folder, |(name, _)| name);
    match name {
        "hyper" | "hyper-util" | "hyper-rustls" | "http" | "http-body" | "http-body-util"
        | "httparse" | "httpdate" | "bytes" | "want" | "axum" | "axum-core" | "tower"
        | "tower-service" => Some(PathStage::Http),
        "tokio" | "mio" | "socket2" => Some(PathStage::Runtime),
        "serde_json" => Some(PathStage::Wire),
        "chacha20" | "chacha20poly1305" | "poly1305" | "base64" => Some(PathStage::Auth),
        _ => None,
    }
}

/// The stage of a file of ours. Up to c3ace07 the doors were a part of `gateway`.
fn own(name: &str, path: &str) -> Option<PathStage> {
    const DOORS: [&str; 8] = [
        "door",
        "door.rs",
        "stream",
        "session",
        "legacy.rs",
        "modern.rs",
        "caller",
        "resume.rs",
    ];
    Some(match name {
        "doors" => PathStage::Doors,
        "gateway" if DOORS.iter().any(|start| path.starts_with(start)) => PathStage::Doors,
        "gateway" | "portmoot" | "api" => PathStage::Gateway,
        "topic" | "model" => PathStage::Topic,
        "wire" | "json" => PathStage::Wire,
        "upstream" | "client" => PathStage::Upstream,
        "room" => PathStage::Room,
        "store" => PathStage::Store,
        "auth" => PathStage::Auth,
        _ => return None,
    })
}

/// Whether a symbol is a function of SHA-256, which processors do in hardware and valgrind does
/// not.
pub fn is_sha(symbol: &str) -> bool {
    symbol.contains("4sha2") || symbol.contains("sha256")
}

/// The cost of each stage. What libraries do is their callers' cost.
pub fn by_stage(profile: &Profile) -> HashMap<PathStage, f64> {
    let shares = shares(profile);
    let mut costs = HashMap::new();
    for (function, shares) in profile
        .functions
        .iter()
        .zip(&shares)
        .filter(|(one, _)| !is_sha(&one.symbol))
    {
        // Parts of it may be inlined in its callers.
        for (file, cost) in function
            .own
            .iter()
            .filter(|(file, _)| !file.contains("/sha2-"))
        {
            let cost = *cost as f64;
            match stage_of(file) {
                Some(stage) => *costs.entry(stage).or_default() += cost,
                None => shares
                    .iter()
                    .for_each(|(stage, share)| *costs.entry(*stage).or_default() += share * cost),
            }
        }
    }
    costs
}

/// For whom each function works: the stage of its file; or that of the code inlined in it; or those
/// of its callers.
fn shares(profile: &Profile) -> Vec<Shares> {
    let functions = &profile.functions;
    let mut shares: Vec<Shares> = vec![Shares::new(); functions.len()];
    let mut open: Vec<FunctionId> = Vec::new();
    for (at, function) in functions.iter().enumerate() {
        if let Some(stage) = stage_of(&function.file) {
            shares[at].insert(stage, 1.0);
            continue;
        }
        for (file, cost) in &function.own {
            if let Some(stage) = stage_of(file) {
                *shares[at].entry(stage).or_default() += *cost as f64;
            }
        }
        normalise(&mut shares[at]);
        if shares[at].is_empty() {
            open.push(at);
        }
    }
    let mut callers: Vec<Vec<(FunctionId, Option<PathStage>, f64)>> =
        vec![Vec::new(); functions.len()];
    for (at, function) in functions.iter().enumerate() {
        for ((to, file), calls) in function.calls.iter().filter(|(_, calls)| calls.count > 0) {
            callers[*to].push((at, stage_of(file), calls.inclusive as f64));
        }
    }
    for _ in 0..ROUNDS {
        for &at in &open {
            let mut sum = Shares::new();
            for (caller, stage, weight) in &callers[at] {
                match stage {
                    Some(stage) => *sum.entry(*stage).or_default() += weight,
                    None => {
                        for (stage, share) in &shares[*caller] {
                            *sum.entry(*stage).or_default() += share * weight;
                        }
                    }
                }
            }
            normalise(&mut sum);
            shares[at] = sum;
        }
    }
    for &at in &open {
        if shares[at].is_empty() {
            shares[at].insert(PathStage::Other, 1.0);
        }
    }
    shares
}

fn normalise(shares: &mut Shares) {
    let sum: f64 = shares.values().sum();
    if sum > 0.0 {
        shares.values_mut().for_each(|share| *share /= sum);
    } else {
        shares.clear();
    }
}

/// The functions with the highest own cost, what was inlined included.
pub fn costly(profile: &Profile, count: usize) -> Vec<(String, u64)> {
    let mut functions: Vec<(String, u64)> = profile
        .functions
        .iter()
        .map(|function| (readable(&function.symbol), function.own.values().sum()))
        .collect();
    functions.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
    functions.truncate(count);
    functions
}

/// For which functions of stages some functions were called, and how often. Calls by libraries
/// count for their callers.
pub fn on_behalf_of(profile: &Profile, fits: impl Fn(&str) -> bool) -> Vec<(String, f64)> {
    let mut open: HashMap<FunctionId, f64> = profile
        .callers(fits)
        .into_iter()
        .map(|(at, count)| (at, count as f64))
        .collect();
    let mut callers: HashMap<FunctionId, Vec<(FunctionId, f64)>> = HashMap::new();
    for (at, function) in profile.functions.iter().enumerate() {
        for ((to, _), calls) in function.calls.iter().filter(|(_, calls)| calls.count > 0) {
            callers
                .entry(*to)
                .or_default()
                .push((at, calls.count as f64));
        }
    }
    let mut found: HashMap<String, f64> = HashMap::new();
    for _ in 0..ROUNDS {
        for (at, count) in std::mem::take(&mut open) {
            let function = &profile.functions[at];
            match callers
                .get(&at)
                .filter(|_| stage_of(&function.file).is_none())
            {
                None => *found.entry(readable(&function.symbol)).or_default() += count,
                Some(callers) => {
                    let all: f64 = callers.iter().map(|(_, calls)| calls).sum();
                    for (caller, calls) in callers {
                        *open.entry(*caller).or_default() += count * calls / all;
                    }
                }
            }
        }
    }
    let mut found: Vec<(String, f64)> = found.into_iter().collect();
    found.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    found
}

/// A symbol without its mangling and its hash.
pub fn readable(symbol: &str) -> String {
    format!("{:#}", rustc_demangle::demangle(symbol))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_belong_to_stages() {
        let registry = "/home/x/.cargo/registry/src/index.crates.io-1949/";
        for (file, stage) in [
            ("crates/edge/doors/src/http/head.rs", Some(PathStage::Doors)),
            (
                "/work/crates/gateway/gateway/src/door/http.rs",
                Some(PathStage::Doors),
            ),
            (
                "crates/gateway/gateway/src/run.rs",
                Some(PathStage::Gateway),
            ),
            ("crates/base/platform/src/clock.rs", None),
            (
                &format!("{registry}hyper-1.12.0/src/proto/h1/io.rs"),
                Some(PathStage::Http),
            ),
            (
                &format!("{registry}tokio-1.54.0/src/task/spawn.rs"),
                Some(PathStage::Runtime),
            ),
            (&format!("{registry}hashbrown-0.16.0/src/raw.rs"), None),
            ("/rustc/0123/library/alloc/src/vec/mod.rs", None),
        ] {
            assert_eq!(stage_of(file), stage, "{file}");
        }
    }

    #[test]
    fn sha_256_does_not_count_where_it_is_inlined() {
        let inlined = "fi=(2) /home/x/.cargo/registry/src/index.crates.io-1949/sha2-0.11.0/src/sha256/soft.rs\n2 90\n";
        let text = format!("fl=(1) crates/core/store/src/a.rs\nfn=(1) write\n1 10\n{inlined}");
        let costs = by_stage(&Profile::read(&text));
        assert_eq!(costs.get(&PathStage::Store), Some(&10.0), "{costs:?}");
    }

    #[test]
    fn what_a_library_does_is_its_callers_cost() {
        let profile = Profile::read(
            "fl=(1) crates/edge/doors/src/a.rs\nfn=(1) door\n1 10\ncfi=(2) /rustc/0/library/alloc/src/vec.rs\ncfn=(2) push\n\
             calls=1 1\n1 40\nfl=(3) crates/core/topic/src/b.rs\nfn=(3) step\n1 5\ncfi=(2)\ncfn=(2)\ncalls=1 1\n1 10\n\
             fl=(2)\nfn=(2)\n1 20\ncfi=(4) malloc.c\ncfn=(4) malloc\ncalls=2 1\n1 30\nfl=(4)\nfn=(4)\n1 30\n",
        );
        let costs = by_stage(&profile);
        assert!(
            (costs[&PathStage::Doors] - 50.0).abs() < 1e-6
                && (costs[&PathStage::Topic] - 15.0).abs() < 1e-6,
            "{costs:?}"
        );
    }
}
