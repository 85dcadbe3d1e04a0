//! Messages that contain themselves. The library that checks rules follows them with evaluators
//! that hold each other, and is never freed again. So its view of a schema ends at some fields of
//! each circle, and what is behind those fields is checked by itself.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use fields::{Fields, append};
use prost_reflect::{
    DynamicMessage, FieldDescriptor, MapKey, MessageDescriptor, ReflectMessage as _, Value,
};

use crate::descriptor::{field, file, message};

/// The number of `buf.validate.field` in `google.protobuf.FieldOptions`.
const FIELD_RULES: u32 = 1159;
/// `ignore` in `buf.validate.FieldRules`, as a whole field that says `IGNORE_ALWAYS`.
const IGNORE_ALWAYS: [u8; 3] = [0xd8, 0x01, 3];
/// `repeated` and `map` in `buf.validate.FieldRules`, `items` and `values` in theirs.
const REPEATED: u32 = 18;
const ITEMS: u32 = 4;
const MAP: u32 = 19;
const VALUES: u32 = 5;
/// The fields at which the view of the rules ends, and the way to them.
#[derive(Debug, Default)]
pub(crate) struct Cycles(HashMap<String, Vec<Step>>);

/// A field of a message that leads to such a field, or is one.
#[derive(Debug, Clone)]
struct Step {
    field: u32,
    is_end: bool,
}

/// A field whose message is checked with the one that has it.
struct Edge {
    field: FieldDescriptor,
    from: String,
    to: String,
    /// Rule that, added to the rules of the field, makes the view end here; `None` if rules of its
    /// own would be lost.
    end: Option<Vec<u8>>,
}

/// Options of fields to be added to a file, by the path of the field in it.
pub(crate) type Edits = HashMap<Vec<i32>, Vec<u8>>;

impl Cycles {
    /// Finds them among these messages, with the edits of each file that end the view there.
    ///
    /// # Errors
    /// Each field of a circle has rules that would be lost.
    pub(crate) fn find(
        messages: impl Iterator<Item = MessageDescriptor>,
    ) -> Result<(Self, HashMap<String, Edits>), String> {
        let edges: Vec<Edge> = messages.flat_map(|message| edges(&message)).collect();
        let circular = in_circles(edges.iter());
        let is_circular =
            |edge: &&Edge| circular.contains(&edge.from) && circular.contains(&edge.to);
        let (mut edits, mut ends) = (HashMap::<_, Edits>::new(), HashSet::new());
        for edge in edges.iter().filter(is_circular) {
            let Some(rules) = &edge.end else { continue };
            let mut of_field = Vec::new();
            let mut options = Vec::new();
            append(&mut of_field, FIELD_RULES, rules);
            append(&mut options, field::OPTIONS, &of_field);
            let file = edge.field.parent_message().parent_file().name().to_owned();
            edits
                .entry(file)
                .or_default()
                .insert(edge.field.path().to_vec(), options);
            ends.insert(edge.field.full_name().to_owned());
        }
        let is_end = |edge: &Edge| ends.contains(edge.field.full_name());
        let left = in_circles(edges.iter().filter(|edge| !is_end(edge)));
        if let Some(edge) = edges
            .iter()
            .find(|edge| left.contains(&edge.from) && left.contains(&edge.to))
        {
            let field = edge.field.full_name();
            return Err(format!(
                "{field}: a message contains itself, and each field on the way has rules"
            ));
        }
        Ok((Self::to(&edges, is_end), edits))
    }

    /// The steps from all messages to the ends.
    fn to(edges: &[Edge], is_end: impl Fn(&Edge) -> bool) -> Self {
        let mut into: HashMap<&str, Vec<&Edge>> = HashMap::new();
        edges
            .iter()
            .for_each(|edge| into.entry(&edge.to).or_default().push(edge));
        let mut steps: HashMap<String, Vec<Step>> = HashMap::new();
        let mut open: Vec<(&Edge, bool)> = edges
            .iter()
            .filter(|edge| is_end(edge))
            .map(|edge| (edge, true))
            .collect();
        while let Some((edge, is_end_of_view)) = open.pop() {
            let known = steps.entry(edge.from.clone()).or_default();
            let is_new = known.is_empty();
            if !known.iter().any(|step| step.field == edge.field.number()) {
                known.push(Step {
                    field: edge.field.number(),
                    is_end: is_end_of_view,
                });
            }
            if is_new {
                let further = into.get(edge.from.as_str()).into_iter().flatten();
                open.extend(
                    further
                        .filter(|edge| !is_end(edge))
                        .map(|edge| (*edge, false)),
                );
            }
        }
        Self(steps)
    }

