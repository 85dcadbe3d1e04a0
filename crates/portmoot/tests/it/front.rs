//! The gateway in front of something, for clients that are other people's programs.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use harness::Running;

use crate::runner::Home;

/// Leaves out everything of the gateway's own, so that its lists are those of the servers.
const BARE: &str = "[server]\nlegacy_sse = true\n[topics.main]\nbuiltin = []\n";

/// A configuration with a fixture that listens at this URL.
pub(crate) fn over_http(fixture: &Running, prefix: &str) -> String {
    format!("{BARE}[servers.fixture]\nurl = {:?}\nprefix = {prefix:?}\n", fixture.url())
}

/// A configuration with the fixture as a child.
pub(crate) fn over_stdio(prefix: &str, arguments: &[&str]) -> String {
    let words: Vec<&str> = ["--stdio"].iter().chain(arguments).copied().collect();
    let command = harness::fixture_binary();
    format!("{BARE}[servers.fixture]\ncommand = {command:?}\nargs = {words:?}\nprefix = {prefix:?}\n")
}

/// The binary under test.
pub(crate) fn binary() -> String {
    env!("CARGO_BIN_EXE_portmoot").to_owned()
}

/// `portmoot serve` on a free port. It is killed when this is dropped.
pub(crate) struct Front {
    child: Child,
    address: String,
    log: Arc<Mutex<String>>,
    _home: Home,
}

impl Front {
    /// Serves this configuration.
    pub(crate) fn serve(config: &str) -> Front {
        let home = Home::new();
        let file = home.write("portmoot.toml", config);
        Self::start(home, &[PathBuf::from("--config"), file])
    }

    /// Serves this file of a client, as it is.
    pub(crate) fn serve_client_file(json: &str) -> Front {
        let home = Home::new();
        let file = home.write("mcp.json", json);
        Self::start(home, &[PathBuf::from("--mcp-config"), file])
    }

    fn start(home: Home, arguments: &[PathBuf]) -> Front {
        let mut command = Command::new(binary());
        command.args(["serve", "-v", "--listen", "127.0.0.1:0", "--data-dir", "state"]).args(arguments);
        command.current_dir(home.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let log = Arc::new(Mutex::new(String::new()));
        let mut address = None;
        while address.is_none() {
            let line = lines.next().unwrap_or_else(|| panic!("the gateway ended:\n{}", log.lock().unwrap()));
            let rest = line.split_once("  MCP      http://").map(|(_, rest)| rest);
            address = rest.and_then(|rest| rest.split('/').next()).map(str::to_owned);
            log.lock().unwrap().push_str(&(line + "\n"));
        }
        let kept = Arc::clone(&log);
        std::thread::spawn(move || lines.for_each(|line| kept.lock().unwrap().push_str(&(line + "\n"))));
        Front { child, address: address.unwrap(), log, _home: home }
    }

    /// An endpoint, such as `/mcp`.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            println!("--- the gateway's log\n{}", self.log.lock().unwrap());
        }
    }
}
