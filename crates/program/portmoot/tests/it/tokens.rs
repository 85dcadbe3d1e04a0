//! `portmoot tokens`: what the list of tools costs, and which tools are unused.

use serde_json::{Value, json};

use crate::home::Home;
use crate::peer::{Peer, answer, small, tool};
use crate::support::{Client, Gateway, fixture, until};
use crate::ws::{people, token};

#[test]
fn the_forms_of_a_list_are_counted() {
    let home = Home::new().env("ONE_TOKEN", "a-token-that-is-long-enough");
    let one = "[participants.one]\ntoken_env = \"ONE_TOKEN\"\ncapabilities = [\"mcp/request:*\"]\n";
    let gateway = Gateway::start(&home, &[&fixture("a", &[]), one].concat());
    gateway.ready("a");
    let at = [
        "--url",
        &gateway.url(),
        "--token",
        "a-token-that-is-long-enough",
    ];
    let counted = home
        .run(&[&["tokens", "--json"], &at[..]].concat())
        .expect(0)
        .stdout;
    let counted: Value = serde_json::from_str(&counted).unwrap();
    let listed = home
        .run(&[&["tools", "ls", "--json"], &at[..]].concat())
        .expect(0)
        .stdout;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(counted["tools"], listed["tools"].as_array().unwrap().len());
    let forms = counted["forms"].as_array().unwrap();
    let of = |name: &str, what: &str| {
        forms.iter().find(|form| form["form"] == name).unwrap()[what].as_u64()
    };
    let tokens = |name: &str| of(name, "tokens").unwrap();
    let shrinking = [
        "JSON-RPC, as tools/list has it",
        "name, description, schema as JSON",
        "signatures, first sentences",
        "names, first sentences",
        "names",
    ];
    assert!(
        shrinking
            .windows(2)
            .all(|two| tokens(two[0]) > tokens(two[1])),
        "{counted:#}"
    );
    // No model reads protobuf.
    let [inline, by_reference] = ["protobuf, with the schemas", "protobuf, with references"];
    assert_eq!(
        (of(inline, "tokens"), of(by_reference, "tokens")),
        (None, None)
    );
    let bytes = [by_reference, inline, shrinking[0]].map(|name| of(name, "bytes").unwrap());
    assert!(
        bytes[0] > 1000 && bytes[0] < bytes[1] && bytes[0] < bytes[2],
        "{counted:#}"
    );
    let text = home.run(&[&["tokens"], &at[..]].concat()).expect(0).stdout;
    assert!(
        text.contains("FORM OF THE LIST") && text.contains("cl100k_base"),
        "{text}"
    );
    let refused = home.run(&[
        "tokens",
        "--url",
        &gateway.url(),
        "--token",
        "a-token-that-is-not-valid",
    ]);
    refused.expect(4);
}

#[test]
fn a_command_alone_starts_the_servers_for_itself() {
    let home = Home::new();
    home.write("portmoot.toml", &fixture("a", &[]));
    let text = home
        .run(&["tokens", "--config", "portmoot.toml", "--yes"])
        .expect(0)
        .stdout;
    // Without a port it has no registry that a reference could name.
    assert!(
        text.contains("protobuf, with the schemas") && !text.contains("with references"),
        "{text}"
    );
}

/// The day now, counted from 1970.
fn today() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs()
        / (24 * 3_600)
}

fn names(rows: &Value) -> Vec<&str> {
    rows.as_array()
        .unwrap()
        .iter()
        .map(|row| row["own_name"].as_str().unwrap())
        .collect()
}

