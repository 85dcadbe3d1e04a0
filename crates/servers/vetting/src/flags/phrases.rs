//! Rules about words and marks.

use super::flag::Flag;
use super::words::{Word, words};

/// A rule: words of each group follow each other, with at most so many words between two of them.
struct Rule {
    flag: Flag,
    groups: &'static [Group],
}

/// Words, and how many others may stand before one of them.
type Group = (usize, &'static [&'static str]);

const USERS: &[&str] = &[
    "user", "users", "user's", "human", "humans", "operator", "customer", "person", "anyone",
    "owner",
];
const INSTRUCTIONS: &[&str] = &[
    "instruction",
    "instructions",
    "prompt",
    "prompts",
    "rule",
    "rules",
    "guideline",
    "guidelines",
    "directive",
    "directives",
    "guidance",
    "constraints",
    "policy",
    "policies",
    "training",
    "safety",
];
const TOOLS: &[&str] = &[
    "tool",
    "tools",
    "function",
    "functions",
    "action",
    "actions",
    "server",
    "servers",
];
const CALL: &[&str] = &[
    "call",
    "calling",
    "invoke",
    "invoking",
    "use",
    "using",
    "run",
    "running",
    "execute",
    "executing",
    "access",
    "accessing",
];

const RULES: &[Rule] = &[
    Rule {
        flag: Flag::OverridesInstructions,
        groups: &[
            (
                0,
                &[
                    "ignore",
                    "ignoring",
                    "disregard",
                    "disregarding",
                    "forget",
                    "override",
                    "overrides",
                    "bypass",
                    "overrule",
                    "supersede",
                    "supersedes",
                ],
            ),
            (
                3,
                &[
                    "previous",
                    "prior",
                    "above",
                    "earlier",
                    "preceding",
                    "all",
                    "other",
                    "system",
                    "any",
                    "existing",
                    "your",
                    "former",
                    "its",
                    "these",
                ],
            ),
            (3, INSTRUCTIONS),
        ],
    },
    Rule {
        flag: Flag::OverridesInstructions,
        groups: &[
            (0, &["you"]),
            (0, &["are", "will", "must"]),
            (1, &["now"]),
            (2, &["a", "an", "in", "act", "the", "operating", "acting"]),
        ],
    },
    Rule {
        flag: Flag::OverridesInstructions,
        groups: &[
            (0, &["new", "updated", "real", "true", "actual"]),
            (1, &["system", "instruction", "instructions"]),
            (
                0,
                &["prompt", "instructions", "instruction", "follow", "are"],
            ),
        ],
    },
    Rule {
        flag: Flag::KeepsSecret,
        groups: &[
            (
                0,
                &[
                    "not", "never", "dont", "without", "avoid", "refrain", "no", "mustnt", "cannot",
                ],
            ),
            (
                2,
                &[
                    "tell",
                    "telling",
                    "mention",
                    "mentioning",
                    "inform",
                    "informing",
                    "reveal",
                    "revealing",
                    "disclose",
                    "disclosing",
                    "notify",
                    "notifying",
                    "alert",
                    "alerting",
                    "explain",
                    "report",
                    "share",
                    "talk",
                    "show",
                    "ask",
                    "asking",
                ],
            ),
            (4, USERS),
        ],
    },
    Rule {
        flag: Flag::KeepsSecret,
        groups: &[
            (0, &["not", "never", "dont", "without", "avoid"]),
            (
                2,
                &[
                    "mention",
                    "mentioning",
                    "reveal",
                    "disclose",
                    "tell",
                    "discuss",
                    "acknowledge",
                ],
            ),
            (2, &["this", "that", "it", "these", "anything"]),
            (
                2,
                &[
                    "step",
                    "instruction",
                    "instructions",
                    "note",
                    "message",
                    "to",
                    "in",
                    "tool",
                    "about",
                ],
            ),
        ],
    },
    Rule {
        flag: Flag::KeepsSecret,
        groups: &[
            (
                0,
                &["keep", "hide", "conceal", "hidden", "invisible", "secret"],
            ),
            (5, &["from", "to"]),
            (2, USERS),
        ],
    },
    Rule {
        flag: Flag::KeepsSecret,
        groups: &[
            (
                0,
                &["silently", "secretly", "quietly", "covertly", "discreetly"],
            ),
            (
                3,
                &[
                    "read", "send", "call", "include", "copy", "forward", "append", "run",
                    "execute", "add", "upload", "collect", "pass", "attach", "bcc", "also", "use",
                ],
            ),
        ],
    },
    Rule {
        flag: Flag::KeepsSecret,
        groups: &[
            (0, &["user", "users"]),
            (
                1,
                &[
                    "not", "never", "cannot", "wont", "doesnt", "shouldnt", "neednt",
                ],
            ),
            (1, &["see", "know", "notice", "need", "aware", "be"]),
            (2, &["this", "about", "aware", "it", "that", "to"]),
        ],
    },
    Rule {
        flag: Flag::AsksForSecrets,
        groups: &[
            (
                0,
                &[
                    "read", "include", "pass", "send", "provide", "attach", "append", "retrieve",
                    "extract", "collect", "copy", "dump", "export", "steal", "harvest", "leak",
                    "list", "gather", "put",
                ],
            ),
            (
                4,
                &[
                    "environment",
                    "private",
                    "ssh",
                    "session",
                    "stored",
                    "saved",
                    "aws",
                    "cloud",
                    "browser",
                    "wallet",
                    "seed",
                ],
            ),
            (
                1,
                &[
                    "variables",
                    "variable",
                    "key",
                    "keys",
                    "cookies",
                    "credentials",
                    "passwords",
                    "secrets",
                    "phrase",
                    "tokens",
                ],
            ),
        ],
    },
    Rule {
        flag: Flag::AsksForSecrets,
        groups: &[
            (
                0,
                &[
                    "include",
                    "pass",
                    "send",
                    "provide",
                    "attach",
                    "append",
                    "copy",
                    "forward",
                    "summarize",
                    "put",
                    "paste",
                    "share",
                ],
            ),
            (
                4,
                &[
                    "conversation",
                    "chat",
                    "previous",
                    "system",
                    "entire",
                    "full",
                    "all",
                ],
            ),
            (
                2,
                &[
                    "history",
                    "prompt",
                    "transcript",
                    "messages",
                    "conversation",
                    "context",
                ],
            ),
        ],
    },
    Rule {
        flag: Flag::AsksForSecrets,
        groups: &[
            (0, &["user", "user's", "users", "your", "their"]),
            (
                2,
                &[
                    "password",
                    "passwords",
                    "credentials",
                    "secrets",
                    "passphrase",
                ],
            ),
            (3, &["in", "as", "to", "into"]),
            (
                3,
                &["parameter", "argument", "field", "this", "sidenote", "url"],
            ),
        ],
    },
    Rule {
        flag: Flag::SteersTools,
        groups: &[
            (0, &["before", "prior", "whenever", "after", "when"]),
            (2, CALL),
            (2, &["any", "other", "another", "all", "every", "each"]),
            (2, TOOLS),
        ],
    },
    Rule {
        flag: Flag::SteersTools,
        groups: &[
            (0, &["before", "prior", "after", "every"]),
            (2, &["any", "other", "every", "each", "all"]),
            (
                1,
                &[
                    "tool",
                    "tools",
                    "function",
                    "action",
                    "operation",
                    "command",
                    "request",
                    "response",
                ],
            ),
            (4, CALL),
            (2, &["this", "me", "it"]),
        ],
    },
    Rule {
        flag: Flag::SteersTools,
        groups: &[
            (0, &["must", "always", "should", "required", "mandatory"]),
            (2, CALL),
            (1, &["this", "me"]),
            (2, &["tool", "function", "first", "before"]),
            (3, &["first", "before", "any", "every", "instead"]),
        ],
    },
    Rule {
        flag: Flag::SteersTools,
        groups: &[
            (0, &["not", "never", "dont", "avoid", "instead", "rather"]),
            (2, CALL),
            (
                2,
                &[
                    "other", "any", "another", "original", "official", "real", "the",
                ],
            ),
            (1, &["tool", "tools", "server", "servers", "version"]),
            (9, &["instead", "this", "broken", "deprecated", "unsafe"]),
        ],
    },
    Rule {
        flag: Flag::SteersTools,
        groups: &[
            (0, &["when", "whenever", "if"]),
            (5, &["tool", "send_email", "server"]),
            (4, &["is", "are", "invoked", "called", "used"]),
            (
                8,
                &[
                    "always", "also", "must", "change", "replace", "redirect", "instead",
                ],
            ),
            (
                5,
                &[
                    "recipient",
                    "call",
                    "add",
                    "send",
                    "append",
                    "address",
                    "set",
                    "bcc",
                    "use",
                    "to",
                ],
            ),
        ],
    },
];

