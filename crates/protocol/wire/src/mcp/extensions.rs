//! Extensions: `capabilities.extensions` of clients and servers, an object of settings for each.
//!
//! A declaration passes through the gateway untouched, except that of tasks, which the gateway
//! converts between eras and serves itself. The declarations of a topic's servers are merged into
//! one.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use json::Span;
use memchr::memmem::Finder;
use model::ListKind;

use super::{ListNames, task};

/// MCP Apps (SEP-1865): tools whose results a client shows in a page of their server's.
pub const UI: &str = "io.modelcontextprotocol/ui";
/// Agent Skills over MCP (SEP-2640).
pub const SKILLS: &str = "io.modelcontextprotocol/skills";

/// The beginning of the URIs of apps.
pub const APP_SCHEME: &str = "ui://";

/// The most extensions of one client or server that are passed on.
pub const EXTENSIONS_MAX: usize = 16;
/// The longest id of an extension that is passed on, in bytes.
pub const EXTENSION_ID_BYTES_MAX: usize = 256;
/// The longest settings of one extension that are passed on, in bytes.
pub const EXTENSION_SETTINGS_BYTES_MAX: usize = 4096;
/// The most extensions of all servers of a topic that a handshake has, and the most members that
/// the settings of one have there.
pub const MERGED_EXTENSIONS_MAX: usize = 64;

/// The extensions that need nothing of a client but that it understands what servers list: what the
/// session of all callers declares.
const PASSIVE: [(&str, &str); 2] = [
    (SKILLS, "{}"),
    (UI, r#"{"mimeTypes":["text/html;profile=mcp-app"]}"#),
];

/// Whether capabilities name an extension.
#[must_use]
pub fn has(capabilities: &[u8], id: &str) -> bool {
    json::at(capabilities, &["extensions", id]).is_some_and(json::is_object)
}

/// Whether a client declares MCP Apps.
#[must_use]
pub fn shows_apps(capabilities: &[u8]) -> bool {
    static SIGN: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("protocol/ui"));
    // Most clients declare nothing, and each call asks.
    capabilities != b"{}" && SIGN.find(capabilities).is_some() && has(capabilities, UI)
}

/// Whether an item is a tool for apps alone, which no model calls (`_meta.ui.visibility`).
#[must_use]
pub fn is_for_apps_alone(list: ListKind, raw: &[u8]) -> bool {
    static SIGN: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("visibility"));
    if list != ListKind::Tools || SIGN.find(raw).is_none() {
        return false;
    }
    let Some(visible) = json::at(raw, &["_meta", "ui", "visibility"]) else {
        return false;
    };
    let to = json::elements(visible, Span::all(visible));
    to.is_ok_and(|to| {
        !to.iter()
            .any(|to| json::text(to.of(visible)).as_deref() == Some("model"))
    })
}

/// The `ui://` resource of the app that shows a tool's results (`_meta.ui.resourceUri`, or its
/// older flat spelling).
#[must_use]
pub fn app_of(list: ListKind, raw: &[u8]) -> Option<Cow<'_, str>> {
    static SIGN: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("esourceUri"));
    if list != ListKind::Tools || SIGN.find(raw).is_none() {
        return None;
    }
    let nested = json::at(raw, &["_meta", "ui", "resourceUri"]);
    let uri = nested
        .or_else(|| json::at(raw, &["_meta", "ui/resourceUri"]))
        .and_then(json::text)?;
    uri.starts_with(APP_SCHEME).then_some(uri)
}

/// The declarations of a client or server that are passed on as they are: each an id and an object,
/// without tasks.
fn passed(capabilities: &[u8]) -> Vec<(Cow<'_, str>, &[u8])> {
    let Some(all) = json::at(capabilities, &["extensions"]) else {
        return Vec::new();
    };
    let Ok(members) = json::members(all, Span::all(all)) else {
        return Vec::new();
    };
    let fits = |id: &str, settings: &[u8]| {
        id != task::EXTENSION
            && (1..=EXTENSION_ID_BYTES_MAX).contains(&id.len())
            && !id.contains(char::is_control)
            && settings.len() <= EXTENSION_SETTINGS_BYTES_MAX
            && json::members(settings, Span::all(settings)).is_ok()
    };
    let fitting = members.iter().filter(|(id, member)| fits(id, member.raw));
    fitting
        .take(EXTENSIONS_MAX)
        .map(|(id, member)| (Cow::Owned(id.to_owned()), member.raw))
        .collect()
}