    /// Gives the messages behind the ends, which the library does not see from this one, with their
    /// paths.
    pub(crate) fn behind<E>(
        &self,
        message: &DynamicMessage,
        check: &mut impl FnMut(&str, &DynamicMessage) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.0.is_empty() {
            Ok(())
        } else {
            self.follow(message, "", check)
        }
    }

    fn follow<E>(
        &self,
        message: &DynamicMessage,
        path: &str,
        check: &mut impl FnMut(&str, &DynamicMessage) -> Result<(), E>,
    ) -> Result<(), E> {
        let descriptor = message.descriptor();
        for step in self.0.get(descriptor.full_name()).into_iter().flatten() {
            let Some(field) = descriptor
                .get_field(step.field)
                .filter(|field| message.has_field(field))
            else {
                continue;
            };
            let path = if path.is_empty() {
                field.name().to_owned()
            } else {
                format!("{path}.{}", field.name())
            };
            for (key, inner) in messages_in(&message.get_field(&field)) {
                let path = format!("{path}{key}");
                if step.is_end {
                    check(&path, inner)?;
                }
                self.follow(inner, &path, check)?;
            }
        }
        Ok(())
    }
}

/// The messages in a value, each with the part of its path in brackets.
fn messages_in(value: &Value) -> Vec<(String, &DynamicMessage)> {
    match value {
        Value::List(list) => {
            let numbered = list.iter().enumerate();
            numbered
                .filter_map(|(at, value)| Some((format!("[{at}]"), value.as_message()?)))
                .collect()
        }
        Value::Map(map) => {
            let sorted: BTreeMap<&MapKey, &Value> = map.iter().collect();
            let keyed = sorted.into_iter();
            keyed
                .filter_map(|(key, value)| {
                    Some((format!("[{}]", written(key)), value.as_message()?))
                })
                .collect()
        }
        value => value
            .as_message()
            .into_iter()
            .map(|message| (String::new(), message))
            .collect(),
    }
}

fn written(key: &MapKey) -> String {
    match key {
        MapKey::String(text) => format!("{text:?}"),
        MapKey::Bool(key) => key.to_string(),
        MapKey::I32(key) => key.to_string(),
        MapKey::I64(key) => key.to_string(),
        MapKey::U32(key) => key.to_string(),
        MapKey::U64(key) => key.to_string(),
    }
}

/// The fields of a message whose messages the library would check with it.
fn edges(message: &MessageDescriptor) -> Vec<Edge> {
    let from = message.full_name();
    message
        .fields()
        .filter_map(|field| edge(field, from))
        .collect()
}

fn edge(field: FieldDescriptor, from: &str) -> Option<Edge> {
    let kind = field.kind();
    let inner = kind.as_message()?;
    let to = if field.is_map() {
        inner.map_entry_value_field().kind().as_message()?.clone()
    } else {
        inner.clone()
    };
    let options = field.options();
    let rules = options
        .extensions()
        .find(|(extension, _)| extension.number() == FIELD_RULES);
    let rules = rules.and_then(|(_, rules)| rules.as_message().cloned());
    let elements = if field.is_map() {
        Some(("map", MAP, "values", VALUES))
    } else {
        field
            .is_list()
            .then_some(("repeated", REPEATED, "items", ITEMS))
    };
    let of_elements = rules
        .as_ref()
        .zip(elements)
        .and_then(|(rules, (list, _, one, _))| {
            let list = set(rules, list)?;
            set(list.as_message()?, one)?.as_message().cloned()
        });
    if [&rules, &of_elements].into_iter().flatten().any(is_ignored) {
        return None;
    }
    let end = match elements {
        None => rules.is_none().then(|| IGNORE_ALWAYS.to_vec()),
        Some((name, list, _, one)) => {
            // Rules of another type are an error that must stay one.
            let known = [name, "cel", "cel_expression", "required", "ignore"];
            let fits = rules.iter().all(|rules| {
                rules
                    .fields()
                    .all(|(field, _)| known.contains(&field.name()))
            });
            (fits && of_elements.is_none()).then(|| {
                let mut rules = Vec::new();
                let mut end = Vec::new();
                append(&mut rules, one, &IGNORE_ALWAYS);
                append(&mut end, list, &rules);
                end
            })
        }
    };
    Some(Edge {
        from: from.to_owned(),
        to: to.full_name().to_owned(),
        field,
        end,
    })
}

