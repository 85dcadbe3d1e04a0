use model::TopicName;
use platform::Mutex;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::*;
use crate::admin::tests::{configured, started_with};

const RULES: &str = "[[rule]]\nid = \"r1\"\nauthor = \"ann\"\ndecision = \"reject\"\n\
                     kind = \"mcp/request:tools/call:pay\"\nproposers = [\"scout\"]\n";
const TOPIC: &str = "[topics.main]\naccess = \"public\"\nrules = \"rules.toml\"\n";
const ISSUER: &str = "[server]\npublic_url = \"https://gw.example\"\n[issuers.corp]\nissuer = \"https://corp.example\"\n";

/// Notes whether the rules of a topic judge, whenever the part that checks tokens of issuers logs
/// something.
struct Watch {
    dispatch: Arc<Dispatch>,
    judged: Arc<Mutex<Vec<bool>>>,
}

impl Subscriber for Watch {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "identity::bearers"
    }

    fn event(&self, _: &Event<'_>) {
        self.judged.lock().push(self.dispatch.rules_judge());
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn rules_are_paused_before_participants_of_issuers_get_other_rights() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("rules.toml"), RULES).unwrap();
    let (access, registry) = started_with(dir.path(), configured(dir.path(), TOPIC));
    let main = TopicName::new("main").unwrap();
    let dispatch = registry.topic(&main).unwrap();
    assert!(dispatch.rules_judge());
    // One that cannot be used is logged in the middle of the change of rights.
    let mut next = configured(dir.path(), &(TOPIC.to_owned() + ISSUER));
    let identity = Arc::make_mut(&mut next.identity);
    identity.issuers[0].rules.issuer = "no URL".to_owned();
    let judged = Arc::default();
    let watch = Watch {
        dispatch: Arc::clone(&dispatch),
        judged: Arc::clone(&judged),
    };
    tracing::subscriber::with_default(watch, || registry.reload(next, &access));
    assert_eq!(*judged.lock(), [false]);
    assert!(dispatch.rules_judge());
}
