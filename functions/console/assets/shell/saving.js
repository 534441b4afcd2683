// Saving and acting: a form with its draft and problems, a button with the reason against its use, a question before a removal.

import { html, useEffect, useRef, useState } from '../htm-preact.js';
import { useDraft } from './draft.js';
import { Form, useSchemas } from './form.js';
import { Icon } from './icons.js';
import { Failed, Skeleton } from './list.js';
import { begun, cleaned } from './schema.js';

/**
 * `of` names the draft, `begin(schemas)` gives its first value and `since` its version; `send(value)` saves. `beside` draws the part beside
 * the form; `placed` moves a problem to its field. The other properties are the form's.
 */
export function SavedForm(given) {
  const { schemas, error, again } = useSchemas();
  if (schemas) return html`<${Filled} key=${given.of} ...${given} schemas=${schemas} />`;
  return error ? html`<${Failed} what="The form" error=${error} again=${again} />` : html`<${Skeleton} what="The form" />`;
}

function Filled({ of, begin, since = '', send, onSaved = () => {}, save = 'Save', refused = null, beside = null, placed = (problem) => problem, schemas, ...look }) {
  const draft = useDraft(of, () => begin?.(schemas) ?? begun(typeof look.schema === 'string' ? { $ref: `#/${look.schema}` } : look.schema, schemas), since);
  const [{ busy, problem, fields = [], saved, count = 0 }, tell] = useState({});
  const form = useRef(null);
  useEffect(() => {
    if (count > 0) (form.current.querySelector('[aria-invalid=true]') ?? form.current.querySelector('[role=alert]'))?.focus();
  }, [count]);
  const submit = async (event) => {
    event.preventDefault();
    if (busy || refused) return;
    tell({ busy: true });
    try {
      const answer = await send(cleaned(draft.value));
      draft.forget();
      tell({ saved: true });
      onSaved(answer);
    } catch (error) {
      tell({ problem: error.message, fields: error.fields?.map(placed), count: count + 1 });
    }
  };
  const some = fields.length === 1 ? 'One field needs a change; it is marked.' : `${fields.length} fields need a change; they are marked.`;
  const set = (value) => {
    draft.set(value);
    if (saved) tell({});
  };
  return html`<form class="saved" novalidate ref=${form} onSubmit=${submit} aria-busy=${busy ? 'true' : null}>
      ${draft.kept && html`<div class="say" data-kept><p>What you typed before is here again.</p><div class="acts"><button type="button" class="btn" onClick=${draft.discard}>Discard it</button></div></div>`}
      ${problem && html`<div class="say bad" role="alert" tabindex="-1" data-refused><${Icon} name="bad" /><p>${fields.length > 0 ? some : problem}</p></div>`}
      <${Form} schemas=${schemas} value=${draft.value} onChange=${set} problems=${fields} disabled=${Boolean(refused)} ...${look} />
      <div class="chips"><button class="btn main" data-save aria-disabled=${refused || busy ? 'true' : null}>${busy ? 'Saving…' : save}</button>
        <span class="quiet small" role="status">${refused ?? (saved ? 'Saved.' : draft.changed ? 'Not saved yet. It is kept in this tab.' : '')}</span></div>
    </form>
    ${beside?.({ value: draft.value, changed: draft.changed, schemas })}`;
}

/** `{busy, problem, act}`: one request at a time; `act(does)` gives whether it succeeded. */
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

/** A button that is there for every role, with the reason why it may not be used. */
export function Act({ id, kind = '', refused = null, busy = false, onClick, children }) {
  const why = `${id}-why`;
  return html`<button type="button" id=${id} class="btn ${kind}" aria-disabled=${refused || busy ? 'true' : null} aria-describedby=${refused ? why : null} onClick=${() => !refused && !busy && onClick()}>${children}</button>
    ${refused && html`<span class="quiet small" id=${why}>${refused}</span>`}`;
}

export function Problem({ of }) {
  return of && html`<div class="say bad" role="alert"><${Icon} name="bad" /><p>${of}</p></div>`;
}

/** A button that asks before it acts; the children name the consequences. */
export function Sure({ id, word, title, yes, no = 'Keep it', refused = null, does, children }) {
  const [asks, ask] = useState(false);
  const { busy, problem, act } = useAct();
  const dialog = useRef(null);
  useEffect(() => {
    if (asks) dialog.current.showModal();
  }, [asks]);
  return html`<${Act} id=${id} kind="grave" refused=${refused} onClick=${() => ask(true)}>${word}<//>
    ${asks && html`<dialog ref=${dialog} aria-labelledby="${id}-h" onClose=${() => ask(false)}>
      <h2 id="${id}-h">${title}</h2>${children}<${Problem} of=${problem} />
      <div class="chips"><button type="button" class="btn" onClick=${() => dialog.current.close()}>${no}</button>
        <button type="button" class="btn grave" id="${id}-yes" aria-disabled=${busy ? 'true' : null} onClick=${() => act(does)}>${yes}</button></div>
    </dialog>`}`;
}