fn is_ignored(rules: &DynamicMessage) -> bool {
    set(rules, "ignore")
        .is_some_and(|ignore| ignore.as_enum_number() == Some(i32::from(IGNORE_ALWAYS[2])))
}

/// A field of a message that is set.
fn set(message: &DynamicMessage, name: &str) -> Option<Value> {
    message
        .has_field_by_name(name)
        .then(|| message.get_field_by_name(name).map(Cow::into_owned))?
}

/// The messages that are in a circle, or between two.
fn in_circles<'e>(edges: impl Iterator<Item = &'e Edge>) -> HashSet<String> {
    let edges: Vec<_> = edges.collect();
    let forth = edges
        .iter()
        .map(|edge| (edge.from.as_str(), edge.to.as_str()))
        .collect();
    let back = edges
        .iter()
        .map(|edge| (edge.to.as_str(), edge.from.as_str()))
        .collect();
    let reaching = endless(forth);
    let reached = endless(back);
    reaching
        .intersection(&reached)
        .map(|&name| name.to_owned())
        .collect()
}

/// The ends of arrows that are left when those that lead to no further arrow are taken away, again
/// and again.
fn endless<'a>(arrows: Vec<(&'a str, &'a str)>) -> HashSet<&'a str> {
    let (mut out, mut into) = (HashMap::<_, usize>::new(), HashMap::<_, Vec<_>>::new());
    for (from, to) in arrows {
        *out.entry(from).or_default() += 1;
        out.entry(to).or_default();
        into.entry(to).or_default().push(from);
    }
    let mut done: Vec<_> = out
        .iter()
        .filter(|(_, count)| **count == 0)
        .map(|(name, _)| *name)
        .collect();
    while let Some(name) = done.pop() {
        out.remove(name);
        for from in into.remove(name).into_iter().flatten() {
            if let Some(count) = out.get_mut(from) {
                *count -= 1;
                if *count == 0 {
                    done.push(from);
                }
            }
        }
    }
    out.into_keys().collect()
}

/// A serialized file with these edits.
pub(crate) fn edited(file: &[u8], edits: &Edits) -> Vec<u8> {
    let mut path = Vec::new();
    rewritten(file, &[file::MESSAGE], &mut path, edits)
}

/// A serialized descriptor whose parts of these numbers are rewritten.
fn rewritten(bytes: &[u8], parts: &[u32], path: &mut Vec<i32>, edits: &Edits) -> Vec<u8> {
    let (mut out, mut counts) = (
        Vec::with_capacity(bytes.len() + 16),
        HashMap::<u32, i32>::new(),
    );
    for part in Fields::of(bytes).flatten() {
        let Some(content) = part.content.filter(|_| parts.contains(&part.number)) else {
            out.extend_from_slice(part.whole);
            continue;
        };
        let nth = counts.entry(part.number).or_default();
        path.extend([i32::try_from(part.number).unwrap_or_default(), *nth]);
        *nth += 1;
        let content = if part.number == message::FIELD {
            [
                content,
                edits.get(path.as_slice()).map_or(&[][..], Vec::as_slice),
            ]
            .concat()
        } else {
            rewritten(content, &[message::NESTED, message::FIELD], path, edits)
        };
        path.truncate(path.len() - 2);
        append(&mut out, part.number, &content);
    }
    out
}

