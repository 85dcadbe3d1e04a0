//! Files of rules (`rules.toml`): reading, with errors that name the place and the remedy.

mod guards_of_rules;
mod reader;
mod tests_of_values;

use std::collections::BTreeMap;

use chrono::DateTime;
use model::{Digest, KindRef, NamePattern, ParticipantId, REQUEST};
use toml::Spanned;
use toml::de::DeTable;

use crate::conditions::Conditions;
use crate::name::{RuleId, RuleName};
use crate::rule::{CallRule, PROPOSERS_MAX, RuleDecision, RuleScope};
use crate::window::WeekHours;
use guards_of_rules::{count_of_calls, guards};
pub use reader::RuleFileError;
use reader::{ItemReader, Source, TableReader};
use tests_of_values::{conditions, conditions_in};

/// The longest file of rules, in bytes.
pub const RULES_FILE_BYTES_MAX: usize = 1024 * 1024;
/// The most rules of one topic.
pub const RULES_MAX: usize = 256;
/// The most rules of one tool.
pub const TOOL_RULES_MAX: usize = 32;
/// The keys of a rule.
const KEYS: [&str; 19] = [
    "id",
    "version",
    "author",
    "decision",
    "kind",
    "to",
    "proposers",
    "definition",
    "server",
    "expires",
    "uses",
    "rate",
    "during",
    "destructive",
    "shadow",
    "sum",
    "count",
    "after",
    "when",
];

/// A rule of a file, with the place at which it begins there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenRule {
    /// The rule.
    pub rule: CallRule,
    /// The line, from 1 on.
    pub line: usize,
    /// The column in characters, from 1 on.
    pub column: usize,
}

/// Reads a file of rules.
///
/// # Errors
/// The first fault, with its place and what to write instead.
pub fn parse_rules(text: &str) -> Result<Vec<CallRule>, RuleFileError> {
    let written = parse_written_rules(text)?;
    Ok(written.into_iter().map(|written| written.rule).collect())
}

/// Reads a file of rules, each with its place.
///
/// # Errors
/// The first fault, with its place and what to write instead.
pub fn parse_written_rules(text: &str) -> Result<Vec<WrittenRule>, RuleFileError> {
    let source = Source { text };
    let file = root(source)?;
    let file = TableReader::new(source, file.get_ref(), 0..0);
    file.known(&["rule"])?;
    let Some(list) = file.get("rule") else {
        return Ok(Vec::new());
    };
    let mut rules: Vec<WrittenRule> = Vec::new();
    let mut counted: BTreeMap<(String, Option<ParticipantId>), usize> = BTreeMap::new();
    for item in list.list()? {
        let rule = rule(&item.table()?)?;
        let tool = (rule.scope.kind(), rule.scope.to.clone());
        let of_tool = counted.entry(tool).or_default();
        *of_tool += 1;
        let wrong = if rules.len() == RULES_MAX {
            Some(format!("more than {RULES_MAX} rules"))
        } else if *of_tool > TOOL_RULES_MAX {
            Some(format!("more than {TOOL_RULES_MAX} rules of one tool"))
        } else if rules.iter().any(|other| other.rule.name.id == rule.name.id) {
            Some("the id is taken by a rule above".to_owned())
        } else {
            None
        };
        if let Some(wrong) = wrong {
            let error = item.error(wrong, "merge rules, or remove one");
            return Err(error.of_rule(rule.name.id.as_str()));
        }
        let place = item.place();
        rules.push(WrittenRule {
            rule,
            line: place.line,
            column: place.column,
        });
    }
    Ok(rules)
}

/// Reads the conditions of an approving rule alone, as they stand under `[rule.when]`.
///
/// # Errors
/// The first fault, with its place and what to write instead.
pub fn parse_conditions(text: &str) -> Result<Conditions, RuleFileError> {
    let source = Source { text };
    let table = root(source)?;
    conditions_in(
        &TableReader::new(source, table.get_ref(), 0..0),
        RuleDecision::Approve,
    )
}

