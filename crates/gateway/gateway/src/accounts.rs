//! Servers at which each caller has an account: names in lists that are not known before, changes
//! of accounts.

use std::sync::Arc;

use model::{ListKind, ParticipantId, Refusal};
use topic::{AUTHORIZE, Cause, PublicTarget, public_name};
use upstream::Session;
use wire::mcp::result::words;

use crate::call::Call;
use crate::dispatch::Dispatch;
use crate::incoming::Names;
use crate::live::{ConfiguredServer, Event};

/// The own name of a call's target at a server that lists to each caller what is its own: the topic
/// may have admitted the call by lists that are not those of the session.
///
/// # Errors
/// The refusal of a name that its lists do not have, or that is withheld.
pub(crate) fn own_name(
    server: &ConfiguredServer,
    call: &Call,
    session: &Session,
    own: Option<Arc<str>>,
) -> Result<Option<Arc<str>>, Refusal> {
    if server.callers.is_none() {
        return Ok(own);
    }
    let (list, name) = match &call.request.target {
        Some(model::Target::Tool(name)) => (ListKind::Tools, name),
        Some(model::Target::Prompt(name)) => (ListKind::Prompts, name),
        Some(model::Target::Uri(_) | model::Target::Task(_)) | None => return Ok(own),
    };
    let (name, prefix): (&str, _) = (name, &server.upstream.spec().config.prefix);
    let manifest = session.manifest();
    // Names without a prefix are the server's, and it may have more than it lists.
    let is_own = prefix.is_empty() || call.names == Names::Own;
    let keys = || {
        manifest
            .list(list)
            .items
            .iter()
            .map(|item| item.key.as_str())
    };
    let curation = server
        .upstream
        .spec()
        .config
        .curation
        .as_deref()
        .filter(|_| list == ListKind::Tools);
    let shown = |own: &str| {
        curation
            .map_or(own, |curation| curation.name(own))
            .to_owned()
    };
    let public = |own: &str| public_name(prefix, &shown(own));
    let known = || own.as_deref().filter(|own| public(own) == name);
    // Of two names that are the same in public the one that has the prefix itself counts.
    let found = if is_own {
        own.as_deref()
    } else {
        keys().find(|key| shown(key) == name)
    };
    let found = found.or_else(|| known().filter(|own| keys().any(|key| key == *own)));
    let found = found.or_else(|| {
        keys()
            .find(|key| public(key) == name)
            .filter(|_| call.names == Names::Public)
    });
    let found = found.or(is_own.then_some(name));
    let withheld = || {
        manifest
            .withheld_of(list)
            .any(|one| public(&one.name) == name)
    };
    let target = match list {
        ListKind::Prompts => PublicTarget::Prompt(name),
        ListKind::Tools | ListKind::Resources | ListKind::Templates | ListKind::Skills => {
            PublicTarget::Tool(name)
        }
    };
    match found {
        Some(key) if manifest.withholds(list, key) => {
            Err(*topic::request_refusal(Cause::ToolChanged, Some(target)))
        }
        Some(key) if own.as_deref() == Some(key) => Ok(own),
        Some(key) => Ok((key != name).then(|| key.into())),
        None if withheld() => Err(*topic::request_refusal(Cause::ToolChanged, Some(target))),
        None => Err(*topic::request_refusal(Cause::Unknown, Some(target))),
    }
}

/// The answer to a call of the tool by which a caller gets an account, if it has one already and
/// its server has no such tool.
pub(crate) fn answer_if_connected(
    server: &ConfiguredServer,
    call: &Call,
    session: &Session,
    own: Option<&str>,
) -> Option<Vec<u8>> {
    let is_it = server.callers.is_some() && own == Some(AUTHORIZE) && call.request.calls_tool();
    let has_it = || {
        session
            .manifest()
            .tools
            .items
            .iter()
            .any(|item| item.key == AUTHORIZE)
    };
    let said = || {
        format!(
            "Your account at {} is connected already: list its tools.",
            server.id
        )
    };
    (is_it && !has_it()).then(|| words(&said(), false, call.request.payload.form))
}

impl Dispatch {
    /// Takes what a server lists to a caller of its own: others may see it, too.
    pub(crate) fn note_callers_list(
        self: &Arc<Self>,
        server: &ConfiguredServer,
        session: &Session,
    ) {
        if server
            .callers
            .as_ref()
            .is_some_and(|callers| callers.note(&session.manifest()))
        {
            self.list_shared(server, &[]);
        }
    }

    /// Whether the lists of a caller at a server stay its own while it has no session there.
    pub(crate) fn keeps_lists(&self, server: &ConfiguredServer, caller: &ParticipantId) -> bool {
        server
            .callers
            .as_ref()
            .is_some_and(|callers| callers.is_connected(caller))
    }

    /// Takes that the account that all callers of a server share has changed: once it has tokens
    /// the server starts, and is waited for.
    pub fn shared_account_changed(&self, server: &ParticipantId) {
        let Some(server) = self
            .server(server)
            .filter(|server| server.callers.is_none())
        else {
            return;
        };
        server.upstream.unsettle();
        self.starts.begin();
    }

    /// Takes that the account of a participant at a server has changed: its clients' lists there
    /// are others now. Sessions of a sign-in that was replaced end first, whichever link has them.
    pub fn account_changed(self: &Arc<Self>, server: &ParticipantId, participant: &ParticipantId) {
        let Some(server) = self.server(server) else {
            return;
        };
        let Some(callers) = &server.callers else {
            return;
        };
        server.upstream.account_changed(Some(participant));
        let is_connected = callers.is_connected(participant);
        let is_empty = callers.accounts.of(Some(participant.as_str())).is_empty();
        for (id, link, _) in self
            .with(crate::live::Topic::links)
            .into_iter()
            .filter(|(.., of)| of == participant)
        {
            if !is_connected {
                if is_empty {
                    // Signed out: another account may come next, and what was begun with this one
                    // is not its.
                    server.upstream.release(id);
                }
                self.take(Event::Detach {
                    link: id,
                    server: &server.id,
                    keeps_lists: false,
                });
                continue;
            }
            // Sessions of rooms list nothing.
            if link.outlet.socket().is_some() {
                continue;
            }
            let server = Arc::clone(&server);
            tokio::spawn(async move {
                match server.upstream.open_session(&link.caller()) {
                    // Its scopes may be others.
                    Some(open) => open.list_again(),
                    None => {
                        let opened = server.upstream.session(&link.caller()).await;
                        tracing::debug!(server = %server.id, opens = opened.is_ok(), "an account is ready");
                    }
                }
            });
        }
    }
}
