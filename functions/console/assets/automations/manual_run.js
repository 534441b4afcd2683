// Starts a run of a version by hand.

import { html, useRef, useState } from '../htm-preact.js';
import { Act, Problem, useAct } from '../shell/acting.js';
import { Form } from '../shell/form.js';
import { may, whyNot } from '../shell/roles.js';
import { addressOf } from '../shell/route.js';
import { typeOf } from '../shell/schema.js';

const SCHEMA = {
  properties: {
    trigger_data: { type: 'object', title: 'Data, as JSON', description: 'The definition reads it as `{{trigger_data.…}}`. An event is a member: `{"event": {"text": "…"}}`.' },
    dry_run: { type: 'boolean', title: 'Dry run', description: 'Nothing is changed outside. The run shows the requests that it would send.' },
  },
};

/** `close`: the address without the form. */
export function ManualRun({ automation: { id, status, active_version: active }, version, api, slug, role, close }) {
  const runs = status === 'active' && active === version;
  const onlyDry = !runs && !may(role, 'admin');
  const [value, set] = useState({ trigger_data: {}, dry_run: !runs });
  const { busy, problem, act } = useAct();
  const form = useRef(null);
  const { current: keys } = useRef({});
  const body = { trigger_data: {}, ...value, version, dry_run: onlyDry || value.dry_run };
  const refused = whyNot(role, 'member') ?? (typeOf(body.trigger_data) === 'object' ? null : 'The data must be an object in JSON.');
  const start = () => act(async () => {
    // A request that is sent again, after a double press or a lost answer, starts nothing more.
    const key = (keys[JSON.stringify(body)] ??= crypto.randomUUID());
    const run = await api.act('POST', `automations/${encodeURIComponent(id)}/run`, body, { 'idempotency-key': key });
    if (form.current) location.hash = addressOf({ slug, page: 'runs', id: run.id });
  });
  return html`<section class="stack" aria-labelledby="h-start" data-manual-run=${version} ref=${form}>
    <div class="titled"><h2 id="h-start">Run version ${version}</h2><div class="acts"><a class="btn bare" data-close href=${close}>Close</a></div></div>
    ${!runs && html`<p class="quiet">It is not active${onlyDry ? ', so this is a dry run: nothing is changed outside' : ''}.</p>`}
    <${Form} schemas=${{}} schema=${SCHEMA} first=${Object.keys(SCHEMA.properties)} hidden=${onlyDry ? ['dry_run'] : []} value=${value} onChange=${set} disabled=${Boolean(busy)} name="start" />
    <${Problem} of=${problem} />
    <div class="chips"><${Act} id="start" kind="main" refused=${refused} busy=${busy} onClick=${start}>Start the run<//></div></section>`;
}
