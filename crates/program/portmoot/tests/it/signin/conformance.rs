//! The official conformance suite against the authorization server; a scripted browser plays its
//! person.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::process::Stdio;

use harness::suite_command;

use super::{Browser, Site, free_port};
use crate::support::until;

#[test]
fn both_scenarios_for_authorization_servers_pass() {
    let port = free_port();
    let desk =
        format!("[login.client.desk]\nredirect_uris = [\"http://127.0.0.1:{port}/callback\"]");
    let site = Site::start("", &desk);
    let out = tempfile::tempdir().unwrap();
    let mut command = suite_command();
    let (url, resource) = (site.url(), format!("{}/mcp", site.url()));
    command.args([
        "authorization",
        "--url",
        &url,
        "--client-id",
        "desk",
        "-p",
        &port.to_string(),
    ]);
    command
        .args(["--resource", &resource, "-o"])
        .arg(out.path());
    let mut suite = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    for line in BufReader::new(suite.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok)
    {
        said += &format!("{line}\n");
        let Some(path) = line
            .strip_prefix(&url)
            .filter(|path| path.starts_with("/oauth/authorize?"))
        else {
            continue;
        };
        // The person: signs in, allows, and the browser calls the suite back.
        let mut browser = Browser::default();
        let page = browser.open(&site, path);
        let consent = browser.submit(&site, &page, &[("code", &site.one_time_code("ann"))]);
        let back = browser.submit(&site, &consent, &[("decision", "allow")]);
        let location = back.location().to_owned();
        let (address, path) = location
            .strip_prefix("http://")
            .unwrap()
            .split_once('/')
            .unwrap();
        // The suite prints the link before it listens.
        until("the suite listens", || TcpStream::connect(address).ok());
        let called =
            crate::http::Connection::open(address).exchange("GET", &format!("/{path}"), &[], "");
        assert_eq!(called.status, 200, "{called:?}");
    }
    let ended = suite.wait_with_output().unwrap();
    let wrote = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(ended.status.success(), "{said}\n{wrote}");
    let mut scenarios = 0;
    for entry in std::fs::read_dir(out.path()).unwrap().flatten() {
        let checks = std::fs::read_to_string(entry.path().join("checks.json")).unwrap();
        let checks: Vec<serde_json::Value> = serde_json::from_str(&checks).unwrap();
        assert!(
            !checks.is_empty() && checks.iter().all(|check| check["status"] == "SUCCESS"),
            "{checks:#?}"
        );
        scenarios += 1;
    }
    assert_eq!(scenarios, 2, "{said}\n{wrote}");
}
