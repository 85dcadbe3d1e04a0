//! Back-off of callers with accounts of their own, and what an attempt says about the era.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use client::{AccountFault, LinkError, SendError};
use model::{LinkId, ParticipantId};
use wire::mcp::Era;

use super::Upstream;
use super::book::Slot;
use crate::fault::Fault;
use crate::interest::Subscription;
use crate::session_api::SessionKey;
use crate::tests::accounts::Scripted;
use crate::tests::{config, start_for, until};

fn waits(upstream: &Upstream, link: u64) -> bool {
    let book = upstream.book.lock();
    book.slots[&(
        Era::Legacy,
        SessionKey::Legacy {
            link: LinkId(link),
            token: None,
        },
    )]
        .backoff
        .remaining(Instant::now())
        .is_some()
}

#[tokio::test]
async fn a_change_of_one_account_ends_no_others_back_off() {
    let accounts = Scripted::new(true);
    let fixture = start_for(
        config(&["legacy"]),
        Some(Arc::<Scripted>::clone(&accounts)),
        |_| {},
    );
    let upstream = &fixture.upstream;
    let [ann, bob] = ["ann", "bob"].map(|name| ParticipantId::new(name).unwrap());
    until("it waits for a change", || upstream.has_settled()).await;
    for (link, participant) in [(1, &ann), (2, &bob)] {
        let mut slot = Slot {
            participant: Some(participant.clone()),
            ..Slot::default()
        };
        // A subscription keeps the slot while it has no session.
        let place = slot.interest.place("ann").unwrap();
        slot.interest
            .add(LinkId(link), Subscription::Resource("x".to_owned()), place);
        (0..20).for_each(|_| slot.backoff.failed(Instant::now(), "why".to_owned()));
        upstream.book.lock().slots.insert(
            (
                Era::Legacy,
                SessionKey::Legacy {
                    link: LinkId(link),
                    token: None,
                },
            ),
            slot,
        );
    }
    let looks = accounts.looks.load(Ordering::SeqCst);
    accounts.change();
    until("the change is taken", || {
        accounts.looks.load(Ordering::SeqCst) >= looks + 2
    })
    .await;
    assert!(waits(upstream, 1) && waits(upstream, 2));
    upstream.account_changed(Some(&bob));
    assert_eq!((waits(upstream, 1), waits(upstream, 2)), (true, false));
    upstream.close().await;
}

#[tokio::test]
async fn a_server_that_was_not_reached_is_asked_again_whether_it_speaks_legacy() {
    let fixture = start_for(config(&["modern"]), None, |_| {});
    let upstream = &fixture.upstream;
    until("it has started", || upstream.has_settled()).await;
    let account = AccountFault::LoginNeeded;
    let silent = [
        Fault::Link(LinkError::Unreachable("why".to_owned())),
        Fault::Link(LinkError::Untrusted("why".to_owned())),
        Fault::Link(LinkError::NotTls),
        Fault::Link(LinkError::Unauthorized),
        Fault::Link(LinkError::Account(account)),
        Fault::Link(LinkError::NotConnected),
        Fault::Link(LinkError::Closed),
        Fault::Unsent(SendError::Busy),
    ];
    for fault in silent {
        upstream.record_asked(Some(&fault));
        let book = upstream.book.lock();
        assert!(book.must_ask(Era::Legacy), "{fault}");
    }
    for fault in [Fault::Answer("no".to_owned()), Fault::Timeout] {
        upstream.book.lock().legacy = None;
        upstream.record_asked(Some(&fault));
        assert_eq!(upstream.book.lock().legacy, Some(false), "{fault}");
    }
    upstream.close().await;
}
