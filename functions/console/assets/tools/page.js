// Tools, newest first.

import { html } from '../htm-preact.js';
import { Choices, List, Nothing } from '../shell/list.js';
import { useRows } from '../shell/live.js';
import { Main } from '../shell/main.js';
import { Moment } from '../shell/moments.js';
import { addressOf } from '../shell/route.js';
import { Editor } from './editor.js';
import { ToolView } from './tool_view.js';
import { occasionOf, typeOf } from './words.js';

const FILTERS = [['', 'All'], ['true', 'Attached'], ['false', 'Not attached']];

export function View({ api, slug, role, at }) {
  const { type = 'sms' } = at.query;
  if (at.id === 'new') {
    return html`<${Editor} key=${type} type=${type} api=${api} slug=${slug} role=${role} onSaved=${({ id }, here) => { if (here) location.hash = addressOf({ slug, page: 'tools', id }); }} />`;
  }
  if (at.id) return html`<${ToolView} key=${at.id} id=${at.id} query=${at.query} api=${api} slug=${slug} role=${role} />`;
  return html`<${Tools} api=${api} slug=${slug} attached=${at.query.attached ?? ''} />`;
}

function Tools({ api, slug, attached }) {
  const rows = useRows(`${slug} ${attached}`, (cursor) => api.read('tools', { limit: 50, cursor, attached: attached || null }));
  const columns = [
    { head: 'Name', cls: 'c-who wrap', cell: ({ label }) => html`<bdi>${label}</bdi>`, below: (tool) => html`<span class="sub">${typeOf(tool)} · ${occasionOf(tool)}</span>` },
    { head: 'Called', cls: 'c-st', cell: ({ name }) => html`<code>${name}</code>` },
    { head: 'What it does', cls: 'c-agent', cell: typeOf },
    { head: 'When', cls: 'c-fail', cell: occasionOf },
    { head: 'Changed', cls: 'num c-len', cell: ({ updated_at }) => html`<${Moment} at=${updated_at} />` },
  ];
  const fresh = addressOf({ slug, page: 'tools', id: 'new' });
  const empty = html`<${Nothing} icon="tool" title=${attached ? 'No tool to show' : 'No tool yet'}>
    <p class="quiet">${attached ? 'Choose others above.' : 'A tool is what an agent, an automation or the chat can do: send an SMS, ask an address, act at a service.'}</p><a class="btn" href=${fresh}>New tool</a><//>`;
  return html`<${Main} title="Tools" acts=${html`<${Choices} label="Which" of=${FILTERS} to=${(value) => addressOf({ slug, page: 'tools', query: { attached: value } })} chosen=${attached} /><a class="btn main" id="new-tool" href=${fresh}>New tool</a>`}>
    <div class="listside"><${List} what="Tools" name="calls" rows=${rows} columns=${columns} hrefOf=${({ id }) => addressOf({ slug, page: 'tools', id })} empty=${empty} /></div>
  <//>`;
}
