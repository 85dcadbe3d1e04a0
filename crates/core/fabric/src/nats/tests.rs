use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use harness::{Link, NatsServers};

use super::*;
use crate::mesh::tests::{calls_and_tunnels_work, two};
use crate::tests::{Place, Stranger, keeps_the_contract};
use crate::{Delivery, Incarnation, LogReplay, MessageId, append_until_known};

const LONG: Duration = Duration::from_secs(30);

fn config(servers: &NatsServers, number: usize) -> NatsConfig {
    NatsConfig {
        cluster: "test".to_owned(),
        servers: servers.urls_from(number),
        ..NatsConfig::default()
    }
}

/// Connections to each server, once the stream is there.
async fn connected(servers: &NatsServers, count: u8) -> Vec<Arc<Nats>> {
    let mut all = Vec::new();
    for number in 0..count {
        let nats = Nats::connect(&config(servers, usize::from(number))).await;
        all.push(Arc::new(nats.unwrap()));
    }
    let start = Instant::now();
    loop {
        match all[0].make_stream(count).await {
            Ok(facts) => {
                assert_eq!(facts.replicas, count);
                return all;
            }
            // No leader yet.
            Err(NatsError::Stream(why)) if start.elapsed() < LONG => {
                tokio::time::sleep(Duration::from_millis(100)).await;
                drop(why);
            }
            Err(why) => panic!("{why}"),
        }
    }
}

fn place(nodes: &[Arc<Nats>]) -> Place {
    let nth = |number: usize| Arc::clone(&nodes[number % nodes.len()]);
    Place {
        logs: (0..3).map(|number| nth(number) as Arc<dyn Log>).collect(),
        buses: (0..3).map(|number| nth(number) as Arc<dyn Bus>).collect(),
        records: "pm.test.j".parse().unwrap(),
        messages: "pm.test.b".parse().unwrap(),
        stranger: nth(0) as Arc<dyn Stranger>,
    }
}

impl Stranger for Nats {
    fn append_foreign<'a>(&'a self, subject: &'a str, bytes: Bytes) -> Ongoing<'a, Sequence> {
        Box::pin(async move {
            let answer = self.client.request(subject.to_owned(), bytes).await;
            let answer: serde_json::Value =
                serde_json::from_slice(&answer.unwrap().payload).unwrap();
            answer["seq"].as_u64().expect("its place")
        })
    }
}

/// The number of the server that leads the stream.
async fn leader(nats: &Nats) -> Option<usize> {
    let answer = nats.api("STREAM.INFO", String::new(), LONG).await.ok()?;
    let answer: serde_json::Value = serde_json::from_slice(&answer).ok()?;
    let name = answer["cluster"]["leader"].as_str()?;
    (0..3).find(|number| NatsServers::name(*number) == name)
}

