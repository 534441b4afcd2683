// Calls a tool of a voice agent twice with the official SDK, as a voice platform does; prints its observations as one line of JSON.
// Environment: API, SLUG, VOICE_TOKEN, NUMBER, TOOL, ARGUMENTS.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const { API, SLUG, VOICE_TOKEN, NUMBER, TOOL, ARGUMENTS } = process.env;
const address = new URL(`${API}/api/${SLUG}/voice/mcp`);
const connected = async (authorization) => {
  const client = new Client({ name: 'voice', version: '1.0.0' });
  const headers = {
    authorization, 'x-call-id': 'conv_official', 'x-caller-number': '+14155550171', 'x-called-number': NUMBER,
  };
  await client.connect(new StreamableHTTPClientTransport(address, { requestInit: { headers } }));
  return client;
};

const seen = {};
try {
  await connected('Bearer voice.wrong.token');
} catch (error) {
  seen.refused = error.code;
}
const client = await connected(`Bearer ${VOICE_TOKEN}`);
const { tools } = await client.listTools();
seen.listed = tools.some((tool) => tool.name === TOOL);
seen.calls = [];
for (let time = 0; time < 2; time += 1) {
  const result = await client.callTool({ name: TOOL, arguments: JSON.parse(ARGUMENTS) });
  seen.calls.push({ isError: result.isError, text: result.content[0].text });
}
await client.close();
console.log(JSON.stringify(seen));
