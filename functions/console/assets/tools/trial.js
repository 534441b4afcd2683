// The request of a tool under edit: a dry run after every change.

import { html, useEffect, useState } from '../htm-preact.js';
import { Form } from '../shell/form.js';
import { Icon } from '../shell/icons.js';
import { whyNot } from '../shell/roles.js';
import { cleaned } from '../shell/schema.js';
import { Status } from '../shell/status.js';
import { Values } from '../shell/values.js';
import { argumentsOf } from './configs.js';

/** Waits for the end of a word. */
const PATIENCE = 500;
const CALLER = '+14155550101';

/** `tool`: the saved tool, if unchanged: then its secrets are known. */
export function Trial({ api, config, tool, role, schemas }) {
  const [given, fill] = useState({});
  const [caller, call] = useState(CALLER);
  const [{ answer, error, late }, tell] = useState({});
  const refused = whyNot(role, 'member');
  // An unsaved configuration has no stored secrets.
  const masked = !tool && JSON.stringify(config).includes('[secret]');
  const asks = argumentsOf(config);
  const body = JSON.stringify({ ...(tool ? { tool_id: tool.id } : { config: cleaned(config) }), arguments: cleaned(given), caller_phone_number: caller || null, dry_run: true });
  useEffect(() => {
    if (refused || masked) {
      tell({});
      return undefined;
    }
    let newest = true;
    tell((before) => ({ ...before, late: true }));
    const timer = setTimeout(async () => {
      try {
        const answer = await api.act('POST', 'tools/test', JSON.parse(body));
        if (newest) tell({ answer });
      } catch (error) {
        if (newest) tell({ error });
      }
    }, PATIENCE);
    return () => {
      newest = false;
      clearTimeout(timer);
    };
  }, [body, masked]);
  const fields = error?.fields ?? [];
  const filled = fields.filter(({ field }) => field.startsWith('arguments.')).map(({ field, problem }) => ({ field: field.slice('arguments.'.length), problem }));
  const others = fields.filter(({ field }) => !field.startsWith('arguments.')).map(({ field, problem }) => `${field.replace(/^config\./, '')} ${problem}`);
  return html`<section class="stack"><h2>Dry run</h2><p class="quiet small">Nothing is sent. It is tried again after each change.</p>
      <div class="made"><label for="trial-caller">The caller’s number</label><input id="trial-caller" type="tel" autocomplete="off" value=${caller} onInput=${({ target }) => call(target.value.trim())} /></div>
      ${Object.keys(asks.properties).length > 0 && html`<h3>What the model fills in</h3><${Form} schemas=${schemas} schema=${asks} first=${Object.keys(asks.properties)} value=${given} onChange=${fill} problems=${filled} name="trial" />`}</section>
    <section class="stack" aria-labelledby="h-would" aria-busy=${late ? 'true' : null} data-trial=${answer?.status ?? (error ? 'refused' : masked ? 'masked' : 'none')}><div class="titled" role="status"><h2 id="h-would">What would be sent</h2>${answer && html`<${Status} of=${answer.status === 'ready' ? 'approved' : 'failed'}>${answer.status === 'ready' ? 'Ready' : 'Would fail'}<//>`}</div>
      ${refused && html`<p class="quiet">${refused}</p>`}
      ${masked && !refused && html`<p class="quiet">It holds a stored secret. Save the tool, and the dry run goes on.</p>`}
      ${!answer && !error && !refused && !masked && html`<p class="quiet">It is shown here.</p>`}
      ${answer?.request && html`<div class="say" data-request><${Values} values=${answer.request} /></div><p class="quiet small">Secrets are masked.</p>`}
      ${answer?.answer && html`<div class="say bad"><${Icon} name="bad" /><p><bdi>${answer.answer.error}</bdi></p></div>`}
      ${answer?.ignored_arguments.length > 0 && html`<p class="quiet small">Ignored: ${answer.ignored_arguments.join(', ')}.</p>`}
      ${error && html`<div class="say wait"><${Icon} name="wait" /><div>${fields.length === 0 ? html`<p>${error.message}</p>` : html`<p><b>Not ready yet.</b></p><ul>${others.map((one) => html`<li>${one}</li>`)}</ul>${filled.length > 0 && html`<p>Fill in what the model would give, above.</p>`}`}</div></div>`}
    </section>`;
}
