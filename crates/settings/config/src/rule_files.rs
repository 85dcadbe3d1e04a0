//! Files of rules that topics name: `rules = "rules.toml"`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{ParticipantId, TopicName};
use platform::unix_ms;
use rules::{CallRule, TermError, parse_written_rules};

use crate::node::{Layer, Location, SourceOrigin};
use crate::problem::Problem;
use crate::read_file::read_file;
use crate::reader::Table;
use crate::toml_file;
use crate::values::{Env, plain_path_at};

/// The key of a topic that names its file of rules.
const KEY: &str = "rules";

/// The rules of a topic, as its file has them.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicRules {
    /// The topic.
    pub topic: TopicName,
    /// The file, which is watched for changes.
    pub file: PathBuf,
    /// Its rules, in the order of the file.
    pub rules: Arc<[CallRule]>,
}

/// A reason for which a rule of a file cannot be carried out as it is written.
struct RuleFault {
    message: String,
    hint: &'static str,
}

/// Reads the file of rules of a topic's table, if it names one.
pub(crate) fn read(table: &Table<'_>, topic: &TopicName, env: Env<'_>) -> Option<TopicRules> {
    let written = plain_path_at(table, KEY, env)?;
    let place = table.place(KEY);
    if place.layer.origin == SourceOrigin::Found {
        // Consent is to the configuration: the rules may be others by the time that they decide.
        table.note_value(
            KEY,
            format!(
                "`{}`: a file that you did not name has no rules",
                table.full(KEY)
            ),
            "name your configuration with --config FILE",
        );
        return None;
    }
    let file = beside(Path::new(&place.layer.name), written);
    let text = match read_file(&file) {
        Ok(text) => text,
        Err(why) => {
            let shown = file.display();
            let message = format!("`{}`: {shown} cannot be read: {why}", table.full(KEY));
            table.note_value(
                KEY,
                message,
                "name a file of rules, beside the configuration",
            );
            return None;
        }
    };
    let rules = match rules_in(&file.display().to_string(), text) {
        Ok(rules) => rules,
        Err(problems) => {
            for problem in problems {
                table.problems().note(problem);
            }
            return None;
        }
    };
    Some(TopicRules {
        topic: topic.clone(),
        file,
        rules: rules.into(),
    })
}

/// A path as the file that names it means it: from its own directory on.
fn beside(config: &Path, path: PathBuf) -> PathBuf {
    match config.parent() {
        Some(folder) if path.is_relative() => folder.join(path),
        Some(_) | None => path,
    }
}

/// Reads a file of rules and checks it, as if a topic named it. Returns its text.
///
/// # Errors
/// Why it cannot be read, or its faults, each with its place.
pub fn checked_rules(file: &Path) -> Result<String, Vec<Problem>> {
    let name = file.display().to_string();
    let text = read_file(file).map_err(|why| {
        let problem = Problem::new("config_rules", format!("{name} cannot be read: {why}"));
        vec![problem.hint("name a file of rules")]
    })?;
    rules_in(&name, text.clone())?;
    Ok(text)
}

/// Whether a file is one of rules, and no configuration: it has `[[rule]]`. One that cannot be read
/// is not.
pub fn is_of_rules(file: &Path) -> bool {
    let Ok(text) = read_file(file) else {
        return false;
    };
    let layer = Layer::file(file.display().to_string(), SourceOrigin::Operator, text);
    toml_file::read(&layer).is_ok_and(|tree| tree.get("rule").is_some())
}

/// The rules of a file with this name and text, in its order.
///
/// # Errors
/// Its faults, each with its place.
pub fn rules_in(name: &str, text: String) -> Result<Vec<CallRule>, Vec<Problem>> {
    let layer = Layer::file(name, SourceOrigin::Operator, text);
    let written = parse_written_rules(&layer.text).map_err(|error| {
        let named = error.rule.as_ref();
        let rule = named.map_or_else(String::new, |rule| format!("rule {rule}: "));
        let problem = Problem::new("config_rules", format!("{rule}{}", error.message));
        let place = location(&layer, error.line, error.column);
        vec![problem.at(&place).hint(error.remedy)]
    })?;
    let now_ms = unix_ms();
    let mut problems = Vec::new();
    for one in &written {
        if let Some(fault) = fault_of(&one.rule, now_ms) {
            let message = format!("rule {}: {}", one.rule.name.id, fault.message);
            let place = location(&layer, one.line, one.column);
            let problem = Problem::new("config_rules", message).at(&place);
            problems.push(problem.hint(fault.hint));
        }
    }
    if problems.is_empty() {
        Ok(written.into_iter().map(|one| one.rule).collect())
    } else {
        Err(problems)
    }
}

/// The location of a character by its line and column, both from 1 and in characters.
fn location(layer: &Arc<Layer>, line: usize, column: usize) -> Location {
    let text = layer.text.lines().nth(line.saturating_sub(1));
    let before = text.unwrap_or_default().chars();
    let before = before.take(column.saturating_sub(1));
    let bytes: usize = before.map(char::len_utf8).sum();
    layer.at(layer.place(line, bytes + 1))
}

/// A part of a rule that is not carried out, if it has one.
fn fault_of(rule: &CallRule, now_ms: u64) -> Option<RuleFault> {
    let fault = |message: &str, hint| {
        Some(RuleFault {
            message: message.to_owned(),
            hint,
        })
    };
    if rule.name.id.is_learned() {
        return fault(
            "ids that begin so are those of learned rules",
            "write another id, such as \"r12\"",
        );
    }
    if rule.author.is_guest() {
        return fault(
            "a guest is the author",
            "write a participant with a token: a guest's name stands for many",
        );
    }
    let is_guest = |name: &str| ParticipantId::new(name).is_ok_and(|name| name.is_guest());
    let mut proposers = rule.scope.proposers.iter();
    let approves = !rule.decision.tightens();
    if approves && proposers.any(|name| is_guest(name.as_str())) {
        return fault(
            "a guest is among the proposers",
            "write participants with tokens: a guest's name stands for many",
        );
    }
    if approves && rule.check_term(now_ms) == Err(TermError::TooLong) {
        return fault(
            "it would last longer than 30 days",
            "give it an earlier `expires`, and renew it then",
        );
    }
    None
}
