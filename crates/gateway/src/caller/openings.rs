//! What is open for one caller. Nearly all have one request open or none: that one needs no table.
//!
//! Must not know what an operation does.

use std::collections::HashMap;
use std::sync::Arc;

use model::{OperationId, Refusal};
use wire::rpc::Id;

/// An operation that is open for a caller.
pub trait Open: Send + Sync {
    /// The caller does not want it any more.
    fn cancel(&self);
    /// The topic has ended it.
    fn refuse(&self, refusal: &Refusal);
    /// The upstream need not go on with it.
    fn take_back(&self);
    /// Its method and target, if it is about something that has a name.
    fn about(&self) -> Option<(&str, Option<&str>)> {
        None
    }
}

/// An open operation, and the id that the caller gave it.
struct Opening {
    operation: OperationId,
    request: Id,
    open: Arc<dyn Open>,
}

/// The open operations of one caller.
#[derive(Default)]
pub(super) struct Openings {
    one: Option<Opening>,
    /// All others.
    more: Option<HashMap<OperationId, Opening>>,
}

impl Openings {
    /// Enters one; what had its id in the topic before gives way to it.
    pub(super) fn add(&mut self, operation: OperationId, request: Id, open: Arc<dyn Open>) {
        self.remove(operation);
        let opening = Opening { operation, request, open };
        if self.one.is_none() {
            self.one = Some(opening);
        } else {
            self.more.get_or_insert_default().insert(operation, opening);
        }
    }

    pub(super) fn remove(&mut self, operation: OperationId) {
        if self.one.as_ref().is_some_and(|one| one.operation == operation) {
            self.one = None;
        } else if let Some(more) = &mut self.more {
            more.remove(&operation);
            if more.is_empty() {
                self.more = None;
            }
        }
    }

    /// The one with this id in the topic.
    pub(super) fn get(&self, operation: OperationId) -> Option<&Arc<dyn Open>> {
        let one = self.one.as_ref().filter(|one| one.operation == operation);
        one.or_else(|| self.more.as_ref()?.get(&operation)).map(|found| &found.open)
    }

    /// The one that its caller calls this.
    pub(super) fn named(&self, request: &Id) -> Option<&Arc<dyn Open>> {
        self.iter().find(|opening| opening.request == *request).map(|found| &found.open)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.one.is_none() && self.more.is_none()
    }

    /// Takes out all.
    pub(super) fn take(&mut self) -> Vec<Arc<dyn Open>> {
        let Self { one, more } = std::mem::take(self);
        let more = more.into_iter().flat_map(|more| more.into_values());
        one.into_iter().chain(more).map(|opening| opening.open).collect()
    }

    fn iter(&self) -> impl Iterator<Item = &Opening> {
        self.one.iter().chain(self.more.iter().flat_map(|more| more.values()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing;

    impl Open for Nothing {
        fn cancel(&self) {}
        fn refuse(&self, _refusal: &Refusal) {}
        fn take_back(&self) {}
    }

    #[test]
    fn each_is_found_until_it_is_removed_whatever_the_order() {
        let ids: Vec<u128> = (0..5).collect();
        for first in 0..ids.len() {
            let mut open = Openings::default();
            for id in &ids {
                open.add(OperationId(*id), Id::number(*id as u64 + 100), Arc::new(Nothing));
            }
            for turn in 0..ids.len() {
                let id = ids[(first + turn) % ids.len()];
                assert!(
                    open.get(OperationId(id)).is_some() && open.named(&Id::number(id as u64 + 100)).is_some()
                );
                open.remove(OperationId(id));
                assert!(
                    open.get(OperationId(id)).is_none() && open.named(&Id::number(id as u64 + 100)).is_none()
                );
                assert_eq!(open.iter().count(), ids.len() - turn - 1);
            }
            assert!(open.is_empty());
        }
    }

    #[test]
    fn the_later_of_two_with_one_id_takes_its_place() {
        let (a, b) = (OperationId(1), OperationId(2));
        let later: Arc<dyn Open> = Arc::new(Nothing);
        for others in [&[][..], &[a][..]] {
            let mut open = Openings::default();
            for id in others.iter().copied().chain([b]) {
                open.add(id, Id::number(7), Arc::new(Nothing));
            }
            open.remove(a);
            open.add(b, Id::number(7), Arc::clone(&later));
            assert!(
                Arc::ptr_eq(open.get(b).unwrap(), &later)
                    && Arc::ptr_eq(open.named(&Id::number(7)).unwrap(), &later)
            );
            assert_eq!(open.iter().count(), 1);
            open.remove(b);
            assert!(open.is_empty());
        }
    }

    #[test]
    fn all_are_taken_at_once() {
        let mut open = Openings::default();
        (0..3).for_each(|id| open.add(OperationId(id), Id::number(id as u64), Arc::new(Nothing)));
        assert_eq!((open.take().len(), open.is_empty()), (3, true));
    }
}
