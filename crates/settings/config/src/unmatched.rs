//! Capabilities and rules that can match nothing: a misspelled head, method, act of the gateway or
//! addressee, and what is meant instead.

use crate::checked::Config;
use identity::{ACCOUNTS, AUDIT, GRANTS, PINS, RESTART, SERVERS, TOKENS};
use model::{
    APPROVE, Capability, GATEWAY, KindRef, PAUSE, PROPOSAL, ParticipantId, REJECT, REQUEST,
};
use rules::CallRule;
use upstream::config::ServerConfig;
use wire::mcp::method::{self, TargetKind};

use crate::node::{Node, Value};
use crate::problem::suggestion;
use crate::sets;

/// Acts of the gateway itself.
const ACTS: [&str; 9] = [
    GRANTS, TOKENS, SERVERS, PINS, ACCOUNTS, AUDIT, REJECT, PAUSE, RESTART,
];
const ACTS_BEGIN: &str = "portmoot/";
const HEADS: [&str; 4] = [REQUEST, PROPOSAL, APPROVE, "mcp/response"];

/// Tables whose entries have `capabilities`.
const TABLES: [&str; 3] = ["servers", "profiles", "participants"];

/// Keys of lists of capabilities.
const LISTS: [&str; 2] = ["capabilities", "shadow_capabilities"];

/// Messages about capabilities and rules of a valid configuration that can match nothing.
pub(crate) fn unmatched(tree: &Node, config: &Config) -> Vec<String> {
    let servers = config.servers.iter().map(|server| server.name.as_str());
    let participants = config
        .identity
        .participants
        .iter()
        .map(|one| one.participant.id.as_str());
    let names: Vec<&str> = servers.chain(participants).chain([GATEWAY]).collect();
    let prefixes: Vec<&str> = config
        .servers
        .iter()
        .map(|server| &*server.prefix)
        .collect();
    let mut found = unmatched_rules(config, &names);
    for table in TABLES {
        for entry in tree.get(table).map(Node::entries).unwrap_or_default() {
            for (key, item) in written(&entry.node) {
                let at = format!("{}: `{table}.{}.{key}`", item.location, entry.key);
                let kind = item
                    .text()
                    .or_else(|| item.get("kind")?.text())
                    .unwrap_or_default();
                let is_set = sets::named(kind).is_some();
                let why = if is_set {
                    None
                } else {
                    mismatch(kind).or_else(|| doubled(kind, &prefixes))
                };
                found.extend(why.map(|why| format!("{at}: {why}")));
                for why in addressees(item, &names) {
                    found.push(format!("{at}: {why}"));
                }
            }
        }
    }
    found
}

/// Messages about rules of topics' files that can match no call.
fn unmatched_rules(config: &Config, names: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for topic in &config.rules {
        for rule in topic.rules.iter() {
            let mut whys: Vec<String> = mismatch(&rule.scope.kind()).into_iter().collect();
            if let Some(to) = &rule.scope.to {
                if !names.contains(&to.as_str()) {
                    whys.push(unknown_name(to.as_str(), names));
                }
                whys.extend(prefixed_target(rule, to, &config.servers));
            }
            let at = format!("{}: rule {}", topic.file.display(), rule.name.id);
            found.extend(whys.iter().map(|why| format!("{at}: {why}")));
        }
    }
    found
}

/// The message about a rule that names a tool or prompt as callers see it, unless its server has that
/// name itself.
fn prefixed_target(
    rule: &CallRule,
    to: &ParticipantId,
    servers: &[ServerConfig],
) -> Option<String> {
    let server = servers.iter().find(|server| server.name == *to)?;
    let target = rule.scope.target.as_deref()?;
    let own = target.strip_prefix(&*server.prefix)?.strip_prefix('_')?;
    let is_named = matches!(&*rule.scope.method, "tools/call" | "prompts/get");
    let is_prefixed = is_named && !server.prefix.is_empty() && !own.is_empty();
    is_prefixed.then(|| {
        format!("a rule names `{target}` as its server does, without prefix: did you mean `{own}`?")
    })
}

