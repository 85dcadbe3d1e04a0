# requires: supergateway@4.0.0
# A bridge: the client is written here, one message after the answer to the one before.
coproc bridge { supergateway --streamableHttp "$1" 2>/dev/null; }
ask() { echo "$1" >&"${bridge[1]}"; read -r -t 30 answer <&"${bridge[0]}"; }
ask '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"foreign","version":"1"}}}'
echo '{"jsonrpc":"2.0","method":"notifications/initialized"}' >&"${bridge[1]}"
ask '{"jsonrpc":"2.0","id":2,"method":"tools/list"}'
count=$(grep -o '"inputSchema"' <<<"$answer" | wc -l)
ask '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"everything_echo","arguments":{"message":"hi"}}}'
echo "$count $answer"
kill "$bridge_PID"
