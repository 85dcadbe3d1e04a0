//! Accounts at servers in the journal, and the clients that the gateway is at their authorization
//! servers: the last record of each.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use store::Fold;

/// A fact about sign-ins at servers that the gateway needs after a restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum AccountRecord {
    /// The operator or a participant signed in at a server, or the tokens of that sign-in were
    /// renewed.
    UpstreamAccount(UpstreamAccount),
    /// A sign-in at a server ended.
    UpstreamAccountEnded {
        /// The server.
        server: String,
        /// The participant; `None` is the account that all callers share.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        participant: Option<String>,
        /// Time in Unix milliseconds.
        at_ms: u64,
    },
    /// The gateway registered itself at the authorization server of a server.
    UpstreamClient(UpstreamClient),
}

/// An account at a server. Its tokens are sealed with a key that is not in the data directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpstreamAccount {
    /// The server.
    pub server: String,
    /// The issuer of the tokens.
    pub issuer: String,
    /// The participant; `None` is the account that all callers share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub participant: Option<String>,
    /// The tokens and what they were issued for, sealed.
    pub sealed: String,
    /// Time in Unix milliseconds.
    pub at_ms: u64,
}

/// A client that the gateway is at an authorization server. Its secret is sealed as tokens are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpstreamClient {
    /// The server.
    pub server: String,
    /// The issuer that registered it.
    pub issuer: String,
    /// `web` or `native`.
    pub usage: String,
    /// Id and secret, sealed; empty when the authorization server does not know it any more.
    pub sealed: String,
    /// Time in Unix milliseconds.
    pub at_ms: u64,
}

/// All accounts and clients of the journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptAccounts {
    /// By server and participant.
    accounts: BTreeMap<(String, Option<String>), UpstreamAccount>,
    /// By server, issuer and usage.
    clients: BTreeMap<(String, String, String), UpstreamClient>,
}

impl KeptAccounts {
    /// Accounts at this server.
    pub fn at(&self, server: &str) -> impl Iterator<Item = &UpstreamAccount> {
        self.all().filter(move |account| account.server == server)
    }

    /// The accounts at all servers.
    pub fn all(&self) -> impl Iterator<Item = &UpstreamAccount> {
        self.accounts.values()
    }

    /// The clients that the gateway is at the authorization servers of this server.
    pub fn clients_at(&self, server: &str) -> impl Iterator<Item = &UpstreamClient> {
        self.clients
            .values()
            .filter(move |client| client.server == server)
    }

    fn take_client(&mut self, client: &UpstreamClient) {
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
}

impl Fold for KeptAccounts {
    const OWNER: &'static str = "accounts";
    type Record = AccountRecord;

    fn apply(&mut self, record: &AccountRecord) {
        match record {
            AccountRecord::UpstreamAccount(account) => {
                let key = (account.server.clone(), account.participant.clone());
                self.accounts.insert(key, account.clone());
            }
            AccountRecord::UpstreamAccountEnded {
                server,
                participant,
                ..
            } => {
                self.accounts.remove(&(server.clone(), participant.clone()));
            }
            AccountRecord::UpstreamClient(client) => self.take_client(client),
        }
    }

    fn live(&self) -> usize {
        self.accounts.len() + self.clients.len()
    }

    fn records(&mut self, _: u64) -> Vec<AccountRecord> {
        let clients = self.clients.values().cloned();
        let accounts = self.accounts.values().cloned();
        clients
            .map(AccountRecord::UpstreamClient)
            .chain(accounts.map(AccountRecord::UpstreamAccount))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: [&str; 6] = [
        r#"{"record":"upstream_account","server":"jira","issuer":"https://idp.example","participant":"scout","sealed":"s1","at_ms":27}"#,
        r#"{"record":"upstream_account","server":"docs","issuer":"https://idp.example","sealed":"s2","at_ms":28}"#,
        r#"{"record":"upstream_account_ended","server":"jira","participant":"scout","at_ms":29}"#,
        r#"{"record":"upstream_client","server":"docs","issuer":"https://idp.example","usage":"native","sealed":"s3","at_ms":30}"#,
        r#"{"record":"upstream_client","server":"jira","issuer":"https://idp.example","usage":"web","sealed":"s4","at_ms":31}"#,
        r#"{"record":"upstream_client","server":"jira","issuer":"https://idp.example","usage":"web","sealed":"","at_ms":32}"#,
    ];

    #[test]
    fn every_record_has_its_golden_line_and_the_last_of_each_counts() {
        let mut kept = KeptAccounts::default();
        for line in LINES {
            let record: AccountRecord = serde_json::from_str(line).unwrap();
            assert_eq!(serde_json::to_string(&record).unwrap(), line);
            kept.apply(&record);
        }
        let accounts: Vec<_> = kept.all().map(|one| one.sealed.as_str()).collect();
        assert_eq!(accounts, ["s2"]);
        assert_eq!(
            (
                kept.clients_at("docs").count(),
                kept.clients_at("jira").count()
            ),
            (1, 0)
        );
        let records = kept.records(0);
        assert_eq!(records.len(), kept.live());
        let mut again = KeptAccounts::default();
        records.iter().for_each(|record| again.apply(record));
        assert_eq!(again, kept);
    }
}
