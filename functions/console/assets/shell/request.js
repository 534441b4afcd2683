// Arguments and result of an execution, masked.

import { html } from '../htm-preact.js';
import { Values } from './values.js';

const TRIGGERS = { conversation: 'the model, in the conversation', call_start: 'the start of the call', automation: 'an automation', test: 'a test', agent: 'an agent' };

export function triggerOf(trigger) {
  return TRIGGERS[trigger] ?? trigger;
}

/** The list that contains an execution, for its address. */
export function whereOf({ call_id: call, tool_id: tool }) {
  return call ? { call } : { tool };
}

export function Request({ execution }) {
  const { arguments: given, ignored_arguments: ignored, result } = execution;
  return html`<h3>What the tool was given <span class="quiet">masked</span></h3>
    <div class="say" data-request><${Values} values=${given} /></div>
    ${ignored.length > 0 && html`<p class="small quiet">Ignored, for the tool does not have them: ${ignored.join(', ')}.</p>`}
    <h3>What it gave back</h3><${Result} of=${result} />`;
}

export function Result({ of }) {
  return html`<div class="say">${of === null || of === undefined ? html`<span class="quiet">Nothing.</span>` : html`<${Values} values=${of} />`}</div>`;
}
