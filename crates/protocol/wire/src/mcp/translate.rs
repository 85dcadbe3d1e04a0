//! Translation between the eras: plain lists, calls, reads and gets.
//!
//! Each function writes the edits that give a message of one era the form of the other. `input.rs`
//! has questions, `task/convert.rs` tasks; subscriptions are not translated here.

use json::{Span, Splice, quote};

use crate::mcp::code::{
    HEADER_MISMATCH, MISSING_CAPABILITY, RESOURCE_NOT_FOUND, UNSUPPORTED_VERSION,
    URL_ELICITATION_REQUIRED,
};
use crate::mcp::input::{self, OF_RETRY};
use crate::mcp::method::lookup;
use crate::mcp::relay::OutgoingChanges;
use crate::mcp::{BodyEdit, Era, Version, meta, task};
use crate::rpc::ErrorObject;
use crate::rpc::code::{INTERNAL_ERROR, INVALID_PARAMS};

/// A request in the other era. To modern: `_meta` gets the version, the client's capabilities and
/// name, and the level from which on it wants log messages, if it has set one. To legacy: the
/// protocol's own keys leave `_meta`, and so do the members of a retry; the progress token and all
/// others stay.
pub(super) fn request(edit: &mut BodyEdit<'_, '_>, out: &OutgoingChanges<'_>) {
    match out.form {
        Era::Modern => {
            edit.set_meta(
                meta::PROTOCOL_VERSION,
                quote(Version::NEWEST.as_str()).as_bytes(),
            );
            if let Some(info) = out.client_info {
                edit.set_meta(meta::CLIENT_INFO, info);
            }
            if let Some(level) = out.log_level {
                edit.set_meta(meta::LOG_LEVEL, quote(level.into()).as_bytes());
            }
            let able = input::capabilities(out.capabilities);
            let able = if out.tasks {
                task::declared(&able)
            } else {
                able
            };
            edit.set_meta(meta::CLIENT_CAPABILITIES, &able);
            edit.remove_meta(&[meta::RELATED_TASK]);
        }
        Era::Legacy => request_to_legacy(edit),
    }
}

/// A request in the legacy era, which needs nothing of the session that sends it.
pub(super) fn request_to_legacy(edit: &mut BodyEdit<'_, '_>) {
    edit.remove_meta(&meta::REQUEST_KEYS);
    for key in OF_RETRY {
        edit.remove(key);
    }
}

/// A result that the other era does not have: it asks, is a task or of a kind that is not known, or
/// its members cannot be read.
#[derive(Debug)]
pub(super) struct OfOneEra;

/// A result of `method` in the other era, `to`. To modern: adds the members that a complete result
/// needs. To legacy: removes the members that only modern results have. All other members stay; a
/// result that is no object stays as it is.
pub(super) fn result(
    (frame, body): (&[u8], Span),
    method: &str,
    to: Era,
    splice: &mut Splice,
) -> Result<(), OfOneEra> {
    if !json::is_object(body.of(frame)) {
        return Ok(());
    }
    let members = json::members(frame, body).map_err(|_| OfOneEra)?;
    let meta = members
        .get("_meta")
        .and_then(|meta| json::members(frame, meta.span).ok());
    let mut edit = BodyEdit::of(Some(&members), meta.as_ref());
    let kind = members.get("resultType");
    let is_complete = kind.is_some_and(|kind| kind.text().as_deref() == Some("complete"));
    match to {
        Era::Modern => {
            edit.remove_meta(&[meta::RELATED_TASK]);
            let cached = lookup(method).is_some_and(|method| method.cached);
            // In a legacy result it means nothing.
            if !is_complete {
                edit.set("resultType", b"\"complete\"");
            }
            for (key, raw) in [("ttlMs", "0"), ("cacheScope", "\"private\"")] {
                if cached && members.get(key).is_none() {
                    edit.set(key, raw.as_bytes());
                }
            }
        }
        Era::Legacy if kind.is_some() && !is_complete => return Err(OfOneEra),
        Era::Legacy => {
            edit.remove("resultType")
                .remove("ttlMs")
                .remove("cacheScope")
                .remove_meta(&meta::ANSWER_KEYS);
        }
    }
    edit.finish(splice);
    Ok(())
}

/// The code of an error that answers `method`, in the other era, `to`. Nothing else of it changes.
///
/// -32002 and -32602 with `data.uri` are "no such resource" in the one
/// and the other era; the codes that an era must not see (-32042 in the modern one, -32020 to
/// -32022 in the legacy one) become -32603.
pub(super) fn error_code(error: &ErrorObject<'_>, method: &str, to: Era) -> i64 {
    match (to, error.code) {
        (Era::Modern, RESOURCE_NOT_FOUND) => INVALID_PARAMS,
        (Era::Modern, URL_ELICITATION_REQUIRED) => INTERNAL_ERROR,
        (Era::Legacy, INVALID_PARAMS) if method == "resources/read" && names_a_uri(error.data) => {
            RESOURCE_NOT_FOUND
        }
        (Era::Legacy, HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_VERSION) => INTERNAL_ERROR,
        (Era::Modern | Era::Legacy, code) => code,
    }
}

fn names_a_uri(data: Option<&[u8]>) -> bool {
    data.and_then(|data| json::at(data, &["uri"])).is_some()
}

#[cfg(test)]
mod tests;
