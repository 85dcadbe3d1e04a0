//! Proto files of strangers to descriptors. The compiler follows imports, nesting and public
//! imports as far as they go, so they are bounded before it runs.

use std::collections::{HashMap, HashSet};

use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver};

use crate::common::is_common;
use crate::compile::{CompileError, VALIDATE_PROTO, validate};

/// Files that are compiled together.
const FILES_MAX: usize = 500;
/// Their bytes.
const BYTES_MAX: usize = 1 << 20;
/// Brackets inside each other.
const DEPTH_MAX: usize = 64;
/// Their public imports: a file is read again for each way that leads to it.
const PUBLIC_MAX: usize = 16;

/// The files of a module and of what it depends on.
#[derive(Debug, Default)]
pub struct ModuleSources {
    /// The paths of the module's own files.
    pub own: Vec<String>,
    /// Texts by path.
    pub texts: HashMap<String, String>,
}

/// The descriptors of the module's files that are of the packages of these symbols, or of all
/// without one, with all that they import, as a serialized `google.protobuf.FileDescriptorSet`.
/// `buf/validate/validate.proto` and the well-known types are our own.
///
/// # Errors
/// [`CompileError`]: the text of a file does not compile, or there is more than a limit.
pub fn compile_sources(
    sources: &ModuleSources,
    symbols: &[String],
) -> Result<Vec<u8>, CompileError> {
    let mut parsed = Parsed {
        sources,
        files: HashMap::new(),
        bytes: 0,
        public: 0,
    };
    let mut wanted = Vec::new();
    for path in sources.own.iter().filter(|path| !is_common(path)) {
        let text = sources.texts.get(path).map_or("", String::as_str);
        if symbols.is_empty() || symbols.iter().any(|symbol| may_have(text, symbol)) {
            wanted.push(path.clone());
        }
    }
    let order = parsed.in_order(wanted)?;
    let mut resolver = ChainFileResolver::new();
    resolver.add(Ready(parsed.files));
    resolver.add(GoogleFileResolver::new());
    let mut compiler = protox::Compiler::with_file_resolver(resolver);
    compiler.include_imports(true);
    for path in order {
        compiler
            .open_file(&path)
            .map_err(|why| fault(&path, why.to_string()))?;
    }
    Ok(compiler.encode_file_descriptor_set())
}

/// Whether a file may declare a symbol: the last part of it is a word of the text. Others need not
/// be compiled.
fn may_have(text: &str, symbol: &str) -> bool {
    let name = symbol.rsplit('.').next().unwrap_or(symbol);
    text.split(|one: char| !one.is_alphanumeric() && one != '_')
        .any(|word| word == name)
}

fn fault(path: &str, why: impl Into<String>) -> CompileError {
    CompileError {
        path: path.to_owned(),
        why: why.into(),
    }
}

/// Files that were read on the way through the imports.
struct Parsed<'s> {
    sources: &'s ModuleSources,
    files: HashMap<String, File>,
    /// Bytes of their texts.
    bytes: usize,
    /// Number of their public imports.
    public: usize,
}

impl Parsed<'_> {
    /// These files and all that they import, each after its imports: the compiler need not follow
    /// them.
    fn in_order(&mut self, wanted: Vec<String>) -> Result<Vec<String>, CompileError> {
        let mut order = Vec::new();
        let mut done = HashSet::new();
        // A path that comes the second time has its imports before it.
        let mut open: Vec<_> = wanted.into_iter().rev().map(|path| (path, false)).collect();
        while let Some((path, is_second)) = open.pop() {
            if is_second {
                if done.insert(path.clone()) {
                    order.push(path);
                }
                continue;
            }
            if self.files.contains_key(&path) || is_common(&path) {
                continue;
            }
            let imports = self.parse(&path)?;
            open.push((path, true));
            open.extend(imports.into_iter().map(|import| (import, false)));
        }
        Ok(order)
    }

    /// Reads a file; its imports.
    fn parse(&mut self, path: &str) -> Result<Vec<String>, CompileError> {
        let text = self
            .sources
            .texts
            .get(path)
            .ok_or_else(|| fault(path, "it is not there"))?;
        self.bytes += text.len();
        if self.files.len() >= FILES_MAX || self.bytes > BYTES_MAX {
            return Err(fault(
                path,
                format!("more than {FILES_MAX} files or {BYTES_MAX} bytes are needed"),
            ));
        }
        // Before it is parsed: the parser recurses.
        if !is_flat(text) {
            return Err(fault(
                path,
                format!("more than {DEPTH_MAX} brackets inside each other"),
            ));
        }
        let file = File::from_source(path, text).map_err(|why| fault(path, why.to_string()))?;
        let read = file.file_descriptor_proto();
        self.public += read.public_dependency.len();
        if self.public > PUBLIC_MAX {
            return Err(fault(
                path,
                format!("more than {PUBLIC_MAX} public imports"),
            ));
        }
        let imports = read.dependency.clone();
        self.files.insert(path.to_owned(), file);
        Ok(imports)
    }
}

