// Deletes the data of a phone number: the warning, a typed confirmation, and the counts.

import { html, useEffect, useRef, useState } from '../htm-preact.js';
import { Icon } from '../shell/icons.js';
import { Main } from '../shell/main.js';
import { asNumber } from '../shell/phone_number.js';
import { whyNot } from '../shell/roles.js';
import { addressOf } from '../shell/route.js';
import { erase, wordsOf } from './erasing.js';

const TAKES = [
  'Calls from and to the number, with the executions in them',
  'Executions that have it as a recipient or as an argument',
  'Events, runs of automations and conversations that contain it',
];

export function View({ api, slug, role }) {
  const [number, type] = useState('');
  const [again, repeat] = useState('');
  const [{ busy, problem, found }, tell] = useState({});
  const stopped = useRef(false);
  useEffect(() => () => { stopped.current = true; }, []);
  const refused = whyNot(role, 'admin');
  const meant = asNumber(number);
  const ready = meant !== null && asNumber(again) === meant && !refused && !busy;
  const begin = async (event) => {
    event.preventDefault();
    if (!ready) return;
    stopped.current = false;
    tell({ busy: true });
    try {
      const found = await erase((body) => api.act('POST', 'erasures', body), meant, { told: (so) => tell({ busy: true, found: so }), stopped: () => stopped.current });
      tell({ found });
      repeat('');
    } catch (error) {
      tell((before) => ({ problem: error.message, found: before.found }));
    }
  };
  return html`<${Main} title="Erasure"><div class="body">
    <section class="stack"><p>When a person asks for their data to be deleted, enter their phone number. This cannot be undone.</p>
      <h2>What is deleted</h2><ul class="say">${TAKES.map((one) => html`<li>${one}</li>`)}</ul>
      <p class="quiet">Your own content stays: tools, knowledge bases, automations and your phone numbers. Numbers are found with their country code, or without it if nine digits remain.</p></section>
    <form class="form" aria-label="Erasure" onSubmit=${begin}>
      <label>Phone number<input id="erase-number" type="tel" autocomplete="off" placeholder="+14155550101" value=${number} disabled=${Boolean(refused)} aria-describedby="erase-says" onInput=${({ target }) => type(target.value)} /></label>
      <label>Type it again to confirm<input id="erase-again" type="tel" autocomplete="off" value=${again} disabled=${Boolean(refused)} onInput=${({ target }) => repeat(target.value)} /></label>
      <p id="erase-says" class="small ${problem ? 'wrong' : 'quiet'}" role=${problem ? 'alert' : 'status'}>${problem ?? refused ?? (number && meant === null ? 'Begin with + and the country code, without (0).' : again && asNumber(again) !== meant ? 'The two numbers differ.' : '')}</p>
      <div class="chips"><button class="btn grave" id="erase" aria-disabled=${ready ? null : 'true'}>${busy ? 'Deleting …' : 'Delete the data of this number'}</button>
        ${busy && html`<button type="button" class="btn" onClick=${() => { stopped.current = true; }}>Stop</button>`}</div>
    </form>
    ${found && html`<${Found} found=${found} slug=${slug} busy=${busy} />`}
  </div><//>`;
}

function Found({ found, slug, busy }) {
  const { deleted, calls_under_way: calls, runs_under_way: runs, complete, phone_number: number } = found;
  const rows = Object.entries(deleted);
  return html`<section class="stack meterbox" aria-labelledby="h-found" data-erased=${complete ? 'complete' : 'open'}><h2 id="h-found">${busy ? 'Being deleted' : 'Deleted'} <span class="quiet">${number}</span></h2>
    <div role="status">${complete && html`<div class="say"><${Icon} name="ok" /><p><b>Everything that was found is deleted.</b></p></div>`}
      ${!complete && !busy && runs.length + calls.length === 0 && html`<div class="say wait"><${Icon} name="wait" /><p><b>It is not complete.</b> Enter the number again: it goes on, and repeating does no harm.</p></div>`}</div>
    <table><thead><tr><th scope="col">Kind</th><th scope="col" class="num">Deleted</th></tr></thead><tbody>${rows.map(([name, count]) => html`<tr key=${name}><th scope="row">${wordsOf(name)}</th><td class="num">${count}</td></tr>`)}</tbody></table>
    <${UnderWay} ids=${calls} slug=${slug} page="calls" word="call" then="Wait for the end, then delete once more" />
    <${UnderWay} ids=${runs} slug=${slug} page="runs" word="run" then="Cancel, then delete once more" />
  </section>`;
}

function UnderWay({ ids, slug, page, word, then }) {
  if (ids.length === 0) return null;
  return html`<div class="say wait"><${Icon} name="wait" /><p><b>${ids.length === 1 ? `A ${word}` : `${ids.length} ${word}s`} with this number ${ids.length === 1 ? 'is' : 'are'} not over.</b> ${then}: ${ids.map((id, place) => html`${place > 0 && ', '}<a href=${addressOf({ slug, page, id })}>${word} ${place + 1}</a>`)}</p></div>`;
}
