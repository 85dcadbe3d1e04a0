//! Looks at the token of a session.

use crate::home::{ConsoleHome, TokenBearer};
use crate::session::Session;

/// Whether a session goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// A session whose token is its participant's.
    Good,
    /// A session that has ended.
    Over,
    /// A session whose issuer cannot say now whether its token is good.
    Unsure,
}

/// Whether the token of a session is its participant's now.
pub(crate) async fn look_at(home: &dyn ConsoleHome, session: &Session) -> Kept {
    loop {
        let bearer = session.bearer();
        // It was good before: bad tokens of others at its address do not count for it.
        match home.bearer_of(bearer.as_deref(), None).await {
            TokenBearer::Participant(name) if name == session.participant => return Kept::Good,
            TokenBearer::Unsure => return Kept::Unsure,
            // The person may have signed in again meanwhile.
            TokenBearer::Participant(_) | TokenBearer::Unknown(_) => {
                if session.bearer() == bearer {
                    return Kept::Over;
                }
            }
        }
    }
}