#[cfg(test)]
mod tests {
    use crate::{Descriptors, Invalid, SetError, ToolReference, ToolSchema, compile};

    /// A set of one file with these messages.
    fn set(messages: &str) -> Vec<u8> {
        let head = "syntax = \"proto3\"; package a.v1; import \"buf/validate/validate.proto\"; \
            import \"google/protobuf/struct.proto\";";
        compile(&[("a.proto".to_owned(), format!("{head} {messages}"))]).unwrap()
    }

    fn tool(messages: &str) -> Result<ToolSchema, SetError> {
        ToolSchema::find(
            &Descriptors::read(&set(messages))?,
            &ToolReference {
                tool: "x",
                ..ToolReference::default()
            },
        )
    }

    const TREE: &str = "message XRequest { Node root = 1 [(buf.validate.field).required = true]; google.protobuf.Struct any = 2; }
        message Node {
            string name = 1 [(buf.validate.field).string.min_len = 1];
            repeated Node children = 2 [(buf.validate.field).repeated.max_items = 2];
            map<string, Other> others = 3;
        }
        message Other { Node back = 1; Node unseen = 2 [(buf.validate.field).ignore = IGNORE_ALWAYS]; }";

    #[test]
    fn messages_in_themselves_are_checked_to_the_bottom() {
        let tool = tool(TREE).unwrap();
        let bad = r#"{"root":{"children":[{"name":"a","children":[{"name":""}]},{"name":"b","others":{"k":{"back":{"name":""},"unseen":{}}}}]}}"#;
        let typed = tool.arguments_from_json(bad.as_bytes()).unwrap();
        let Err(Invalid::Violations(found)) = tool.validate(&typed) else {
            panic!()
        };
        let mut fields: Vec<_> = found.iter().map(|one| one.field.as_str()).collect();
        fields.sort_unstable();
        let deep = [
            "root.children[0].children[0].name",
            "root.children[1].others[\"k\"].back.name",
            "root.name",
        ];
        assert_eq!(fields, deep);
        let many = r#"{"root":{"name":"a","children":[{"name":"a","children":[{"name":"a"},{"name":"a"},{"name":"a"}]}]}}"#;
        let typed = tool.arguments_from_json(many.as_bytes()).unwrap();
        let Err(Invalid::Violations(found)) = tool.validate(&typed) else {
            panic!()
        };
        assert_eq!(
            found.iter().map(|one| &*one.field).collect::<Vec<_>>(),
            ["root.children[0].children"]
        );
    }

    #[test]
    fn a_circle_with_rules_on_each_field_is_refused() {
        let why =
            tool("message XRequest { XRequest a = 1 [(buf.validate.field).required = true]; }")
                .unwrap_err();
        assert!(
            matches!(&why, SetError::Rule(why) if why.starts_with("a.v1.XRequest.a: ")),
            "{why}"
        );
        let elements = "message XRequest { repeated XRequest a = 1 [(buf.validate.field).repeated.items.required = true]; }";
        assert!(matches!(tool(elements), Err(SetError::Rule(_))));
        // One field without rules is enough.
        tool("message XRequest { Y a = 1 [(buf.validate.field).required = true]; } message Y { XRequest b = 1; }").unwrap();
    }

    /// Memory of this process in KiB.
    fn memory() -> usize {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn schemas_that_are_gone_leave_no_memory_behind() {
        let set = set(TREE);
        let once = || {
            let found = ToolSchema::find(
                &Descriptors::read(&set).unwrap(),
                &ToolReference {
                    tool: "x",
                    ..ToolReference::default()
                },
            );
            let typed = found
                .as_ref()
                .unwrap()
                .arguments_from_json(br#"{"root":{"name":"a"},"any":{"b":[{}]}}"#)
                .unwrap();
            found.unwrap().validate(&typed).unwrap();
        };
        (0..10).for_each(|_| once());
        let before = memory();
        (0..100).for_each(|_| once());
        let grown = memory().saturating_sub(before);
        // What is kept for ever would be some 900 KiB each.
        assert!(grown < 100 * 90, "{grown} KiB");
    }
}
