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
        let mut edits = HashMap::<_, Edits>::new();
        let mut ends = HashSet::new();
        for edge in edges.iter().filter(|edge| edge.is_within(&circular)) {
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
        // Fields whose rules would be lost end nothing: the circles among them are still there.
        let left = in_circles(edges.iter().filter(|edge| !edge.is_one_of(&ends)));
        if let Some(edge) = edges.iter().find(|edge| edge.is_within(&left)) {
            let field = edge.field.full_name();
            return Err(format!(
                "{field}: a message contains itself, and each field on the way has rules"
            ));
        }
        Ok((Self::to(&edges, &ends), edits))
    }

    /// The steps from all messages to the fields `ends`, found backwards from those.
    fn to(edges: &[Edge], ends: &HashSet<String>) -> Self {
        let mut into: HashMap<&str, Vec<&Edge>> = HashMap::new();
        for edge in edges {
            into.entry(&edge.to).or_default().push(edge);
        }
        let mut steps: HashMap<String, Vec<Step>> = HashMap::new();
        let mut open: Vec<&Edge> = edges.iter().filter(|edge| edge.is_one_of(ends)).collect();
        while let Some(edge) = open.pop() {
            let known = steps.entry(edge.from.clone()).or_default();
            let is_new = known.is_empty();
            if !known.iter().any(|step| step.field == edge.field.number()) {
                known.push(Step {
                    field: edge.field.number(),
                    is_end: edge.is_one_of(ends),
                });
            }
            // A message with a step has been followed backwards already.
            if is_new {
                let further = into.get(edge.from.as_str()).into_iter().flatten();
                open.extend(further.filter(|edge| !edge.is_one_of(ends)));
            }
        }
        Self(steps)
    }

    /// Calls `check` with each message behind the ends, which the library does not see from this
    /// one, and its path.
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
            let Some(field) = descriptor.get_field(step.field) else {
                continue;
            };
            if !message.has_field(&field) {
                continue;
            }
            let path = if path.is_empty() {
                field.name().to_owned()
            } else {
                format!("{path}.{}", field.name())
            };
            for inner in messages_in(&message.get_field(&field)) {
                let path = format!("{path}{}", inner.brackets);
                if step.is_end {
                    check(&path, inner.message)?;
                }
                self.follow(inner.message, &path, check)?;
            }
        }
        Ok(())
    }
}

impl Edge {
    /// Whether both of its messages are among these.
    fn is_within(&self, messages: &HashSet<String>) -> bool {
        messages.contains(&self.from) && messages.contains(&self.to)
    }

    /// Whether its field is among these, by full name.
    fn is_one_of(&self, fields: &HashSet<String>) -> bool {
        fields.contains(self.field.full_name())
    }
}

/// A message in the value of a field.
struct InnerMessage<'v> {
    /// The end of its path, such as `[2]` or `["key"]`; empty unless the value is a list or a map.
    brackets: String,
    message: &'v DynamicMessage,
}

/// The messages in a value.
fn messages_in(value: &Value) -> Vec<InnerMessage<'_>> {
    let mut found = Vec::new();
    match value {
        Value::List(list) => {
            for (at, value) in list.iter().enumerate() {
                found.extend(InnerMessage::of(value, format!("[{at}]")));
            }
        }
        Value::Map(map) => {
            // In the order of the keys: violations come in the same order each time.
            let sorted: BTreeMap<&MapKey, &Value> = map.iter().collect();
            for (key, value) in sorted {
                found.extend(InnerMessage::of(value, format!("[{}]", written(key))));
            }
        }
        value => found.extend(InnerMessage::of(value, String::new())),
    }
    found
}

impl<'v> InnerMessage<'v> {
    fn of(value: &'v Value, brackets: String) -> Option<Self> {
        let message = value.as_message()?;
        Some(Self { brackets, message })
    }
}

/// A key of a map as paths have it.
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

