//! Notifications in each form, with hostile names, and signatures.

use std::collections::BTreeSet;
use std::time::Duration;

use model::ParticipantId;
use oauth::Secret;
use serde_json::{Value, json};

use super::proposal;
use crate::{
    NOTIFY_TRIES_MAX, Notification, NotifyEvent, PlannedNotification, WaitingProposal,
    WebhookSecret, retry_wait,
};

fn planned(event: NotifyEvent, first: WaitingProposal, waiting: usize) -> PlannedNotification {
    let accounts = if event == NotifyEvent::Summary { 3 } else { 1 };
    PlannedNotification {
        event,
        about: vec![first.id],
        accounts: (0..accounts)
            .map(|who| who.to_string().into())
            .collect::<BTreeSet<_>>(),
        first,
        waiting,
    }
}

fn json_of(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

#[test]
fn a_notification_has_names_and_numbers() {
    let planned = planned(NotifyEvent::Waiting, proposal(7), 3);
    let one = Notification::of(&planned, Some("https://gw.example/console"));
    assert_eq!(
        json_of(&one.json()),
        json!({
            "event": "proposal.waiting",
            "proposal": "00000000000000000000000000000007",
            "topic": "main",
            "by": "scout",
            "tool": "create_issue",
            "server": "github",
            "expires": "1970-01-01T01:00:00.000Z",
            "waiting": 3,
            "url": "https://gw.example/console",
            "title": "Portmoot: scout proposes create_issue",
            "text": "3 proposals by scout wait for a decision; the first, create_issue of github in topic main, ends 1970-01-01T01:00:00.000Z.",
        })
    );
    let test = json_of(&Notification::test(None).json());
    assert_eq!(
        (&test["event"], &test["waiting"]),
        (&json!("test"), &json!(0))
    );
}

#[test]
fn each_occasion_has_words() {
    let text = |event, waiting| {
        let planned = planned(event, proposal(7), waiting);
        Notification::of(&planned, None).text()
    };
    let end = "the first, create_issue of github in topic main, ends 1970-01-01T01:00:00.000Z.";
    for (event, waiting, expect) in [
        (
            NotifyEvent::Waiting,
            1,
            "1 proposal by scout waits for a decision; ",
        ),
        (
            NotifyEvent::HalfTime,
            2,
            "Half of the time is gone: 2 proposals by scout wait for a decision; ",
        ),
        (
            NotifyEvent::Summary,
            9,
            "9 proposals by 3 participants wait for a decision; ",
        ),
    ] {
        assert_eq!(text(event, waiting), format!("{expect}{end}"));
    }
}

#[test]
fn names_of_others_hide_nothing_and_link_to_nothing() {
    let hostile = WaitingProposal {
        by: ParticipantId::new("scout").unwrap(),
        tool: format!(
            "<!channel>&\u{202e}\n*x* <https://evil.example|ok>{}",
            "a".repeat(200)
        ),
        server: Some("<@U1>".to_owned()),
        ..proposal(7)
    };
    let planned = planned(NotifyEvent::Waiting, hostile, 1);
    let one = Notification::of(&planned, Some("https://gw.example/"));
    let text = json_of(&one.json())["tool"].as_str().unwrap().to_owned();
    assert!(
        text.starts_with("<!channel>&\\u{202e}\\u{a}*x* ") && text.ends_with('…'),
        "{text}"
    );
    assert!(text.len() < 120);
    let slack = json_of(&one.slack());
    let all = slack.to_string();
    assert!(all.contains("&lt;!channel&gt;&amp;") && !all.contains('<') && !all.contains('>'));
    let blocks = slack["blocks"].as_array().unwrap();
    assert_eq!(blocks.len(), 3);
    for block in &blocks[..2] {
        assert_eq!(
            (&block["text"]["type"], &block["text"]["emoji"]),
            (&json!("plain_text"), &json!(false))
        );
    }
    assert!(!all.contains("mrkdwn\":true"));
    let button = &blocks[2]["elements"][0];
    assert_eq!(button["url"], "https://gw.example/");
    assert!(button.get("action_id").is_none() && button.get("value").is_none());
    let ntfy = json_of(&one.ntfy("alerts"));
    assert_eq!(
        (&ntfy["topic"], &ntfy["priority"], &ntfy["click"]),
        (&json!("alerts"), &json!(3), &json!("https://gw.example/"))
    );
    assert!(
        ntfy.get("actions").is_none() && ntfy["message"].as_str().unwrap().contains("\\u{202e}")
    );
}

#[test]
fn signatures_are_those_of_the_specification() {
    let secret = Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned());
    let secret = WebhookSecret::new(secret).unwrap();
    let signed = secret.signature(
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1_614_265_330,
        b"{\"test\": 2432232314}",
    );
    assert_eq!(
        signed.as_deref(),
        Some("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
    );
    for text in [
        "",
        "whsec_",
        "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "whsec_c2hvcnQ=",
        "whsec_*",
    ] {
        assert!(
            WebhookSecret::new(Secret::new(text.to_owned())).is_err(),
            "{text}"
        );
    }
    assert_eq!(format!("{secret:?}"), "WebhookSecret(..)");
}

#[test]
fn repetitions_back_off() {
    let waits: Vec<u64> = (1..NOTIFY_TRIES_MAX)
        .map(|failures| retry_wait(failures).as_secs())
        .collect();
    assert_eq!(waits, [1, 2, 4, 8]);
    assert_eq!(retry_wait(u32::MAX), Duration::from_secs(32));
}
