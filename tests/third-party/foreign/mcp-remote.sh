# requires: mcp-remote@0.15.1
source "$FOREIGN/bridge" mcp-remote "$1"
