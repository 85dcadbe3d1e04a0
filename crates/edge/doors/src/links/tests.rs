//! Sessions and modern links: ids, limits, ends.

use std::sync::atomic::Ordering;

use config::GatewayLimits;
use model::TopicName;

use super::*;
use crate::fixture::{registry, user};

struct Fixture {
    links: Arc<ClientLinks>,
    visitor: Visitor,
}

impl Fixture {
    fn new(limits: GatewayLimits) -> Self {
        let registry = registry(limits);
        let dispatch = registry.topic(&TopicName::new("main").unwrap()).unwrap();
        let visitor = Visitor {
            dispatch,
            participant: user(&registry),
        };
        Self {
            links: ClientLinks::start(registry).unwrap(),
            visitor,
        }
    }

    fn open(&self) -> String {
        self.links
            .open_session(&self.visitor, gateway::plain_client())
            .unwrap()
    }

    fn find(&self, id: &str) -> Option<Arc<Session>> {
        self.links.find_session(&self.visitor, id)
    }

    fn len(&self) -> usize {
        self.links.registry.http_sessions.load(Ordering::Relaxed)
    }

    fn links_len(&self) -> usize {
        self.visitor.dispatch.with(|topic| topic.links_len())
    }
}

#[tokio::test]
async fn an_id_has_one_session_and_none_after_it_was_closed() {
    let fixture = Fixture::new(GatewayLimits::default());
    let before = fixture.links_len();
    let id = fixture.open();
    let session = fixture.find(&id).unwrap();
    assert!(Arc::ptr_eq(&session, &fixture.find(&id).unwrap()));
    assert_eq!((fixture.len(), fixture.links_len()), (1, before + 1));
    drop(fixture.links.close_session(&session));
    drop(fixture.links.close_session(&session));
    assert!(session.joined.home.liveness.has_ended() && fixture.find(&id).is_none());
    assert_eq!((fixture.len(), fixture.links_len()), (0, before));
    let other = fixture.open();
    assert!(fixture.find(&other).is_some() && fixture.find(&id).is_none());
    assert!(fixture.find("unknown").is_none());
}

#[tokio::test]
async fn an_evicted_session_is_resumed_by_its_id() {
    let limits = GatewayLimits {
        sessions_max: 2,
        ..GatewayLimits::default()
    };
    for limits in [
        limits,
        GatewayLimits {
            participant_sessions_max: 2,
            ..GatewayLimits::default()
        },
    ] {
        let fixture = Fixture::new(limits);
        let ids: Vec<String> = (0..5).map(|_| fixture.open()).collect();
        assert_eq!(fixture.len(), 2);
        for id in &ids {
            assert!(fixture.find(id).is_some());
        }
        assert_eq!(fixture.len(), 2);
    }
}

#[tokio::test]
async fn a_session_that_a_client_reads_is_not_evicted() {
    let fixture = Fixture::new(GatewayLimits {
        sessions_max: 1,
        ..GatewayLimits::default()
    });
    let session = fixture.find(&fixture.open()).unwrap();
    let reader = session.joined.home.stream().read(None).unwrap();
    let refused = fixture
        .links
        .open_session(&fixture.visitor, gateway::plain_client());
    assert_eq!(refused.unwrap_err().code, RefusalCode::Overloaded);
    drop(reader);
    fixture.open();
    assert!(session.joined.home.liveness.has_ended());
}

#[tokio::test]
async fn an_evicted_session_that_is_closed_is_not_resumed() {
    let fixture = Fixture::new(GatewayLimits {
        sessions_max: 1,
        ..GatewayLimits::default()
    });
    let id = fixture.open();
    let session = fixture.find(&id).unwrap();
    fixture.open();
    drop(fixture.links.close_session(&session));
    assert!(fixture.find(&id).is_none());
}

#[tokio::test]
async fn an_idle_session_ends_and_is_resumed_by_its_id() {
    let fixture = Fixture::new(GatewayLimits {
        session_idle: Duration::ZERO,
        ..GatewayLimits::default()
    });
    let id = fixture.open();
    let session = fixture.find(&id).unwrap();
    tokio::time::sleep(Duration::from_millis(5)).await;
    fixture.links.sweep();
    assert!(session.joined.home.liveness.has_ended());
    assert_eq!(fixture.len(), 0);
    let again = fixture.find(&id).unwrap();
    assert!(!Arc::ptr_eq(&session, &again) && fixture.len() == 1);
}

#[tokio::test]
async fn requests_of_a_modern_participant_share_a_link_until_it_ends() {
    let fixture = Fixture::new(GatewayLimits::default());
    let link = fixture.links.modern(&fixture.visitor).unwrap();
    assert!(Arc::ptr_eq(
        &link,
        &fixture.links.modern(&fixture.visitor).unwrap()
    ));
    fixture.links.sweep();
    assert!(Arc::ptr_eq(
        &link,
        &fixture.links.modern(&fixture.visitor).unwrap()
    ));
    link.leave();
    let other = fixture.links.modern(&fixture.visitor).unwrap();
    assert!(!Arc::ptr_eq(&link, &other) && !other.home.liveness.has_ended());
}
