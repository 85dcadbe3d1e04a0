//! Running on demand: what is kept of a server's lists, when it must run, when it stops, and for
//! whom it is warm.

use std::sync::Arc;

use model::{ANONYMOUS_PREFIX, Coding, LinkId};

use super::book::{Book, Listed, SessionPlace};
use super::wanted::Wanted;
use super::{Upstream, close_all};
use crate::config::{EraChoice, SessionSharing};
use crate::kept::{KeptLists, ToolUse, Used};
use crate::origin::Origin;
use crate::session::{Environment, Session};
use crate::session_api::Caller;
use crate::spec::UpstreamSpec;
use crate::{kept, lists};

impl Upstream {
    /// Has every open session list everything again, because what is approved of the server has
    /// changed; without one, what it listed last is judged again.
    pub fn list_again(&self) {
        let open: Vec<Arc<Session>> = self.book.lock().sessions().cloned().collect();
        open.iter().for_each(|session| session.list_again());
        if open.iter().all(|session| session.key().is_own()) {
            self.judge_again();
        }
    }

    fn judge_again(&self) {
        let lists: Vec<KeptLists> = self
            .book
            .lock()
            .listed
            .iter()
            .filter_map(|listed| listed.of.clone())
            .collect();
        for of in lists {
            let judged = listed(of, &self.spec, &self.environment);
            let mut book = self.book.lock();
            // A session may have listed something newer meanwhile.
            let older = book
                .listed
                .iter_mut()
                .find(|older| older.era == judged.era && older.of == judged.of);
            older
                .into_iter()
                .for_each(|older| older.manifest = Arc::clone(&judged.manifest));
        }
        self.environment.events.judged_again(self.spec.name());
    }

    /// Takes the lists of a shared session, and keeps them for the next process.
    pub(super) fn take_lists(&self, session: &Session) {
        let mut book = self.book.lock();
        book.take_lists(session);
        let kept = if self.spec.config.is_on_demand() {
            book.to_keep()
        } else {
            None
        };
        drop(book);
        if let Some(kept) = kept {
            let configuration = kept::digest(&self.spec.config.listed_by());
            self.environment
                .kept
                .store(self.spec.name(), &kept, &configuration);
        }
    }

    /// Stops a server that runs on demand if no client needs it: its shared sessions close.
    pub(super) fn stop_unneeded(&self) {
        if !self.spec.config.is_on_demand() {
            return;
        }
        let idle_stop = self.spec.config.idle_stop;
        // Not under the lock: the gateway looks into its topics for each of them.
        let users = self.book.lock().quiet_users(idle_stop);
        let gone: Vec<LinkId> = users
            .into_iter()
            .filter(|link| !self.environment.events.is_here(*link))
            .collect();
        let mut book = self.book.lock();
        if book.closed || book.listed.is_empty() {
            return;
        }
        let mut closing = book.forget_users(&gone, idle_stop);
        closing.extend(book.take_unneeded(idle_stop));
        drop(book);
        if !closing.is_empty() {
            close_all(closing);
            self.log_status();
        }
    }

    /// Whether a shared session must be opened now that no caller waits for: the server does not
    /// run on demand, what it lists is not known, or clients that used one are still there.
    pub(super) fn must_run(&self) -> bool {
        let book = self.book.lock();
        !self.spec.config.is_on_demand() || book.listed.is_empty() || book.missing_era().is_some()
    }

    /// Whether a server that runs on demand is to be asked whether its kept manifest still holds.
    pub(super) fn must_probe(&self) -> bool {
        self.environment.starts.probes() && self.book.lock().is_remembered
    }

    /// Whether it may be started for clients that are likely to use it.
    #[must_use]
    pub fn is_warmed(&self) -> bool {
        self.spec.config.is_on_demand()
    }

