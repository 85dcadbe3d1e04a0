//! A hostile server on an address that looks public: what it and its authorization server say leads
//! to no address inside.
#![cfg(target_os = "linux")]

use std::net::{IpAddr, TcpListener, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::Site;
use super::guarded::Guarded;
use crate::authorization::provider::Provider;
use crate::home::Home;

/// A listener inside, at an address that nothing allows. It counts who connects.
fn inside() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.2:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let seen = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&seen);
    std::thread::spawn(move || {
        for _ in listener.incoming() {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    (address, seen)
}

/// This machine's name and the address to which it resolves: to the gateway a name like any other.
fn own_name() -> Option<(String, IpAddr)> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname")
        .unwrap()
        .trim()
        .to_owned();
    let address = (name.as_str(), 0).to_socket_addrs().ok()?.next()?.ip();
    let is_usable = name != "localhost" && TcpListener::bind((address, 0)).is_ok();
    is_usable.then_some((name, address))
}

#[test]
fn what_a_hostile_server_says_leads_to_no_address_inside() {
    let Some((name, address)) = own_name() else {
        println!("the name of this machine does not resolve to an address of its own");
        return;
    };
    let guarded = Guarded::start_at(&name, address);
    let provider = Provider::of(&[guarded.url()], 600);
    guarded.set_provider(provider.address());
    // The server and the provider are in reach, and no other address of this machine.
    let allowed = format!("allow_private = [{:?}, \"127.0.0.1\"]", address.to_string());
    let site = Site::at(Home::new(), guarded, provider, &allowed);
    site.wait_for("needs_login");
    let (inside, seen) = inside();
    let refused = |what: &str| {
        let ran = site.home.run(&["servers", "login", "jira", "--paste"]);
        assert!(
            ran.code != 0 && ran.stderr.contains("[upstream_metadata_refused]"),
            "{what}: {}",
            ran.stderr
        );
        assert_eq!(seen.load(Ordering::SeqCst), 0, "{what}");
    };
    // Its authorization server's metadata, with a change.
    let truth = |change: &dyn Fn(&mut Value)| {
        let issuer = site.provider.issuer();
        let mut metadata = json!({
            "issuer": issuer, "authorization_endpoint": format!("{issuer}/auth"), "token_endpoint": format!("{issuer}/token"),
            "registration_endpoint": format!("{issuer}/reg"), "code_challenge_methods_supported": ["S256"],
        });
        change(&mut metadata);
        site.answers(
            "/.well-known/oauth-authorization-server",
            200,
            &metadata.to_string(),
        );
    };
    for scheme in ["http", "https"] {
        // The server's own metadata.
        let servers = [
            format!("{scheme}://{inside}"),
            format!("{scheme}://{inside}/tenant"),
        ];
        for server in servers {
            let metadata =
                json!({ "resource": site.guarded.url(), "authorization_servers": [server] });
            site.guarded.set_metadata(Some(&metadata.to_string()));
            refused(&server);
        }
        site.guarded.set_metadata(None);
        truth(&|metadata| {
            metadata["registration_endpoint"] = json!(format!("{scheme}://{inside}/reg"))
        });
        refused("registration");
        site.clear();
    }
    // Its redirect.
    for scheme in ["http", "https"] {
        let order = json!({ "op": "fault", "path": "/.well-known/oauth-authorization-server", "kind": "answer",
            "status": 302, "headers": { "location": format!("{scheme}://{inside}/") } });
        site.provider.control(&order);
        let ran = site.home.run(&["servers", "login", "jira", "--paste"]);
        assert_eq!(seen.load(Ordering::SeqCst), 0, "{}", ran.stderr);
        site.clear();
    }
    // The token endpoint, once a person has signed in.
    truth(&|metadata| metadata["token_endpoint"] = json!(format!("https://{inside}/token")));
    let asking = site.begin(&["servers", "login", "jira", "--paste"]);
    let state = url::Url::parse(&asking.url).unwrap();
    let state = state
        .query_pairs()
        .find(|(name, _)| name == "state")
        .unwrap()
        .1
        .into_owned();
    let ran = asking.paste(&format!("http://127.0.0.1/callback?code=x&state={state}"));
    assert!(ran.stderr.contains("may not be dialed"), "{}", ran.stderr);
    site.clear();
    // The challenge names its own place.
    site.guarded.set_challenge(Some(&format!(
        "Bearer resource_metadata=\"http://{inside}/mcp\""
    )));
    let mut site = site;
    site.restart();
    let account = site.wait_for("needs_login");
    assert!(
        account["reason"]
            .as_str()
            .unwrap()
            .contains("may not be dialed"),
        "{account}"
    );
    assert_eq!(seen.load(Ordering::SeqCst), 0);
}
