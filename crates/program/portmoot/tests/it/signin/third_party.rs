//! Other people's clients sign in without a typed id.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use harness::{deps, fastmcp_signs_in, signs_in};

use super::{Browser, Site};
use crate::http::Connection;

#[test]
fn the_python_sdk_signs_in() {
    let site = Site::start("access = \"2s\"", "");
    for (era, endpoint) in [
        ("legacy", "/mcp"),
        ("modern", "/mcp"),
        ("legacy", "/mcp/ops"),
    ] {
        let url = format!("{}{endpoint}", site.url());
        let code = site.one_time_code("ann");
        let call = ["--call", "a_add", r#"{"a":2,"b":3}"#, "--later", "2.5"];
        let report = signs_in(&[&[url.as_str(), &code, "--era", era][..], &call[..]].concat());
        assert!(report["tools"].to_string().contains("a_echo"), "{report:#}");
        assert!(report["calls"][0].to_string().contains('5'), "{report:#}");
        assert_eq!(
            (&report["refreshed"], &report["later"]),
            (&true.into(), &report["tools"]),
            "{report:#}"
        );
        assert_eq!(
            report["authorized"].as_array().unwrap().len(),
            1,
            "one sign-in is enough: {report:#}"
        );
    }
}

#[test]
fn the_client_of_fastmcp_signs_in_with_its_defaults() {
    let site = Site::start("access = \"2s\"", "");
    let url = format!("{}/mcp", site.url());
    let report = fastmcp_signs_in(&[url.as_str(), &site.one_time_code("ann"), "--later", "2.5"]);
    assert!(
        report["tools"].to_string().contains("a_add") && report["call"] == "hello",
        "{report:#}"
    );
    assert_eq!(
        (&report["later"], &report["visits"]),
        (&report["tools"], &1.into()),
        "{report:#}"
    );
}

/// An instance of mcp-remote.
struct Remote {
    child: Child,
}

impl Remote {
    fn start(site: &Site, folder: &std::path::Path) -> Remote {
        let mut command = Command::new(deps().node());
        command
            .arg(deps().npm("mcp-remote/dist/proxy.js"))
            .arg(format!("{}/mcp", site.url()));
        command.args(["--allow-http", "--transport", "http-only", "--debug"]);
        command
            .env("MCP_REMOTE_CONFIG_DIR", folder)
            .env("BROWSER", "true")
            .env("PATH", "/nowhere");
        let child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Remote { child }
    }

    /// The person signs in at the page that the instance names, and the browser calls it back.
    fn sign_in(&mut self, site: &Site) {
        let lines = BufReader::new(self.child.stderr.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let (mut said, prefix) = (String::new(), site.url());
        let mut lines = lines;
        for line in lines.by_ref() {
            said += &format!("{line}\n");
            let Some(at) = line.find(&format!("{prefix}/oauth/authorize?")) else {
                continue;
            };
            let url = line[at..].split_whitespace().next().unwrap();
            let mut browser = Browser::default();
            let page = browser.open(site, url.strip_prefix(&prefix).unwrap());
            let consent = browser.submit(site, &page, &[("code", &site.one_time_code("ann"))]);
            let back = browser.submit(site, &consent, &[("decision", "allow")]);
            let (address, path) = back
                .location()
                .strip_prefix("http://")
                .unwrap()
                .split_once('/')
                .unwrap();
            let called = Connection::open(address).exchange("GET", &format!("/{path}"), &[], "");
            assert_eq!(called.status, 200, "{called:?}");
            std::thread::spawn(move || lines.for_each(drop));
            return;
        }
        panic!("mcp-remote names no page:\n{said}");
    }

    /// Lists the tools over its pipe.
    fn tools(&mut self) -> String {
        use std::io::Write as _;
        let mut input = self.child.stdin.take().unwrap();
        for message in [
            super::initialize_message().to_string(),
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#.to_owned(),
        ] {
            writeln!(input, "{message}").unwrap();
        }
        let output = BufReader::new(self.child.stdout.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let answer = output
            .into_iter()
            .find(|line| line.contains("\"id\":2"))
            .unwrap_or_default();
        drop(input);
        answer
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn several_instances_of_mcp_remote_sign_in_at_once() {
    let site = Site::start("", "");
    // Each has a folder of its own: as on several machines, none waits for another.
    let folders: Vec<_> = (0..3).map(|_| tempfile::tempdir().unwrap()).collect();
    let mut remotes: Vec<Remote> = folders
        .iter()
        .map(|folder| Remote::start(&site, folder.path()))
        .collect();
    std::thread::scope(|scope| {
        for remote in &mut remotes {
            let site = &site;
            scope.spawn(move || {
                remote.sign_in(site);
                let tools = remote.tools();
                assert!(tools.contains("a_echo"), "{tools}");
            });
        }
    });
}
