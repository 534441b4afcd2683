// Writes or edits a definition as text, beside its flow, its mistakes and help.

import { html, render, useEffect, useMemo, useRef, useState } from '../htm-preact.js';
import { Sure } from '../shell/acting.js';
import { useDraft } from '../shell/draft.js';
import { Icon } from '../shell/icons.js';
import { Choices } from '../shell/list.js';
import { useLive } from '../shell/live.js';
import { Main } from '../shell/main.js';
import { exact } from '../shell/moments.js';
import { Refused } from '../shell/problems.js';
import { whyNot } from '../shell/roles.js';
import { addressOf } from '../shell/route.js';
import { conflictOf, differences, textOf, toolsIn, withoutSecrets } from './definitions.js';
import { countOf, Differences } from './differences.js';
import { useDryRun } from './dry_run.js';
import { FieldsHelp } from './fields_help.js';
import { Flow } from './flow.js';
import { readJson } from './json_text.js';
import { Mistakes } from './mistakes.js';
import { placed, repairOf, unfilled, unreadTool, withFingerprint } from './placing.js';
import { begunFrom, TEMPLATES } from './templates.js';
import { replace, show, TextField, useSaveKey } from './text_field.js';
import { draftOf } from './words.js';

/** The next version of `automation`, or a new one. */
export function View(told) {
  return told.automation ? html`<${EditAutomation} ...${told} />` : html`<${NewAutomation} ...${told} />`;
}

/** The state of an automation that a text begins with. */
function baseOf({ version, revision }) {
  return { version, revision };
}

/** A new automation; the template stands in the address. */
function NewAutomation({ api, slug, role, query, onSaved }) {
  const template = TEMPLATES.find(({ id }) => id === query.template) ?? TEMPLATES[0];
  const tools = template.tools.map((name) => `name=${name}`).join('&');
  const known = useLive(`${slug} ${template.id}`, () => api.read(`discover/fetch_tool_data?${tools}`));
  const look = { title: 'New automation', crumb: { word: 'Automations', href: addressOf({ slug, page: 'automations' }) }, acts: html`<${Choices} label="Begin with" of=${TEMPLATES.map(({ id, word }) => [id, word])} to=${(template) => addressOf({ slug, page: 'automations', id: 'new', query: { template } })} chosen=${template.id} />` };
  // Without the fingerprints the dry run asks for them.
  if (!known.data && !known.error) return html`<${Main} ...${look} />`;
  const fingerprints = Object.fromEntries((known.data?.tools ?? []).map(({ name, fingerprint }) => [name, fingerprint]));
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  const begin = () => ({ text: textOf(begunFrom(template, fingerprints, timeZone)), base: null });
  return html`<${DefinitionEditor} key=${template.id} of=${draftOf(slug, `new ${template.id}`)} begin=${begin} api=${api} slug=${slug} role=${role} look=${look} onSaved=${onSaved} />`;
}

/** The next version of an automation. */
function EditAutomation({ automation, api, slug, role, onSaved }) {
  const { id, name, definition } = automation;
  const look = { title: `Edit ${name}`, crumb: { word: name, href: addressOf({ slug, page: 'automations', id }) } };
  const begin = () => ({ text: textOf(definition), base: baseOf(automation) });
  return html`<${DefinitionEditor} of=${draftOf(slug, id)} begin=${begin} automation=${automation} api=${api} slug=${slug} role=${role} look=${look} onSaved=${onSaved} />`;
}

