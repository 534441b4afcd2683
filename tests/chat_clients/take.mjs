// Feeds streams to AG-UI's clients. Reads [{name, body, chunk?, status?, content_type?}] as JSON from standard input,
// serves each to both versions, and prints {name: {pinned: {accepted, messages, error?}, current: {…}}} as one line
// of JSON.
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { CLIENTS } from './agents.mjs';

const streams = JSON.parse(await text(process.stdin));
const server = createServer((request, response) => {
  const stream = streams[Number(request.url.slice(1))];
  response.writeHead(stream.status ?? 200, { 'content-type': stream.content_type ?? 'text/event-stream' });
  const bytes = Buffer.from(stream.body);
  const size = stream.chunk ?? (bytes.length || 1);
  for (let at = 0; at < bytes.length; at += size) response.write(bytes.subarray(at, at + size));
  response.end();
});
await new Promise((listening) => server.listen(0, '127.0.0.1', listening));

// The clients' complaints about a rejected stream are part of the result.
console.error = console.warn = () => {};
const seen = {};
for (const [number, { name }] of streams.entries()) {
  seen[name] = {};
  for (const [version, HttpAgent] of Object.entries(CLIENTS)) {
    const agent = new HttpAgent({ url: `http://127.0.0.1:${server.address().port}/${number}`, threadId: 'thread-1' });
    try {
      await agent.runAgent({ runId: 'run-1' });
      seen[name][version] = { accepted: true, messages: agent.messages };
    } catch (error) {
      seen[name][version] = { accepted: false, messages: agent.messages, error: String(error?.message ?? error) };
    }
  }
}
server.close();
console.log(JSON.stringify(seen));
