//! `portmoot tokens`: what the list of tools costs.

use serde_json::Value;

use crate::home::Home;
use crate::support::{Gateway, fixture};

#[test]
fn the_forms_of_a_list_are_counted() {
    let home = Home::new().env("ONE_TOKEN", "a-token-that-is-long-enough");
    let one = "[participants.one]\ntoken_env = \"ONE_TOKEN\"\ncapabilities = [\"mcp/request:*\"]\n";
    let gateway = Gateway::start(&home, &[&fixture("a", &[]), one].concat());
    gateway.ready("a");
    let at = ["--url", &gateway.url(), "--token", "a-token-that-is-long-enough"];
    let counted = home.run(&[&["tokens", "--json"], &at[..]].concat()).expect(0).stdout;
    let counted: Value = serde_json::from_str(&counted).unwrap();
    let listed = home.run(&[&["tools", "ls", "--json"], &at[..]].concat()).expect(0).stdout;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(counted["tools"], listed["tools"].as_array().unwrap().len());
    let forms = counted["forms"].as_array().unwrap();
    let of = |name: &str, what: &str| forms.iter().find(|form| form["form"] == name).unwrap()[what].as_u64();
    let tokens = |name: &str| of(name, "tokens").unwrap();
    let shrinking = [
        "JSON-RPC, as tools/list has it",
        "name, description, schema as JSON",
        "signatures, first sentences",
        "names, first sentences",
        "names",
    ];
    assert!(shrinking.windows(2).all(|two| tokens(two[0]) > tokens(two[1])), "{counted:#}");
    // No model reads protobuf.
    let [inline, by_reference] = ["protobuf, with the schemas", "protobuf, with references"];
    assert_eq!((of(inline, "tokens"), of(by_reference, "tokens")), (None, None));
    let bytes = [by_reference, inline, shrinking[0]].map(|name| of(name, "bytes").unwrap());
    assert!(bytes[0] > 1000 && bytes[0] < bytes[1] && bytes[0] < bytes[2], "{counted:#}");
    let text = home.run(&[&["tokens"], &at[..]].concat()).expect(0).stdout;
    assert!(text.contains("FORM OF THE LIST") && text.contains("cl100k_base"), "{text}");
    let refused = home.run(&["tokens", "--url", &gateway.url(), "--token", "a-token-that-is-not-valid"]);
    refused.expect(4);
}

#[test]
fn a_command_alone_starts_the_servers_for_itself() {
    let home = Home::new();
    home.write("portmoot.toml", &fixture("a", &[]));
    let text = home.run(&["tokens", "--config", "portmoot.toml", "--yes"]).expect(0).stdout;
    // Without a port it has no registry that a reference could name.
    assert!(text.contains("protobuf, with the schemas") && !text.contains("with references"), "{text}");
}
