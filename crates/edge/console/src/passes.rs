//! Sign-ins elsewhere that go on with a one-time code of the console: to the person's own name of this
//! machine, or to the answer to a question.

use std::collections::HashMap;
use std::sync::Arc;

use api::CONSOLE_CODE_MS;
use platform::Mutex;

use crate::account::Account;
use crate::session::Person;

/// A sign-in that goes on with a code.
struct Pass {
    code: String,
    account: Option<Arc<Account>>,
    proved_ms: u64,
    until_ms: u64,
}

/// Sign-ins that go on with codes, by participant: each has one, as it has one code.
#[derive(Default)]
pub(crate) struct Passes(Mutex<HashMap<String, Pass>>);

impl Passes {
    /// Binds a sign-in to a code of its participant.
    pub(crate) fn give(&self, code: &str, person: &Person, now_ms: u64) {
        let pass = Pass {
            code: code.to_owned(),
            account: person.account.clone(),
            proved_ms: person.proved_ms,
            until_ms: now_ms.saturating_add(CONSOLE_CODE_MS),
        };
        let mut all = self.0.lock();
        all.insert(person.participant.clone(), pass);
    }

    /// Drops sign-ins whose codes were not used in time, with their tokens.
    pub(crate) fn sweep(&self, now_ms: u64) {
        self.0.lock().retain(|_, pass| now_ms < pass.until_ms);
    }

    /// The person that goes on with a code, which was its participant's.
    pub(crate) fn take(&self, code: &str, mut person: Person, now_ms: u64) -> Person {
        let mut all = self.0.lock();
        let is_it = |pass: &Pass| pass.code == code && now_ms < pass.until_ms;
        if all.get(&person.participant).is_some_and(is_it)
            && let Some(pass) = all.remove(&person.participant)
        {
            person.account = pass.account;
            person.proved_ms = pass.proved_ms;
        }
        person
    }
}
