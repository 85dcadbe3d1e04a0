//! Servers that read protobuf: their lists, calls, results and errors for callers that read JSON.