/// The capabilities that a table has, each with the key of its list.
fn written(table: &Node) -> impl Iterator<Item = (&'static str, &Node)> {
    let lists = LISTS.into_iter().filter_map(|key| {
        let list = table.get(key)?;
        let Value::List(items) = &list.value else {
            return None;
        };
        Some(items.iter().map(move |item| (key, item)))
    });
    lists.flatten()
}

/// Why a valid capability can match nothing, as far as the gateway knows the kinds.
pub fn mismatch(text: &str) -> Option<String> {
    if let Some((_, set)) = sets::named(text) {
        return Some(format!(
            "`{text}` matches nothing: sets are for the configuration: write the patterns of `{set}`"
        ));
    }
    let (head, rest) = text
        .split_once(':')
        .map_or((text, None), |(head, rest)| (head, Some(rest)));
    if text.starts_with(ACTS_BEGIN) {
        return unknown_act(text);
    }
    if !head.starts_with("mcp/") {
        // The method of a request, without the part before it.
        if method::lookup(head).is_some() {
            return Some(format!(
                "`{text}` matches no request: did you mean `{REQUEST}:{text}`?"
            ));
        }
        return None;
    }
    let one = Capability::parse(head).ok()?;
    if !HEADS.iter().any(|head| one.admits_head(head)) {
        let rest = rest.map(|rest| format!(":{rest}")).unwrap_or_default();
        let hint = suggestion(head, HEADS).unwrap_or_else(|| format!("write `{REQUEST}{rest}`"));
        return Some(format!("`{head}` is no kind of MCP: {hint}"));
    }
    let rest = rest?;
    let (name, context) = rest
        .split_once(':')
        .map_or((rest, None), |(name, context)| (name, Some(context)));
    let one = Capability::parse(&format!("{REQUEST}:{name}")).ok()?;
    let rows: Vec<_> = method::all()
        .filter(|row| KindRef::request(row.name, None).is_ok_and(|kind| one.admits(kind)))
        .collect();
    if rows.is_empty() {
        // An exact name may be a method that the gateway does not know.
        let hint = suggestion(name, families().chain(method::all().map(|row| row.name)));
        let hint = hint.or_else(|| {
            name.contains('*')
                .then(|| "methods are named as in `tools/call`".to_owned())
        })?;
        return Some(format!(
            "`{name}` in `{text}` matches no method of MCP: {hint}"
        ));
    }
    let has_context = rows.iter().any(|row| row.target != TargetKind::None);
    let context = context?;
    if has_context || context == "*" {
        return None;
    }
    Some(format!(
        "`{text}` matches nothing, because `{name}` has no name or URI behind it: leave out `:{context}`"
    ))
}

/// Why a capability for the gateway's own acts matches none of them.
fn unknown_act(text: &str) -> Option<String> {
    if Capability::parse(text).is_ok_and(|one| ACTS.iter().any(|act| one.admits_head(act))) {
        return None;
    }
    let hint = suggestion(text, ACTS).unwrap_or_else(|| {
        format!(
            "the gateway's own capabilities are {}",
            ACTS.map(|act| format!("`{act}`")).join(", ")
        )
    });
    Some(format!(
        "`{text}` matches nothing that the gateway does: {hint}"
    ))
}

/// A context with a doubled prefix, which no public name has unless the server's own name does.
fn doubled(text: &str, prefixes: &[&str]) -> Option<String> {
    let (head, name) = text.rsplit_once(':')?;
    let is_named = head.ends_with(":tools/call") || head.ends_with(":prompts/get");
    let prefix = prefixes
        .iter()
        .find(|prefix| !prefix.is_empty() && name.starts_with(&format!("{prefix}_{prefix}_")))?;
    let rest = name.strip_prefix(&format!("{prefix}_"))?;
    is_named.then(|| {
        format!(
            "the prefix `{prefix}` is not repeated in public names: did you mean `{head}:{rest}`?"
        )
    })
}

/// Patterns for all methods of a family: `tools/*`.
fn families() -> impl Iterator<Item = &'static str> {
    [
        "tools/*",
        "prompts/*",
        "resources/*",
        "notifications/*",
        "tasks/*",
    ]
    .into_iter()
}

