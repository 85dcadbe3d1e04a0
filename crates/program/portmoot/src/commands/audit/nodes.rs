//! Options `--nodes` of `audit query` and `audit verify`: the audit logs of all nodes of a cluster.

use node::{AuditQuestion, NodeLog, NodeView};
use serde_json::{Value, json};
use store::audit::RecordedEntry;

use super::rows::{COLUMNS, row};
use crate::cli::ConfigArgs;
use crate::commands::cluster::Looked;
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;

/// An entry of a node's log.
struct NodeEntry {
    node: String,
    line: String,
    at_ms: u64,
}

/// The nodes that were asked, and those that did not answer.
#[derive(Default)]
struct Silent(Vec<String>);

impl Silent {
    /// Notes that a node did not answer.
    fn note(&mut self, node: &NodeView, why: &impl ToString, output: Output) {
        let name = node.node.name.to_string();
        output.message(&format!("`{name}` is left out: {}", why.to_string()));
        self.0.push(name);
    }

    fn exit(&self) -> Exit {
        if self.0.is_empty() {
            Exit::Ok
        } else {
            Exit::Failed
        }
    }
}

/// Prints the entries of all nodes that match, in the order of their times.
pub(super) async fn query(
    question: AuditQuestion,
    jsonl: bool,
    config: &ConfigArgs,
    output: Output,
) -> Result<Exit, Failure> {
    let looked = Looked::of(config, output).await?;
    let (mut all, mut silent) = (Vec::new(), Silent::default());
    for node in &looked.view.nodes {
        match looked.watch.audit(node, question.clone()).await {
            Ok(entries) => {
                if entries.is_cut {
                    let name = &node.node.name;
                    output.message(&format!("`{name}` has older entries that match too"));
                }
                all.extend(entries.lines.into_iter().map(|line| entry_of(node, line)));
            }
            Err(why) => silent.note(node, &why, output),
        }
    }
    // Entries of one node keep their order.
    all.sort_by_key(|entry| entry.at_ms);
    all.drain(..all.len().saturating_sub(question.last));
    print(&all, &silent, jsonl, output);
    Ok(silent.exit())
}

fn entry_of(node: &NodeView, line: String) -> NodeEntry {
    let at_ms = RecordedEntry::read(&line).map_or(0, |entry| entry.at_ms);
    NodeEntry {
        node: node.node.name.to_string(),
        line,
        at_ms,
    }
}

fn print(all: &[NodeEntry], silent: &Silent, jsonl: bool, output: Output) {
    if jsonl {
        return all
            .iter()
            .for_each(|entry| output.result_json_text(&entry.named()));
    }
    if output.json {
        let lines: Vec<String> = all
            .iter()
            .map(|entry| format!("\n    {}", entry.named()))
            .collect();
        let silent = Value::from(silent.0.clone());
        return output.result_json_text(&format!(
            "{{\n  \"silent\": {silent},\n  \"entries\": [{}\n  ]\n}}",
            lines.join(",")
        ));
    }
    let columns: Vec<&str> = std::iter::once("NODE").chain(COLUMNS).collect();
    output.table(&columns, all.iter().filter_map(NodeEntry::row));
}

impl NodeEntry {
    /// The line with the node's name as its first member.
    fn named(&self) -> String {
        let members = self.line.strip_prefix('{').unwrap_or("}");
        format!("{{\"node\":{},{members}", Value::from(self.node.as_str()))
    }

    fn row(&self) -> Option<Vec<String>> {
        let entry = RecordedEntry::read(&self.line)?;
        let mut cells = row(&entry);
        cells.insert(0, self.node.clone());
        Some(cells)
    }
}

/// Has each node verify its log, and prints what each has found.
pub(super) async fn verify(config: &ConfigArgs, output: Output) -> Result<Exit, Failure> {
    let looked = Looked::of(config, output).await?;
    let (mut logs, mut silent) = (Vec::new(), Silent::default());
    for node in &looked.view.nodes {
        match looked.watch.verify_audit(node).await {
            Ok(log) => logs.push(NamedLog {
                node: node.node.name.to_string(),
                log,
            }),
            Err(why) => silent.note(node, &why, output),
        }
    }
    let are_whole = logs.iter().all(NamedLog::is_whole);
    if output.json {
        let nodes: Vec<Value> = logs.iter().map(NamedLog::shown).collect();
        output.result_json(&json!({ "nodes": nodes, "silent": silent.0 }));
    } else {
        logs.iter().for_each(|log| log.print(output));
    }
    Ok(if are_whole {
        silent.exit()
    } else {
        Exit::Failed
    })
}

/// The check of one node's log.
struct NamedLog {
    node: String,
    /// `None` if it keeps none.
    log: Option<NodeLog>,
}

impl NamedLog {
    fn is_whole(&self) -> bool {
        self.log.as_ref().is_none_or(|log| log.findings_count == 0)
    }

    fn shown(&self) -> Value {
        let Some(log) = &self.log else {
            return json!({ "node": self.node, "entries": 0 });
        };
        json!({
            "node": self.node,
            "intact": self.is_whole(),
            "entries": log.entries,
            "head": log.head,
            "findings": log.findings,
            "findings_count": log.findings_count,
        })
    }

    fn print(&self, output: Output) {
        let name = &self.node;
        let Some(log) = &self.log else {
            return output.result(&format!("{name}: it keeps no audit log"));
        };
        let findings = log.findings.iter();
        for finding in findings.map(|finding| ::json::visible::line(finding)) {
            output.result(&format!("{name}: {finding}"));
        }
        let more = log.findings_count.saturating_sub(log.findings.len() as u64);
        if more > 0 {
            output.result(&format!("{name}: and {more} more"));
        }
        let intact = if self.is_whole() {
            "intact"
        } else {
            "NOT intact"
        };
        let (entries, head) = (log.entries, &log.head);
        output.result(&format!("{name}: {intact}: {entries} entries, head {head}"));
    }
}
