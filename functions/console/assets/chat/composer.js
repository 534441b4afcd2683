// The field to write in. Its draft survives a reload and a new sign-in.

import { html, useEffect, useLayoutEffect, useState } from '../htm-preact.js';

/** Characters; the API's limit. */
const LONGEST = 32_000;

/** `kept`: where the draft is kept in the tab. */
export function Composer({ field, kept, answering, stopping, onSend, onStop }) {
  const [draft, setDraft] = useState(sessionStorage.getItem(kept) ?? '');
  const write = (text) => {
    sessionStorage.setItem(kept, text);
    setDraft(text);
  };
  useEffect(() => field.current.focus(), []);
  useLayoutEffect(() => {
    const { style } = field.current;
    style.height = 'auto';
    style.height = `${field.current.scrollHeight}px`;
  }, [draft]);

  const send = async (event) => {
    event?.preventDefault();
    const text = draft.trim();
    if (text === '' || answering) return;
    write('');
    field.current.focus();
    const taken = await onSend(text);
    // A newer draft stays, below.
    if (!taken) write([text, sessionStorage.getItem(kept) ?? ''].filter(Boolean).join('\n\n'));
  };
  const onKeyDown = (event) => {
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) send(event);
  };
  const stop = () => {
    field.current.focus();
    onStop();
  };

  return html`
    <form class="composer" onSubmit=${send}>
      <label class="aloud" for="message">Message</label>
      <textarea
        id="message"
        ref=${field}
        rows="1"
        maxlength=${LONGEST}
        placeholder="Write a message"
        aria-describedby="keys"
        value=${draft}
        onInput=${(event) => write(event.target.value)}
        onKeyDown=${onKeyDown}
      ></textarea>
      <div class="actions">
        <p id="keys" class="quiet">${answering ? 'Esc stops the answer.' : 'Enter sends, Shift + Enter begins a new line.'}</p>
        ${answering &&
        html`<button type="button" id="stop" aria-disabled=${stopping} onClick=${stop}>${stopping ? 'Stopping …' : 'Stop'}</button>`}
        <button type="submit" id="send" class="main" aria-disabled=${answering || draft.trim() === ''}>Send</button>
      </div>
    </form>
  `;
}