/// Messages about addressees of a capability that name no configured server or participant.
fn addressees(item: &Node, names: &[&str]) -> Vec<String> {
    let written: Vec<&str> = match item.get("to") {
        Some(Node {
            value: Value::List(items),
            ..
        }) => items.iter().filter_map(Node::text).collect(),
        Some(one) => one.text().into_iter().collect(),
        None => Vec::new(),
    };
    let mut messages = Vec::new();
    for pattern in written {
        if !names_any(pattern, names) {
            messages.push(unknown_name(pattern, names));
        }
    }
    messages
}

fn unknown_name(name: &str, names: &[&str]) -> String {
    let hint = suggestion(name, names.iter().copied());
    let hint = hint.unwrap_or_else(|| "check the name".to_owned());
    format!("there is no server or participant `{name}`: {hint}")
}

/// Whether an addressee is one of these names, or a pattern of some.
fn names_any(pattern: &str, names: &[&str]) -> bool {
    // Any kind does: what counts is to whom the capability is.
    let Ok(kind) = KindRef::parse("chat") else {
        return false;
    };
    Capability::parse("chat")
        .and_then(|chat| chat.to([pattern]))
        .is_ok_and(|chat| names.iter().any(|name| chat.admits_to(kind, &[name])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_that_can_match_nothing_are_named_with_what_is_meant() {
        for (text, expect) in [
            ("mcp/request:tools/cal", Some("did you mean `tools/call`?")),
            (
                "mcp/request:tools/call:@read",
                Some("write the patterns of `read`"),
            ),
            ("mcp/request:prompts/get:@read", None),
            (
                "mcp/request:tools/cal:x",
                Some("did you mean `tools/call`?"),
            ),
            (
                "mcp/proposal:Tools/Call",
                Some("did you mean `tools/call`?"),
            ),
            ("mcp/request:tool/*", Some("did you mean `tools/*`?")),
            (
                "mcp/request:x*y",
                Some("methods are named as in `tools/call`"),
            ),
            (
                "mcp/approves:tools/call:x",
                Some("did you mean `mcp/approve`?"),
            ),
            (
                "mcp/approve:tools/cal:x",
                Some("did you mean `tools/call`?"),
            ),
            ("mcp/approve:tools/call:x", None),
            ("mcp/requests", Some("did you mean `mcp/request`?")),
            (
                "mcp/requests:tools/call:x",
                Some("did you mean `mcp/request`?"),
            ),
            ("mcp/req*:tools/cal", Some("did you mean `tools/call`?")),
            ("mcp/z", Some("is no kind of MCP")),
            ("mcp/request:tools/list:x", Some("leave out `:x`")),
            (
                "tools/call:x",
                Some("did you mean `mcp/request:tools/call:x`?"),
            ),
            ("tools/call", Some("did you mean `mcp/request:tools/call`?")),
            ("portmoot/token", Some("did you mean `portmoot/tokens`?")),
            ("portmoot/x", Some("matches nothing that the gateway does")),
            (
                "portmoot/tokens:new",
                Some("did you mean `portmoot/tokens`?"),
            ),
            ("portmoot/*", None),
            ("portmoot/servers", None),
            ("mcp/*", None),
            ("mcp/req*", None),
            ("mcp/request", None),
            ("mcp/request:*", None),
            ("mcp/request:*/list", None),
            ("mcp/request:tools/*", None),
            ("mcp/request:tools/*:x", None),
            ("mcp/request:tools/list:*", None),
            ("mcp/request:acme/do", None),
            ("mcp/response:*", None),
            ("chat", None),
            ("acme/event", None),
        ] {
            let found = mismatch(text);
            assert_eq!(found.is_some(), expect.is_some(), "{text}: {found:?}");
            assert!(
                found
                    .unwrap_or_default()
                    .contains(expect.unwrap_or_default()),
                "{text}"
            );
            assert!(Capability::parse(text).is_ok(), "{text}");
        }
    }
}
