// One tool: its arguments for the model, its agents, and its executions.

import { html } from '../htm-preact.js';
import { Absent } from '../shell/absent.js';
import { Attachments, useChoices } from '../shell/attachments.js';
import { Icon } from '../shell/icons.js';
import { Choices, List, Nothing } from '../shell/list.js';
import { useLive, useRows } from '../shell/live.js';
import { Main } from '../shell/main.js';
import { exact, length, Moment } from '../shell/moments.js';
import { Pane } from '../shell/pane.js';
import { Request, triggerOf, whereOf } from '../shell/request.js';
import { whyNot } from '../shell/roles.js';
import { addressOf } from '../shell/route.js';
import { Sure } from '../shell/acting.js';
import { Status } from '../shell/status.js';
import { Editor } from './editor.js';
import { occasionOf, parametersOf, typeOf } from './words.js';

/** Asks again until the data have come. */
const UNTIL_THERE = (data) => (data === null ? 3_000 : null);
const FILTERS = [['', 'All'], ['failed', 'Failed'], ['unknown', 'Unknown'], ['succeeded', 'Succeeded']];

export function ToolView({ id, query, api, slug, role }) {
  const path = `tools/${encodeURIComponent(id)}`;
  const live = useLive(`${slug} ${id}`, () => api.read(path), UNTIL_THERE);
  const { data: tool } = live;
  const agents = useLive(`${slug} ${id} agents`, () => api.read(`${path}/agents`));
  const all = useChoices(api, slug, 'agents', ({ name }) => name);
  const { status = '', execution: chosen = null, edit } = query;
  const rows = useRows(`${slug} ${id} ${status}`, (cursor) => api.read(`${path}/executions`, { limit: 20, cursor, status: status || null }), 20);
  const hrefOf = ({ id: execution }) => addressOf({ slug, page: 'tools', id, query: { status, execution } });
  const crumb = { word: 'Tools', href: addressOf({ slug, page: 'tools' }) };
  if (!tool) return html`<${Absent} word="tool" icon="tool" crumb=${crumb} live=${live} />`;
  const refused = whyNot(role, 'admin');
  const href = addressOf({ slug, page: 'tools', id });
  if (edit) return html`<${Editor} key=${tool.version} tool=${tool} api=${api} slug=${slug} role=${role} onSaved=${(_, here) => { live.again(); if (here) location.hash = href; }} onConflict=${live.again} />`;
  const execution = rows.items?.find((item) => !chosen || item.id === chosen) ?? null;
  const columns = [
    { head: 'Began', cls: '', cell: (item) => html`<${Moment} at=${item.started_at} />` },
    { head: 'Status', cls: 'wrap', cell: (item) => html`<${Status} of=${item.status} />${item.error && html`<span class="below quiet"><bdi>${item.error}</bdi></span>`}` },
    { head: 'Took', cls: 'num', cell: (item) => length(item.duration_ms) },
  ];
  const empty = html`<${Nothing} icon="tool" title=${status ? 'No execution has this status' : 'It has not run yet'}><p class="quiet">${status ? 'Choose another status above.' : 'What became of it appears here after it was called.'}</p><//>`;
  return html`<${Main} title=${tool.label} crumb=${crumb} status=${html`<code class="quiet">${tool.name}</code>`} acts=${html`<a class="btn" id="edit-tool" href=${addressOf({ slug, page: 'tools', id, query: { edit: 1 } })}>Edit</a>`}>
    <div class="beside" data-tool-view=${tool.name}>
      <div class="body">
        <section aria-label="Facts">${tool.description && html`<p dir="auto">${tool.description}</p>`}
          <dl class="facts">
            <div><dt>What it does</dt><dd>${typeOf(tool)}</dd></div><div><dt>When</dt><dd>${occasionOf(tool)}</dd></div>
            <div><dt>Changed</dt><dd>${exact(tool.updated_at)}</dd></div>
          </dl></section>
        <section aria-labelledby="h-fills"><h2 id="h-fills">What the model fills in</h2><${Parameters} of=${parametersOf(tool)} /></section>
        <${Attachments} id="tool-agents" title="Agents that have it" what="an agent" has=${agents} all=${all} wordOf=${({ name }) => name} refused=${refused} empty="No agent has it yet. Choose one below."
          remarkOf=${({ is_vapi_attached: called }) => (called ? 'The model can call it.' : 'Runs when a call starts.')} hrefOf=${(agent) => addressOf({ slug, page: 'agents', id: agent.id })}
          attach=${(agent) => api.act('POST', `agents/${agent}/tools/attach`, { tool_id: id })} detach=${(agent) => api.act('POST', `agents/${agent}/tools/detach`, { tool_id: id })} />
        <section aria-labelledby="h-became"><div class="titled"><h2 id="h-became">What became of it</h2><div class="acts"><${Choices} label="Status" of=${FILTERS} to=${(value) => addressOf({ slug, page: 'tools', id, query: { status: value } })} chosen=${status} /></div></div>
          <${List} what="Executions" name="calls" rows=${rows} columns=${columns} hrefOf=${hrefOf} current=${execution?.id} empty=${empty} /></section>
        <section><${Sure} id="delete-tool" word="Delete tool…" title=${`Delete ${tool.label}?`} yes="Delete" refused=${refused} does=${async () => { await api.act('DELETE', path); location.hash = crumb.href; }}>
          <p>${agents.data?.items.length > 0 ? html`It is taken from ${agents.data.items.map(({ name }, place) => html`${place > 0 && ', '}<b><bdi>${name}</bdi></b>`)}, who can no longer use it.` : 'No agent has it.'} Automations that call it fail. Its history stays.</p><//></section>
      </div>
      <${Pane} id=${chosen} label="Execution">${execution ? html`<${Execution} key=${execution.id} execution=${execution} slug=${slug} />` : html`<section><p class="quiet">${chosen && rows.items ? html`<a href=${addressOf({ slug, page: 'executions', id: chosen, query: { tool: id } })}>Open the chosen execution</a>` : 'An execution that is chosen is shown here.'}</p></section>`}<//>
    </div>
  <//>`;
}

