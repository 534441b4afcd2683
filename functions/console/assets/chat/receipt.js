// The actions of a turn, by the service's record, not the answer's words.

import { html } from '../htm-preact.js';

/** In words, with the kind of its sign. */
const STATES = {
  done: ['Done', 'good'],
  partial: ['Done in part', 'bad'],
  failed: ['Failed', 'bad'],
  unknown: ['May have been done', 'bad'],
  refused: ['Refused', 'told'],
  not_called: ['Not called', 'told'],
  waiting: ['Waits for your consent', 'open'],
};

const RECIPIENTS = {
  sent: 'sent',
  already_sent: 'had it already',
  not_sent: 'not sent',
  unknown: 'may have been sent',
};

export function Receipt({ receipt }) {
  const { entries = [], no_action: nothing = false } = receipt;
  if (entries.length === 0) return html`<li class="quiet" data-receipt="none">${nothing && 'No action was taken.'}</li>`;
  return html`
    <li class="receipt" data-receipt="entries">
      <p class="aloud">What was done:</p>
      <ul>
        ${entries.map((entry, place) => html`<${Entry} key=${place} entry=${entry} />`)}
      </ul>
    </li>
  `;
}

function Entry({ entry }) {
  const { tool, label, state, text, recipients = [] } = entry;
  const [words, kind] = STATES[state] ?? [state, 'told'];
  return html`
    <li data-receipt-state=${state}>
      <span class="sign ${kind}" aria-hidden="true"></span>
      <div>
        <p dir="auto">${text || `${label || tool}: ${words.toLowerCase()}.`}</p>
        ${recipients.length > 1 &&
        html`<ul class="recipients">
          ${recipients.map(({ to, state: got }) => html`<li key=${to}><bdi>${to}</bdi> <span class="quiet">${RECIPIENTS[got] ?? got}</span></li>`)}
        </ul>`}
        <p class="quiet"><span class="state">${words}</span> · ${label || tool}</p>
      </div>
    </li>
  `;
}