/// Extensions that a client declares, without tasks, as the value of `capabilities.extensions`;
/// `None` if it declares nothing else.
#[must_use]
pub fn of_client(capabilities: &[u8]) -> Option<Vec<u8>> {
    write(&passed(capabilities))
}

/// Extensions of a session that no caller owns.
#[must_use]
pub fn of_all_callers() -> Vec<u8> {
    write(&PASSIVE.map(|(id, settings)| (Cow::Borrowed(id), settings.as_bytes())))
        .unwrap_or_default()
}

/// Extensions in the requests of a session that are its own: tasks, and those that its owner's
/// client declares.
#[must_use]
pub fn of_session(owner: Option<&[u8]>) -> Vec<u8> {
    let others = owner.map_or_else(|| Some(of_all_callers()), of_client);
    with_tasks(others.as_deref())
}

/// Whether a server with these capabilities has such lists. A method begins with the capability of
/// the servers that have it, unless it is an extension's.
#[must_use]
pub fn lists(capabilities: &[u8], kind: ListKind) -> bool {
    match kind {
        ListKind::Skills => has(capabilities, SKILLS),
        kind => {
            let capability = ListNames::of(kind)
                .method
                .split('/')
                .next()
                .unwrap_or_default();
            json::at(capabilities, &[capability]).is_some()
        }
    }
}