function Parameters({ of }) {
  if (of.length === 0) return html`<p class="quiet">Nothing.</p>`;
  return html`<table><thead><tr><th scope="col">Name</th><th scope="col">Type</th><th scope="col">What it is</th></tr></thead>
    <tbody>${of.map(({ name, type, description, required }) => html`<tr key=${name}><th scope="row" class="wrap"><code>${name}</code></th><td class="wrap">${type}${required && html` <span class="remark">required</span>`}</td><td class="wrap" dir="auto">${description}</td></tr>`)}</tbody></table>`;
}

function Execution({ execution, slug }) {
  const { status, trigger, call_id: call, run_id: run, started_at: began, duration_ms: took, error } = execution;
  return html`<section class="panehead"><h2>${exact(began)}</h2><${Status} of=${status} /></section>
    <section><dl class="pairs">
      <div><dt>Called by</dt><dd>${triggerOf(trigger)}</dd></div><div><dt>Ran</dt><dd>${length(took)}</dd></div>
      ${call && html`<div><dt>Call</dt><dd><a href=${addressOf({ slug, page: 'calls', id: call, query: { execution: execution.id } })}>See the call</a></dd></div>`}
      ${run && html`<div><dt>Run</dt><dd><a href=${addressOf({ slug, page: 'runs', id: run })}>See the run</a></dd></div>`}
    </dl></section>
    ${error && html`<section><div class="say bad"><${Icon} name="bad" /><p><bdi>${error}</bdi></p></div></section>`}
    <section><${Request} execution=${execution} /><a class="btn" href=${addressOf({ slug, page: 'executions', id: execution.id, query: whereOf(execution) })}>See what would be sent now</a></section>`;
}