    /// Opens the session that a caller will use, in the background, if it used the server in the
    /// last days: its own if the same client used one of its own, else the shared one.
    pub async fn warm(&self, caller: &Caller<'_>) {
        let (caller, client) = (&self.known(caller), caller.client.name());
        let used = self.environment.kept.used(
            self.spec.name(),
            caller.participant.as_str(),
            client.as_deref(),
        );
        if !self.spec.config.is_on_demand() || used == Used::No {
            return;
        }
        let era = self.book.lock().spoken(caller.form);
        let is_own = used == Used::Own && era.is_some_and(|era| !self.shares(caller.client, era));
        if is_own && self.spec.config.sessions == SessionSharing::Call {
            // One that is opened for no call is used by none.
            return;
        }
        let wanted = Wanted::warm(caller, era, is_own);
        if is_own {
            // It ends when its caller leaves.
            let mut book = self.book.lock();
            let slot = book
                .slots
                .entry((era.unwrap_or(caller.form), caller.key()))
                .or_default();
            slot.expect(caller);
        }
        let warmed = self.obtain(wanted).await;
        if is_own && let Ok(session) = &warmed {
            self.end_unused((session.era(), caller.key()));
        }
        tracing::debug!(
            server = self.spec.name(),
            is_own,
            is_warm = warmed.is_ok(),
            "warmed for a client that used it lately"
        );
    }

    /// Ends a caller's own session whose caller has left while it was opened: nothing else would
    /// before it has been idle for long.
    pub(super) fn end_unused(&self, place: SessionPlace) {
        let mut book = self.book.lock();
        let is_unused = book
            .slots
            .get(&place)
            .is_some_and(|slot| slot.users.is_empty());
        let unused = if is_unused {
            book.slots.remove(&place)
        } else {
            None
        };
        drop(book);
        close_all(unused.and_then(|slot| slot.session).into_iter().collect());
    }

    /// Notes a call of a tool, by the server's own name.
    #[inline]
    pub fn note_call(&self, tool: &str) {
        self.environment.kept.note_call(self.spec.name(), tool);
    }

    /// The use of a tool, if its calls are counted.
    #[must_use]
    pub fn tool_use(&self, tool: &str) -> Option<ToolUse> {
        self.environment.kept.tool_use(self.spec.name(), tool)
    }

    /// Notes that a caller uses the server, so that it is warm when the caller comes again.
    pub(super) fn note_use(&self, caller: &Caller<'_>, is_own: bool) {
        // Guests have other names each time.
        if self.spec.config.is_on_demand()
            && !caller.participant.as_str().starts_with(ANONYMOUS_PREFIX)
        {
            let client = if is_own { caller.client.name() } else { None };
            self.environment.kept.note_use(
                self.spec.name(),
                caller.participant.as_str(),
                client.as_deref(),
            );
        }
    }
}

/// Manifest of kept lists, judged by what is approved now.
fn listed(of: KeptLists, spec: &UpstreamSpec, environment: &Environment) -> Listed {
    let era = of.handshake.version.era();
    let coding = Coding::Json;
    let over_http = false;
    let is_shared = true;
    let origin = Origin {
        spec,
        environment,
        era,
        coding,
        over_http,
        is_shared,
    };
    let manifest = Arc::new(lists::manifest_of(&origin, &of.handshake, &of.written));
    Listed {
        era,
        manifest,
        of: Some(of),
    }
}

impl Book {
    /// Takes over what a server with this configuration listed when it last ran, if that is kept.
    pub(super) fn remember(&mut self, spec: &UpstreamSpec, environment: &Environment) {
        if !spec.config.is_on_demand() {
            return;
        }
        let configuration = kept::digest(&spec.config.listed_by());
        let Some(kept) = environment.kept.load(spec.name(), &configuration) else {
            return;
        };
        if spec.config.era == EraChoice::Auto {
            (self.eras, self.legacy) = (kept.eras, kept.legacy);
        }
        self.dislikes_probe = kept.dislikes_probe;
        self.listed.extend(
            kept.lists
                .into_iter()
                .map(|of| listed(of, spec, environment)),
        );
        self.is_remembered = true;
    }
}
