//! Cache of references: a label's commit for a time, a commit's descriptor set for ever.

use std::collections::HashMap;

use bytes::Bytes;
use model::Latest;

/// Descriptor sets kept. When there are more, the module that has most loses its oldest.
pub const SETS_MAX: usize = 4_096;
/// Bytes of these sets, together.
pub const SETS_BYTES_MAX: usize = 64 << 20;
/// Labels kept. When there are more, those that were looked up first are forgotten.
pub const LABELS_MAX: usize = 4_096;

/// A module: host, owner and name.
pub(crate) type ModuleKey = String;

/// Key of a descriptor set: the types of a commit.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct SetKey {
    pub(crate) module: ModuleKey,
    pub(crate) commit: String,
    /// The message; `None` is the whole module.
    pub(crate) symbol: Option<String>,
}

/// An entry of the cache, without the bytes of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CacheEntry {
    /// The commit of a label.
    Label {
        module: ModuleKey,
        label: String,
        commit: String,
        at_ms: u64,
    },
    /// A descriptor set.
    Set(SetKey),
}

/// The cache. It knows no clock.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    labels: HashMap<(ModuleKey, String), (String, u64)>,
    sets: HashMap<SetKey, Bytes>,
    order: Latest<SetKey>,
}

impl Cache {
    /// The commit of a label, if it was looked up less than `kept_ms` ago.
    pub(crate) fn commit(
        &self,
        module: &str,
        label: &str,
        now_ms: u64,
        kept_ms: u64,
    ) -> Option<String> {
        let (commit, at_ms) = self.labels.get(&(module.to_owned(), label.to_owned()))?;
        now_ms
            .checked_sub(*at_ms)
            .is_some_and(|age_ms| age_ms < kept_ms)
            .then(|| commit.clone())
    }

    /// The set of a commit.
    pub(crate) fn set(&self, key: &SetKey) -> Option<Bytes> {
        self.sets.get(key).cloned()
    }

    /// Keeps an entry. Returns those for which there is no room any more.
    pub(crate) fn restore(&mut self, kept: CacheEntry, set: Bytes) -> Vec<CacheEntry> {
        match kept {
            CacheEntry::Label {
                module,
                label,
                commit,
                at_ms,
            } => self.keep_label(&module, &label, &commit, at_ms),
            CacheEntry::Set(key) => self.keep_set(key, set),
        }
    }

    pub(crate) fn keep_label(
        &mut self,
        module: &str,
        label: &str,
        commit: &str,
        now_ms: u64,
    ) -> Vec<CacheEntry> {
        self.labels.insert(
            (module.to_owned(), label.to_owned()),
            (commit.to_owned(), now_ms),
        );
        if self.labels.len() <= LABELS_MAX {
            return Vec::new();
        }
        let oldest = self
            .labels
            .iter()
            .min_by_key(|(_, (_, at_ms))| *at_ms)
            .map(|(key, _)| key.clone());
        let gone = oldest.and_then(|key| self.labels.remove_entry(&key));
        let gone = gone.map(|((module, label), (commit, at_ms))| CacheEntry::Label {
            module,
            label,
            commit,
            at_ms,
        });
        gone.into_iter().collect()
    }

    pub(crate) fn keep_set(&mut self, key: SetKey, set: Bytes) -> Vec<CacheEntry> {
        let owner = key.module.clone();
        let bytes = set.len();
        if self.sets.insert(key.clone(), set).is_some() {
            return Vec::new();
        }
        self.order.push(&owner, bytes, key);
        let gone = self.order.shrink(SETS_MAX, SETS_BYTES_MAX);
        gone.into_iter()
            .inspect(|gone| drop(self.sets.remove(gone)))
            .map(CacheEntry::Set)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_parts_are_bounded_and_a_module_pushes_out_no_other() {
        let mut cache = Cache::default();
        let key = |module: &str, number: usize| SetKey {
            module: module.to_owned(),
            commit: number.to_string(),
            symbol: None,
        };
        cache.keep_set(key("small", 0), Bytes::from_static(b"x"));
        for number in 0..=SETS_MAX {
            cache.keep_set(key("greedy", number), Bytes::from_static(b"y"));
        }
        assert_eq!((cache.sets.len(), cache.order.len()), (SETS_MAX, SETS_MAX));
        assert!(cache.set(&key("small", 0)).is_some() && cache.set(&key("greedy", 0)).is_none());
        let large = Bytes::from(vec![0; SETS_BYTES_MAX / 8]);
        for number in 0..=8 {
            cache.keep_set(key("large", number), large.clone());
        }
        assert!(cache.order.weight() <= SETS_BYTES_MAX && cache.set(&key("small", 0)).is_some());
        assert!(cache.set(&key("large", 8)).is_some() && cache.set(&key("large", 0)).is_none());
        for number in 0..=LABELS_MAX as u64 {
            cache.keep_label("m", &number.to_string(), "c", number);
        }
        assert_eq!(cache.labels.len(), LABELS_MAX);
        assert_eq!(cache.commit("m", "0", 0, 1), None);
    }
}
