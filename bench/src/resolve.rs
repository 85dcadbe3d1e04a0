//! Schemas by reference: a reference resolved at a registry, from the disk and from the memory of
//! the gateway that asks.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::sleep;
use std::time::{Duration, Instant};

use client::Post;
use registry::resolve::{
    Digests, Fetch, Fetching, Hosts, Http, LABEL_KEPT_MS, RegistryTokens, Resolver,
    ResolverSettings,
};
use schema::Reference;
use tokio::runtime::{Builder, Runtime};

use crate::flags::Flags;
use crate::stage::{Stage, stdio_table};

/// The token of the one who asks.
const TOKEN: &str = "a-token-that-is-long-enough";

/// HTTP, with what it takes.
#[derive(Clone, Default)]
struct Timed {
    http: Http,
    spent: Arc<Spent>,
}

#[derive(Default)]
struct Spent {
    requests: AtomicU64,
    ns: AtomicU64,
    bytes: AtomicU64,
}

impl Fetch for Timed {
    fn post(&self, request: Post) -> Fetching<'_> {
        Box::pin(async move {
            let begun = Instant::now();
            let posted = self.http.post(request).await;
            self.spent.requests.fetch_add(1, Relaxed);
            self.spent.ns.fetch_add(ns_since(begun), Relaxed);
            self.spent.bytes.fetch_add(
                posted.as_ref().map_or(0, |posted| posted.body.len() as u64),
                Relaxed,
            );
            posted
        })
    }
}

fn ns_since(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// A gateway that resolves references to a tool of another one.
struct Asker {
    runtime: Runtime,
    settings: ResolverSettings,
    reference: Reference,
    way: Timed,
}

impl Asker {
    fn new(host: &str) -> Self {
        let hosts =
            Hosts::new([format!("http://{host}").as_str()]).expect("a host on this machine");
        let tokens = RegistryTokens::read(&format!("{TOKEN}@{host}"), "").expect("a token");
        let digests = Digests::default();
        Self {
            runtime: Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime"),
            settings: ResolverSettings {
                hosts,
                tokens,
                digests,
                label_kept_ms: LABEL_KEPT_MS,
            },
            reference: format!("{host}/portmoot/far/echo")
                .parse()
                .expect("a reference"),
            way: Timed::default(),
        }
    }

    fn resolver(&self, dir: Option<&Path>) -> Resolver {
        let resolver = Resolver::new(self.settings.clone(), self.way.clone());
        match dir {
            Some(dir) => resolver.kept_in(dir).expect("a directory"),
            None => resolver,
        }
    }

    /// Waits until the gateway has the schema.
    fn wait(&self, resolver: &Resolver) {
        let begun = Instant::now();
        while let Err(error) = self.runtime.block_on(resolver.resolve(&self.reference, 1)) {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "no schema: {error}"
            );
            sleep(Duration::from_millis(50));
        }
    }

    /// Resolves, and returns the bytes of the set.
    fn resolve(&self, resolver: &Resolver) -> usize {
        let resolved = self.runtime.block_on(resolver.resolve(&self.reference, 1));
        resolved.expect("a schema").set.len()
    }
}

/// The median over so many runs, in microseconds.
fn median_us(rounds: usize, mut run: impl FnMut()) -> f64 {
    let mut took: Vec<u64> = (0..rounds.max(1))
        .map(|_| {
            let begun = Instant::now();
            run();
            ns_since(begun)
        })
        .collect();
    took.sort_unstable();
    took[took.len() / 2] as f64 / 1e3
}

/// Measures and prints.
pub fn run(stage: &Stage, flags: &Flags) {
    let rounds = flags.get("--rounds", 200);
    let server = stdio_table("far", &stage.stdio_echo(&["legacy"]), "era = \"legacy\"");
    let people = "[participants.admin]\ntoken_env = \"ADMIN\"\ncapabilities = [\"mcp/*\"]\n";
    let gateway = stage.gateway_with(
        19045,
        &(server + people),
        &[("ADMIN".to_owned(), TOKEN.to_owned())],
    );
    let asker = Asker::new(&format!("127.0.0.1:{}", gateway.port));
    let dir = stage.home.join("schemas");
    let kept = asker.resolver(Some(&dir));
    asker.wait(&kept);
    let bytes = asker.resolve(&kept);
    let spent = &asker.way.spent;
    for count in [&spent.requests, &spent.ns, &spent.bytes] {
        count.store(0, Relaxed);
    }
    let cold = median_us(rounds, || _ = asker.resolve(&asker.resolver(None)));
    let (asked, ns, answered) = (
        spent.requests.load(Relaxed),
        spent.ns.load(Relaxed),
        spent.bytes.load(Relaxed),
    );
    let each = |count: u64| count as f64 / rounds as f64;
    let disk = median_us(rounds, || _ = asker.resolve(&asker.resolver(Some(&dir))));
    let many = 1_000;
    let memory =
        median_us(rounds, || (0..many).for_each(|_| _ = asker.resolve(&kept))) / f64::from(many);
    assert_eq!(
        spent.requests.load(Relaxed),
        asked,
        "what is kept needs no request"
    );
    let requests_us = each(ns) / 1e3;
    println!(
        "A set of {bytes} bytes; {:.0} requests with answers of {:.0} bytes.\n",
        each(asked),
        each(answered)
    );
    println!("| resolved | us | x its requests |");
    println!("|---|---|---|");
    for (how, us) in [
        ("floor: the requests alone (mean)", requests_us),
        ("cold, from the registry", cold),
        ("from the disk, the cache opened anew", disk),
        ("from memory", memory),
    ] {
        println!("| {how} | {us:.1} | {:.3} |", us / requests_us);
    }
}
