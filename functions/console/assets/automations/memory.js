// The values that an automation keeps between its runs, and forgetting one.

import { html } from '../htm-preact.js';
import { Sure } from '../shell/acting.js';
import { Failed } from '../shell/list.js';
import { useLive } from '../shell/live.js';
import { exact, Moment } from '../shell/moments.js';
import { may } from '../shell/roles.js';

const MOST_SHOWN = 50;
const EVERY = 10_000;

/** For administrators; nothing while the automation remembers nothing. */
export function Memory({ path, api, role }) {
  const { data, error, again } = useLive(may(role, 'admin') ? `${path} memory` : null, () => api.read(`${path}/memory`, { limit: MOST_SHOWN }), () => EVERY);
  const values = data?.items ?? [];
  if (values.length === 0 && !error) return null;
  const forget = async (key) => {
    await api.act('POST', `${path}/memory/forget`, { key });
    again();
  };
  return html`<section aria-labelledby="h-memory"><h2 id="h-memory">Memory</h2>
    ${error && html`<${Failed} what="The memory" error=${error} again=${again} />`}
    <ul class="tools">${values.map(({ key, value, updated_at: at, expires_at: until }, place) => html`<li key=${key} data-remembered=${key}><bdi class="wrap">${key}</bdi><${Moment} at=${at} />
      <p class="quiet"><code>${JSON.stringify(value)}</code>, until ${exact(until)}</p>
      <${Sure} id="forget-${place}" word="Forget…" title="Forget this value?" yes="Forget" does=${() => forget(key)}>
        <p>The next run that remembers <bdi>${key}</bdi> is the first again. What it does once per key, such as a message, it then does once more.</p><//></li>`)}</ul>
    ${data?.next_cursor && html`<p class="quiet small">There are more than are listed.</p>`}
  </section>`;
}
