//! Search for secrets: on disk, in logs, the audit log, metrics, and answers.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use super::{KEY, Site};
use crate::authorization::provider::Provider;
use crate::home::Home;

use super::guarded::Guarded;

impl Site {
    /// Panics if a secret is found anywhere but in the configured key file.
    #[track_caller]
    pub(super) fn check_secrets_nowhere(&self) {
        let secrets = self.secrets();
        assert!(secrets.len() >= 4, "{secrets:?}");
        let journals = self.check_nowhere(secrets, None);
        let issuer = self.provider.issuer();
        let mut windows = journals.windows(issuer.len());
        assert!(
            windows.any(|window| window == issuer.as_bytes()),
            "the journal has the account"
        );
    }

    /// Panics if one of these secrets is found; what the journal has. `token` is for the API.
    #[track_caller]
    pub(super) fn check_nowhere(&self, mut secrets: Vec<String>, token: Option<&str>) -> Vec<u8> {
        secrets.push(KEY.to_owned());
        // Encoded texts differ at both ends with what surrounds them.
        let encoded: Vec<String> = secrets
            .iter()
            .map(|secret| STANDARD_NO_PAD.encode(secret)[..16].to_owned())
            .collect();
        secrets.extend(encoded);
        let mut places = vec![(
            "the log".to_owned(),
            format!("{}{}", self.logs, self.gateway.log()).into_bytes(),
        )];
        for path in [
            "/metrics",
            "/healthz",
            "/readyz",
            "/api/v1/accounts",
            "/api/v1/servers",
            "/api/v1/servers/jira",
            "/api/v1/sessions",
            "/api/v1/topics",
        ] {
            places.push((
                path.to_owned(),
                self.gateway.get(path, token).body.into_bytes(),
            ));
        }
        for command in [
            &["audit", "query", "--json"][..],
            &["servers", "show", "jira"],
            &["servers", "auth", "--json"],
            &["config", "show"],
        ] {
            let ran = self.home.run(command);
            places.push((
                format!("{command:?}"),
                (ran.stdout + &ran.stderr).into_bytes(),
            ));
        }
        files(self.home.path(), &mut places);
        let mut journals = Vec::new();
        for (place, bytes) in &places {
            for secret in &secrets {
                let found = bytes
                    .windows(secret.len())
                    .any(|window| window == secret.as_bytes());
                assert!(!found, "{secret} is in {place}");
            }
            if place.contains("journal") {
                journals.extend_from_slice(bytes);
            }
        }
        journals
    }
}

/// All files below a folder, but the key.
fn files(folder: &Path, places: &mut Vec<(String, Vec<u8>)>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            files(&path, places);
        } else if kind.is_file() && entry.file_name() != "key" {
            places.push((path.display().to_string(), std::fs::read(&path).unwrap()));
        }
    }
}

#[test]
fn no_secret_is_in_the_most_talkative_log_or_any_other_place() {
    let guarded = Guarded::start();
    let provider = Provider::of(&[guarded.url()], 600);
    guarded.set_provider(provider.address());
    let home = Home::new().env("PORTMOOT_LOG", "trace");
    let site = Site::at(home, guarded, provider, "");
    let client = site.signed_in();
    assert_eq!(site.call_with_ended_token(&client), Ok("found".to_owned()));
    site.answers("/token", 500, "");
    assert!(site.call_with_ended_token(&client).is_err());
    site.clear();
    site.check_secrets_nowhere();
    assert!(site.gateway.log().contains("TRACE"));
    site.home.run(&["servers", "logout", "jira"]).expect(0);
    site.check_secrets_nowhere();
}
