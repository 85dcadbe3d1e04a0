//! Keyring of the system: where the Secret Service of freedesktop.org runs in the user's session
//! (GNOME, KDE, KeePassXC), it keeps values under ids. What it is asked is bounded in time, and no
//! message has anything of a value.

use std::fmt;
use std::time::Duration;

use oauth::Secret;

/// Time that the keyring may take to answer.
pub const KEYRING_LIMIT: Duration = Duration::from_secs(30);
/// Time that the keyring may take where it may ask the person to unlock it.
pub const KEYRING_PROMPT_LIMIT: Duration = Duration::from_secs(120);

/// Why the keyring did not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyringError {
    /// There is none, or this process does not reach it.
    #[error("the keyring of the system cannot be reached: {0}")]
    Absent(String),
    /// It is locked.
    #[error("the keyring of the system is locked")]
    Locked,
    /// It has nothing under the id.
    #[error("the keyring of the system does not have it any more")]
    Unknown,
    /// It did not answer in time.
    #[error("the keyring of the system did not answer within {0} s")]
    Late(u64),
    /// It refused.
    #[error("the keyring of the system refused: {0}")]
    Refused(String),
}

/// A keyring: values under ids that are not guessed.
pub(crate) trait Keyring: fmt::Debug + Sync {
    /// Adds a value under a new id. The label is for the person who looks into the keyring. May ask
    /// the person to unlock it. Blocks.
    ///
    /// # Errors
    /// [`KeyringError`].
    fn add(&self, id: &str, label: &str, value: &Secret) -> Result<(), KeyringError>;

    /// The value under an id. Asks no person. Blocks.
    ///
    /// # Errors
    /// [`KeyringError`].
    fn get(&self, id: &str) -> Result<Secret, KeyringError>;

    /// Removes the value under an id, if there is one. Blocks.
    ///
    /// # Errors
    /// [`KeyringError`].
    fn remove(&self, id: &str) -> Result<(), KeyringError>;
}

/// The keyring of the user's session.
#[derive(Debug)]
pub(crate) struct SystemKeyring;

#[cfg(not(target_os = "linux"))]
impl Keyring for SystemKeyring {
    fn add(&self, _: &str, _: &str, _: &Secret) -> Result<(), KeyringError> {
        Err(none_here())
    }

    fn get(&self, _: &str) -> Result<Secret, KeyringError> {
        Err(none_here())
    }

    fn remove(&self, _: &str) -> Result<(), KeyringError> {
        Err(none_here())
    }
}