fn write(all: &[(Cow<'_, str>, &[u8])]) -> Option<Vec<u8>> {
    (!all.is_empty()).then(|| {
        json::object(|object| {
            for (id, settings) in all {
                object.raw(id, settings);
            }
        })
    })
}

/// These declarations with that of tasks, which the gateway's own requests and those of callers
/// that follow tasks need.
#[must_use]
pub(super) fn with_tasks(extensions: Option<&[u8]>) -> Vec<u8> {
    let tasks = [(task::EXTENSION, Some(&b"{}"[..]))];
    let with = extensions.and_then(|all| json::edited(all, &tasks).ok());
    with.unwrap_or_else(|| task::ABILITIES.as_bytes().to_vec())
}

/// Client capabilities without the tasks extension, which a server of the other era does not have.
#[must_use]
pub fn without_tasks(capabilities: &[u8]) -> Option<Vec<u8>> {
    if !task::declares(capabilities) {
        return None;
    }
    let rest = of_client(capabilities);
    json::edited(capabilities, &[("extensions", rest.as_deref())]).ok()
}

/// The extensions of a topic in the gateway's handshake, by id, without tasks: what its servers
/// declare in the order of configuration, and skills, whose lists the gateway merges itself.
#[derive(Debug)]
pub struct Merged(BTreeMap<String, Settings>);

/// The merged settings of one extension: members and their raw values, in the order in which they
/// came.
type Settings = Vec<(String, Vec<u8>)>;

impl Default for Merged {
    fn default() -> Self {
        // A client that connects before its servers run would never ask for their skills.
        Self(BTreeMap::from([
            (SKILLS.to_owned(), Settings::new()),
            (UI.to_owned(), Settings::new()),
        ]))
    }
}

impl Merged {
    /// Adds the capabilities of the next server.
    pub fn add(&mut self, capabilities: &[u8]) {
        for (id, settings) in passed(capabilities) {
            if self.0.len() >= MERGED_EXTENSIONS_MAX && !self.0.contains_key(&*id) {
                continue;
            }
            let Ok(members) = json::members(settings, Span::all(settings)) else {
                continue;
            };
            let merged = self.0.entry(id.into_owned()).or_default();
            for (key, member) in members.iter() {
                let has_room = merged.len() < MERGED_EXTENSIONS_MAX;
                match merged.iter_mut().find(|(known, _)| known == key) {
                    Some((_, value)) => merge(value, member.raw),
                    None if has_room => merged.push((key.to_owned(), member.raw.to_vec())),
                    None => {}
                }
            }
        }
    }

    /// The value of `capabilities.extensions`; `tasks` says whether the gateway's own are among
    /// them.
    #[must_use]
    pub fn write(&self, tasks: bool) -> Vec<u8> {
        json::object(|object| {
            if tasks {
                object.raw(task::EXTENSION, b"{}");
            }
            for (id, settings) in &self.0 {
                object.object(id, |object| {
                    for (key, raw) in settings {
                        object.raw(key, raw);
                    }
                });
            }
        })
    }
}

/// Merges what two servers say of one setting: an ability that one of them has, and all that the
/// lists of both have. Of other values the earlier server's counts.
fn merge(value: &mut Vec<u8>, other: &[u8]) {
    match (value.first(), other) {
        (Some(b'f'), b"true") if value == b"false" => *value = b"true".to_vec(),
        (Some(b'['), [b'[', ..]) if value.len() + other.len() <= EXTENSION_SETTINGS_BYTES_MAX => {
            let elements = |list: &[u8]| -> Option<Vec<Vec<u8>>> {
                let spans = json::elements(list, Span::all(list)).ok()?;
                Some(
                    spans
                        .into_iter()
                        .map(|span| span.of(list).to_vec())
                        .collect(),
                )
            };
            let (Some(mut all), Some(more)) = (elements(value), elements(other)) else {
                return;
            };
            let new: Vec<_> = more.into_iter().filter(|one| !all.contains(one)).collect();
            all.extend(new);
            *value = [b"[", &*all.join(&b","[..]), b"]"].concat();
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(raw: &[u8]) -> Value {
        serde_json::from_slice(raw).unwrap()
    }

    fn merged(all: &[Value]) -> Value {
        let mut merged = Merged::default();
        all.iter().for_each(|extensions| {
            merged.add(json!({ "extensions": extensions }).to_string().as_bytes());
        });
        read(&merged.write(false))
    }

    #[test]
    fn declarations_of_clients_pass_without_tasks() {
        for (declared, passed) in [
            ("{}", None),
            (r#"{"extensions":null}"#, None),
            (r#"{"extensions":[]}"#, None),
            (
                r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#,
                None,
            ),
            (r#"{"extensions":{"x/y":null,"":{},"a/b":3}}"#, None),
            (
                r#"{"extensions":{"io.modelcontextprotocol/tasks":{},"x/y":{"a" : [1.0]}},"roots":{}}"#,
                Some(r#"{"x/y":{"a" : [1.0]}}"#),
            ),
        ] {
            let found = of_client(declared.as_bytes()).map(|raw| String::from_utf8(raw).unwrap());
            assert_eq!(found.as_deref(), passed, "{declared}");
        }
    }

    #[test]
    fn declarations_are_bounded() {
        let of = |extensions: Value| {
            of_client(json!({ "extensions": extensions }).to_string().as_bytes())
        };
        let many = |len: usize| (0..len).map(|at| (format!("x/{at}"), json!({}))).collect();
        let count = |value: Value| read(&of(value).unwrap()).as_object().unwrap().len();
        assert_eq!(count(Value::Object(many(EXTENSIONS_MAX))), EXTENSIONS_MAX);
        assert_eq!(
            count(Value::Object(many(EXTENSIONS_MAX + 1))),
            EXTENSIONS_MAX
        );
        let id = "i".repeat(EXTENSION_ID_BYTES_MAX);
        assert!(of(json!({ &*id: {} })).is_some());
        assert!(of(json!({ format!("{id}i"): {} })).is_none());
        let text = "t".repeat(EXTENSION_SETTINGS_BYTES_MAX - r#"{"a":""}"#.len());
        assert!(of(json!({ "x/y": { "a": text } })).is_some());
        assert!(of(json!({ "x/y": { "a": format!("{text}t") } })).is_none());
    }

    #[test]
    fn only_clients_that_declare_apps_show_them() {
        for (capabilities, shows) in [
            ("{}", false),
            (r#"{"extensions":{"io.modelcontextprotocol/ui":{}}}"#, true),
            (
                r#"{"extensions":{"io.modelcontextprotocol/ui":null}}"#,
                false,
            ),
            (
                r#"{"experimental":{"io.modelcontextprotocol/ui":{}}}"#,
                false,
            ),
            (
                r#"{"extensions":{"io.modelcontextprotocol/skills":{}}}"#,
                false,
            ),
        ] {
            assert_eq!(shows_apps(capabilities.as_bytes()), shows, "{capabilities}");
        }
    }

    #[test]
    fn tools_for_apps_alone_are_those_that_no_model_may_see() {
        for (ui, alone) in [
            (r#"{"visibility":["app"]}"#, true),
            (r#"{"visibility":[]}"#, true),
            (r#"{"visibility":["model","app"]}"#, false),
            (r#"{"visibility":["mod\u0065l"]}"#, false),
            (r#"{"visibility":"app"}"#, false),
            (r#"{"resourceUri":"ui://a"}"#, false),
        ] {
            let raw = format!(r#"{{"name":"t","_meta":{{"ui":{ui}}}}}"#);
            assert_eq!(
                is_for_apps_alone(ListKind::Tools, raw.as_bytes()),
                alone,
                "{ui}"
            );
            assert!(!is_for_apps_alone(ListKind::Prompts, raw.as_bytes()));
        }
    }

    #[test]
    fn the_app_of_a_tool_is_a_ui_resource() {
        for (meta, app) in [
            (r#"{"ui":{"resourceUri":"ui://a"}}"#, Some("ui://a")),
            (r#"{"ui/resourceUri":"ui://b"}"#, Some("ui://b")),
            (
                r#"{"ui/resourceUri":"ui://b","ui":{"resourceUri":"ui://a"}}"#,
                Some("ui://a"),
            ),
            (r#"{"ui":{"resourceUri":"file:///etc/passwd"}}"#, None),
            (r#"{"resourceUri":"ui://a"}"#, None),
        ] {
            let raw = format!(r#"{{"name":"t","_meta":{meta}}}"#);
            assert_eq!(
                app_of(ListKind::Tools, raw.as_bytes()).as_deref(),
                app,
                "{meta}"
            );
        }
    }

    #[test]
    fn the_extensions_of_servers_are_merged() {
        let both = merged(&[
            json!({ "x/y": { "able": false, "kinds": ["a", "b"], "size": 1 } }),
            json!({ "x/y": { "able": true, "kinds": ["b", "c"], "size": 2, "more": {} }, "z/z": {} }),
            json!({ "x/y": { "able": false, "size": "three" } }),
        ]);
        let expected = json!({ "able": true, "kinds": ["a", "b", "c"], "size": 1, "more": {} });
        assert_eq!(both["x/y"], expected);
        assert_eq!(both["z/z"], json!({}));
        // The gateway merges skills and finds the tools of apps itself, whatever its servers have.
        assert_eq!(merged(&[]), json!({ SKILLS: {}, UI: {} }));
        assert_eq!(
            merged(&[json!({ SKILLS: { "directoryRead": true } })])[SKILLS]["directoryRead"],
            true
        );
    }

    #[test]
    fn no_server_speaks_for_tasks_or_fills_the_handshake() {
        let tasks = json!({ "io.modelcontextprotocol/tasks": { "evil": 1 } });
        assert_eq!(
            merged(std::slice::from_ref(&tasks)),
            json!({ SKILLS: {}, UI: {} })
        );
        let mut ours = Merged::default();
        ours.add(json!({ "extensions": tasks }).to_string().as_bytes());
        assert_eq!(
            read(&ours.write(true))["io.modelcontextprotocol/tasks"],
            json!({})
        );

        let filling = |server: usize| {
            let all = (0..EXTENSIONS_MAX).map(|at| (format!("x/{server}-{at}"), json!({})));
            Value::Object(all.collect())
        };
        let all: Vec<_> = (0..5).map(filling).collect();
        assert_eq!(
            merged(&all).as_object().unwrap().len(),
            MERGED_EXTENSIONS_MAX
        );
        let growing = |server: usize| {
            let members = (0..40).map(|at| (format!("{server}-{at}"), json!(at)));
            json!({ "x/y": Value::Object(members.collect()) })
        };
        let all: Vec<_> = (0..5).map(growing).collect();
        assert_eq!(
            merged(&all)["x/y"].as_object().unwrap().len(),
            MERGED_EXTENSIONS_MAX
        );
        let list = |server: usize| json!({ "x/y": { "l": vec![format!("{server}{}", "s".repeat(1000)); 3] } });
        let all: Vec<_> = (0..5).map(list).collect();
        assert!(merged(&all)["x/y"].to_string().len() <= EXTENSION_SETTINGS_BYTES_MAX + 100);
    }

    #[test]
    fn the_declaration_of_tasks_joins_the_others() {
        assert_eq!(read(&with_tasks(None)), json!({ task::EXTENSION: {} }));
        let all = read(&with_tasks(Some(&of_all_callers())));
        assert_eq!(all.as_object().unwrap().len(), 3);
        assert_eq!(all[UI]["mimeTypes"][0], "text/html;profile=mcp-app");
        let both =
            json!({ "roots": {}, "extensions": { task::EXTENSION: {}, UI: {} } }).to_string();
        let rest = without_tasks(both.as_bytes()).unwrap();
        assert_eq!(
            read(&rest),
            json!({ "roots": {}, "extensions": { UI: {} } })
        );
        assert!(without_tasks(&rest).is_none());
    }
}
