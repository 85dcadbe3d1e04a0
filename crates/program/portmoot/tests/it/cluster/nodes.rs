//! Nodes of a cluster as processes, each with a proxy of its own before the servers of NATS.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use harness::{Link, NatsServers, Proxy};
use serde_json::Value;

use crate::home::Home;
use crate::http::Reply;
use crate::support::{Gateway, signal, until};
use crate::ws::{config_of, home_of, token};

use super::attempt::{api, attempt};

/// The time for one of several attempts.
pub(super) const SHORT: Duration = Duration::from_secs(3);
/// The time for a request that waits for a take-over.
pub(super) const LONG: Duration = Duration::from_secs(30);

/// The time without contact after which a node serves nothing: the least, as tests wait for it.
const CUT_OFF: &str = "5s";
const KEY: &str = "0101010101010101010101010101010101010101010101010101010101010101";
/// The beginning of the line of a node's log when it becomes the home.
const BEGAN: &str = "this node is the home of the cluster epoch=";

/// The participants of the tests: one who decides, two who only propose, one who only calls.
pub(super) const PEOPLE: &[(&str, &[&str])] = &[
    ("boss", &["mcp/*", "chat", "portmoot/*"]),
    ("agent", &["mcp/proposal:*", "chat"]),
    ("other", &["mcp/proposal:*", "chat"]),
    ("ann", &["mcp/request:*", "chat"]),
];

/// A node's time as the home.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HomeTime {
    pub(super) epoch: u64,
    pub(super) node: usize,
}

/// The nodes, with the servers of NATS.
pub(super) struct Nodes {
    // They end before their servers.
    all: Vec<OneNode>,
    book: AddressBook,
    config: String,
    pub(super) nats: NatsServers,
    pub(super) folder: Home,
}

/// The addresses of the nodes that run, for threads that use them meanwhile.
#[derive(Clone, Default)]
pub(super) struct AddressBook(Arc<Mutex<BTreeMap<usize, String>>>);

impl AddressBook {
    /// The address of one of those that run; another one with each turn. It may be stopped, or cut
    /// off.
    pub(super) fn in_turn(&self, turn: usize) -> Option<String> {
        let all = self.0.lock().unwrap();
        all.values().nth(turn % all.len().max(1)).cloned()
    }

    /// The addresses of all that run.
    pub(super) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().values().cloned().collect()
    }
}

struct OneNode {
    /// One proxy for each server.
    proxies: Vec<Proxy>,
    gateway: Option<Gateway>,
}

impl Nodes {
    /// Nodes, `count` of them, with this configuration and [`PEOPLE`], over this number of servers
    /// of NATS. The first one is the home.
    #[track_caller]
    pub(super) fn start(count: usize, servers: usize, config: &str) -> Nodes {
        let folder = home_of(PEOPLE);
        let tables = config_of(&folder, PEOPLE);
        let (tables, _) = tables.split_once("[server]").unwrap();
        Nodes::of(folder, count, servers, config.to_owned() + tables)
    }

    /// Nodes without participants: callers need no token.
    #[track_caller]
    pub(super) fn open(count: usize, servers: usize, config: &str) -> Nodes {
        Nodes::of(Home::new(), count, servers, config.to_owned())
    }

    /// Nodes in this home.
    #[track_caller]
    pub(super) fn of(folder: Home, count: usize, servers: usize, config: String) -> Nodes {
        let nats = NatsServers::start(servers);
        folder.secret("cluster.key", KEY);
        let proxies = |_| (0..servers).map(|server| Proxy::to(&nats.address(server)));
        let node = |number| OneNode {
            proxies: proxies(number).collect(),
            gateway: None,
        };
        let all = (0..count).map(node).collect();
        let mut nodes = Nodes {
            all,
            book: AddressBook::default(),
            config,
            nats,
            folder,
        };
        nodes.restart(0);
        nodes.next_home(0);
        let others: Vec<usize> = (1..count).collect();
        nodes.restart_all(&others);
        for number in 0..count {
            nodes.wait_until_served(number);
        }
        nodes
    }

    pub(super) fn count(&self) -> usize {
        self.all.len()
    }

    /// The gateway of a node that runs.
    #[track_caller]
    pub(super) fn node(&self, number: usize) -> &Gateway {
        self.all[number].gateway.as_ref().expect("it runs")
    }

    /// Gives a node away, as it runs.
    #[track_caller]
    pub(super) fn give(&mut self, number: usize) -> Gateway {
        self.all[number].gateway.take().expect("it runs")
    }

    /// The addresses of the nodes that run.
    pub(super) fn book(&self) -> AddressBook {
        self.book.clone()
    }

    /// The addresses of all nodes, which run.
    #[track_caller]
    pub(super) fn addresses(&self) -> Vec<String> {
        let all = (0..self.count()).map(|number| self.node(number).address().to_owned());
        all.collect()
    }

    /// Starts a node that does not run, with its data directory.
    #[track_caller]
    pub(super) fn restart(&mut self, number: usize) {
        self.restart_all(&[number]);
    }

