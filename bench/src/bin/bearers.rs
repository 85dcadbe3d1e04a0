//! Access tokens of issuers in one process: a token that is known, one that is not by algorithm,
//! and the memory of 10,000 people.
//!
//!     bearers [--rounds 40] [--people 10000]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use auth::jwt::{Algorithm, Rules};
use auth::{Presented, PublicUrl};
use identity::bearers::Bearers;
use identity::config::IdentityConfig;
use identity::issuers::{IssuerConfig, TokenAccess};
use model::{Capabilities, TopicName};
use oauth::issuer::TokenCheck;
use portmoot_bench::flags::Flags;
use portmoot_bench::signers::{ALGORITHMS, Signers, publish};

const PUBLIC: &str = "https://gw.example";
const AUDIENCE: &str = "https://gw.example/mcp";
/// Tokens of one algorithm in a round.
const TOKENS: usize = 50;

fn config(issuer: &str) -> Arc<IdentityConfig> {
    let topics = vec![TopicName::new("main").expect("a name")];
    let place = TokenAccess {
        capabilities: Arc::new(Capabilities::full()),
        topics,
    };
    let rules = Rules {
        issuer: issuer.to_owned(),
        algorithms: vec![
            Algorithm::Rs256,
            Algorithm::Ps256,
            Algorithm::Es256,
            Algorithm::Es384,
            Algorithm::EdDsa,
        ],
        types: vec!["at+jwt".to_owned()],
        skew_secs: 30,
    };
    let issuer = IssuerConfig {
        token_prefix: String::new(),
        name: "corp".to_owned(),
        rules,
        source: TokenCheck::Keys(Some(format!("{issuer}/keys"))),
        audiences: Vec::new(),
        audience_of_client: false,
        allowed: Vec::new(),
        participant: "{preferred_username}".to_owned(),
        groups: "groups".to_owned(),
        map: Vec::new(),
        unknown: Some(place),
        step_up: false,
        console: None,
    };
    let public_url = Some(PublicUrl::parse(PUBLIC).expect("a URL"));
    Arc::new(IdentityConfig {
        public_url,
        issuers: vec![issuer],
        ..IdentityConfig::default()
    })
}

/// The bearers of an issuer whose keys are known.
async fn bearers(config: &Arc<IdentityConfig>, token: &str) -> Arc<Bearers> {
    let bearers = Bearers::new(Arc::default());
    bearers.take_over(config);
    bearers.admit(token, None).await.expect("a good token");
    bearers
}

fn identify(bearers: &Bearers, token: &str) {
    let found = bearers.identify(Presented::from(Some(token)), Some("main"));
    black_box(found.expect("it is for the issuers").expect("a good token"));
}

/// Resident bytes of this process.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").expect("/proc");
    let pages: usize = text
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse().ok())
        .expect("pages");
    pages * 4096
}

fn main() {
    let flags = Flags::read();
    let (rounds, people) = (
        flags.get("--rounds", 40_usize),
        flags.get("--people", 10_000_usize),
    );
    let signers = Signers::new();
    let issuer = publish(0, signers.keys());
    let (runtime, config) = (
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build(),
        config(&issuer),
    );
    let runtime = runtime.expect("a runtime");
    let token =
        |algorithm: &str, subject: &str| signers.token(algorithm, &issuer, AUDIENCE, subject);
    runtime.block_on(async {
        println!("| a token | microseconds |\n|---|---|");
        let known = token("ES256", "ann");
        let all = bearers(&config, &known).await;
        let mut best = f64::MAX;
        for _ in 0..rounds {
            let begun = Instant::now();
            (0..10_000).for_each(|_| identify(&all, black_box(&known)));
            best = best.min(begun.elapsed().as_secs_f64() * 1e6 / 10_000.0);
        }
        println!("| that is known | {best:.2} |");
        for algorithm in ALGORITHMS {
            let mut best = f64::MAX;
            for round in 0..rounds {
                let fresh = |at: usize| token(algorithm, &format!("person-{round}-{at}"));
                let tokens: Vec<String> = (0..TOKENS).map(fresh).collect();
                let begun = Instant::now();
                tokens
                    .iter()
                    .for_each(|token| identify(&all, black_box(token)));
                best = best.min(begun.elapsed().as_secs_f64() * 1e6 / TOKENS as f64);
            }
            println!("| that is not, {algorithm} | {best:.1} |");
        }
        drop(all);
        let all = bearers(&config, &known).await;
        // Tokens are made one by one: none of them is part of what is measured.
        (0..100).for_each(|at| identify(&all, &token("ES256", &format!("before-{at}"))));
        let before = resident();
        for at in 0..people {
            identify(&all, &token("ES256", &format!("person-number-{at}")));
        }
        let grown = resident().saturating_sub(before);
        let mib = grown as f64 / f64::from(1 << 20);
        println!(
            "\n{people} people, each with a token: {mib:.1} MiB, {} bytes each; {} tokens are kept",
            grown / people,
            all.tokens_len()
        );
    });
}