/// Verbs and things of what is sent away.
const SEND: &[&str] = &[
    "send",
    "post",
    "forward",
    "upload",
    "transmit",
    "exfiltrate",
    "leak",
    "submit",
    "report",
    "email",
    "mail",
    "deliver",
    "redirect",
    "bcc",
    "copy",
    "append",
    "get",
    "fetch",
];
const THING: &[&str] = &[
    "data",
    "content",
    "contents",
    "result",
    "results",
    "history",
    "file",
    "files",
    "everything",
    "messages",
    "conversation",
    "output",
    "credentials",
    "keys",
    "all",
    "response",
    "responses",
    "emails",
    "arguments",
    "them",
    "it",
    "secrets",
    "token",
    "tokens",
    "this",
];

/// Files that hold keys.
const SECRET_FILES: &[&str] = &[
    ".ssh",
    "id_rsa",
    "id_ed25519",
    ".aws/credentials",
    "/.env",
    "mcp.json",
    "/etc/passwd",
    "/etc/shadow",
    ".netrc",
    ".git-credentials",
    ".npmrc",
    ".kube/config",
    "claude_desktop_config",
    ".gnupg",
    ".bash_history",
    "wallet.dat",
    ".docker/config",
    "/.config/gh",
    "login.keychain",
];

/// Marks of comments and of other speakers, in lower case.
const MARKS: &[(Flag, &str)] = &[
    (Flag::Comment, "<!--"),
    (Flag::Comment, "[//]: #"),
    (Flag::Comment, "[comment]: #"),
    (Flag::PromptMarkup, "<important"),
    (Flag::PromptMarkup, "<system"),
    (Flag::PromptMarkup, "</system"),
    (Flag::PromptMarkup, "<secret"),
    (Flag::PromptMarkup, "<hidden"),
    (Flag::PromptMarkup, "<instruction"),
    (Flag::PromptMarkup, "<critical"),
    (Flag::PromptMarkup, "<admin"),
    (Flag::PromptMarkup, "<assistant"),
    (Flag::PromptMarkup, "<|"),
    (Flag::PromptMarkup, "[inst]"),
    (Flag::PromptMarkup, "<<sys>>"),
    (Flag::PromptMarkup, "[system]"),
    (Flag::PromptMarkup, "[system "),
    (Flag::PromptMarkup, "###system"),
    (Flag::PromptMarkup, "### system"),
    (Flag::PromptMarkup, "### instruction"),
    (Flag::PromptMarkup, "system override"),
    (Flag::PromptMarkup, "system note:"),
    (Flag::PromptMarkup, "system prompt:"),
    (Flag::PromptMarkup, "\nsystem:"),
    (Flag::PromptMarkup, "\nassistant:"),
    (Flag::SendsAway, "![](http"),
    (Flag::RunsCommand, "| sh"),
    (Flag::RunsCommand, "|sh "),
    (Flag::RunsCommand, "| bash"),
    (Flag::RunsCommand, "|bash"),
    (Flag::RunsCommand, "rm -rf ~"),
    (Flag::RunsCommand, "rm -rf /"),
    (Flag::RunsCommand, "base64 -d"),
    (Flag::RunsCommand, "nc -e"),
    (Flag::RunsCommand, "/dev/tcp/"),
];

