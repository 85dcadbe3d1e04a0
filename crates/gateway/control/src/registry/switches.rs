//! Servers that operators start anew, or switch off until they are switched on again.

use std::net::IpAddr;
use std::sync::Arc;

use auth::Participant;
use identity::RESTART;
use model::{Refusal, RefusalCode};
use upstream::config::{ServerConfig, Transport};

use super::Registry;

/// Act of an operator on a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// Ends its sessions and its process, and starts it again as if the gateway had just started.
    Restart,
    /// Ends them, and does not start it again.
    Disable,
    /// Starts it again.
    Enable,
}

impl Switch {
    fn done(self) -> &'static str {
        match self {
            Self::Restart => "restarted",
            Self::Disable => "disabled",
            Self::Enable => "enabled",
        }
    }
}

impl Registry {
    /// Restarts, disables or enables a configured server. What is disabled is so until it is
    /// enabled, or the gateway starts again.
    ///
    /// # Errors
    /// When there is no such server, or it is disabled already, or in the configuration; and when
    /// it cannot be recorded.
    pub async fn switch(
        self: &Arc<Self>,
        name: &str,
        switch: Switch,
        by: &Participant,
        address: Option<IpAddr>,
    ) -> Result<(), Refusal> {
        let permit = self.audit.reserve_of(&by.id)?.from_address(address);
        let end = self.try_switch(name, switch).await;
        permit.write_change((RESTART, name, None), by.id.as_str(), switch.done(), &end);
        end
    }

    async fn try_switch(self: &Arc<Self>, name: &str, switch: Switch) -> Result<(), Refusal> {
        let config = self.config();
        let server = config
            .servers
            .iter()
            .find(|server| server.name.as_str() == name);
        let server = server.ok_or_else(|| {
            Refusal::new(
                RefusalCode::UnknownTarget,
                format!("there is no server `{name}` in the configuration"),
            )
            .hint("list them: portmoot servers ls")
        })?;
        let conflict = |why: &str, hint: String| {
            Refusal::new(RefusalCode::Conflict, format!("the server `{name}` {why}")).hint(hint)
        };
        if !server.enabled {
            let hint = "remove enabled = false there: a running gateway takes it over";
            return Err(conflict(
                "is disabled in the configuration",
                hint.to_owned(),
            ));
        }
        let is_off = self.off.lock().contains(name);
        match (switch, is_off) {
            (Switch::Restart | Switch::Disable, true) => Err(conflict(
                "is disabled",
                format!("enable it: portmoot servers enable {name}"),
            )),
            (Switch::Enable, false) => Err(conflict(
                "is not disabled",
                format!("restart it: portmoot servers restart {name}"),
            )),
            (Switch::Disable, false) => {
                self.off.lock().insert(name.to_owned());
                self.apply_again(None);
                self.context.home_news.notify_one();
                Ok(())
            }
            (Switch::Enable, true) => {
                self.off.lock().remove(name);
                self.apply_again(None);
                self.context.home_news.notify_one();
                Ok(())
            }
            (Switch::Restart, false) => {
                let upstreams = self.upstreams();
                if let Some(upstream) = upstreams
                    .iter()
                    .find(|upstream| upstream.spec().name() == name)
                {
                    // First: some servers can run only once.
                    upstream.refuse_calls();
                    upstream.close().await;
                }
                self.apply_again(Some(name));
                Ok(())
            }
        }
    }

    /// The servers that operators have disabled.
    pub fn disabled_servers(&self) -> Vec<String> {
        self.off.lock().iter().cloned().collect()
    }

    /// A server as it is in force: as configured, unless an operator has disabled it.
    pub(super) fn in_force_of(&self, server: &ServerConfig) -> ServerConfig {
        let mut server = server.clone();
        if self.off.lock().contains(server.name.as_str()) {
            let fix = format!("portmoot servers enable {}", server.name);
            server.transport = Transport::Unusable {
                why: format!("it is disabled: {fix}"),
                fix,
            };
        }
        server
    }
}
