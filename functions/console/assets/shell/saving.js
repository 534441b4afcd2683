// A form with its draft and problems.

import { html, useEffect, useMemo, useRef, useState } from '../htm-preact.js';
import { useDraft } from './draft.js';
import { Form, useSchemas } from './form.js';
import { Icon } from './icons.js';
import { Failed, Skeleton } from './list.js';
import { begun, cleaned, secretsIn } from './schema.js';

/**
 * `of` names the draft, `begin(schemas)` gives its first value and `since` its version; `send(value)` saves; `onSaved(answer, here)` leads
 * on only a person who is still `here`. `beside` draws the part beside the form, `note` stands above its button; `placed` moves a problem to
 * its field. The other properties are the form's. Its fields are disabled while it is saved: text typed then would be neither saved nor kept. `onConflict` reads the
 * version that somebody else saved.
 */
export function SavedForm(given) {
  const { schemas, error, again } = useSchemas();
  if (schemas) return html`<${Filled} key=${given.of} ...${given} schemas=${schemas} />`;
  return error ? html`<${Failed} what="The form" error=${error} again=${again} />` : html`<${Skeleton} what="The form" />`;
}

function Filled({ of, begin, since = '', send, onSaved = () => {}, onConflict = () => {}, save = 'Save', refused = null, beside = null, note = null, placed = (problem) => problem, schemas, ...look }) {
  const schema = typeof look.schema === 'string' ? { $ref: `#/${look.schema}` } : look.schema;
  const secrets = useMemo(() => secretsIn(schema, schemas), []);
  const draft = useDraft(of, () => begin?.(schemas) ?? begun(schema, schemas), since, undefined, secrets);
  const [{ busy, problem, fields = [], saved, count = 0 }, tell] = useState({});
  const form = useRef(null);
  const left = useRef(null);
  useEffect(() => {
    // A disabled field loses the focus.
    if (!busy && left.current?.isConnected && document.activeElement === document.body) left.current.focus();
  }, [busy]);
  useEffect(() => {
    if (count > 0) (form.current.querySelector('[aria-invalid=true]') ?? form.current.querySelector('[role=alert]'))?.focus();
  }, [count]);
  const submit = async (event) => {
    event.preventDefault();
    if (busy || refused) return;
    left.current = document.activeElement;
    tell({ busy: true });
    try {
      const answer = await send(cleaned(draft.value));
      draft.forget(answer);
      tell({ saved: true });
      onSaved(answer, form.current !== null);
    } catch (error) {
      tell({ problem: error.message, fields: error.fields?.map(placed), count: count + 1 });
      if (error.status === 409) onConflict();
    }
  };
  const some = fields.length === 1 ? 'One field needs a change; it is marked.' : `${fields.length} fields need a change; they are marked.`;
  const set = (value) => {
    draft.set(value);
    if (saved) tell({});
  };
  return html`<form class="saved" novalidate ref=${form} onSubmit=${submit} aria-busy=${busy ? 'true' : null}>
      ${draft.kept && html`<div class="say" data-kept><p>${draft.moved ? 'Somebody saved another version meanwhile. Your changes are made to it: look it over before you save.' : 'What you typed before is here again.'}</p><div class="acts"><button type="button" class="btn" disabled=${busy} onClick=${draft.discard}>Discard it</button></div></div>`}
      ${problem && html`<div class="say bad" role="alert" tabindex="-1" data-refused><${Icon} name="bad" /><p>${fields.length > 0 ? some : problem}</p></div>`}
      <${Form} schemas=${schemas} value=${draft.value} onChange=${set} problems=${fields} disabled=${Boolean(refused || busy)} ...${look} />
      ${note && html`<p class="quiet small">${note}</p>`}
      <div class="chips"><button class="btn main" data-save aria-disabled=${refused || busy ? 'true' : null}>${busy ? 'Saving…' : save}</button>
        <span class="quiet small" role="status">${refused ?? (saved ? 'Saved.' : draft.changed ? 'Not saved yet. It is kept in this tab.' : '')}</span></div>
    </form>
    ${beside?.({ value: draft.value, changed: draft.changed, schemas })}`;
}