/// Marks in a text.
pub(super) fn marks(text: &str) -> Vec<(Flag, usize)> {
    // Bytes keep their places.
    let lower = text.to_ascii_lowercase();
    MARKS
        .iter()
        .filter_map(|(flag, mark)| Some((*flag, lower.find(mark)?)))
        .collect()
}

/// Phrases in a text.
pub(super) fn phrases(text: &str) -> Vec<(Flag, usize)> {
    let words = words(text);
    let mut found: Vec<(Flag, usize)> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let rest = words.get(at..).unwrap_or_default();
        let holds = RULES.iter().filter(|rule| follows(rest, rule.groups));
        found.extend(holds.map(|rule| (rule.flag, word.at)));
        if SECRET_FILES.iter().any(|file| word.text.contains(file)) || word.text == ".env" {
            found.push((Flag::AsksForSecrets, word.at));
        }
        if SEND.contains(&word.text.as_str()) && sends_away(rest) {
            found.push((Flag::SendsAway, word.at));
        }
    }
    found
}

/// Whether words begin with one of each group.
fn follows(words: &[Word], groups: &[Group]) -> bool {
    let Some(((between, group), rest)) = groups.split_first() else {
        return true;
    };
    let near = words.iter().take(between + 1).enumerate();
    near.into_iter().any(|(at, word)| {
        let plain = word.text.trim_matches(['_', '-', '.', ':']);
        group.contains(&plain) && follows(words.get(at + 1..).unwrap_or_default(), rest)
    })
}

/// Whether something is sent to an address near the verb.
fn sends_away(words: &[Word]) -> bool {
    let near = words.get(1..words.len().min(16)).unwrap_or_default();
    let thing = near
        .iter()
        .position(|word| THING.contains(&word.text.as_str()));
    let is_address = |word: &Word| {
        let host = word
            .text
            .strip_prefix("https://")
            .or_else(|| word.text.strip_prefix("http://"));
        let is_mail = word
            .text
            .split_once('@')
            .is_some_and(|(who, host)| !who.is_empty() && host.contains('.'));
        is_mail || host.is_some_and(|host| host.contains('.') || host.starts_with("localhost"))
    };
    thing.is_some_and(|thing| near.iter().skip(thing).any(is_address))
}
