//! Lines of the formats before owners: a record's kind says whose it is.
//!
//! Format 1 had no numbers and checksums, format 2 had them. Both wrote records of all owners alike,
//! each with its kind in the member `record`. Owners still write and read their records so: an old
//! line lacks nothing but its envelope.

use crate::entry::Entry;

const KIND_PREFIX: &[u8] = br#""record":""#;

/// The owner of records of this kind.
fn owner_of(kind: &[u8]) -> Option<&'static str> {
    Some(match kind {
        b"audit_key" => "audit",
        b"sealing_key" => "sealing",
        b"token_issued" | b"token_revoked" | b"grant_changed" | b"grants_cleared" | b"expired"
        | b"login_key" | b"family_begun" | b"family_renewed" | b"family_ended"
        | b"consent_given" | b"consent_withdrawn" => "access",
        b"pin" | b"pins_reset" => "pins",
        b"upstream_account" | b"upstream_account_ended" | b"upstream_client" => "accounts",
        b"sessions_ended" => "sessions",
        b"task_created" => "tasks",
        b"proposal_opened" | b"proposal_decided" | b"proposal_ended" | b"proposals_closed" => {
            "proposals"
        }
        _ => return None,
    })
}

/// The entry of an old line; `members` is what follows its first brace, number and checksum.
pub(super) fn entry(members: &[u8]) -> Option<Entry> {
    let rest = members.strip_prefix(KIND_PREFIX)?;
    let kind = rest.split(|byte| *byte == b'"').next()?;
    Some(Entry::from_members(owner_of(kind)?, members))
}
