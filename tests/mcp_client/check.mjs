// Runs the official SDK against a running system; prints its observations as one line of JSON.
// Environment: API, SLUG, TOKEN.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { discoverOAuthProtectedResourceMetadata, extractWWWAuthenticateParams } from '@modelcontextprotocol/sdk/client/auth.js';

const { API, SLUG, TOKEN } = process.env;
const address = new URL(`${API}/api/${SLUG}/mcp`);
const seen = {};

// Without a token: the challenge, and the metadata at its address.
const refused = await fetch(address, {
  method: 'POST',
  headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
  body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }),
});
const { resourceMetadataUrl } = extractWWWAuthenticateParams(refused);
const metadata = await discoverOAuthProtectedResourceMetadata(address, { resourceMetadataUrl });
seen.refused = { status: refused.status, metadata: String(resourceMetadataUrl), resource: metadata.resource };

const client = new Client({ name: 'end-to-end', version: '1.0.0' });
const requestInit = { headers: { authorization: `Bearer ${TOKEN}` } };
await client.connect(new StreamableHTTPClientTransport(address, { requestInit }));
seen.server = client.getServerVersion().name;
seen.listChanged = client.getServerCapabilities().tools.listChanged ?? false;
const { tools, nextCursor } = await client.listTools();
seen.tools = tools.map((tool) => tool.name);
seen.onePage = nextCursor === undefined;

const call = (name, args) => client.callTool({ name, arguments: args });
const overview = await call('initial_md_fetch', { services: ['slack'] });
seen.overview = { isError: overview.isError, begins: overview.content[0].text.split('\n')[0] };
const wrong = await call('initial_md_fetch', { services: 'slack' });
seen.wrong = { isError: wrong.isError, text: wrong.content[0].text };
const automations = await call('list_automations', { limit: 5 });
seen.automations = { isError: automations.isError, listed: Array.isArray(automations.structuredContent.items) };
try {
  await call('no_such_tool', {});
} catch (error) {
  seen.unknown = error.code;
}
await client.close();
console.log(JSON.stringify(seen));