function DefinitionEditor({ of, begin, automation = null, api, slug, role, look, onSaved }) {
  const refused = whyNot(role, 'member');
  const path = automation ? `automations/${encodeURIComponent(automation.id)}` : 'automations';
  const draft = useDraft(of, begin, '', ({ text, base }) => ({ text: withoutSecrets(text), base }));
  const { text, base } = draft.value;
  const read = useMemo(() => readJson(text), [text]);
  const [{ busy, problem, newer }, tell] = useState({});
  const area = useRef(null);
  const newest = [automation, newer].filter(Boolean).sort((one, other) => other.revision - one.revision)[0];
  const conflict = conflictOf(base, newest) === 'content' ? newest : null;
  const send = (body, revision) => (automation ? api.act('PUT', path, body, { 'if-match': revision }) : api.act('POST', path, body));
  const dryRun = useDryRun({ text, read, refused, send: (body) => send(body, '*') });
  const { own } = dryRun;
  const told = new Set(dryRun.diagnostics.map(({ pointer }) => pointer));
  const empty = unfilled(read, text);
  const mistakes = [...(own ? [own] : []), ...placed([...dryRun.diagnostics, ...empty.filter(({ pointer }) => !told.has(pointer))], read, text)];
  const error = mistakes.find(({ severity }) => severity === 'error');
  const blocked = error && (own || !dryRun.late);
  const write = (value) => draft.set({ ...draft.value, text: value });

  const stored = async () => {
    try {
      return await send(text, base && `"${base.revision}"`);
    } catch (error) {
      if (!base || !(error instanceof Refused) || error.status !== 409) throw error;
      const now = await api.read(path);
      const other = conflictOf(base, now) === 'content';
      tell({ newer: now, busy: !other });
      if (other) return null;
      // It was only activated or paused meanwhile.
      return send(text, `"${now.revision}"`);
    }
  };
  const save = async () => {
    if (busy || refused || conflict) return;
    if (blocked) return show(area.current, error.place);
    tell({ busy: true });
    try {
      const answer = await stored();
      if (!answer) return;
      draft.forget();
      onSaved(answer, area.current !== null);
    } catch (error) {
      if (error.diagnostics?.length > 0) dryRun.put(error.diagnostics);
      tell({ problem: error.message });
    }
  };
  useSaveKey(save);
  const addFingerprint = async (tool) => {
    tell({});
    try {
      const { tools, problems = [] } = await api.read('discover/fetch_tool_data', { name: tool });
      const now = area.current.value;
      const change = tools[0] && withFingerprint(tool, tools[0].fingerprint, readJson(now), now);
      if (change) replace(area.current, change);
      else tell({ problem: problems[0]?.message ?? `The fingerprint of ${tool} could not be written.` });
    } catch (error) {
      tell({ problem: error.message });
    }
  };
  const repairs = (mistake) => {
    const change = read.problem || refused || busy ? null : repairOf(mistake, read, text);
    const tool = read.problem || refused || busy ? null : unreadTool(mistake, read, text);
    return [change && { word: change.word, act: () => replace(area.current, change) }, tool && { word: `Read ${tool} and add its fingerprint`, act: () => addFingerprint(tool) }].filter(Boolean);
  };
  useEffect(() => {
    const [first] = placed(empty, read, text);
    if (first) area.current.setSelectionRange(first.place.start + 1, first.place.start + 1);
  }, []);

  const marks = mistakes.map(({ severity, place }) => ({ severity, ...place }));
  const says = refused ?? (conflict ? 'Decide about the other version first.' : blocked ? 'Repair the errors first.' : draft.changed ? 'Not saved yet. It is kept in this tab.' : '');
  return html`<${Main} ...${look}>
    <div class="beside editing">
      <div class="body">
        ${draft.kept && html`<div class="say" data-kept><p>Your text of before is here again.</p><div class="acts"><button type="button" class="btn" disabled=${busy} onClick=${draft.discard}>Discard it</button></div></div>`}
        ${conflict && html`<${Conflict} theirs=${conflict} base=${base} value=${read.value} onKeep=${() => draft.set({ text, base: baseOf(conflict) })} onTake=${() => draft.set({ text: textOf(conflict.definition), base: baseOf(conflict) })} />`}
        ${problem && html`<div class="say bad" role="alert" data-refused><${Icon} name="bad" /><p>${problem}</p></div>`}
        <${TextField} id="definition" label="Definition, as JSON" help="Tab indents. To leave the field press Esc, then Tab. Ctrl+S or ⌘S saves." value=${text} marks=${marks} readOnly=${Boolean(refused || busy)} area=${area} onInput=${write} />
        <div class="savebar"><button type="button" id="save-automation" class="btn main" aria-disabled=${refused || busy || conflict || blocked ? 'true' : null} aria-describedby="saving" onClick=${save}>${busy ? 'Saving…' : automation ? `Save version ${newest.version + 1}` : 'Save automation'}</button>
          <span class="quiet small" role="status" id="saving">${says}</span></div>
      </div>
      <aside class="pane" aria-label="Mistakes, flow and help">
        <${Mistakes} of=${mistakes} dryRun=${dryRun} refused=${refused} onGo=${(place) => show(area.current, place)} repairs=${repairs} />
        <section class="stack" aria-labelledby="h-drawn"><h2 id="h-drawn">Flow</h2><${Drawn} definition=${read.value} />
          ${dryRun.next.length > 0 && html`<h3>Next times</h3><ul class="small" data-next>${dryRun.next.map((time) => html`<li key=${time}>${exact(time)}</li>`)}</ul>`}</section>
        <${FieldsHelp} api=${api} slug=${slug} tools=${toolsIn(read.value)} />
      </aside>
    </div>
  <//>`;
}

/** The flow of a text that may have any form. It has a root of its own: after a failed drawing Preact would leave the earlier one there. */
function Drawn({ definition }) {
  const box = useRef(null);
  const [drawn, tell] = useState(true);
  const isObject = definition !== null && typeof definition === 'object' && !Array.isArray(definition);
  useEffect(() => {
    if (!box.current.firstChild) box.current.append(document.createElement('div'));
    try {
      render(isObject ? html`<${Flow} definition=${definition} diagnostics=${[]} name="this text" />` : null, box.current.firstChild);
      tell(isObject);
    } catch {
      box.current.replaceChildren();
      tell(false);
    }
  }, [definition]);
  return html`${!drawn && html`<p class="quiet">It is drawn once the text is a definition.</p>`}<div ref=${box}></div>`;
}

/** Another person saved a version meanwhile: the choice stays with the author, and the text as it is. */
function Conflict({ theirs, base, value, onKeep, onTake }) {
  const [shown, see] = useState(false);
  const changes = shown ? differences(theirs.definition, value) : [];
  return html`<div class="say wait conflict" role="alert" data-conflict=${theirs.version}><${Icon} name="wait" />
    <div class="stack"><p><b>Somebody saved version ${theirs.version} meanwhile.</b> Your text began with version ${base.version}. Nothing of it is lost.</p>
      <div class="chips"><button type="button" class="btn" id="conflict-see" aria-expanded=${shown ? 'true' : 'false'} onClick=${() => see(!shown)}>See the differences</button>
        <button type="button" class="btn" id="conflict-keep" onClick=${onKeep}>Keep my text, as version ${theirs.version + 1}</button>
        <${Sure} id="conflict-take" word=${`Take version ${theirs.version}…`} title=${`Take version ${theirs.version}?`} yes="Take it" no="Keep my text" does=${async () => onTake()}><p>It replaces your text.</p><//></div>
      ${shown && html`<h2>From version ${theirs.version} to your text: ${countOf(changes)}</h2><${Differences} of=${changes} />`}</div></div>`;
}