#[cfg(not(target_os = "linux"))]
fn none_here() -> KeyringError {
    KeyringError::Absent("this program uses none on this system".to_owned())
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashMap;
    use std::thread;
    use std::time::Duration;

    use oauth::Secret;
    use secret_service::{EncryptionType, Error, Item, SearchItemsResult, SecretService};
    use zeroize::Zeroizing;

    use crate::secrets::keyring::{
        KEYRING_LIMIT, KEYRING_PROMPT_LIMIT, Keyring, KeyringError, SystemKeyring,
    };

    /// The attributes by which an item is found.
    const APPLICATION: (&str, &str) = ("application", "portmoot");
    const ID: &str = "id";
    /// Variables that lead to the bus of the session. Where neither is set there is no session.
    const SESSION: [&str; 2] = ["DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR"];

    impl Keyring for SystemKeyring {
        fn add(&self, id: &str, label: &str, value: &Secret) -> Result<(), KeyringError> {
            within(KEYRING_PROMPT_LIMIT, async {
                let service = connect().await?;
                // Not the collection of the session alone: what it has is gone at its end.
                let collection = match service.get_default_collection().await {
                    Err(Error::NoResult) => {
                        return Err(KeyringError::Absent(
                            "it has no default collection".to_owned(),
                        ));
                    }
                    found => found.map_err(of)?,
                };
                collection.unlock().await.map_err(of)?;
                let value = value.expose().as_bytes();
                collection
                    .create_item(label, attributes(id), value, true, "text/plain")
                    .await
                    .map_err(of)?;
                Ok(())
            })
        }

        fn get(&self, id: &str) -> Result<Secret, KeyringError> {
            within(KEYRING_LIMIT, async {
                let service = connect().await?;
                let item = only(service.search_items(attributes(id)).await.map_err(of)?)?;
                let bytes = Zeroizing::new(item.get_secret().await.map_err(of)?);
                let text = std::str::from_utf8(&bytes).map_err(|_| KeyringError::Unknown)?;
                Ok(Secret::new(text.to_owned()))
            })
        }

        fn remove(&self, id: &str) -> Result<(), KeyringError> {
            within(KEYRING_LIMIT, async {
                let service = connect().await?;
                match only(service.search_items(attributes(id)).await.map_err(of)?) {
                    Ok(item) => item.delete().await.map_err(of),
                    Err(KeyringError::Unknown) => Ok(()),
                    Err(error) => Err(error),
                }
            })
        }
    }

    async fn connect() -> Result<SecretService<'static>, KeyringError> {
        let absent = |why: String| KeyringError::Absent(why);
        if SESSION
            .iter()
            .all(|name| std::env::var_os(name).is_none_or(|value| value.is_empty()))
        {
            return Err(absent("this is no session of a desktop".to_owned()));
        }
        SecretService::connect(EncryptionType::Dh)
            .await
            .map_err(|error| absent(error.to_string()))
    }

    fn attributes(id: &str) -> HashMap<&str, &str> {
        HashMap::from([APPLICATION, (ID, id)])
    }

    /// The one item that was found and can be read.
    fn only(found: SearchItemsResult<Item<'_>>) -> Result<Item<'_>, KeyringError> {
        match (found.unlocked.into_iter().next(), found.locked.is_empty()) {
            (Some(item), _) => Ok(item),
            (None, false) => Err(KeyringError::Locked),
            (None, true) => Err(KeyringError::Unknown),
        }
    }

    fn of(error: Error) -> KeyringError {
        match error {
            Error::Locked | Error::Prompt | Error::PromptDisconnected => KeyringError::Locked,
            Error::NoResult => KeyringError::Unknown,
            Error::Unavailable => KeyringError::Absent(error.to_string()),
            other => KeyringError::Refused(other.to_string()),
        }
    }

    /// Runs a step on a thread of its own: the caller may be on one of a runtime.
    fn within<T: Send>(
        limit: Duration,
        step: impl Future<Output = Result<T, KeyringError>> + Send,
    ) -> Result<T, KeyringError> {
        let refused = |why: String| KeyringError::Refused(why);
        let run = move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            let runtime = runtime.map_err(|error| refused(error.to_string()))?;
            let late = |_| KeyringError::Late(limit.as_secs());
            runtime.block_on(async { tokio::time::timeout(limit, step).await.map_err(late)? })
        };
        thread::scope(|scope| scope.spawn(run).join())
            .unwrap_or_else(|_| Err(KeyringError::Refused("it ended the connection".to_owned())))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::HashMap;

    use platform::Mutex;

    use super::*;

    /// A keyring in memory, which can be locked or absent.
    #[derive(Debug, Default)]
    pub(crate) struct MemoryKeyring {
        pub(crate) fails: Mutex<Option<KeyringError>>,
        pub(crate) items: Mutex<HashMap<String, String>>,
    }

    impl MemoryKeyring {
        /// One that lives as long as the test.
        pub(crate) fn leaked() -> &'static Self {
            Box::leak(Box::default())
        }

        fn check(&self) -> Result<(), KeyringError> {
            self.fails.lock().clone().map_or(Ok(()), Err)
        }
    }

    impl Keyring for MemoryKeyring {
        fn add(&self, id: &str, _: &str, value: &Secret) -> Result<(), KeyringError> {
            self.check()?;
            self.items
                .lock()
                .insert(id.to_owned(), value.expose().to_owned());
            Ok(())
        }

        fn get(&self, id: &str) -> Result<Secret, KeyringError> {
            self.check()?;
            self.items
                .lock()
                .get(id)
                .cloned()
                .map(Secret::new)
                .ok_or(KeyringError::Unknown)
        }

        fn remove(&self, id: &str) -> Result<(), KeyringError> {
            self.check()?;
            self.items.lock().remove(id);
            Ok(())
        }
    }
}
