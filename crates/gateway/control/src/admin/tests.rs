use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use auth::Sealer;
use model::Form;
use store::JournalWriter;
use store::audit::PARTICIPANT_AUDIT_BYTES_MAX;
use topic::{Ended, Joining};

use super::*;
use gateway::{Link, Outlet, plain_client};
use store::recorder::Recorder;

use crate::registry::RegistryParts;
use config::{Config, ConfigSources};
use identity::identities::local_user;

/// The outlet of a client whose end is another change of tokens.
struct Chain(Arc<AccessJournal>, Sender<()>);

impl Outlet for Chain {
    fn close(&self, _: Option<Ended>) {
        let journal = Arc::clone(&self.0);
        let changed = self.1.clone();
        std::thread::spawn(move || {
            journal.change(|_| Ok(())).unwrap();
            changed.send(()).unwrap();
        });
        // As a slow effect of the change.
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// The configuration of a file with this text in this directory.
pub(crate) fn configured(dir: &Path, text: &str) -> Config {
    let file = dir.join("portmoot.toml");
    std::fs::write(&file, text).unwrap();
    let sources = ConfigSources {
        config: Some(file),
        ..ConfigSources::default()
    };
    sources.load(&|_| None).unwrap().config
}

/// A registry with one topic. It keeps an audit log.
pub(crate) fn started(dir: &Path) -> (Arc<AccessJournal>, Arc<Registry>) {
    started_with(dir, configured(dir, "[topics.main]\naccess = \"public\"\n"))
}

/// A registry with this configuration. It keeps an audit log.
pub(crate) fn started_with(dir: &Path, config: Config) -> (Arc<AccessJournal>, Arc<Registry>) {
    let journal = JournalWriter::open(dir).unwrap();
    let access = Arc::new(AccessJournal::new(Some(journal.ledger().unwrap()), true));
    let audit = Recorder::open(config.audit.policy(), Some(&journal), config.audit.files).unwrap();
    let registry = Registry::start(RegistryParts {
        standing: access.standing(&config.identity),
        config,
        sealer: Sealer::new(&[7; 32], None),
        guard: None,
        journal: Some(journal),
        audit,
        accounts: Arc::new(oauth::ServerAccounts::in_memory()),
        branch: None,
    })
    .unwrap();
    (access, registry)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_follows_from_a_change_delays_no_other_change() {
    let dir = tempfile::tempdir().unwrap();
    let (access, registry) = started(dir.path());
    let admin = Admin::new(Arc::clone(&access), Arc::clone(&registry));
    let boss = local_user(&registry.config().identity);
    let request = TokenRequest {
        name: "scout".to_owned(),
        ..TokenRequest::default()
    };
    let token = admin.issue_token(&boss, false, request).unwrap().token;
    let (dispatch, scout) = registry.member(Some(token.as_str()), "main", None).unwrap();
    let (changed, changes) = channel();
    let outlet = Arc::new(Chain(access, changed));
    let link = Link::new(
        registry.context.link(),
        scout,
        Form::Legacy,
        plain_client(),
        outlet,
    );
    registry.join(&dispatch, &link, Joining::default()).unwrap();
    admin.revoke_tokens(&boss, "scout").unwrap();
    assert!(
        changes.try_recv().is_ok(),
        "the other change is made while the first one's effects are carried out"
    );
    assert!(registry.member(Some(token.as_str()), "main", None).is_err());
}

#[tokio::test]
async fn a_change_takes_of_its_authors_share_of_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let (access, registry) = started(dir.path());
    let admin = Admin::new(access, Arc::clone(&registry));
    let boss = local_user(&registry.config().identity);
    let issue = |by: &Participant, name: &str| {
        let request = TokenRequest {
            name: name.to_owned(),
            ..TokenRequest::default()
        };
        admin
            .issue_token(by, false, request)
            .map_err(|refusal| refusal.code)
    };
    let of_boss = registry.audit.account(&boss.id).unwrap();
    let full = of_boss.take(PARTICIPANT_AUDIT_BYTES_MAX).unwrap();
    assert_eq!(issue(&boss, "scout").err(), Some(RefusalCode::Overloaded));
    let other = Participant {
        id: ParticipantId::new("other").unwrap(),
        ..Participant::clone(&boss)
    };
    assert_ne!(issue(&other, "runner").err(), Some(RefusalCode::Overloaded));
    drop(full);
    assert!(issue(&boss, "scout").is_ok());
}