/// The outermost table of a text.
fn root(source: Source<'_>) -> Result<Spanned<DeTable<'_>>, RuleFileError> {
    let text = source.text;
    if text.len() > RULES_FILE_BYTES_MAX {
        return Err(source.error(
            &(0..0),
            format_args!("the file is longer than {RULES_FILE_BYTES_MAX} bytes"),
            "remove rules that have ended",
        ));
    }
    DeTable::parse(text).map_err(|error| {
        let message = error.message().trim().replace('\n', ", ");
        source.error(&error.span().unwrap_or_default(), message, "write TOML")
    })
}

/// Checks that a rule's text reads as the rule: that it is one which a file could hold, and that
/// its text, which people see and accept, says all of it.
///
/// # Errors
/// The fault.
pub(crate) fn reads_back(rule: &CallRule) -> Result<(), String> {
    let read = parse_rules(&rule.text()).map_err(|error| error.message)?;
    if read.as_slice() == std::slice::from_ref(rule) {
        Ok(())
    } else {
        Err("its text says something else".to_owned())
    }
}

fn rule(table: &TableReader<'_>) -> Result<CallRule, RuleFileError> {
    let item = table.required("id", "write an id such as `id = \"r12\"`")?;
    let id = item.parsed(RuleId::new, "an id such as \"r12\"")?;
    rule_of(&id, table).map_err(|error| error.of_rule(id.as_str()))
}

fn rule_of(id: &RuleId, table: &TableReader<'_>) -> Result<CallRule, RuleFileError> {
    table.known(&KEYS)?;
    let version = match table.get("version") {
        Some(version) => count_from_one(&version)?,
        None => 1,
    };
    let author = table.required("author", "write the person on whose authority it decides")?;
    let author = participant(&author)?;
    let item = table.required("decision", "write `approve`, `reject` or `ask`")?;
    let read = |name: &str| RuleDecision::parse(name).ok_or("there is no such decision");
    let decision = item.parsed(read, "\"approve\", \"reject\" or \"ask\"")?;
    if decision.tightens() {
        refuse_keys(table)?;
    }
    let scope = scope(table, decision, &author)?;
    let uses = table
        .get("uses")
        .map(|uses| count_of_calls(&uses))
        .transpose()?;
    let during = table.get("during");
    let hours = "hours such as \"Mon-Fri 06:00-18:00 UTC\"";
    let during = during.map(|during| during.parsed(WeekHours::parse, hours));
    let destructive = table
        .get("destructive")
        .map(|flag| flag.flag())
        .transpose()?;
    let shadow = table.get("shadow").map(|flag| flag.flag()).transpose()?;
    let rule = CallRule {
        name: RuleName {
            id: id.clone(),
            version,
        },
        author,
        decision,
        scope,
        when: conditions(table.get("when").as_ref(), decision)?,
        guards: guards(table)?,
        during: during.transpose()?,
        expires_ms: table.get("expires").map(|end| time(&end)).transpose()?,
        uses,
        destructive: destructive.unwrap_or_default(),
        shadow: shadow.unwrap_or_default(),
    };
    if !decision.tightens() {
        table.required(
            "uses",
            "write how often it may decide before its author looks again",
        )?;
        table.required("expires", "write its end, at most 30 days from now")?;
    }
    Ok(rule)
}

/// Refuses the keys that only approving rules have.
fn refuse_keys(table: &TableReader<'_>) -> Result<(), RuleFileError> {
    for key in ["definition", "server", "uses", "destructive"] {
        if let Some(item) = table.get(key) {
            return Err(item.key_error(
                format_args!("`{key}` would end a rule that only rejects or asks"),
                "leave it out",
            ));
        }
    }
    Ok(())
}

fn scope(
    table: &TableReader<'_>,
    decision: RuleDecision,
    author: &ParticipantId,
) -> Result<RuleScope, RuleFileError> {
    let example = format!("a kind such as \"{REQUEST}:tools/call:create_issue\"");
    let item = table.required("kind", "write the calls that it looks at")?;
    let kind = item.parsed(KindRef::parse, &example)?;
    let (REQUEST, Some(method)) = (kind.head(), kind.method()) else {
        return Err(item.error("a rule is about requests", format_args!("write {example}")));
    };
    if kind.context().is_some_and(|target| target.contains('*')) {
        return Err(item.error(
            "`*` is no wildcard here",
            "name one tool, or, where the rule rejects or asks, none for all of them",
        ));
    }
    if kind.context().is_none() && !decision.tightens() {
        return Err(item.error(
            "an approving rule names one tool",
            format_args!("write {example}"),
        ));
    }
    let to = table.get("to").map(|to| participant(&to)).transpose()?;
    let mut digests = [None, None];
    if !decision.tightens() {
        table.required("to", "write the server that runs the call")?;
        for (key, digest) in ["definition", "server"].iter().zip(&mut digests) {
            let item = table.required(key, "write the 64 digits that `portmoot rules` shows")?;
            let read = item.parsed(str::parse::<Digest>, "64 hexadecimal digits")?;
            *digest = Some(read);
        }
    }
    let [definition, server] = digests;
    Ok(RuleScope {
        method: method.into(),
        target: kind.context().map(Box::from),
        to,
        proposers: proposers(table, decision, author)?,
        definition,
        server,
    })
}

fn proposers(
    table: &TableReader<'_>,
    decision: RuleDecision,
    author: &ParticipantId,
) -> Result<Vec<NamePattern>, RuleFileError> {
    let list = table.required("proposers", "write `proposers = [\"scout\"]`")?;
    let items = list.list()?;
    if items.is_empty() || items.len() > PROPOSERS_MAX {
        return Err(list.error(
            format_args!("the rule has {} proposers", items.len()),
            format_args!("write 1 to {PROPOSERS_MAX}"),
        ));
    }
    let mut patterns = Vec::new();
    for item in &items {
        let pattern = item.parsed(NamePattern::parse, "the name of a participant")?;
        if !decision.tightens() {
            let name = participant(item)?;
            if name.as_str().contains('*') {
                return Err(item.error(
                    "an approving rule names its proposers",
                    "write exact names, each with evidence of its own",
                ));
            }
            if name == *author {
                return Err(item.error(
                    "a rule never decides its author's own proposals",
                    "write other proposers",
                ));
            }
        }
        if patterns.contains(&pattern) {
            return Err(item.error("the proposer stands there twice", "write it once"));
        }
        patterns.push(pattern);
    }
    Ok(patterns)
}

fn participant(item: &ItemReader<'_>) -> Result<ParticipantId, RuleFileError> {
    item.parsed(ParticipantId::new, "the name of a participant")
}

fn count_from_one(item: &ItemReader<'_>) -> Result<u32, RuleFileError> {
    match item.count()? {
        0 => Err(item.error("versions begin at 1", "write 1 or more")),
        count => Ok(count),
    }
}

fn time(item: &ItemReader<'_>) -> Result<u64, RuleFileError> {
    let wrong = || {
        item.error(
            "this is no time with an offset, in whole seconds",
            "write a time such as \"2026-12-06T09:00:00Z\"",
        )
    };
    let text = item.text_or_date()?;
    let at = DateTime::parse_from_rfc3339(&text).map_err(|_| wrong())?;
    let seconds = u64::try_from(at.timestamp()).map_err(|_| wrong())?;
    if at.timestamp_subsec_millis() != 0 {
        return Err(wrong());
    }
    seconds.checked_mul(1000).ok_or_else(wrong)
}

#[cfg(test)]
mod documented;
#[cfg(test)]
mod tests;
