//! Server reflection of proto-mcp's contract (gRPC "Server Reflection Protocol", v1 and v1alpha).
//! Unlike the library's service it answers a question about what it does not know, and the stream
//! goes on.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::{Stream, StreamExt as _};
use prost::{DecodeError, Message as _};
use prost_types::{DescriptorProto, EnumDescriptorProto, FileDescriptorProto, FileDescriptorSet};
use tonic::{Code, Request, Response, Status, Streaming};
use tonic_reflection::pb;

/// The service, in both versions.
#[derive(Debug, Clone)]
pub(super) struct Reflection(Arc<Reflected>);

/// Services and files that are reflected.
#[derive(Debug, Default)]
struct Reflected {
    /// Serialized files by name.
    files: HashMap<String, Vec<u8>>,
    /// The file of each symbol.
    symbols: HashMap<String, String>,
    services: Vec<String>,
}

impl Reflection {
    /// Reflects the files of these serialized sets.
    ///
    /// # Errors
    /// One of them is none.
    pub(super) fn of(sets: &[&[u8]]) -> Result<Self, DecodeError> {
        let mut reflected = Reflected::default();
        for set in sets {
            FileDescriptorSet::decode(*set)?
                .file
                .iter()
                .for_each(|file| reflected.add(file));
        }
        Ok(Self(Arc::new(reflected)))
    }
}

impl Reflected {
    fn add(&mut self, file: &FileDescriptorProto) {
        let mut names = Vec::new();
        let scope = file.package();
        file.message_type
            .iter()
            .for_each(|message| of_message(scope, message, &mut names));
        file.enum_type
            .iter()
            .for_each(|one| of_enum(scope, one, &mut names));
        for service in &file.service {
            let name = within(scope, service.name());
            names.extend(
                service
                    .method
                    .iter()
                    .map(|method| within(&name, method.name())),
            );
            self.services.push(name.clone());
            names.push(name);
        }
        self.symbols
            .extend(names.into_iter().map(|name| (name, file.name().to_owned())));
        self.files
            .insert(file.name().to_owned(), file.encode_to_vec());
    }

    fn file(&self, name: &str) -> Option<Vec<u8>> {
        self.files.get(name).cloned()
    }

    fn file_of(&self, symbol: &str) -> Option<Vec<u8>> {
        self.file(self.symbols.get(symbol)?)
    }
}

fn within(scope: &str, name: &str) -> String {
    if scope.is_empty() {
        name.to_owned()
    } else {
        format!("{scope}.{name}")
    }
}

/// The symbols of a message and of all inside it.
fn of_message(scope: &str, message: &DescriptorProto, names: &mut Vec<String>) {
    let name = within(scope, message.name());
    names.extend(
        message
            .field
            .iter()
            .map(|field| within(&name, field.name())),
    );
    names.extend(
        message
            .oneof_decl
            .iter()
            .map(|oneof| within(&name, oneof.name())),
    );
    message
        .nested_type
        .iter()
        .for_each(|inner| of_message(&name, inner, names));
    message
        .enum_type
        .iter()
        .for_each(|inner| of_enum(&name, inner, names));
    names.push(name);
}

/// The symbols of an enum: its values are beside it.
fn of_enum(scope: &str, one: &EnumDescriptorProto, names: &mut Vec<String>) {
    names.extend(one.value.iter().map(|value| within(scope, value.name())));
    names.push(within(scope, one.name()));
}

/// Implements the service of one version: their messages are alike, and different types.
macro_rules! serves {
    ($version:ident) => {
        #[tonic::async_trait]
        impl pb::$version::server_reflection_server::ServerReflection for Reflection {
            type ServerReflectionInfoStream = Pin<
                Box<
                    dyn Stream<Item = Result<pb::$version::ServerReflectionResponse, Status>>
                        + Send,
                >,
            >;

            async fn server_reflection_info(
                &self,
                asked: Request<Streaming<pb::$version::ServerReflectionRequest>>,
            ) -> Result<Response<Self::ServerReflectionInfoStream>, Status> {
                use pb::$version::server_reflection_request::MessageRequest as Asked;
                use pb::$version::server_reflection_response::MessageResponse as Answer;
                use pb::$version::{
                    ErrorResponse, ExtensionNumberResponse, FileDescriptorResponse,
                    ListServiceResponse, ServerReflectionResponse, ServiceResponse,
                };
                let known = Arc::clone(&self.0);
                let error = |code: Code, why: &str| {
                    Answer::ErrorResponse(ErrorResponse {
                        error_code: code.into(),
                        error_message: why.to_owned(),
                    })
                };
                let file = move |found: Option<Vec<u8>>, what: &str| match found {
                    Some(file) => Answer::FileDescriptorResponse(FileDescriptorResponse {
                        file_descriptor_proto: vec![file],
                    }),
                    None => error(Code::NotFound, &format!("no such {what}")),
                };
                let answers = asked.into_inner().map(move |asked| {
                    let asked = asked?;
                    let answer = match &asked.message_request {
                        Some(Asked::FileByFilename(name)) => file(known.file(name), "file"),
                        Some(Asked::FileContainingSymbol(symbol)) => {
                            file(known.file_of(symbol), "symbol")
                        }
                        Some(Asked::FileContainingExtension(_)) => file(None, "extension"),
                        Some(Asked::AllExtensionNumbersOfType(of))
                            if known.symbols.contains_key(of) =>
                        {
                            Answer::AllExtensionNumbersResponse(ExtensionNumberResponse {
                                base_type_name: of.clone(),
                                ..ExtensionNumberResponse::default()
                            })
                        }
                        Some(Asked::AllExtensionNumbersOfType(_)) => file(None, "message"),
                        Some(Asked::ListServices(_)) => {
                            let services = known
                                .services
                                .iter()
                                .map(|name| ServiceResponse { name: name.clone() });
                            Answer::ListServicesResponse(ListServiceResponse {
                                service: services.collect(),
                            })
                        }
                        None => error(Code::InvalidArgument, "the request asks nothing"),
                    };
                    Ok(ServerReflectionResponse {
                        valid_host: asked.host.clone(),
                        original_request: Some(asked),
                        message_response: Some(answer),
                    })
                });
                Ok(Response::new(Box::pin(answers)))
            }
        }
    };
}

serves!(v1);
serves!(v1alpha);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_of_every_kind_lead_to_their_file() {
        let text = "syntax = \"proto3\"; package a; message M { oneof by { string s = 1; } message N { E e = 1; } enum E { Z = 0; } } \
            service S { rpc Do(M) returns (M); }";
        let set = schema::compile(&[("a.proto".to_owned(), text.to_owned())]).unwrap();
        let Reflection(reflected) = Reflection::of(&[&set]).unwrap();
        for symbol in [
            "a.M", "a.M.s", "a.M.by", "a.M.N", "a.M.N.e", "a.M.E", "a.M.Z", "a.S", "a.S.Do",
        ] {
            assert!(reflected.file_of(symbol).is_some(), "{symbol}");
        }
        assert!(reflected.file_of("a.Absent").is_none() && reflected.file("b.proto").is_none());
        assert_eq!(reflected.services, ["a.S"]);
        assert!(Reflection::of(&[b"\xff"]).is_err());
    }
}
