//! Consent tests: texts shown, questions asked, behaviour without a terminal.

use std::sync::Arc;

use model::{Capabilities, ParticipantId};
use upstream::config::{EraChoice, HttpConfig, Placement, SessionSharing, Timeouts};

use super::*;
use crate::scripted::ScriptedTerminal;
use config::{KeptSecrets, Layer, Node, SourceOrigin};

fn server(transport: Transport) -> ServerConfig {
    ServerConfig {
        name: ParticipantId::new("github").unwrap(),
        transport,
        prefix: "github".into(),
        era: EraChoice::Auto,
        sessions: SessionSharing::Auto,
        placement: Placement::default(),
        timeouts: Timeouts::default(),
        capabilities: Arc::new(Capabilities::upstream()),
        enabled: true,
        validate: false,
        pins: Default::default(),
        start: upstream::config::Start::Always,
        idle_stop: upstream::config::IDLE_STOP,
        curation: None,
    }
}

fn child(command: &str, args: &[(&str, &str)], env: &[&str]) -> Transport {
    Transport::Stdio(StdioConfig {
        command: command.into(),
        args: args
            .iter()
            .map(|(text, written)| SecretText::expanded(*text, *written))
            .collect(),
        env: env
            .iter()
            .map(|name| ((*name).to_owned(), SecretText::new("hush")))
            .collect(),
        cwd: None,
        confinement: Default::default(),
    })
}

#[test]
fn the_whole_command_is_shown_without_secrets() {
    let args = [
        ("hush", "${TOKEN}"),
        ("two words", "two words"),
        ("a\u{202e}\n", "a\u{202e}\n"),
        ("", ""),
    ];
    let text = describe(&server(child(
        "sudo",
        &args,
        &["GITHUB_TOKEN", "LD_PRELOAD"],
    )));
    assert_eq!(
        text,
        "server `github` starts: sudo ${TOKEN} 'two words' 'a\\u{202e}\\u{a}' ''\n    \
         environment: GITHUB_TOKEN, LD_PRELOAD\n    \
         DANGER: runs with another user's rights (sudo or the like)\n    \
         DANGER: has an environment that decides which code it runs (LD_PRELOAD)"
    );
    let url = SecretText::expanded(
        "https://x.example/?key=hush",
        "https://x.example/?key=${KEY}",
    );
    let http = HttpConfig {
        url,
        headers: vec![("authorization".into(), SecretText::new("hush"))],
        tls: tls::ClientTls::of_machine(),
    };
    let text = describe(&server(Transport::Http(http)));
    assert_eq!(
        text,
        "server `github` connects to https://x.example/?key=${KEY}\n    headers: authorization"
    );
}

fn loaded(text: &str, found: bool) -> Loaded {
    let found = found.then(|| FoundFile {
        name: "portmoot.toml".into(),
        text: text.into(),
        servers: vec!["github".into()],
        names_data_dir: false,
    });
    let config = Config {
        servers: vec![server(child("sudo", &[], &["Path"]))],
        ..Config::default()
    };
    Loaded {
        config,
        tree: Node::empty(&Layer::new("x", SourceOrigin::Operator)),
        secrets: vec![NamedSecret {
            key: "servers.github.env.A".into(),
            source: SecretSource::Command(vec!["sh".into(), "-c".into(), "cat a".into()]),
        }],
        kept: KeptSecrets::default(),
        files: vec![],
        awaited: None,
        notices: vec![],
        demo: false,
        found,
    }
}

#[test]
fn the_command_of_a_secret_is_shown() {
    let text = describe_secret(&loaded("", false).secrets[0]).unwrap();
    let expect = "secret `servers.github.env.A` is printed by: sh -c 'cat a'\n    \
                  DANGER: runs a shell script from its arguments (-c)";
    assert_eq!(text, expect);
}

#[test]
fn only_a_found_file_needs_consent() {
    let output = Output::new(false, true, true);
    for (found, interactive, yes, answers, expect) in [
        (false, false, None, &[][..], None),
        (false, false, Some(false), &[], None),
        (true, false, Some(true), &[], None),
        (true, false, Some(false), &[], Some("consent_needed")),
        (true, false, None, &[], Some("consent_needed")),
        (true, true, Some(false), &["y"], None),
        (true, true, None, &["YES"], None),
        (true, true, Some(false), &[""], Some("consent_refused")),
        (true, true, Some(false), &["yep"], Some("consent_refused")),
        (true, true, Some(false), &[], Some("consent_refused")),
    ] {
        let mut script = ScriptedTerminal::new(interactive, answers);
        let result = obtain(
            &loaded("[server]\nlisten = \"x\"", found),
            &mut script,
            yes,
            output,
        );
        let failure = result.err();
        let case = format!("{found} {interactive} {yes:?} {answers:?}");
        assert_eq!(
            failure.as_ref().map(|failure| failure.code.as_str()),
            expect,
            "{case}"
        );
        let shown = failure
            .as_ref()
            .map(|failure| failure.message.clone())
            .unwrap_or_default()
            + &script.shown;
        if interactive || expect == Some("consent_needed") {
            for part in [
                "    [server]\n    listen = \"x\"\n",
                "server `github` runs with",
                "which code it runs (Path)",
                "the gateway itself runs a command for the secret `servers.github.env.A`",
                "the command for the secret `servers.github.env.A` runs a shell script",
            ] {
                assert!(shown.contains(part), "{case}: {part}\n{shown}");
            }
        }
        let hint = failure.and_then(|failure| failure.hint).unwrap_or_default();
        assert_eq!(
            hint.contains("--yes"),
            expect.is_some() && yes.is_some(),
            "{case}: {hint}"
        );
    }
}

#[test]
fn a_reload_takes_no_change_of_a_found_file() {
    for (before, after, expect) in [
        (Some("a"), Some("a"), true),
        (Some("a"), Some("b"), false),
        (None, Some("a"), false),
        (Some("a"), None, true),
        (None, None, true),
    ] {
        let load = |text: Option<&str>| loaded(text.unwrap_or_default(), text.is_some());
        let result = carry_over(load(before).found.as_ref(), &load(after));
        assert_eq!(result.is_ok(), expect, "{before:?} {after:?}");
    }
}