#[test]
fn unused_tools_are_named_with_the_commands_that_hide_them_and_counts_outlive_the_gateway() {
    let tools = format!("[{}]", ["read", "write", "list"].map(tool).join(","));
    let peer = Peer::stdio(move |message| {
        let done = r#"{"content":[{"type":"text","text":"done"}]}"#;
        let said = match message["method"] == "tools/call" {
            true => Some(answer(message, done)),
            false => small(message, &tools),
        };
        said.into_iter().map(String::into_bytes).collect()
    });
    let (home, config) = people(&[("ann", &["mcp/*", "portmoot/*"]), ("bob", &["mcp/*"])]);
    home.write("portmoot.toml", &(config + "\n" + &peer.child("s", "s")));
    let start = || {
        let gateway = Gateway::start_with(&home, &["--config", "portmoot.toml"]);
        gateway.ready("s");
        gateway
    };
    let run = |url: &str, words: &[&str], code| {
        home.run(&[&["tokens", "--unused", "--url", url], words].concat())
            .expect(code)
    };
    let (ann, bob) = (token("ann"), token("bob"));
    let counted = |url: &str, words: &[&str]| -> Value {
        let words = [&["--token", &*ann, "--json"], words].concat();
        serde_json::from_str(&run(url, &words, 0).stdout).unwrap()
    };

    // A gateway that has counted for less time says so, and names no tool and no command.
    let gateway = start();
    let url = gateway.url();
    let fresh = counted(&url, &[]);
    assert_eq!(
        (&fresh["days"], &fresh["tools"], &fresh["unused"]),
        (&json!(30), &json!(3), &json!([]))
    );
    assert_eq!(
        (names(&fresh["undecided"]).len(), &fresh["commands"]),
        (3, &json!([])),
        "{fresh}"
    );
    let text = run(&url, &["--token", &ann], 0).stdout;
    assert!(
        text.starts_with("None of 3 tools is known to be unused in the last 30 days."),
        "{text}"
    );
    assert!(
        text.contains("3 were not called either") && !text.contains("tools disable"),
        "{text}"
    );
    let client = Client::of(&gateway, &ann);
    client.call("s_read", json!({}));
    assert_eq!(names(&counted(&url, &[])["undecided"]), ["write", "list"]);
    let file = home.path().join("data/tool-uses.json");
    let kept = until("the call is written down", || {
        let text = std::fs::read_to_string(&file).ok()?;
        text.contains("\"last\"")
            .then(|| serde_json::from_str::<Value>(&text).unwrap())
    });
    assert_eq!(
        kept["s"]["tools"]["read"]["last"],
        json!(kept["s"]["tools"]["read"]["since"])
    );

    // Only those who see servers learn what others call.
    let of_bob = gateway.get("/api/v1/tools", Some(&bob)).json();
    assert!(
        of_bob["tools"].as_array().unwrap().len() == 3 && !of_bob.to_string().contains("idle_days")
    );
    let refused = run(&url, &["--token", &bob], 3);
    assert!(
        refused.stderr.contains("portmoot/servers"),
        "{}",
        refused.stderr
    );

    // The same gateway after a restart, 40 days later as its file has it.
    gateway.stop();
    let mut older = kept;
    for tool in ["read", "write", "list"] {
        older["s"]["tools"][tool]["since"] = json!(today() - 40);
    }
    older["s"]["tools"]["list"]["last"] = json!(today() - 35);
    home.write("data/tool-uses.json", &older.to_string());
    let alone = home
        .run(&["tokens", "--unused", "--config", "portmoot.toml"])
        .expect(1);
    assert!(
        alone.stderr.contains("no gateway is running"),
        "{}",
        alone.stderr
    );
    let gateway = start();
    let url = gateway.url();
    let unused = counted(&url, &[]);
    assert_eq!(
        (names(&unused["unused"]), &unused["undecided"]),
        (vec!["write", "list"], &json!([])),
        "{unused}"
    );
    assert_eq!(
        names(&counted(&url, &["--days", "36"])["unused"]),
        ["write"]
    );
    let [command] = unused["commands"].as_array().unwrap().as_slice() else {
        panic!("{unused}")
    };
    let (_, command) = command.as_str().unwrap().split_once(' ').unwrap();
    assert_eq!(command, "tools disable s write list");
    let text = run(&url, &["--token", &ann], 0).stdout;
    assert!(
        text.contains("s_list") && text.contains("2 of 3 tools were not called"),
        "{text}"
    );
    assert!(
        text.contains(&format!(" {command}\n")) || text.trim_end().ends_with(command),
        "{text}"
    );
    // What is hidden by it is unused no more.
    home.run(
        &[
            &command.split(' ').collect::<Vec<_>>()[..],
            &["--config", "portmoot.toml"],
        ]
        .concat(),
    )
    .expect(0);
    gateway.signal("HUP");
    until("the tools are hidden", || {
        (counted(&url, &[])["tools"] == 1).then_some(())
    });
    let rest = counted(&url, &[]);
    assert_eq!(
        (names(&rest["unused"]), names(&rest["undecided"])),
        (vec![], vec![]),
        "{rest}"
    );
}
