//! `[notifications.NAME]`.

use std::time::Duration;

use notify::config::{NotifyForm, NotifyWay};

use super::{BASE, env, good, problems};
use crate::check::check;
use crate::node::{DEFAULTS, Layer, SourceOrigin};
use crate::secrets::Outside;
use crate::toml_file;

/// A route with more of this in its section.
fn section(more: &str) -> String {
    format!("[participants.ann]\n[notifications.desk]\n{more}")
}

#[test]
fn a_route_is_read_with_its_defaults_and_all_of_its_keys() {
    let config = good(&section("exec = ['notify-send', 'Portmoot']"));
    let [route] = config.notifications.as_slice() else {
        panic!("{:?}", config.notifications);
    };
    let words = ["notify-send", "Portmoot"].map(str::to_owned).to_vec();
    assert_eq!(
        (&*route.name, &route.way),
        ("desk", &NotifyWay::Exec(words))
    );
    assert!(route.topics.is_empty() && route.reviewers.is_empty() && route.quiet.is_none());
    assert_eq!((route.after, &route.link), (Duration::ZERO, &None));
    let config = good(&section(
        "webhook = 'https://hooks.example/x'\nsecret_env = 'HOOK'\ntopics = ['main']\nfor = ['ann']\nafter = '2m'\n\
         quiet = '22:00-07:00 +02:00'\nlink = 'https://gw.example/console'\nallow_private = ['10.0.0.0/8']",
    ));
    let route = &config.notifications[0];
    assert_eq!(route.after, Duration::from_secs(120));
    assert_eq!(route.reviewers[0].as_str(), "ann");
    assert!(route.quiet.is_some() && route.link.is_some());
    let NotifyWay::Request(target) = &route.way else {
        panic!("{:?}", route.way);
    };
    assert!(matches!(target.form, NotifyForm::Webhook(Some(_))));
    assert_eq!(target.allowed.len(), 1);
    let config = good(&section("slack_env = 'SLACK'"));
    let shown = format!("{:?}", config.notifications);
    assert!(
        shown.contains("hooks.example") && !shown.contains("hush"),
        "{shown}"
    );
    let config = good(&section(
        "ntfy = 'https://ntfy.example/sub/alerts'\ntoken_env = 'TOKEN'",
    ));
    let NotifyWay::Request(target) = &config.notifications[0].way else {
        panic!("{:?}", config.notifications);
    };
    assert_eq!(target.url.as_str(), "https://ntfy.example/sub/");
    assert!(
        matches!(&target.form, NotifyForm::Ntfy { topic, token: Some(_) } if topic == "alerts")
    );
}

#[test]
fn problems_of_a_route_have_messages() {
    for (more, expect) in [
        (
            "",
            "`[notifications.desk]` has not one way out [config_missing]",
        ),
        (
            "exec = ['true']\nwebhook = 'https://x.example/'",
            "`[notifications.desk]` has not one way out [config_missing]",
        ),
        (
            "exec = []",
            "`notifications.desk.exec` names no program [config_value]",
        ),
        (
            "exec = ['true']\nsecret_env = 'HOOK'",
            "`notifications.desk.secret_env` has no meaning with `exec` [config_value]",
        ),
        (
            "exec = ['true']\nafter = '5m'",
            "`after` of the route `desk` is as long as proposals of the topic `main` wait: it would get nothing [config_value]",
        ),
        (
            "exec = ['true']\nafter = '2d'",
            "`notifications.desk.after` is more than a day [config_value]",
        ),
        (
            "exec = ['true']\nquiet = '22:00-07:00'",
            "`notifications.desk.quiet`: quiet hours are a span and an offset",
        ),
        (
            "exec = ['true']\nlink = 'javascript:alert(1)'",
            "`notifications.desk.link`: `javascript:alert(1)` cannot be fetched",
        ),
        (
            "webhook = 'https://x.example/'\nsecret_env = 'TOKEN'",
            "the secret of `[notifications.desk]`: a webhook's secret is `whsec_` and the base64 of 24 to 64 bytes [config_token]",
        ),
        (
            "webhook = 'https://x.example/'\nsecret = 'hush'",
            "`notifications.desk.secret`: a secret must not be in the configuration file [config_token]",
        ),
        (
            "slack = 'https://hooks.example/T/B/hush'",
            "`notifications.desk.slack`: a secret must not be in the configuration file [config_token]",
        ),
        (
            "slack_env = 'TOKEN'",
            "the secret of `[notifications.desk]` is no address [config_token]",
        ),
        (
            "ntfy = 'https://ntfy.example/'",
            "`notifications.desk.ntfy` does not end in a topic [config_value]",
        ),
        (
            "exec = ['true']\nfor = ['anne']",
            "there is no participant `anne` [config_unknown_participant]",
        ),
        (
            "exec = ['true']\ntopics = ['mian']",
            "there is no topic `mian` [config_unknown_topic]",
        ),
        (
            "exec = ['true']\ntitle = 'x'",
            "unknown key `title` in `[notifications.desk]` [config_unknown_key]",
        ),
    ] {
        let found = problems(&section(more));
        assert!(found.contains(expect), "{more}\n{found}");
        assert!(!found.contains("hush"), "{found}");
    }
    let named = section("exec = ['true']").replace("notifications.desk", "notifications.'a b'");
    let found = problems(&named);
    assert!(
        found.contains("`a b` is no name of a route [config_value]"),
        "{found}"
    );
}

#[test]
fn routes_have_a_limit() {
    let routes = |count: usize| -> String {
        (0..count)
            .map(|name| format!("[notifications.r{name}]\nexec = ['true']\n"))
            .collect()
    };
    assert_eq!(good(&routes(64)).notifications.len(), 64);
    let found = problems(&routes(65));
    assert!(
        found.contains("there are more than 64 routes of notifications"),
        "{found}"
    );
}

#[test]
fn a_file_that_was_found_has_no_routes() {
    let mut tree = toml_file::read(&Layer::file(DEFAULTS, SourceOrigin::Operator, BASE)).unwrap();
    let found = section("exec = ['true']");
    let found = Layer::file("portmoot.toml", SourceOrigin::Found, &found);
    tree.overlay(toml_file::read(&found).unwrap());
    let problems = check(&tree, &Outside::unread(&env), &mut Vec::new()).unwrap_err();
    let [problem] = problems.as_slice() else {
        panic!("{problems:?}");
    };
    let expect = "`[notifications.desk]`: a file that you did not name has no routes";
    assert!(problem.to_string().contains(expect), "{problem}");
}
