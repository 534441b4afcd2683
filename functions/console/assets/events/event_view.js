// One event: its data, its runs, and why listening automations did not run.

import { html, useState } from '../htm-preact.js';
import { Absent } from '../shell/absent.js';
import { Failed } from '../shell/list.js';
import { useLive } from '../shell/live.js';
import { Main } from '../shell/main.js';
import { exact, relative } from '../shell/moments.js';
import { whyNot } from '../shell/roles.js';
import { addressOf } from '../shell/route.js';
import { Icon } from '../shell/icons.js';
import { Status } from '../shell/status.js';
import { Values } from '../shell/values.js';
import { Began, reasonOf } from './words.js';

const EVERY = 1_500;

export function EventView({ id, api, slug, role, nameOf }) {
  const live = useLive(`${slug} ${id}`, () => api.read(`events/${encodeURIComponent(id)}`), (event) => (event === null || event.status === 'received' ? EVERY : null));
  const event = live.data;
  const crumb = { word: 'Events', href: addressOf({ slug, page: 'events' }) };
  if (!event) return html`<${Absent} word="event" icon="inbox" crumb=${crumb} live=${live} />`;
  const { woke = [] } = event;
  const reason = reasonOf(event);
  return html`<${Main} title=${`${event.service}: ${event.event_type}`} crumb=${crumb} status=${html`<${Began} of=${event} />`}
    acts=${html`<${Again} event=${event} api=${api} slug=${slug} role=${role} />`}>
    <div class="body" data-event=${event.status}>
      ${live.error && html`<${Failed} what="The event" error=${live.error} at=${live.at} again=${live.again} />`}
      <section aria-label="Facts">
        ${reason && html`<div class="say wait" data-reason><${Icon} name="skip" /><p><b>It began nothing.</b> <bdi>${reason}</bdi></p></div>`}
        <dl class="facts"><div><dt>Came in</dt><dd>${exact(event.created_at)}, ${relative(event.created_at)}</dd></div><div><dt>Service</dt><dd><bdi>${event.service}</bdi></dd></div></dl>
      </section>
      <section aria-labelledby="h-heard"><h2 id="h-heard">Automations that listen to it</h2>
        ${event.matched.length + woke.length + event.unmatched.length + event.waiting.length === 0
          ? html`<p class="quiet">None. Activate an automation for <code>${event.event_type}</code> of ${event.service}, then replay the event.</p>`
          : html`<div class="sheet"><table class="rows"><thead><tr><th scope="col">Automation</th><th scope="col">Outcome</th></tr></thead><tbody>
            ${[[event.matched, 'Began a run'], [woke, 'Went on: it waited for the event']].map(([runs, did]) => runs.map(({ automation_id: one, run_id: run }) => html`<tr key=${run}><th scope="row" class="wrap"><a class="open" data-row=${run} href=${addressOf({ slug, page: 'runs', id: run })}><bdi>${nameOf(one)}</bdi></a></th><td><${Status} of="succeeded">${did}<//></td></tr>`))}
            ${event.unmatched.map(({ automation_id: one, why }) => html`<tr key=${one}><th scope="row" class="wrap"><bdi>${nameOf(one)}</bdi></th><td class="wrap"><${Status} of="skipped">Did not run<//> <span class="quiet"><bdi>${why}</bdi></span></td></tr>`)}
            ${event.waiting.map((one) => html`<tr key=${one}><th scope="row" class="wrap"><bdi>${nameOf(one)}</bdi></th><td><${Status} of="queued">Waits for its turn<//></td></tr>`)}
          </tbody></table></div>`}
      </section>
      <section aria-labelledby="h-data"><h2 id="h-data">Data <span class="quiet small">secrets are masked</span></h2><div class="say"><${Values} values=${event.data} /></div></section>
    </div>
  <//>`;
}

/** A dry run. */
function Again({ event, api, slug, role }) {
  const [{ busy, problem }, tell] = useState({});
  const refused = whyNot(role, 'member');
  const replay = async () => {
    if (refused || busy) return;
    tell({ busy: true });
    try {
      const { runs } = await api.act('POST', `events/${event.id}/replay`, { dry_run: true });
      if (runs[0]) location.hash = addressOf({ slug, page: 'runs', id: runs[0].id });
      else tell({ problem: 'No automation ran for it, so there is nothing to replay.' });
    } catch (error) {
      tell({ problem: error.message });
    }
  };
  return html`${(refused || problem) && html`<span class="small ${problem ? 'wrong' : 'quiet'}" id="why-no-replay" role=${problem ? 'alert' : null}>${problem ?? refused}</span>`}
    <button type="button" class="btn" id="replay-dry" aria-disabled=${refused || busy ? 'true' : null} aria-describedby=${refused ? 'why-no-replay' : null} onClick=${replay}>Replay as dry run</button>`;
}
