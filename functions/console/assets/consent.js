// What waits for a person's yes or no.

import { html, useEffect, useRef, useState } from './htm-preact.js';
import { Values } from './values.js';

export function Consent({ waiting, onDecide }) {
  const [decided, decide] = useState(false);
  const heading = useRef(null);
  useEffect(() => {
    // Not out of the hands of somebody who is writing.
    const focused = document.activeElement;
    if (!(focused?.id === 'message' && focused.value !== '')) heading.current.focus();
  }, []);
  const say = (approved) => {
    if (decided) return;
    decide(true);
    document.getElementById('message')?.focus();
    onDecide(approved);
  };
  return html`
    <section class="consent" aria-labelledby="consent">
      <h2 id="consent" tabindex="-1" ref=${heading}>Your consent is needed</h2>
      <p>${waiting.message || `May ${waiting.tool} be called?`}</p>
      <div>
        <p class="part">What <code>${waiting.tool}</code> is given</p>
        <${Values} values=${waiting.arguments} />
      </div>
      <div class="actions">
        <button type="button" id="consent-approve" class="main" onClick=${() => say(true)}>Allow this once</button>
        <button type="button" id="consent-refuse" onClick=${() => say(false)}>Do not allow</button>
      </div>
      ${waiting.expires && html`<p class="quiet">Without an answer it is off at <time datetime=${waiting.expires}>${hour(waiting.expires)}</time>.</p>`}
    </section>
  `;
}

function hour(text) {
  return new Date(text).toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit' });
}