/// Whether no brackets are deeper than [`DEPTH_MAX`]. A text that one reader could take for a
/// comment and another for code is refused too: brackets could hide in it.
fn is_flat(text: &str) -> bool {
    let mut depth = 0_usize;
    let mut rest = text;
    let marks = ['/', '#', '"', '\'', '{', '[', '(', '<', '}', ']', ')', '>'];
    while let Some((at, _)) = rest.char_indices().find(|(_, one)| marks.contains(one)) {
        let (found, after) = rest.split_at(at).1.split_at(1);
        rest = match found {
            "/" if after.starts_with('/') => after.split_once('\n').map_or("", |(_, next)| next),
            "/" if after.starts_with('*') => {
                let Some((comment, behind)) = after.split_at(1).1.split_once("*/") else {
                    return false;
                };
                if comment.contains("/*") {
                    return false;
                }
                behind
            }
            "#" => return false,
            "\"" | "'" => match string_end(after, found) {
                Some(behind) => behind,
                None => return false,
            },
            "{" | "[" | "(" | "<" => {
                depth += 1;
                after
            }
            "/" => after,
            _ => {
                depth = depth.saturating_sub(1);
                after
            }
        };
        if depth > DEPTH_MAX {
            return false;
        }
    }
    true
}

/// Text after a string; `None` if its line ends before it.
fn string_end<'t>(text: &'t str, quote: &str) -> Option<&'t str> {
    let mut rest = text.chars();
    let mut is_escaped = false;
    while let Some(one) = rest.next() {
        match one {
            '\n' => return None,
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if quote.starts_with(one) => return Some(rest.as_str()),
            _ => {}
        }
    }
    None
}

/// Files that are read already.
struct Ready(HashMap<String, File>);

impl FileResolver for Ready {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        if name == VALIDATE_PROTO {
            return validate();
        }
        self.0
            .get(name)
            .cloned()
            .ok_or_else(|| protox::Error::file_not_found(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(files: impl IntoIterator<Item = (String, String)>) -> ModuleSources {
        let texts: HashMap<_, _> = files.into_iter().collect();
        ModuleSources {
            own: texts.keys().cloned().collect(),
            texts,
        }
    }

    /// What becomes of one file with this body.
    fn one(body: &str) -> Result<Vec<u8>, CompileError> {
        let text = format!("syntax = \"proto3\";\npackage a.v1;\n{body}");
        compile_sources(
            &sources([("a.proto".to_owned(), text)]),
            &["a.v1.A".to_owned()],
        )
    }

    /// A chain of imports.
    fn chain(length: usize, kind: &str) -> Result<Vec<u8>, CompileError> {
        let file = |number: usize| {
            let import = if number == 0 {
                String::new()
            } else {
                format!("import {kind}\"{}.proto\";\n", number - 1)
            };
            (
                format!("{number}.proto"),
                format!("syntax = \"proto3\";\n{import}message M{number} {{}}\n"),
            )
        };
        compile_sources(&sources((0..length).map(file)), &[])
    }

    #[test]
    fn files_are_compiled_with_what_they_import_and_others_are_not() {
        let file = |path: &str, text: &str| {
            (
                path.to_owned(),
                format!("syntax = \"proto3\";\npackage a.v1;\n{text}"),
            )
        };
        let all = sources([
            file(
                "a.proto",
                "import \"b.proto\";\nimport \"buf/validate/validate.proto\";\nmessage A { B b = 1 [(buf.validate.field).required = true]; }",
            ),
            file("b.proto", "message B {}"),
            file("c.proto", "message C { no proto at all"),
        ]);
        let set = compile_sources(&all, &["a.v1.A".to_owned()]).unwrap();
        let has = |text: &[u8]| set.windows(text.len()).any(|window| window == text);
        assert!(has(b"b.proto") && !has(b"c.proto"));
        // The rule: field 1159 of the options, `required` (25) is true.
        assert!(has(&[0xba, 0x48, 3, 0xc8, 1, 1]));
        assert!(compile_sources(&all, &[]).unwrap_err().path == "c.proto");
    }

    #[test]
    fn sources_are_bounded_before_they_are_compiled() {
        let nested = |depth: usize| {
            format!(
                "message A {{ string q = 1 [(x) = {}{}]; }}",
                "{ a: ".repeat(depth),
                "}".repeat(depth)
            )
        };
        let why = |body: &str| one(body).unwrap_err().why;
        assert!(why(&nested(DEPTH_MAX - 1)).contains("brackets"));
        assert!(!why(&nested(DEPTH_MAX - 2)).contains("brackets"));
        assert!(why(&nested(100_000)).contains("brackets"));
        // Closing brackets that one reader sees and another does not.
        let hiding = ["/* /* */ } */", "# }\n", "\"\n}\""]
            .map(|hidden| format!("message A {{ {{ {hidden} }}"));
        for body in hiding {
            assert!(why(&body).contains("brackets"), "{body}");
        }
        assert!(
            one("// } {\nmessage A { /* { */ string q = 1 [json_name = \"}\\\"{\"]; }").is_ok()
        );
        assert!(chain(FILES_MAX, "").is_ok());
        assert!(
            chain(FILES_MAX + 1, "")
                .unwrap_err()
                .why
                .contains("files or")
        );
        assert!(chain(PUBLIC_MAX + 1, "public ").is_ok());
        assert!(
            chain(PUBLIC_MAX + 2, "public ")
                .unwrap_err()
                .why
                .contains("public imports")
        );
        let long = |bytes: usize| one(&format!("message A {{}}\n//{}", "x".repeat(bytes)));
        let around = "syntax = \"proto3\";\npackage a.v1;\nmessage A {}\n//".len();
        assert!(long(BYTES_MAX - around).is_ok());
        assert!(
            long(BYTES_MAX - around + 1)
                .unwrap_err()
                .why
                .contains("bytes are needed")
        );
        let circle = |from: &str, to: &str| {
            (
                format!("{from}.proto"),
                format!("syntax = \"proto3\";\nimport \"{to}.proto\";\n"),
            )
        };
        assert!(compile_sources(&sources([circle("a", "b"), circle("b", "a")]), &[]).is_err());
    }
}
