//! Links to MCP servers: stdio, Streamable HTTP, HTTP+SSE.
