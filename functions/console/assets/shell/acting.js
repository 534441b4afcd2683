// A button with the reason against its use; a question before a removal.

import { html, useEffect, useRef, useState } from '../htm-preact.js';
import { Icon } from './icons.js';

/** `{busy, problem, act}`: one request at a time; `act(does)` returns its success. */
export function useAct() {
  const [state, tell] = useState({});
  const act = async (does) => {
    if (state.busy) return false;
    tell({ busy: true });
    try {
      await does();
      tell({});
      return true;
    } catch (error) {
      tell({ problem: error.message });
      return false;
    }
  };
  return { ...state, act };
}

/** There for every role, with the reason why it may not be used. */
export function Act({ id, kind = '', refused = null, busy = false, onClick, children }) {
  const why = `${id}-why`;
  return html`<button type="button" id=${id} class="btn ${kind}" aria-disabled=${refused || busy ? 'true' : null} aria-describedby=${refused ? why : null} onClick=${() => !refused && !busy && onClick()}>${children}</button>
    ${refused && html`<span class="quiet small" id=${why}>${refused}</span>`}`;
}

export function Problem({ of }) {
  return of && html`<div class="say bad" role="alert"><${Icon} name="bad" /><p>${of}</p></div>`;
}

/** In the shell's status line, for a `title` that asks. */
function tell(title) {
  const line = document.getElementById('done');
  if (line) line.textContent = `Done: ${title.replace(/\?$/, '.')}`;
}

function keepFocus() {
  if (document.activeElement === document.body) document.getElementById('main')?.focus();
}

/** Asks before it acts; the children name the consequences. */
export function Sure({ id, word, title, yes, no = 'Keep it', refused = null, does, children }) {
  const [asks, ask] = useState(false);
  const { busy, problem, act } = useAct();
  const dialog = useRef(null);
  const done = useRef(false);
  useEffect(() => {
    if (asks) dialog.current.showModal();
  }, [asks]);
  // Its button, which has the focus, often goes with the thing.
  useEffect(() => () => (done.current || dialog.current) && setTimeout(keepFocus), []);
  const confirm = async () => {
    if (!(await act(does))) return;
    done.current = true;
    dialog.current?.close();
    tell(title);
  };
  return html`<${Act} id=${id} kind="grave" refused=${refused} onClick=${() => ask(true)}>${word}<//>
    ${asks && html`<dialog ref=${dialog} aria-labelledby="${id}-h" onClose=${() => ask(false)}>
      <h2 id="${id}-h">${title}</h2>${children}<${Problem} of=${problem} />
      <div class="chips"><button type="button" class="btn" onClick=${() => dialog.current.close()}>${no}</button>
        <button type="button" class="btn grave" id="${id}-yes" aria-disabled=${busy ? 'true' : null} onClick=${confirm}>${yes}</button></div>
    </dialog>`}`;
}
