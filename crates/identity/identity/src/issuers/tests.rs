use auth::jwt::Algorithm;
use model::KindRef;
use serde_json::{Value, json};

use super::*;

fn place(capability: &str) -> TokenAccess {
    let capabilities = Arc::new(Capabilities::parse([capability]).unwrap());
    TokenAccess {
        capabilities,
        topics: vec![TopicName::new("main").unwrap()],
    }
}

fn rule(when: &[(&str, &str)], capability: &str) -> MapRule {
    let when = when
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    MapRule {
        when,
        place: place(capability),
    }
}

fn issuer() -> IssuerConfig {
    let rules = Rules {
        issuer: "https://idp.example".into(),
        algorithms: Algorithm::DEFAULT.to_vec(),
        types: vec!["at+jwt".into()],
        skew_secs: 30,
    };
    IssuerConfig {
        name: "corp".into(),
        rules,
        source: TokenCheck::Keys(None),
        audiences: Vec::new(),
        audience_of_client: false,
        token_prefix: String::new(),
        allowed: Vec::new(),
        participant: "{preferred_username}".into(),
        groups: "realm_access.roles".into(),
        map: vec![
            rule(&[("groups", "ops"), ("tenant", "a")], "portmoot/servers"),
            rule(&[("groups", "ops")], "mcp/request:*"),
            rule(&[("client_id", "machine")], "mcp/proposal:*"),
            rule(&[("department", "ops")], "department/one"),
            rule(&[("department", "Field Ops")], "department/two"),
            rule(&[("email", "boss@corp.example")], "mail"),
            rule(&[("scope", "agent")], "scope"),
        ],
        unknown: None,
        step_up: false,
        console: None,
    }
}

fn claims(changes: Value) -> Claims {
    let mut all = json!({"active": true, "sub": "s-1"});
    changes
        .as_object()
        .unwrap()
        .iter()
        .for_each(|(name, value)| all[name] = value.clone());
    Claims::of_answer(
        all.as_object().unwrap().clone(),
        "https://idp.example",
        false,
        (30, 0),
    )
    .unwrap()
}

#[test]
fn the_first_rule_that_matches_gives_the_place() {
    for (given, expect) in [
        (
            json!({"realm_access": {"roles": ["ops", "x"]}, "tenant": "a"}),
            Ok("portmoot/servers"),
        ),
        (
            json!({"realm_access": {"roles": ["ops"]}, "tenant": "b"}),
            Ok("mcp/request:*"),
        ),
        (
            json!({"realm_access": {"roles": "x ops"}}),
            Ok("mcp/request:*"),
        ),
        (json!({"realm_access.roles": ["ops"]}), Ok("mcp/request:*")),
        (json!({"client_id": "machine"}), Ok("mcp/proposal:*")),
        (json!({"scope": "openid agent"}), Ok("scope")),
        // What people may write into their profiles is one text, whatever words it has.
        (json!({"department": "Field Ops"}), Ok("department/two")),
        (json!({"department": ["x", "ops"]}), Ok("department/one")),
        (
            json!({"department": "x ops"}),
            Err(Placeless::NoRule("s-1".into(), "corp".into())),
        ),
        (
            json!({"email": "boss@corp.example", "email_verified": true}),
            Ok("mail"),
        ),
        (
            json!({"email": "boss@corp.example"}),
            Err(Placeless::NoRule("s-1".into(), "corp".into())),
        ),
        (
            json!({"email": "boss@corp.example", "email_verified": "true"}),
            Err(Placeless::NoRule("s-1".into(), "corp".into())),
        ),
        (
            json!({"groups": ["ops"]}),
            Err(Placeless::NoRule("s-1".into(), "corp".into())),
        ),
        (
            json!({"realm_access": {"roles": ["op", "opsx"]}}),
            Err(Placeless::NoRule("s-1".into(), "corp".into())),
        ),
        (
            json!({"_claim_names": {"realm_access": "src1"}, "client_id": "machine"}),
            Err(Placeless::GroupsElsewhere("s-1".into())),
        ),
    ] {
        let found = issuer().participant_of(&claims(given.clone()));
        let found = found.map(|one| one.capabilities.iter().next().unwrap().as_str().to_owned());
        assert_eq!(found, expect.map(str::to_owned), "{given}");
    }
    let open = IssuerConfig {
        unknown: Some(place("chat")),
        ..issuer()
    };
    assert!(open.participant_of(&claims(json!({}))).is_ok());
}