fn record(subject: &SubjectName, expected: Sequence, number: usize) -> Append {
    Append {
        subject: subject.clone(),
        expected,
        id: MessageId::random(),
        bytes: format!("{number} {}", "x".repeat(400)).into(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_server_keeps_the_contract() {
    let servers = NatsServers::start(1);
    let nodes = connected(&servers, 1).await;
    keeps_the_contract(&place(&nodes)).await;
    let again = nodes[0].make_stream(1).await.unwrap();
    assert_eq!(again, StreamFacts { replicas: 1 });
    a_stream_with_other_properties_is_refused(&nodes[0]).await;
}

async fn a_stream_with_other_properties_is_refused(nats: &Nats) {
    let size = format!(r#""max_msg_size":{STORED_BYTES_MAX}"#);
    let properties = [
        (r#""file""#, r#""memory""#, "its storage"),
        (
            r#""deny_delete":true"#,
            r#""deny_purge":true"#,
            "cannot be purged",
        ),
        (
            r#""deny_delete":true"#,
            r#""allow_rollup_hdrs":true"#,
            "the place of all",
        ),
        (&size, r#""max_msg_size":262144"#, "too small"),
        (
            r#""deny_delete":true"#,
            r#""sources":[{"name":"other"}]"#,
            "of other streams",
        ),
    ];
    for (from, to, expect) in properties {
        let delete = nats.api("STREAM.DELETE", String::new(), LONG).await;
        let delete = String::from_utf8_lossy(&delete.unwrap()).into_owned();
        assert!(delete.contains(r#""success":true"#), "{delete}");
        let wish = nats.wish(1);
        let other = wish.replace(from, to);
        assert_ne!(other, wish);
        nats.api("STREAM.CREATE", other, LONG).await.unwrap();
        let refused = nats.make_stream(1).await.unwrap_err().to_string();
        assert!(refused.contains(expect), "{refused}");
    }
}

/// One cluster for all: an election takes seconds.
#[tokio::test(flavor = "multi_thread")]
async fn three_servers_keep_the_contract() {
    let mut servers = NatsServers::start(3);
    let nodes = connected(&servers, 3).await;
    keeps_the_contract(&place(&nodes)).await;
    appends_are_measured(&nodes[0]).await;
    calls_and_tunnels_cross_servers(&nodes).await;
    a_server_that_is_cut_off_gives_nothing_away(&servers).await;
    a_killed_leader_loses_nothing(&mut servers, &nodes).await;
    a_client_finds_another_server(&mut servers, &nodes).await;
    a_try_is_bounded_where_nothing_is_sent(&servers, &nodes[0]).await;
    a_cluster_that_is_away_leaves_answers_open(&servers, &nodes).await;
}

async fn calls_and_tunnels_cross_servers(nodes: &[Arc<Nats>]) {
    let buses = [0, 2].map(|number: usize| Arc::clone(&nodes[number]) as Arc<dyn Bus>);
    let names = [Incarnation::random(), Incarnation::random()];
    let two = two(buses, "pm.test.n", names).await;
    calls_and_tunnels_work(&two, 20).await;
    let mut times = Vec::new();
    for number in 0..300_u32 {
        let start = Instant::now();
        let request = Bytes::from(format!("measured {number}"));
        let mut call = two.a.call(two.b_name, request).await.unwrap();
        call.next().await.unwrap();
        times.push(start.elapsed());
    }
    times.sort();
    report(&format!(
        "call between nodes: p50 {:?} p99 {:?}",
        times[150], times[296]
    ));
}

/// Whether a message reaches a subscriber, within so many tries.
async fn is_heard(
    nats: &Nats,
    subscription: &mut BusSubscription,
    subject: &SubjectName,
    text: &'static str,
    tries: usize,
) -> bool {
    for _ in 0..tries {
        let _away = nats.publish(subject, text.into()).await;
        let wait = Duration::from_millis(50);
        while let Ok(Some(delivery)) = tokio::time::timeout(wait, subscription.next()).await {
            if matches!(delivery, Delivery::Message(message) if message.bytes == text) {
                return true;
            }
        }
    }
    false
}

/// A connection to one server, and to no other.
async fn connected_to(servers: &NatsServers, number: usize) -> Nats {
    let mut config = config(servers, number);
    config.servers.truncate(1);
    Nats::connect(&config).await.unwrap()
}

async fn a_server_that_is_cut_off_gives_nothing_away(servers: &NatsServers) {
    let subject: SubjectName = "pm.test.b.cut".parse().unwrap();
    let near = connected_to(servers, 0).await;
    let far = &connected_to(servers, 2).await;
    let mut subscription = near.subscribe(&(&subject).into()).await.unwrap();
    assert!(is_heard(far, &mut subscription, &subject, "before", 600).await);
    servers.link(2, Link::Cut);
    assert!(!is_heard(far, &mut subscription, &subject, "meanwhile", 20).await);
    servers.link(2, Link::Whole);
    assert!(is_heard(far, &mut subscription, &subject, "after", 600).await);
}

async fn appends_are_measured(nats: &Nats) {
    let subject: SubjectName = "pm.test.j.measured".parse().unwrap();
    let (mut last, mut times) = (0, Vec::new());
    for number in 0..400 {
        let record = record(&subject, last, number);
        let start = Instant::now();
        match append_until_known(nats, &record, LONG).await {
            Appended::At(sequence) => last = sequence,
            other => panic!("{other:?}"),
        }
        times.push(start.elapsed());
    }
    times.sort();
    tracing::info!(p50 = ?times[200], p99 = ?times[396], "fenced append");
    report(&format!(
        "fenced append, R3: p50 {:?} p99 {:?}",
        times[200], times[396]
    ));
}

/// Figures for a reader of the log: nextest shows them with `--no-capture`.
#[allow(clippy::print_stderr, reason = "figures of a test")]
fn report(line: &str) {
    eprintln!("{line}");
}

async fn a_killed_leader_loses_nothing(servers: &mut NatsServers, nodes: &[Arc<Nats>]) {
    let subject: SubjectName = "pm.test.j.killed".parse().unwrap();
    let led = leader(&nodes[0]).await.expect("a leader");
    let writer = &nodes[(led + 1) % 3];
    let (mut last, mut written, mut longest) = (0, Vec::new(), Duration::ZERO);
    for number in 0..200 {
        if number == 100 {
            servers.kill(led);
        }
        let record = record(&subject, last, number);
        let start = Instant::now();
        match append_until_known(&**writer, &record, LONG).await {
            Appended::At(sequence) => last = sequence,
            other => panic!("{number}: {other:?}"),
        }
        longest = longest.max(start.elapsed());
        written.push((last, Some(record.id)));
    }
    report(&format!("leader killed: {longest:?} without an append"));
    let mut replay = LogReplay::new(&**writer, (&subject).into(), 1, last, LONG);
    let mut read = Vec::new();
    while let Some(records) = replay.page().await.unwrap() {
        read.extend(
            records
                .into_iter()
                .map(|record| (record.sequence, record.id)),
        );
    }
    assert_eq!(read, written, "each acknowledged record is there, once");
    servers.begin(led);
}

async fn a_client_finds_another_server(servers: &mut NatsServers, nodes: &[Arc<Nats>]) {
    let listener = &nodes[1];
    let subject: SubjectName = "pm.test.b.found".parse().unwrap();
    let mut subscription = listener.subscribe(&(&subject).into()).await.unwrap();
    let own = serving(servers, listener);
    servers.kill(own);
    let until = Instant::now() + LONG;
    loop {
        assert!(Instant::now() < until, "no message comes");
        for node in nodes {
            let _away = node.publish(&subject, "hello".into()).await;
        }
        let wait = Duration::from_millis(50);
        if let Ok(Some(Delivery::Message(_))) =
            tokio::time::timeout(wait, subscription.next()).await
            && serving(servers, listener) != own
        {
            break;
        }
    }
    servers.begin(own);
}

fn port(servers: &NatsServers, number: usize) -> u16 {
    let address = servers.address(number);
    address.rsplit(':').next().unwrap().parse().unwrap()
}

/// The server to which a client is connected.
fn serving(servers: &NatsServers, nats: &Nats) -> usize {
    let port_now = nats.client.server_info().port;
    (0..3)
        .find(|number| port(servers, *number) == port_now)
        .unwrap()
}

/// Servers that take nothing, as behind a line that is full, and a client whose own queue is full:
/// each try ends all the same.
async fn a_try_is_bounded_where_nothing_is_sent(servers: &NatsServers, nats: &Arc<Nats>) {
    for number in 0..3 {
        servers.signal(number, "STOP");
    }
    let subject: SubjectName = "pm.test.b.full".parse().unwrap();
    let pattern = SubjectPattern::from(&subject);
    let bytes = Bytes::from(vec![0; FRAME_BYTES_MAX]);
    let start = Instant::now();
    let wait = Duration::from_millis(200);
    let publish = || nats.client.publish(subject.to_string(), bytes.clone());
    while let Ok(sent) = tokio::time::timeout(wait, publish()).await {
        sent.unwrap();
    }
    assert!(nats.is_connected(), "{:?}", start.elapsed());
    // Those that wait in front take the room that becomes free.
    let ahead = join_all((0..64).map(|_| publish()));
    let ahead = tokio::time::timeout(TRY_MAX + wait, ahead);
    let start = Instant::now();
    let append = record(&"pm.test.j.full".parse().unwrap(), 0, 0);
    let (_, published, subscribed, appended, read, last, purged) = tokio::join!(
        ahead,
        nats.publish(&subject, "x".into()),
        nats.subscribe(&pattern),
        nats.append(&append),
        nats.read(&nats.records, 1),
        nats.last(&append.subject),
        nats.purge(&pattern, 5),
    );
    let took = start.elapsed();
    assert!(took < TRY_MAX + Duration::from_millis(500), "{took:?}");
    let late = LogError::Unavailable(LATE.to_owned());
    assert_eq!(appended, Appended::Unknown(LATE.to_owned()));
    assert_eq!((read, last), (Err(late.clone()), Err(late.clone())));
    assert_eq!(purged, Err(late));
    let late = BusError::Unavailable(LATE.to_owned());
    assert_eq!(
        (published, subscribed.err()),
        (Err(late.clone()), Some(late))
    );
    for number in 0..3 {
        servers.signal(number, "CONT");
    }
}

async fn a_cluster_that_is_away_leaves_answers_open(servers: &NatsServers, nodes: &[Arc<Nats>]) {
    let subject: SubjectName = "pm.test.j.away".parse().unwrap();
    let first = record(&subject, 0, 0);
    let at = match append_until_known(&*nodes[0], &first, LONG).await {
        Appended::At(at) => at,
        other => panic!("{other:?}"),
    };
    for number in 0..3 {
        servers.signal(number, "STOP");
    }
    let next = record(&subject, at, 1);
    let answer = append_until_known(&*nodes[0], &next, Duration::from_secs(1)).await;
    assert!(matches!(answer, Appended::Unknown(_)), "{answer:?}");
    for number in 0..3 {
        servers.signal(number, "CONT");
    }
    // Whether the first try came through or not, the name has one record.
    let answer = append_until_known(&*nodes[0], &next, LONG).await;
    let Appended::At(last) = answer else {
        panic!("{answer:?}")
    };
    let mut replay = LogReplay::new(&*nodes[0], (&subject).into(), 1, last, LONG);
    let mut read = Vec::new();
    while let Some(records) = replay.page().await.unwrap() {
        read.extend(records.into_iter().map(|record| record.id));
    }
    assert_eq!(read, [Some(first.id), Some(next.id)]);
}

#[test]
fn old_servers_are_known_by_their_version() {
    for (version, expect) in [
        ("2.15.1", true),
        ("2.11.0", true),
        ("2.12.0-preview.1", true),
        ("3.0.0", true),
        ("2.10.22", false),
        ("2.9", false),
        ("", false),
        ("two", false),
    ] {
        assert_eq!(is_new(version), expect, "{version}");
    }
}

/// The rights that a user needs, and no others.
const RIGHTS: &str = r#"
authorization { users: [ { user: "CN=rcgen self signed cert", permissions: {
    publish: [ "pm.test.>", "$JS.API.STREAM.CREATE.PM_test", "$JS.API.STREAM.INFO.PM_test",
        "$JS.API.STREAM.PURGE.PM_test", "$JS.API.DIRECT.GET.PM_test", "$JS.API.DIRECT.GET.PM_test.>" ]
    subscribe: [ "pm.test.>", "_INBOX.pm.test.>" ]
} } ] }
"#;

/// A certificate and its key as files.
fn certified(folder: &Path, name: &str) -> UserFiles {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let files = UserFiles {
        certificate: folder.join(format!("{name}.pem")),
        key: folder.join(format!("{name}.key")),
    };
    std::fs::write(&files.certificate, made.cert.pem()).unwrap();
    std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    files
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_with_few_rights_comes_over_tls() {
    let folder = tempfile::tempdir().unwrap();
    let [server, user] = ["server", "user"].map(|name| certified(folder.path(), name));
    let tls = format!(
        "tls {{ cert_file: {:?}, key_file: {:?}, ca_file: {:?}, verify_and_map: true }}\n",
        server.certificate, server.key, user.certificate
    );
    let servers = NatsServers::start_with(1, &(tls + RIGHTS));
    let url = format!("tls://{}", servers.address(0));
    let config = NatsConfig {
        cluster: "test".to_owned(),
        servers: vec![url],
        ca: Some(server.certificate.clone()),
        client: Some(user.clone()),
        ..NatsConfig::default()
    };
    let nats = Arc::new(Nats::connect(&config).await.unwrap());
    nats.make_stream(1).await.unwrap();
    let NatsRights {
        bus,
        append,
        read,
        purge,
    } = nats.rights().await.unwrap();
    assert!(bus && append && read && purge);
    keeps_the_contract(&place(&[nats])).await;
    let wrongs = [
        NatsConfig {
            ca: Some(user.certificate.clone()),
            ..config.clone()
        },
        NatsConfig {
            client: None,
            ..config.clone()
        },
        NatsConfig {
            client: Some(server),
            ..config.clone()
        },
    ];
    for (at, wrong) in wrongs.iter().enumerate() {
        let refused = Nats::connect(wrong).await;
        assert!(matches!(refused, Err(NatsError::Unreachable(_))), "{at}");
    }
    let servers = vec!["tls://user:secret@127.0.0.1:1".to_owned()];
    let wrong = NatsConfig {
        servers,
        ..config.clone()
    };
    let refused = Nats::connect(&wrong).await;
    assert!(matches!(refused, Err(NatsError::Password)));
    let credentials = Some(folder.path().join("none.creds"));
    let wrong = NatsConfig {
        credentials,
        ..config
    };
    let refused = Nats::connect(&wrong).await;
    assert!(matches!(refused, Err(NatsError::Credentials(_))));
}