    /// Starts several nodes at once.
    #[track_caller]
    pub(super) fn restart_all(&mut self, numbers: &[usize]) {
        let commands: Vec<_> = numbers.iter().map(|&number| self.command(number)).collect();
        let started: Vec<Gateway> = std::thread::scope(|scope| {
            let start = |command| scope.spawn(move || Gateway::serve(command));
            let starting: Vec<_> = commands.into_iter().map(start).collect();
            let started = starting.into_iter().map(|one| one.join().unwrap());
            started.collect()
        });
        for (&number, gateway) in numbers.iter().zip(started) {
            let address = gateway.address().to_owned();
            self.book.0.lock().unwrap().insert(number, address);
            self.all[number].gateway = Some(gateway);
        }
    }

    fn command(&self, number: usize) -> std::process::Command {
        let file = format!("n{number}.toml");
        let data = format!("n{number}");
        let urls = self.all[number].proxies.iter();
        let urls: Vec<String> = urls
            .map(|proxy| format!("nats://{}", proxy.address()))
            .collect();
        let cluster = format!(
            "{}[cluster]\nname = \"test\"\nnats = {urls:?}\nkey_file = {:?}\nnode = {data:?}\ncut_off = {CUT_OFF:?}\n",
            self.config,
            self.folder.path().join("cluster.key"),
        );
        self.folder.write(&file, &cluster);
        let serve = ["serve", "-v", "--listen", "127.0.0.1:0"];
        self.folder
            .command(&[&serve[..], &["--data-dir", &data, "--config", &file]].concat())
    }

    /// Kills a node, and forgets it.
    #[track_caller]
    pub(super) fn kill(&mut self, number: usize) {
        self.end(number, "KILL");
    }

    /// Ends a node by a signal, and waits for its end.
    #[track_caller]
    pub(super) fn end(&mut self, number: usize, name: &str) {
        let mut gateway = self.all[number].gateway.take().expect("it runs");
        self.book.0.lock().unwrap().remove(&number);
        gateway.signal(name);
        gateway.wait();
    }

    /// Sends a signal to a node that goes on.
    #[track_caller]
    pub(super) fn signal(&self, number: usize, name: &str) {
        signal(self.node(number).pid(), name);
    }

    /// Changes the links of a node with all servers of NATS.
    pub(super) fn link(&self, number: usize, link: Link) {
        self.all[number]
            .proxies
            .iter()
            .for_each(|proxy| proxy.set(link));
    }

    /// Changes the links of a server of NATS with all nodes and with the other servers.
    pub(super) fn link_server(&self, server: usize, link: Link) {
        self.nats.link(server, link);
        for node in &self.all {
            node.proxies[server].set(link);
        }
    }

    /// Ends the connections of a node with the servers of NATS; it may connect again.
    pub(super) fn drop_connections(&self, number: usize) {
        self.all[number]
            .proxies
            .iter()
            .for_each(Proxy::drop_connections);
    }

    /// The latest time of a node as the home, of those that run or are stopped.
    pub(super) fn latest_home(&self) -> Option<HomeTime> {
        let all = (0..self.count()).filter_map(|node| {
            let gateway = self.all[node].gateway.as_ref()?;
            let epoch = latest_epoch(&gateway.log())?;
            Some(HomeTime { epoch, node })
        });
        all.max()
    }

    /// The home, which has begun.
    #[track_caller]
    pub(super) fn home(&self) -> HomeTime {
        self.latest_home().expect("there is a home")
    }

    /// A node that is not the home.
    #[track_caller]
    pub(super) fn other(&self) -> usize {
        (self.home().node + 1) % self.count()
    }

    /// Waits for a home after this epoch.
    #[track_caller]
    pub(super) fn next_home(&self, epoch: u64) -> HomeTime {
        until("the next home", || {
            self.latest_home().filter(|home| home.epoch > epoch)
        })
    }

    /// Waits until this node says that it is ready; returns how long that took.
    #[track_caller]
    pub(super) fn wait_until_served(&self, number: usize) -> Duration {
        let begun = Instant::now();
        until(&format!("node {number} serves"), || {
            (self.readiness(number) == Some(200)).then_some(())
        });
        begun.elapsed()
    }

    /// The status of `/readyz` of a node; `None` if it does not answer.
    pub(super) fn readiness(&self, number: usize) -> Option<u16> {
        let address = self.node(number).address();
        attempt(address, SHORT, "GET /readyz", &[], "").map(|reply| reply.status)
    }

    /// A request to the API at one node, which waits for a take-over.
    #[track_caller]
    pub(super) fn api(&self, number: usize, who: &str, line: &str, body: &Value) -> Reply {
        let address = self.node(number).address();
        let reply = api(address, LONG, &token(who), line, body);
        reply.unwrap_or_else(|| panic!("node {number} does not answer {line}"))
    }
}

/// The latest epoch that a node began as the home, by its log.
fn latest_epoch(log: &str) -> Option<u64> {
    let began = log.lines().filter_map(|line| line.split_once(BEGAN));
    began
        .filter_map(|(_, epoch)| epoch.trim().parse().ok())
        .next_back()
}
