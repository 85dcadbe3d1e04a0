//! Manifests behind a caller's lists: of the shared sessions, or of the caller's own.

use std::sync::Arc;

use model::{Form, ParticipantId};
use tokio::{task::JoinSet, time::timeout};
use upstream::Manifest;

use super::merged::Manifests;
use crate::{call::Call, dispatch::Dispatch, live::ConfiguredServer};

/// The manifests, if no session must be opened for them.
pub(super) fn known(dispatch: &Dispatch, call: &Call) -> Option<Manifests> {
    let mut all = own(dispatch);
    for server in dispatch.servers() {
        all.push((server.id.clone(), at_hand(&server, call)?));
    }
    Some(all)
}

/// The manifests, after sessions were opened that are the caller's own, or the first in its form. Of a server that is down or
/// slow they are the last that it had: a call then says what is wrong.
pub(super) async fn opened(dispatch: &Dispatch, call: &Arc<Call>) -> Manifests {
    let (mut all, mut opening) = (own(dispatch), JoinSet::new());
    for server in dispatch.servers() {
        let known = at_hand(&server, call);
        if known.is_none() {
            let (call, server, at) = (Arc::clone(call), Arc::clone(&server), all.len());
            let within = dispatch.settings.topic.list_wait;
            opening.spawn(async move {
                let caller = call.link.caller(call.client.as_ref());
                let session = timeout(within, server.upstream.session(&caller)).await.ok()?.ok()?;
                Some((at, session.manifest()))
            });
        }
        let manifest = known.unwrap_or_else(|| server.upstream.manifest_in(call.link.form));
        all.push((server.id.clone(), manifest));
    }
    while let Some(opened) = opening.join_next().await {
        if let Ok(Some((at, manifest))) = opened
            && let Some((_, place)) = all.get_mut(at)
        {
            *place = manifest;
        }
    }
    all
}

fn own(dispatch: &Dispatch) -> Manifests {
    vec![(ParticipantId::gateway(), dispatch.own_manifest())]
}

/// The manifest of a server without opening a session; `None` if one must be opened for it.
fn at_hand(server: &ConfiguredServer, call: &Call) -> Option<Arc<Manifest>> {
    let (form, upstream) = (call.link.form, &server.upstream);
    let caller = call.link.caller(call.client.as_ref());
    // A modern caller is listed what the shared session lists.
    if form == Form::Legacy && upstream.is_owned(&caller) {
        return upstream.open_session(&caller).map(|session| session.manifest());
    }
    (!upstream.could_open(form)).then(|| upstream.manifest_in(form))
}
