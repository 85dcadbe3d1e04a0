// A peer for the fan-out bench: whatever one says goes to all. `node broadcast.js PORT`
import { createServer } from "node:http";
import { WebSocketServer } from "ws";

const server = createServer();
const room = new WebSocketServer({ server, perMessageDeflate: false });
room.on("connection", (socket) => {
  socket.on("message", (bytes) => {
    const text = bytes.toString();
    if (typeof JSON.parse(text).kind !== "string") return;
    for (const other of room.clients) other.send(text);
  });
});
server.listen({ port: Number(process.argv[2]), host: "127.0.0.1", backlog: 4096 });