#[test]
fn names_follow_the_template_and_are_safe() {
    let named = |template: &str, given: Value| {
        let issuer = IssuerConfig {
            participant: template.into(),
            unknown: Some(place("chat")),
            ..issuer()
        };
        issuer
            .participant_of(&claims(given))
            .map(|one| one.id.as_str().to_owned())
    };
    for (template, given, expect) in [
        (
            "{preferred_username}",
            json!({"preferred_username": "ann"}),
            "corp:ann",
        ),
        ("{preferred_username}", json!({}), "corp:s-1"),
        (
            "{preferred_username}",
            json!({"preferred_username": ""}),
            "corp:s-1",
        ),
        ("{sub}", json!({"sub": "auth0|1"}), "corp:auth0|1"),
        ("{a}-{b}", json!({"a": "x", "b": 7}), "corp:x-7"),
        ("{a.b}", json!({"a": {"b": "x"}}), "corp:x"),
        (
            "{preferred_username}",
            json!({"preferred_username": "a n\u{202e}n\n"}),
            "corp:a_n_n_",
        ),
        (
            "{preferred_username}",
            json!({"preferred_username": "аnn"}),
            "corp:_nn",
        ),
        ("{email}", json!({"email": "a@b"}), "corp:s-1"),
        (
            "{email}",
            json!({"email": "a@b", "email_verified": "true"}),
            "corp:s-1",
        ),
        (
            "{email}",
            json!({"email": "a@b", "email_verified": true}),
            "corp:a@b",
        ),
        (
            "{preferred_username",
            json!({"preferred_username": "ann"}),
            "corp:_preferred_username",
        ),
    ] {
        assert_eq!(
            named(template, given.clone()),
            Ok(expect.to_owned()),
            "{template} {given}"
        );
    }
    let long = named("{sub}", json!({"sub": "x".repeat(1000)})).unwrap();
    assert_eq!(long.len(), "corp:".len() + 80);
}

#[test]
fn scopes_have_what_they_and_those_that_they_imply_have() {
    let scope = |name: &str, implies: &[&str], capability: &str| ScopeConfig {
        name: name.into(),
        baseline: false,
        implies: implies.iter().map(|one| (*one).to_owned()).collect(),
        capabilities: place(capability).capabilities,
    };
    let scopes = [
        scope("read", &["read"], "mcp/request:resources/*"),
        scope("write", &["write", "read"], "mcp/request:tools/call:*"),
    ];
    let check = |held: &[&str], kind: &str, expect: bool| {
        let held: Vec<String> = held.iter().map(|one| (*one).to_owned()).collect();
        let found = capabilities_of(&scopes, &held).unwrap();
        assert_eq!(
            found.admits(KindRef::parse(kind).unwrap(), &[]),
            expect,
            "{held:?} {kind}"
        );
    };
    check(&["read"], "mcp/request:resources/read:x", true);
    check(&["read"], "mcp/request:tools/call:x", false);
    check(&["write"], "mcp/request:tools/call:x", true);
    check(&["write"], "mcp/request:resources/read:x", true);
    check(&[], "mcp/request:resources/read:x", false);
    check(
        &["mcp/request:tools/call:x", "*", "openid"],
        "mcp/request:tools/call:x",
        false,
    );
    assert!(capabilities_of(&[], &["read".to_owned()]).is_none());
}
