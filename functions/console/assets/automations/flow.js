// A definition drawn as a flow: the trigger, and the actions in order.

import { html } from '../htm-preact.js';
import { Icon } from '../shell/icons.js';
import { Status } from '../shell/status.js';
import { actionsOf, beginningOf, conditionLines, diagnosticsAt, templated } from './words.js';

export function Flow({ definition, diagnostics, name }) {
  const actions = actionsOf(definition);
  const filters = definition.trigger_config?.filters ?? definition.trigger_config?.filter;
  const elsewhere = diagnostics.filter(({ pointer }) => !pointer.startsWith('/actions/') && !pointer.startsWith('/catch/') && !pointer.startsWith('/trigger_config'));
  return html`
    <${Diagnostics} of=${elsewhere} />
    <ol class="flow" aria-label=${`Definition of ${name}`}>
      <li class="node trigger"><div class="nh"><${Icon} name="bolt" /><h3><bdi>${beginningOf(definition)}</bdi></h3></div>
        ${filters && html`<dl class="pairs"><div><dt>Only if</dt><dd><${Condition} of=${filters} /></dd></div></dl>`}
        <${Diagnostics} of=${diagnosticsAt(diagnostics, '/trigger_config')} /></li>
      ${definition.prompt && html`<li class="node"><div class="nh"><${Icon} name="agent" /><h3>A model works on a prompt</h3></div><p dir="auto"><${Text} of=${definition.prompt} /></p>
        ${definition.tools?.length > 0 && html`<p class="small quiet">With the tools ${definition.tools.map((tool) => (typeof tool === 'string' ? tool : (tool.name ?? tool.tool_id))).join(', ')}.</p>`}</li>`}
      ${actions.map((action) => html`<${Action} key=${action.pointer} action=${action} all=${diagnostics} />`)}
      ${definition.catch && html`<li class="node"><div class="nh"><${Icon} name="part" /><h3>If something failed</h3></div>
        <ol class="flow">${actionsOf({ actions: definition.catch }, '/catch').map((action) => html`<${Action} key=${action.pointer} action=${action} all=${diagnostics} />`)}</ol></li>`}
      <li class="fin"><span><${Icon} name="stop" />The run ends</span></li>
    </ol>`;
}

function Action({ action, all }) {
  const { id, tool, parameters, condition, output, approval, stops, loop, pause, lists } = action;
  const diagnostics = diagnosticsAt(all, action.pointer, lists);
  const title = tool ?? (loop ? 'Loop' : pause ? 'Pause' : 'Choice');
  return html`<li class="node ${diagnostics.some(({ severity }) => severity === 'error') ? 'haserr' : ''}" data-action=${id}>
    <div class="nh"><${Icon} name=${tool ? 'tool' : pause ? 'wait' : 'flow'} /><h3><bdi>${title}</bdi></h3><code class="quiet">${id}</code></div>
    <dl class="pairs">
      ${condition && html`<div><dt>Only if</dt><dd><${Condition} of=${condition} /></dd></div>`}
      ${loop && html`<div><dt>Goes through</dt><dd dir="auto"><${Text} of=${typeof loop.list === 'string' ? loop.list : JSON.stringify(loop.list)} /></dd></div>
        <div><dt>Each item</dt><dd>is <var>${loop.item}</var>${loop.key && html`, known by <${Text} of=${loop.key} />`}; at most ${loop.most}${loop.atOnce > 1 ? html`, ${loop.atOnce} at the same time` : ''}</dd></div>`}
      ${pause && html`<div><dt>Waits</dt><dd dir="auto">${pause.minutes ? `${pause.minutes} minutes` : pause.for_event ? html`<${Awaited} of=${pause.for_event} />` : html`until <${Text} of=${pause.until ?? ''} />`}</dd></div>`}
      ${Object.entries(parameters).map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd dir="auto"><${Text} of=${typeof value === 'string' ? value : JSON.stringify(value)} /></dd></div>`)}
      ${output && html`<div><dt>Result</dt><dd>kept as <var>${output}</var></dd></div>`}
      ${stops && html`<div><dt>If it fails</dt><dd>the run ends</dd></div>`}
    </dl>
    ${approval && html`<p class="asks"><${Status} of="pending">Asks a person first<//> ${approval.reason && html`<span class="quiet">“<bdi>${approval.reason}</bdi>”</span>`}</p>`}
    <${Diagnostics} of=${diagnostics} />
    ${lists.map((list, place) => html`<div class="inner" key=${place}>
      <p class="small quiet">${list.title}${list.when && html` <${Condition} of=${list.when} />`}</p>
      ${list.steps.length > 0 ? html`<ol class="flow">${list.steps.map((step) => html`<${Action} key=${step.pointer} action=${step} all=${all} />`)}</ol>` : html`<p class="small quiet">Nothing is done.</p>`}
    </div>`)}
  </li>`;
}

function Awaited({ of: { service, hook, event_type: event, filters, timeout } }) {
  return html`for ${event ? html`<bdi>${event}</bdi>` : 'any event'} of <bdi>${service ?? `the hook ${hook}`}</bdi>${timeout && `, at most ${timeout} minutes`}${filters && html`, only if <${Condition} of=${filters} />`}`;
}

function Condition({ of }) {
  return conditionLines(of).map(({ depth, text }) => html`<span class="line l${Math.min(depth, 3)}"><bdi>${text}</bdi></span>`);
}

function Text({ of }) {
  return templated(of).map(({ text, name }) => (name === undefined ? text : html`<var>${name}</var>`));
}

/** Mistakes at their place, each with the next step. */
function Diagnostics({ of }) {
  return of.map(({ severity, code, pointer, message, hint }) => html`<div class="diag ${severity === 'error' ? 'bad' : 'wait'}" data-diagnostic=${code}>
    <p><${Status} of=${severity === 'error' ? 'failed' : 'limited'}>${severity === 'error' ? 'Error' : 'Warning'}<//> <code>${code}</code></p>
    <p><bdi>${message}</bdi> <bdi>${hint}</bdi></p><p class="quiet tiny mono">${pointer}</p></div>`);
}
