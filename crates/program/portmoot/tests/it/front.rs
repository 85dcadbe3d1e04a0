//! A gateway for third-party clients.

use harness::Running;

use crate::home::Home;
use crate::support::Gateway;

/// Turns off the built-in tools, so that lists have only those of the servers.
pub(crate) const BARE: &str = "[server]\nlegacy_sse = true\n[topics.main]\nbuiltin = []\n";

/// A configuration with a fixture that listens at this URL.
pub(crate) fn over_http(fixture: &Running, prefix: &str) -> String {
    format!(
        "{BARE}[servers.fixture]\nurl = {:?}\nprefix = {prefix:?}\n",
        fixture.url()
    )
}

/// A configuration with the fixture as a child.
pub(crate) fn over_stdio(prefix: &str, arguments: &[&str]) -> String {
    let words: Vec<&str> = ["--stdio"].iter().chain(arguments).copied().collect();
    let command = harness::fixture_binary();
    format!(
        "{BARE}[servers.fixture]\ncommand = {command:?}\nargs = {words:?}\nprefix = {prefix:?}\n"
    )
}

/// The binary under test.
pub(crate) fn binary() -> String {
    env!("CARGO_BIN_EXE_portmoot").to_owned()
}

/// The command line of `portmoot stdio` with this configuration.
pub(crate) fn pipe(home: &Home, config: &str) -> Vec<String> {
    let file = home.write("portmoot.toml", config).display().to_string();
    let state = home.path().join("state").display().to_string();
    [&binary(), "stdio", "--config", &file, "--data-dir", &state]
        .map(str::to_owned)
        .to_vec()
}

/// A gateway with its own home directory.
pub(crate) struct Front {
    gateway: Gateway,
    _home: Home,
}

impl Front {
    /// Serves this configuration.
    pub(crate) fn serve(config: &str) -> Front {
        Self::start("--config", "portmoot.toml", config)
    }

    /// Serves this configuration file of an MCP client.
    pub(crate) fn serve_client_file(json: &str) -> Front {
        Self::start("--mcp-config", "mcp.json", json)
    }

    fn start(option: &str, name: &str, text: &str) -> Front {
        let home = Home::new();
        home.write(name, text);
        let gateway = Gateway::start_with(&home, &["-v", "--data-dir", "state", option, name]);
        Front {
            gateway,
            _home: home,
        }
    }

    /// An endpoint, such as `/mcp`.
    pub(crate) fn url(&self, path: &str) -> String {
        self.gateway.url() + path
    }
}
