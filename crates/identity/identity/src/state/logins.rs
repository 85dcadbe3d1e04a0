//! Sign-ins of clients at the gateway's own authorization server: its key, families of refresh
//! tokens, consents.

use std::collections::BTreeMap;

use store::SealingKey;

use crate::record::{AccessRecord, Consent, Family, RenewedFamily};

/// Families of one participant at most. Beyond it, the family that was not renewed for longest
/// ends.
pub const PARTICIPANT_FAMILIES_MAX: usize = 100;
/// Consents of one participant at most. Beyond it, the oldest is forgotten.
pub const PARTICIPANT_CONSENTS_MAX: usize = 100;

/// Participant, client, redirect URI, resource.
type ConsentKey = (String, String, String, String);

/// All of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Logins {
    /// The first one counts.
    pub(super) key: Option<SealingKey>,
    /// By id.
    pub(super) families: BTreeMap<String, Family>,
    pub(super) consents: BTreeMap<ConsentKey, Consent>,
}

impl Logins {
    pub(super) fn begun(&mut self, family: &Family) {
        self.drop_expired(family.began_ms);
        self.families.insert(family.id.clone(), family.clone());
        let own = || {
            self.families
                .values()
                .filter(|known| known.participant == family.participant)
        };
        if own().count() > PARTICIPANT_FAMILIES_MAX {
            let others = own().filter(|known| known.id != family.id);
            let oldest = others
                .min_by_key(|known| (known.renewed_ms, &known.id))
                .map(|known| known.id.clone());
            oldest.map(|id| self.families.remove(&id));
        }
    }

    pub(super) fn renewed(&mut self, renewed: &RenewedFamily) {
        if let Some(family) = self.families.get_mut(&renewed.id) {
            family.before = Some(std::mem::replace(
                &mut family.sha256,
                renewed.sha256.clone(),
            ));
            family.renewed_ms = renewed.at_ms;
            family.expires_ms = renewed.expires_ms;
        }
    }

    /// Ends a family; whose it was.
    pub(super) fn ended(&mut self, id: &str) -> Option<String> {
        self.families.remove(id).map(|family| family.participant)
    }

    pub(super) fn consented(&mut self, consent: &Consent) {
        let key = (
            consent.participant.clone(),
            consent.client.clone(),
            consent.redirect_uri.clone(),
            consent.resource.clone(),
        );
        self.consents.insert(key.clone(), consent.clone());
        let own = || {
            self.consents
                .iter()
                .filter(|((participant, ..), _)| *participant == consent.participant)
        };
        if own().count() > PARTICIPANT_CONSENTS_MAX {
            let others = own().filter(|(known, _)| **known != key);
            let oldest = others
                .min_by_key(|(_, known)| known.at_ms)
                .map(|(key, _)| key.clone());
            oldest.map(|key| self.consents.remove(&key));
        }
    }

    pub(super) fn withdrawn(&mut self, participant: &str, client: &str) {
        self.consents
            .retain(|(of, with, ..), _| of != participant || with != client);
    }

    pub(super) fn has_expired(&self, now_ms: u64) -> bool {
        self.families
            .values()
            .any(|family| family.expires_ms <= now_ms)
    }

    /// Drops families that nothing can renew any more.
    pub(super) fn drop_expired(&mut self, now_ms: u64) {
        self.families.retain(|_, family| now_ms < family.expires_ms);
    }

    pub(super) fn records(&self) -> impl Iterator<Item = AccessRecord> + '_ {
        let key = self.key.iter().cloned().map(AccessRecord::LoginKey);
        // A replay drops the family that was not renewed for longest, never the one of its record:
        // all fit.
        let families = self
            .families
            .values()
            .cloned()
            .map(AccessRecord::FamilyBegun);
        key.chain(families).chain(
            self.consents
                .values()
                .cloned()
                .map(AccessRecord::ConsentGiven),
        )
    }

    pub(super) fn len(&self) -> usize {
        usize::from(self.key.is_some()) + self.families.len() + self.consents.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family(number: u64, participant: &str) -> Family {
        Family {
            id: format!("{number:032x}"),
            participant: participant.to_owned(),
            client: "c".to_owned(),
            client_name: "editor".to_owned(),
            client_uri: None,
            resource: "https://gw.example/mcp".to_owned(),
            scopes: Vec::new(),
            sha256: format!("h{number}"),
            before: None,
            began_ms: number,
            renewed_ms: number,
            expires_ms: 10_000,
            ends_ms: 20_000,
        }
    }

    #[test]
    fn the_family_that_was_not_renewed_for_longest_makes_way() {
        let mut logins = Logins::default();
        logins.begun(&family(5_000, "other"));
        let max = PARTICIPANT_FAMILIES_MAX as u64;
        (1..=max).for_each(|number| logins.begun(&family(number, "ann")));
        let renewed = RenewedFamily {
            id: format!("{:032x}", 1),
            sha256: "new".to_owned(),
            at_ms: 500,
            expires_ms: 10_000,
        };
        logins.renewed(&renewed);
        assert_eq!(logins.families.len(), PARTICIPANT_FAMILIES_MAX + 1);
        logins.begun(&family(max + 1, "ann"));
        assert_eq!(logins.families.len(), PARTICIPANT_FAMILIES_MAX + 1);
        let first = &logins.families[&format!("{:032x}", 1)];
        assert_eq!(
            (first.sha256.as_str(), first.before.as_deref()),
            ("new", Some("h1"))
        );
        assert!(
            !logins.families.contains_key(&format!("{:032x}", 2)),
            "the second one was the oldest"
        );
        logins.drop_expired(10_000);
        assert!(logins.families.is_empty());
    }

    #[test]
    fn consents_are_bounded_for_each_participant_and_withdrawn_by_client() {
        let mut logins = Logins::default();
        let consent = |client: usize| Consent {
            participant: "ann".to_owned(),
            client: format!("{client:04}"),
            client_name: "editor".to_owned(),
            redirect_uri: "https://app.example/cb".to_owned(),
            resource: "https://gw.example/mcp".to_owned(),
            scopes: Vec::new(),
            remembered: false,
            at_ms: client as u64,
        };
        (0..=PARTICIPANT_CONSENTS_MAX).for_each(|client| logins.consented(&consent(client)));
        assert_eq!(logins.consents.len(), PARTICIPANT_CONSENTS_MAX);
        assert!(logins.consents.values().all(|known| known.client != "0000"));
        logins.withdrawn("bob", "0007");
        assert_eq!(logins.consents.len(), PARTICIPANT_CONSENTS_MAX);
        logins.withdrawn("ann", "0007");
        assert_eq!(logins.consents.len(), PARTICIPANT_CONSENTS_MAX - 1);
    }
}
