//! Configuration of a branch: a process that makes plain calls, beside another one that has proposals
//! and rooms.

use oauth::config::{AccountOwner, AuthorizationKind};
use upstream::config::{Placement, ServerConfig, Transport};

use crate::checked::Config;

impl Config {
    /// This configuration for a branch: with the servers alone that each node may call, and no
    /// participant that serves.
    #[must_use]
    pub fn of_branch(mut self) -> Self {
        let is_for_each: Vec<bool> = self
            .servers
            .iter()
            .map(|server| self.is_for_each(server))
            .collect();
        let mut is_for_each = is_for_each.into_iter();
        self.servers
            .retain(|_| is_for_each.next().unwrap_or_default());
        self.serving.clear();
        self
    }

    /// Whether a node that is not the home makes calls by this configuration.
    #[must_use]
    pub fn has_branch(&self) -> bool {
        self.doors.tls.is_none() && self.servers.iter().any(|server| self.is_for_each(server))
    }

    /// Whether each node may call a server.
    fn is_for_each(&self, server: &ServerConfig) -> bool {
        let mut others = self
            .servers
            .iter()
            .filter(|other| other.name != server.name);
        may_be_everywhere(server)
            && !self.has_account(server)
            && !others.any(|other| may_share_names(server, other))
    }
}

impl Config {
    /// Whether a server is called with an account that is not the operator's alone to sign in at.
    fn has_account(&self, server: &ServerConfig) -> bool {
        let auth = self.auth.iter().find(|(name, _)| *name == server.name);
        auth.is_some_and(|(_, auth)| {
            let is_usual = matches!(
                auth.kind,
                AuthorizationKind::None | AuthorizationKind::Headers | AuthorizationKind::OAuth
            );
            !is_usual || auth.account == AccountOwner::Caller
        })
    }
}

/// Whether a server may be called by each node, as far as its configuration says.
fn may_be_everywhere(server: &ServerConfig) -> bool {
    match (server.placement, &server.transport) {
        (Placement::Home, _) | (_, Transport::Participant | Transport::Unusable { .. }) => false,
        (Placement::Every, _) => true,
        (Placement::Auto, transport) => matches!(
            transport,
            Transport::Http(_) | Transport::OpenApi(_) | Transport::Demo
        ),
    }
}

/// Whether two servers may have a tool of one public name, which the earlier one gets: one of them has
/// no prefix. Prefixes that could shadow each other are refused before.
fn may_share_names(one: &ServerConfig, other: &ServerConfig) -> bool {
    one.prefix.is_empty() || other.prefix.is_empty()
}

#[cfg(test)]
mod tests {
    use crate::tests::good;

    fn placed(text: &str) -> Vec<String> {
        let config = good(text);
        let has_branch = config.has_branch();
        let servers = config.of_branch().servers;
        assert_eq!(has_branch, !servers.is_empty());
        servers.iter().map(|one| one.name.to_string()).collect()
    }

    #[test]
    fn each_node_calls_servers_that_keep_nothing_and_those_of_which_it_is_configured() {
        let servers = r#"
            [servers.web]
            url = "http://127.0.0.1:1/mcp"
            [servers.one]
            url = "http://127.0.0.1:2/mcp"
            placement = "home"
            [servers.process]
            command = "true"
            [servers.everywhere]
            command = "true"
            placement = "every"
            [servers.demo]
            type = "demo"
        "#;
        assert_eq!(placed(servers), ["web", "everywhere", "demo"]);
    }

    #[test]
    fn a_name_that_two_servers_may_have_is_resolved_at_the_home_alone() {
        let two = |first: &str, second: &str| {
            placed(&format!(
                "[servers.a]\nurl = \"http://127.0.0.1:1/mcp\"\nprefix = \"{first}\"\n\
                 [servers.b]\ncommand = \"true\"\nprefix = \"{second}\"\n"
            ))
        };
        assert_eq!(two("web", "files"), ["a"]);
        assert!(two("", "files").is_empty() && two("web", "").is_empty());
    }
}