/// The edge of a field, if its value is a message and no rule says that it is not checked.
fn edge(field: FieldDescriptor, from: &str) -> Option<Edge> {
    let kind = field.kind();
    let inner = kind.as_message()?;
    let to = if field.is_map() {
        inner.map_entry_value_field().kind().as_message()?.clone()
    } else {
        inner.clone()
    };
    let rules = field
        .options()
        .extensions()
        .find(|(extension, _)| extension.number() == FIELD_RULES)
        .and_then(|(_, rules)| rules.as_message().cloned());
    let elements = ElementRules::of(&field);
    let of_elements = match (&rules, &elements) {
        (Some(rules), Some(elements)) => elements.in_rules(rules),
        _ => None,
    };
    if rules.as_ref().is_some_and(is_ignored) || of_elements.as_ref().is_some_and(is_ignored) {
        return None;
    }
    // One `ignore` ends the view, but takes all other rules of its value away with it.
    let end = match elements {
        None if rules.is_none() => Some(IGNORE_ALWAYS.to_vec()),
        Some(elements) if of_elements.is_none() && elements.can_join(rules.as_ref()) => {
            Some(elements.ignoring())
        }
        _ => None,
    };
    Some(Edge {
        from: from.to_owned(),
        to: to.full_name().to_owned(),
        field,
        end,
    })
}

/// Place of the rules of elements of a list, or of values of a map, in the rules of a field.
struct ElementRules {
    /// The field of `buf.validate.FieldRules`.
    list: &'static str,
    list_number: u32,
    /// The field of the message in that field.
    one: &'static str,
    one_number: u32,
}

impl ElementRules {
    /// The place for this field; `None` if it is neither a map nor a list.
    fn of(field: &FieldDescriptor) -> Option<Self> {
        if field.is_map() {
            Some(Self {
                list: "map",
                list_number: MAP,
                one: "values",
                one_number: VALUES,
            })
        } else if field.is_list() {
            Some(Self {
                list: "repeated",
                list_number: REPEATED,
                one: "items",
                one_number: ITEMS,
            })
        } else {
            None
        }
    }

    /// The rules of elements in the rules of a field.
    fn in_rules(&self, rules: &DynamicMessage) -> Option<DynamicMessage> {
        let list = set(rules, self.list)?;
        set(list.as_message()?, self.one)?.as_message().cloned()
    }

    /// Whether rules of elements can be added to these: rules of another type are an error that
    /// must stay one.
    fn can_join(&self, rules: Option<&DynamicMessage>) -> bool {
        let known = [self.list, "cel", "cel_expression", "required", "ignore"];
        rules.is_none_or(|rules| {
            let mut names = rules.fields();
            names.all(|(field, _)| known.contains(&field.name()))
        })
    }

    /// Rules of a field whose elements are not checked.
    fn ignoring(&self) -> Vec<u8> {
        let mut of_one = Vec::new();
        let mut rules = Vec::new();
        append(&mut of_one, self.one_number, &IGNORE_ALWAYS);
        append(&mut rules, self.list_number, &of_one);
        rules
    }
}

fn is_ignored(rules: &DynamicMessage) -> bool {
    set(rules, "ignore")
        .is_some_and(|ignore| ignore.as_enum_number() == Some(i32::from(IGNORE_ALWAYS[2])))
}

/// A field of a message that is set.
fn set(message: &DynamicMessage, name: &str) -> Option<Value> {
    if message.has_field_by_name(name) {
        message.get_field_by_name(name).map(Cow::into_owned)
    } else {
        None
    }
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
    // Counts of the arrows that leave each end, and the ends from which arrows come to it.
    let mut out = HashMap::<_, usize>::new();
    let mut into = HashMap::<_, Vec<_>>::new();
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
    let mut out = Vec::with_capacity(bytes.len() + 16);
    // Parts of each number that came before: a path names a part by its number and its place.
    let mut counts = HashMap::<u32, i32>::new();
    for part in Fields::of(bytes).flatten() {
        let content = match part.content {
            Some(content) if parts.contains(&part.number) => content,
            _ => {
                out.extend_from_slice(part.whole);
                continue;
            }
        };
        let nth = counts.entry(part.number).or_default();
        path.extend([i32::try_from(part.number).unwrap_or_default(), *nth]);
        *nth += 1;
        let edited = if part.number == message::FIELD {
            let added = edits.get(path.as_slice()).map_or(&[][..], Vec::as_slice);
            // A second `options` is merged with the first when the file is read.
            [content, added].concat()
        } else {
            rewritten(content, &[message::NESTED, message::FIELD], path, edits)
        };
        path.truncate(path.len() - 2);
        append(&mut out, part.number, &edited);
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
