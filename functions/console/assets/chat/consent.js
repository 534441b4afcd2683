// A question that waits for consent.

import { html, useEffect, useRef, useState } from '../htm-preact.js';
import { useLater } from '../shell/effects.js';
import { exact } from '../shell/moments.js';
import { Named, Values } from '../shell/values.js';

/** Of browsers. */
const LONGEST = 2 ** 31 - 1;

/** `readOnly`: the person may not decide. */
export function Consent({ waiting, readOnly, onDecide }) {
  const { message, tool, label, shows, expires } = waiting;
  const [decided, decide] = useState(false);
  const [over, end] = useState(false);
  const heading = useRef(null);
  useEffect(() => {
    // Somebody who is writing keeps the focus.
    const focused = document.activeElement;
    if (!(focused?.id === 'message' && focused.value !== '')) heading.current.focus({ preventScroll: true });
  }, []);
  useLater(() => end(Boolean(expires)), Math.min(LONGEST, new Date(expires) - Date.now()), [expires]);
  const say = (approved) => {
    if (decided) return;
    decide(true);
    document.getElementById('message')?.focus();
    onDecide(approved);
  };
  const name = label || tool;
  const members = shows?.map(({ name, value, fixed }) => ({ name, shown: html`<bdi>${value}</bdi>`, remark: fixed && 'always' }));
  return html`
    <section class="consent" aria-labelledby="consent">
      <h2 id="consent" tabindex="-1" ref=${heading}>Your consent is needed</h2>
      <p dir="auto">${message || `May I call ${name}?`}</p>
      ${members ? members.length > 0 && html`<${Named} members=${members} />` : html`<${Values} values=${waiting.arguments} />`}
      ${over
        ? html`<p class="quiet" role="status">The time to decide is over, and nothing was done. Ask again if it is still wanted.</p>`
        : !readOnly &&
          html`<div class="actions">
            <button type="button" id="consent-approve" class="main" onClick=${() => say(true)}>Allow this once</button>
            <button type="button" id="consent-refuse" onClick=${() => say(false)}>Do not allow</button>
          </div>`}
      ${expires && !over && html`<p class="quiet">Without an answer it is off at <time datetime=${expires}>${exact(expires)}</time>.</p>`}
    </section>
  `;
}
