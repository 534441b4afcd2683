// The agents (assistants at VAPI) with their tools and knowledge.

import { html } from '../htm-preact.js';
import { Attachments, useChoices } from '../shell/attachments.js';
import { Collection } from '../shell/collection.js';
import { Icon } from '../shell/icons.js';
import { useLive } from '../shell/live.js';
import { exact, Moment } from '../shell/moments.js';
import { addressOf } from '../shell/route.js';
import { Sure } from '../shell/acting.js';

const MAKE = { schema: 'NewAgent', first: ['external_assistant_id', 'name'], words: { labels: { external_assistant_id: 'Assistant’s id at VAPI' } } };
const COLUMNS = [
  { head: 'Name', cls: 'c-who wrap', cell: ({ name }) => html`<bdi>${name}</bdi>`, below: (agent) => html`<span class="below quiet"><code>${agent.external_assistant_id}</code></span>` },
  { head: 'Added', cls: 'num c-when', cell: ({ created_at }) => html`<${Moment} at=${created_at} />` },
];

export function View(told) {
  return html`<${Collection} told=${told} page="agents" title="Agents" one="an agent" icon="agent" columns=${COLUMNS} make=${MAKE}
    empty="An agent is an assistant at VAPI that can use your tools. Add one by its id, which VAPI shows."
    detail=${({ item, gone, refused }) => html`<${Agent} agent=${item} api=${told.api} slug=${told.slug} refused=${refused} gone=${gone} />`} />`;
}

function Agent({ agent, api, slug, refused, gone }) {
  const path = `agents/${agent.id}`;
  const tools = useLive(`${slug} ${agent.id} tools`, () => api.read(`${path}/tools`));
  const all = useChoices(api, slug, 'tools', ({ label }) => label);
  const bases = useChoices(api, slug, 'knowledge-bases', ({ name }) => name);
  const { synced = true, unmanaged = [], dead = [] } = tools.data ?? {};
  return html`<section><h2><bdi>${agent.name}</bdi></h2><dl class="pairs"><div><dt>Assistant at VAPI</dt><dd><code>${agent.external_assistant_id}</code></dd></div><div><dt>Added</dt><dd>${exact(agent.created_at)}</dd></div></dl></section>
    ${!synced && html`<div class="say wait"><${Icon} name="wait" /><p><b>VAPI could not be read.</b> The tools are those that are stored here.</p></div>`}
    ${dead.length > 0 && html`<div class="say bad"><${Icon} name="bad" /><p><b>VAPI has lost ${dead.length === 1 ? 'a tool' : `${dead.length} tools`} of this assistant, and its calls fail.</b> Save the tool again or detach it: ${dead.join(', ')}.</p></div>`}
    <${Attachments} id="agent-tools" title="Tools" what="a tool" has=${tools} all=${all} wordOf=${({ label }) => label} refused=${refused}
      remarkOf=${({ is_vapi_attached: called }) => (called ? 'The model can call it.' : 'Runs when a call starts.')} hrefOf=${({ id }) => addressOf({ slug, page: 'tools', id })}
      attach=${(tool) => api.act('POST', `${path}/tools/attach`, { tool_id: tool })} detach=${(tool) => api.act('POST', `${path}/tools/detach`, { tool_id: tool })} empty="It has no tool yet. Choose one below." />
    ${unmanaged.length > 0 && html`<p class="quiet small">The assistant has ${unmanaged.length} more at VAPI, which are not managed here.</p>`}
    ${bases.length > 0 && !refused && html`<${Attachments} id="agent-base" title="Knowledge" what="a knowledge base" has=${{ data: { items: [] }, again: tools.again }} all=${bases}
      attach=${(base) => api.act('POST', `${path}/knowledge-bases/attach`, { knowledge_base_id: base })} empty="An attached one stands among the tools." />`}
    <section><${Sure} id="delete-agent" word="Remove agent…" title="Remove this agent?" yes="Remove" no="Keep it" refused=${refused} does=${async () => { await api.act('DELETE', path); gone(); }}>
      <p>Its ${tools.data?.items.length ?? ''} tools are taken out of the assistant at VAPI. The assistant, the tools and the calls so far stay. It is refused while a phone number rings the agent.</p><//></section>`;
}
