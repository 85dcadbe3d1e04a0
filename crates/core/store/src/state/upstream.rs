//! Accounts at servers, and the clients that the gateway is at their authorization servers: the
//! last record of each.

use std::collections::BTreeMap;

use crate::record::{Record, UpstreamAccount, UpstreamClient};

/// All of them, by what they are for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Upstream {
    /// By server and participant.
    pub(super) accounts: BTreeMap<(String, Option<String>), UpstreamAccount>,
    /// By server, issuer and usage.
    pub(super) clients: BTreeMap<(String, String, String), UpstreamClient>,
}

impl Upstream {
    pub(super) fn account(&mut self, account: &UpstreamAccount) {
        let key = (account.server.clone(), account.participant.clone());
        self.accounts.insert(key, account.clone());
    }

    pub(super) fn account_ended(&mut self, server: &str, participant: Option<&str>) {
        self.accounts
            .remove(&(server.to_owned(), participant.map(str::to_owned)));
    }

    pub(super) fn client(&mut self, client: &UpstreamClient) {
        let key = (
            client.server.clone(),
            client.issuer.clone(),
            client.usage.clone(),
        );
        if client.sealed.is_empty() {
            self.clients.remove(&key);
        } else {
            self.clients.insert(key, client.clone());
        }
    }

    pub(super) fn records(&self) -> impl Iterator<Item = Record> + '_ {
        let clients = self.clients.values().cloned().map(Record::UpstreamClient);
        clients.chain(self.accounts.values().cloned().map(Record::UpstreamAccount))
    }

    pub(super) fn len(&self) -> usize {
        self.accounts.len() + self.clients.len()
    }
}
