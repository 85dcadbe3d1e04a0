//! Consent: what is shown, who is asked, what happens without anybody to ask.

use std::sync::Arc;

use model::{Capabilities, ParticipantId};
use upstream::config::{EraChoice, HttpConfig, Origin, Sessions, Timeouts};

use super::*;
use crate::terminal::Script;

fn server(origin: Origin, transport: Transport) -> ServerConfig {
    ServerConfig {
        name: ParticipantId::new("github").unwrap(),
        transport,
        prefix: "github".into(),
        era: EraChoice::Auto,
        sessions: Sessions::Auto,
        timeouts: Timeouts::default(),
        capabilities: Arc::new(Capabilities::upstream()),
        enabled: true,
        origin,
    }
}

fn child(command: &str, args: &[(&str, &str)], env: &[&str]) -> Transport {
    Transport::Stdio(StdioConfig {
        command: command.into(),
        args: args.iter().map(|(text, written)| Secret::expanded(*text, *written)).collect(),
        env: env.iter().map(|name| ((*name).to_owned(), Secret::new("hush"))).collect(),
        cwd: None,
    })
}

#[test]
fn the_whole_command_is_shown_and_no_secret() {
    let args = [("hush", "${TOKEN}"), ("two words", "two words"), ("a\u{202e}\n", "a\u{202e}\n"), ("", "")];
    let text = describe(&server(Origin::Api, child("sudo", &args, &["GITHUB_TOKEN", "LD_PRELOAD"])));
    assert_eq!(
        text,
        "server `github` starts: sudo ${TOKEN} 'two words' 'a\\u{202e}\\u{a}' ''\n    \
         environment: GITHUB_TOKEN, LD_PRELOAD\n    \
         DANGER: runs with another user's rights (sudo or the like)\n    \
         DANGER: its environment makes programs load other code"
    );
    let url = Secret::expanded("https://x.example/?key=hush", "https://x.example/?key=${KEY}");
    let http = HttpConfig { url, headers: vec![("authorization".into(), Secret::new("hush"))] };
    let text = describe(&server(Origin::Api, Transport::Http(http)));
    assert_eq!(
        text,
        "server `github` is reached at https://x.example/?key=${KEY}\n    headers: authorization"
    );
}

#[test]
fn only_strangers_need_consent() {
    let output = Output::new(false, true, true);
    for (origin, attended, yes, answers, expect) in [
        (Origin::Named, false, false, &[][..], Ok(true)),
        (Origin::Own, false, false, &[], Ok(true)),
        (Origin::Imported, false, true, &[], Ok(true)),
        (Origin::Imported, false, false, &[], Err(Exit::Refused)),
        (Origin::Api, false, false, &[], Err(Exit::Refused)),
        (Origin::Imported, true, false, &["y"], Ok(true)),
        (Origin::Imported, true, false, &["YES"], Ok(true)),
        (Origin::Imported, true, false, &[""], Ok(false)),
        (Origin::Imported, true, false, &["yep"], Ok(false)),
        (Origin::Imported, true, false, &[], Ok(false)),
    ] {
        let mut config = Config { servers: vec![server(origin, child("x", &[], &[]))], ..Config::default() };
        let mut script = Script::new(attended, answers);
        let found = obtain(&mut config, &mut script, yes, output).map(|()| config.servers[0].enabled);
        assert_eq!(found.map_err(|failure| failure.exit), expect, "{origin:?} {attended} {yes} {answers:?}");
    }
}

#[test]
fn a_reload_starts_nothing_that_nobody_agreed_to() {
    let config = |origin, command: &str, enabled| {
        let server = ServerConfig { enabled, ..server(origin, child(command, &[], &[])) };
        Config { servers: vec![server], ..Config::default() }
    };
    for (before, after, expect) in [
        (config(Origin::Imported, "x", true), config(Origin::Imported, "x", true), true),
        (config(Origin::Imported, "x", true), config(Origin::Imported, "y", true), false),
        (config(Origin::Imported, "x", false), config(Origin::Imported, "x", true), false),
        (Config::default(), config(Origin::Imported, "x", true), false),
        (Config::default(), config(Origin::Named, "x", true), true),
    ] {
        let mut after = after;
        let disabled = carry_over(&before, &mut after);
        assert_eq!((after.servers[0].enabled, disabled.is_empty()), (expect, expect), "{before:?}");
    }
}
