//! Secrets from commands and files.

use super::*;

/// A configuration with a secret of each kind, under each key that may name one.
fn with_secrets(folder: &std::path::Path) -> String {
    use std::os::unix::fs::PermissionsExt;
    let file = folder.join("token");
    std::fs::write(&file, "hush-hush-hush-hush\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    format!(
        r#"
[server]
public_url = "https://gw.example"
[servers.a]
command = "x"
env = {{ A = {{ command = ["printf", "hush-a"] }} }}
[servers.b]
url = "https://b.example/mcp"
headers = {{ Authorization = {{ command = ["printf", "hush-b\\n"], prefix = "Bearer " }} }}
[servers.c]
url = "https://c.example/mcp"
[servers.c.auth]
client_id = "gateway"
issuer = "https://idp.example"
client_secret = {{ command = ["printf", "hush-c"] }}
[servers.off]
command = "x"
enabled = false
env = {{ A = {{ command = ["false"] }} }}
[participants.p]
token = {{ file = {file:?} }}
[issuers.i]
issuer = "https://idp.example"
tokens = "introspect"
client_id = "gateway"
client_secret = {{ command = ["printf", "hush-i"] }}
"#
    )
}

#[test]
fn secrets_are_named_and_read_when_the_operator_has_agreed() {
    let folder = tempfile::tempdir().unwrap();
    let tree = tree(&with_secrets(folder.path()));
    let named = Outside::unread(&env);
    let before = check(&tree, &named, &mut Vec::new()).unwrap();
    let named = named.into_named();
    let keys: Vec<&str> = named.iter().map(|one| one.key.as_str()).collect();
    assert_eq!(
        keys,
        [
            "servers.a.env.A",
            "servers.b.headers.Authorization",
            "servers.c.auth.client_secret",
            "participants.p.token",
            "issuers.i.client_secret"
        ],
        "a disabled server needs none"
    );
    let secrets = Secrets::default();
    assert!(secrets.renew(&named, &KeptSecrets::default()).is_empty());
    let mut notices = Vec::new();
    let after = check(&tree, &Outside::with(&env, &secrets), &mut notices).unwrap();
    assert_eq!(notices, [""; 0]);
    let value = |config: &Config, server: usize| match &config.servers[server].transport {
        Transport::Stdio(child) => child.env[0].1.expose().to_owned(),
        Transport::Http(http) => http.headers[0].1.expose().to_owned(),
        other => panic!("{other:?}"),
    };
    assert_eq!([value(&before, 0), value(&before, 1)], ["", ""]);
    assert_eq!(
        [value(&after, 0), value(&after, 1)],
        ["hush-a", "Bearer hush-b"]
    );
    let (_, auth) = &after.auth[2];
    assert_eq!(
        auth.client_secret.as_ref().map(|secret| secret.expose()),
        Some("hush-c")
    );
    let hash = auth::TokenHash::of("hush-hush-hush-hush");
    assert!(
        before.identity.participants[0].credentials[0].hash != hash,
        "an unread token admits no one"
    );
    assert!(after.identity.participants[0].credentials[0].hash == hash);
    assert!(after.identity.issuers != before.identity.issuers);
    assert!(
        !format!("{after:?}").contains("hush-"),
        "debug output has no secret"
    );
    let digested = format!(
        "{:?}",
        after
            .servers
            .iter()
            .map(|server| server.identity())
            .collect::<Vec<_>>()
    );
    assert!(!digested.contains("hush-"), "{digested}");
    for shown in [to_toml(&tree, true), crate::to_json(&tree).to_string()] {
        assert!(
            shown.contains("printf") && shown.contains("prefix") && !shown.contains("(hidden)\""),
            "{shown}"
        );
    }
}

#[test]
fn a_secret_that_cannot_be_read_keeps_its_server_down_and_no_token_open() {
    let toml = "[servers.a]\ncommand = 'x'\nenv = { A = { command = ['false', 'hush'] } }\n[servers.b]\ntype = 'demo'\n";
    let read = |toml: &str, notices: &mut Vec<String>| {
        let tree = tree(toml);
        let secrets = Secrets::default();
        let named = Outside::unread(&env);
        check(&tree, &named, &mut Vec::new()).unwrap();
        secrets.renew(&named.into_named(), &KeptSecrets::default());
        check(&tree, &Outside::with(&env, &secrets), notices)
    };
    let mut notices = Vec::new();
    let config = read(toml, &mut notices).unwrap();
    let Transport::Unusable { why, .. } = &config.servers[0].transport else {
        panic!("it is unusable")
    };
    let failed = "the command `false` failed: exit status: 1";
    assert_eq!(
        *why,
        format!("the secret `servers.a.env.A` cannot be read: {failed}")
    );
    assert!(
        matches!(config.servers[1].transport, Transport::Demo),
        "the others run"
    );
    let notice = "the secret `servers.a.env.A` cannot be read, so the server `a` cannot start";
    assert_eq!(notices, [format!("portmoot.toml:3: {notice}: {failed}")]);
    for (token, expect) in [
        (
            "{ command = ['false'] }",
            "the secret `participants.p.token` cannot be read",
        ),
        (
            "{ command = ['printf', 'short'] }",
            "the token has fewer than 16 characters",
        ),
    ] {
        let problems = read(
            &format!("[participants.p]\ntoken = {token}\n"),
            &mut Vec::new(),
        )
        .unwrap_err();
        assert!(problems[0].to_string().contains(expect), "{problems:?}");
    }
}
