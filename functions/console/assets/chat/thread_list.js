// Earlier conversations.

import { html, useRef, useState } from '../htm-preact.js';
import { useModal } from '../shell/modal.js';
import { exact } from '../shell/moments.js';

export function ThreadList({ threads, current, listed, readOnly, onList, open, begin, remove, more }) {
  const [doomed, doom] = useState(null);
  const fresh = useRef(null);
  const gone = async () => {
    const deleted = await remove(doomed.thread_id);
    doom(null);
    // The dialog would return the focus to a removed element.
    if (deleted) setTimeout(() => fresh.current?.focus());
  };
  return html`
    <aside class="threads" aria-label="Conversations">
      <div class="top">
        <button
          type="button"
          id="show-threads"
          class="plain narrow-only"
          aria-expanded=${listed}
          aria-controls="threads"
          onClick=${() => onList(!listed)}
        >
          Conversations
        </button>
        ${!readOnly && html`<button type="button" id="new-thread" ref=${fresh} onClick=${begin}>New conversation</button>`}
      </div>
      <div id="threads" class="listed">
        <h2 class="wide-only">Conversations</h2>
        <ul id="thread-list">
          ${threads.items.map(
            (thread) => html`<li key=${thread.thread_id} data-thread=${thread.thread_id}>
              <button
                type="button"
                class="open"
                aria-current=${thread.thread_id === current ? 'true' : null}
                onClick=${() => open(thread.thread_id)}
              >
                <span class="title" dir="auto">${thread.title || 'Without a title'}</span>
                <span class="quiet"
                  >${thread.pending_action ? 'Waits for you · ' : ''}<time datetime=${thread.updated_at}>${exact(thread.updated_at)}</time></span
                >
              </button>
              ${!readOnly &&
              html`<button
                type="button"
                class="plain delete"
                aria-label=${`Delete the conversation ${thread.title || 'without a title'}`}
                onClick=${() => doom(thread)}
              >
                <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true"><path d="M4 4l8 8M12 4l-8 8" /></svg>
              </button>`}
            </li>`,
          )}
        </ul>
        ${threads.items.length === 0 && html`<p class="quiet">${threads.loading ? 'Loading …' : 'None yet.'}</p>`}
        ${threads.next &&
        html`<button type="button" id="more-threads" class="plain" disabled=${threads.loading} onClick=${more}>Earlier ones</button>`}
      </div>
      ${doomed && html`<${Deletion} thread=${doomed} onYes=${gone} onNo=${() => doom(null)} />`}
    </aside>
  `;
}

function Deletion({ thread, onYes, onNo }) {
  const dialog = useModal();
  return html`
    <dialog ref=${dialog} aria-labelledby="deletion" onCancel=${onNo}>
      <h2 id="deletion">Delete this conversation?</h2>
      <p>“${thread.title || 'Without a title'}” and everything in it will be gone for good.</p>
      <div class="actions">
        <button type="button" id="delete-no" onClick=${onNo}>Keep it</button>
        <button type="button" id="delete-yes" class="grave" onClick=${onYes}>Delete it</button>
      </div>
    </dialog>
  `;
}
