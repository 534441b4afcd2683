// The chat in its place in the console.

import { BEGINNING, Chat } from './chat.js';
import { ChatView } from './chat_view.js';
import { html, useEffect, useState } from '../htm-preact.js';
import { store } from '../shell/store.js';

export function View({ api, signIn }) {
  const [{ state, chat }] = useState(() => {
    const state = store(BEGINNING);
    return { state, chat: new Chat({ state, api, signIn }) };
  });
  const [shown, show] = useState(state.get());
  useEffect(() => {
    const deaf = state.listen(show);
    chat.start();
    return () => {
      deaf();
      chat.leave();
    };
  }, [state, chat]);
  return html`<div class="chatplace">
    <${ChatView} shown=${shown} chat=${chat} />
    <div class="aloud" role="status" aria-live="polite">${shown.announcement}</div>
  </div>`;
}
