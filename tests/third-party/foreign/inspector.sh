# requires: @modelcontextprotocol/inspector@2.12.0
inspect() { mcp-inspector --cli "$1" --transport http "${@:2}"; }
echo "$(inspect "$1" --method tools/list | grep -c '"inputSchema"')" \
    "$(inspect "$1" --method tools/call --tool-name everything_echo --tool-arg message=hi | tr -d '\n')"
