//! Listen requests of a modern caller (2026-07-28, "Subscriptions"): what each wants to hear, and what it is told.
//!
//! The acknowledgement comes first on its stream; what is told before that waits for it. Must not know whose they are.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use wire::mcp::{ListKind, Params, meta};
use wire::rpc::{Id, Message};

use crate::bounds::Share;
use crate::stream::Stream;

/// What a modern listen request is told of.
#[derive(Default)]
pub struct Filter {
    /// Changes of these lists.
    pub lists: Vec<ListKind>,
    /// Updates of these resources.
    pub uris: HashSet<String>,
    /// How these tasks stand.
    pub tasks: HashSet<String>,
}

impl Filter {
    /// Whether this is wanted.
    pub(super) fn wants<S: AsRef<str>>(&self, about: &About<S>) -> bool {
        match about {
            About::List(list) => self.lists.contains(list),
            About::Resource(uri) => self.uris.contains(uri.as_ref()),
            About::Task(task) => self.tasks.contains(task.as_ref()),
        }
    }
}

/// What somebody is told about.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum About<S> {
    /// A list.
    List(ListKind),
    /// The resource with this URI.
    Resource(S),
    /// The task with this id.
    Task(S),
}

impl About<&str> {
    fn kept(&self) -> About<String> {
        match self {
            Self::List(list) => About::List(*list),
            Self::Resource(uri) => About::Resource((*uri).to_owned()),
            Self::Task(task) => About::Task((*task).to_owned()),
        }
    }
}

/// What was told before the acknowledgement: the latest of each, so never more than the filter names.
struct Early {
    told: Vec<(About<String>, Bytes, Share)>,
    /// Something was told for which there was no room.
    lost: bool,
}

/// A `subscriptions/listen` that is open.
pub(super) struct Listen {
    id: Id,
    pub(super) filter: Filter,
    out: Arc<Stream>,
    early: Option<Early>,
}

impl Listen {
    /// One that is not acknowledged yet.
    pub(super) fn new(id: Id, filter: Filter, out: Arc<Stream>) -> Self {
        Self { id, filter, out, early: Some(Early { told: Vec::new(), lost: false }) }
    }

    /// Whether it is this request on this stream.
    pub(super) fn is(&self, id: &Id, out: &Arc<Stream>) -> bool {
        self.id == *id && Arc::ptr_eq(&self.out, out)
    }

    /// Whether nothing more can be told.
    pub(super) fn has_ended(&self) -> bool {
        self.out.has_ended()
    }

    /// Ends its stream.
    pub(super) fn end(&self) {
        self.out.end();
    }

    /// Tells it this notification, if it wants to hear it.
    pub(super) fn tell(&mut self, about: &About<&str>, notification: &Bytes) {
        if !self.filter.wants(about) {
            return;
        }
        let frame = tagged(notification, &self.id);
        let Some(early) = &mut self.early else {
            // A listener that is too slow has its stream ended and listens again.
            let _ = self.out.say(frame, None);
            return;
        };
        let about = about.kept();
        early.told.retain(|(other, ..)| *other != about);
        let mut share = Share::new(&self.out.bounds().held);
        if share.grow(frame.len()) {
            early.told.push((about, frame, share));
        } else {
            early.lost = true;
        }
    }

    /// Says the acknowledgement, with these of its tasks left, and then what was told before it. False, and nothing is said,
    /// where something of that was lost.
    pub(super) fn acknowledge(&mut self, acknowledgement: &Bytes, tasks: &[String]) -> bool {
        self.filter.tasks.retain(|task| tasks.contains(task));
        let Some(Early { told, lost }) = self.early.take() else { return true };
        if lost {
            // Nothing is to come before the refusal.
            self.filter = Filter::default();
            return false;
        }
        // A stream without room ends: whoever reads too slowly listens again.
        let _ = self.out.say(tagged(acknowledgement, &self.id), None);
        for (_, frame, share) in told.into_iter().filter(|(about, ..)| self.filter.wants(about)) {
            // It is on the stream's account from now on.
            drop(share);
            let _ = self.out.say(frame, None);
        }
        true
    }
}

/// Tags what is sent on a listen stream with the id of its request (MCP 2026-07-28, "Subscriptions").
fn tagged(frame: &Bytes, id: &Id) -> Bytes {
    let Ok(message) = Message::read(frame.clone()) else { return frame.clone() };
    let Ok(params) = Params::read(&message) else { return frame.clone() };
    let mut splice = json::Splice::default();
    params.edit().set_meta(meta::SUBSCRIPTION_ID, id.raw()).finish(&mut splice);
    message.edited(&splice)
}

#[cfg(test)]
mod tests {
    use wire::rpc::notification;

    use super::*;
    use crate::bounds::{Bounds, Held};
    use crate::config::Limits;
    use crate::stream::{Lifetime, Reader};

    fn listen(bytes_max: usize) -> (Listen, Reader) {
        let bounds = Bounds::new(&Limits::default(), Held::new(bytes_max));
        let out = Stream::new(1, Lifetime::Reader, 1, &bounds);
        let tasks = ["t", "u"].map(String::from).into();
        let filter = Filter { lists: vec![ListKind::Tools], tasks, ..Filter::default() };
        (Listen::new(Id::number(7), filter, Arc::clone(&out)), out.read(None).unwrap())
    }

    fn said(method: &str) -> Bytes {
        notification(method, Some(b"{}"))
    }

    /// The methods that were said on a stream, each under the id of the request.
    fn heard(reader: &mut Reader) -> Vec<String> {
        let items = std::iter::from_fn(|| reader.try_next());
        let read = |frame: Bytes| {
            assert!(String::from_utf8_lossy(&frame).contains(r#"subscriptionId":7"#), "{frame:?}");
            Message::read(frame).unwrap().method().to_owned()
        };
        items.map(|item| read(item.frame)).collect()
    }

    #[test]
    fn what_is_told_before_the_acknowledgement_comes_after_it() {
        let (mut listen, mut out) = listen(1 << 20);
        for (about, method) in [
            (About::Task("t"), "t-1"),
            (About::Task("u"), "u-1"),
            (About::List(ListKind::Tools), "list"),
            (About::Task("t"), "t-2"),
            (About::Resource("t"), "of-a-resource"),
        ] {
            listen.tell(&about, &said(method));
        }
        assert_eq!(heard(&mut out), Vec::<String>::new());
        assert!(listen.acknowledge(&said("acknowledged"), &["t".to_owned()]));
        listen.tell(&About::Task("t"), &said("t-3"));
        listen.tell(&About::Task("u"), &said("u-2"));
        assert_eq!(
            heard(&mut out),
            ["acknowledged", "list", "t-2", "t-3"],
            "the latest; none of what is not agreed on"
        );
    }

    #[test]
    fn what_waits_for_the_acknowledgement_is_on_the_account_of_all() {
        let frame = tagged(&said("t-1"), &Id::number(7)).len();
        let (mut exact, out) = listen(frame);
        exact.tell(&About::Task("t"), &said("t-1"));
        assert!(!out.stream().bounds().held.has_room(1));
        drop(exact);
        assert!(out.stream().bounds().held.has_room(frame), "it goes with the request");
        let (mut short, mut out) = listen(frame - 1);
        short.tell(&About::Task("t"), &said("t-1"));
        assert!(!short.acknowledge(&said("acknowledged"), &["t".to_owned()]));
        assert_eq!(heard(&mut out), Vec::<String>::new());
    }
}
