// One automation: a version as a flow, all versions, differences, the newest runs, and the actions.

import { html, useState } from '../htm-preact.js';
import { Absent } from '../shell/absent.js';
import { Problem, Sure } from '../shell/acting.js';
import { isKept } from '../shell/drafts.js';
import { Icon } from '../shell/icons.js';
import { Failed, Skeleton } from '../shell/list.js';
import { useLive } from '../shell/live.js';
import { Main } from '../shell/main.js';
import { exact, Moment } from '../shell/moments.js';
import { Place } from '../shell/page.js';
import { EDITOR } from '../shell/places.js';
import { may, whyNot } from '../shell/roles.js';
import { addressOf } from '../shell/route.js';
import { Status } from '../shell/status.js';
import { countOf, Differences } from './differences.js';
import { Flow } from './flow.js';
import { ManualRun } from './manual_run.js';
import { Memory } from './memory.js';
import { draftOf, stepTo } from './words.js';

const EVERY = 3_000;

/** `saved` is the answer to the text that was just saved. */
export function AutomationView({ id, query, saved, api, slug, role, onSaved }) {
  const path = `automations/${encodeURIComponent(id)}`;
  const live = useLive(`${slug} ${id}`, () => api.read(path), () => EVERY);
  const { data: automation, error, at } = live;
  const shown = Number(query.version) || automation?.active_version || automation?.version;
  const revision = automation?.revision;
  const versions = useLive(revision ? `${id} ${revision}` : null, () => api.read(`${path}/versions`, { limit: 50 }));
  const version = useLive(shown ? `${id} ${shown}` : null, () => api.read(`${path}/versions/${shown}`));
  // A second click comes before the new revision.
  const [{ of, diagnostics = [], problem, acted }, tell] = useState({});
  const crumb = { word: 'Automations', href: addressOf({ slug, page: 'automations' }) };
  if (!automation) return html`<${Absent} word="automation" icon="flow" crumb=${crumb} live=${live} />`;
  const onEdited = (answer, here) => {
    live.again();
    onSaved(answer, here);
  };
  if (query.edit) return html`<${Place} key="edit" place=${EDITOR} told=${{ automation, api, slug, role, onSaved: onEdited }} />`;
  const just = saved?.automation.version === shown && automation.active_version !== shown ? saved : null;
  const told = of === shown ? diagnostics : (just?.diagnostics ?? []);
  const refused = whyNot(role, 'admin');
  const busy = acted === revision;
  const act = async (what) => {
    if (refused || busy) return;
    tell({ acted: revision });
    const body = what === 'pause' ? undefined : { version: shown, content_hash: version.data?.content_hash };
    try {
      const done = await api.act('POST', `${path}/${what}`, body, { 'if-match': `"${revision}"` });
      tell({ of: shown, diagnostics: done.diagnostics, acted: revision });
    } catch (error) {
      tell({ of: shown, diagnostics: error.diagnostics, problem: error.message });
    }
    live.again();
  };
  const remove = async () => {
    await api.act('DELETE', path, undefined, { 'if-match': `"${revision}"` });
    location.hash = crumb.href;
  };
  const { active_version: active } = automation;
  return html`<${Main} title=${automation.name} crumb=${crumb} status=${html`<${Status} of=${automation.status} />`}
    acts=${html`<${Acts} automation=${automation} shown=${shown} role=${role} slug=${slug} act=${act} busy=${busy} ready=${version.data?.version === shown} />`}>
    <ol class="versions" aria-label="Versions, newest first">
      ${(versions.data?.items ?? []).map((item) => html`<li key=${item.version}><a href=${addressOf({ slug, page: 'automations', id, query: { version: item.version } })} aria-current=${item.version === shown ? 'true' : null}>
        <b>Version ${item.version}</b>${item.version === active && html`<${Status} of=${automation.status} />`}<span class="quiet tiny"><${Moment} at=${item.created_at} /></span></a></li>`)}
    </ol>
    <div class="beside flowside" data-automation=${automation.status}>
      <div class="body">
        ${error && html`<${Failed} what="The automation" error=${error} at=${at} again=${live.again} />`}
        <${Problem} of=${of === shown && problem} />
        ${just && html`<div class="say" role="status" data-saved=${shown}><${Icon} name="ok" /><p><b>Version ${shown} is saved.</b> ${automation.active_version === null ? 'Nothing starts it' : `Version ${automation.active_version} stays the active one`} until this version is activated.</p></div>`}
        ${query.run && html`<${ManualRun} key=${shown} automation=${automation} version=${shown} api=${api} slug=${slug} role=${role} close=${addressOf({ slug, page: 'automations', id, query: { version: shown } })} />`}
        <${Notes} automation=${automation} slug=${slug} />
        <section aria-labelledby="h-flow"><h2 id="h-flow">Version ${shown}</h2>
          ${version.data ? html`<${Flow} definition=${version.data.definition} diagnostics=${told} name=${`version ${shown}`} />`
            : version.error ? html`<${Failed} what="The version" error=${version.error} again=${version.again} />` : html`<${Skeleton} what="The version" />`}
        </section>
      </div>
      <aside class="pane" aria-label="Runs and differences">
        <${Newest} path=${path} api=${api} slug=${slug} id=${id} />
        ${active !== null && active !== shown && html`<${Diff} path=${path} api=${api} from=${Math.min(active, shown)} to=${Math.max(active, shown)} />`}
        <${Memory} path=${path} api=${api} role=${role} />
        <${Limits} quotas=${automation.quotas} />
        <section><${Sure} id="delete-automation" word="Delete automation…" title=${`Delete ${automation.name}?`} yes="Delete" refused=${refused} does=${remove}>
          <p>Its versions and its memory are deleted with it, and this cannot be undone. A run that is under way ends before its next effect. Its runs stay listed.</p><//></section>
      </aside>
    </div>
  <//>`;
}

const WORDS = { activate: ['activate', 'Activate version'], resume: ['activate', 'Go on with version'], rollback: ['rollback', 'Roll back to version'] };

function Acts({ automation, shown, role, slug, act, busy, ready }) {
  const { id, status } = automation;
  const step = stepTo(automation, shown);
  const refused = whyNot(role, 'admin');
  const mayEdit = may(role, 'member');
  const reason = mayEdit ? refused : `Running and editing need the role member, and activating the role admin; you are a ${role}. Ask an owner for one.`;
  const why = refused ? 'why-not' : null;
  return html`${reason && html`<span class="quiet small" id="why-not">${reason}</span>`}
    ${mayEdit
      ? html`<a class="btn" id="run" href=${addressOf({ slug, page: 'automations', id, query: { version: shown, run: 1 } })}>Run…</a><a class="btn" id="edit-automation" href=${addressOf({ slug, page: 'automations', id, query: { edit: 1 } })}>${isKept(draftOf(slug, id)) ? 'Go on editing' : 'Edit'}</a>`
      : html`<button type="button" class="btn" id="run" aria-disabled="true" aria-describedby=${why}>Run…</button><button type="button" class="btn" id="edit-automation" aria-disabled="true" aria-describedby=${why}>Edit</button>`}
    ${status === 'active' && html`<button type="button" class="btn" id="pause" aria-disabled=${refused || busy ? 'true' : null} aria-describedby=${why} onClick=${() => act('pause')}>Pause</button>`}
    ${step && html`<button type="button" class="btn main" id=${step} aria-disabled=${refused || busy || !ready ? 'true' : null} aria-describedby=${why} onClick=${() => ready && act(WORDS[step][0])}>${WORDS[step][1]} ${shown}</button>`}`;
}

function Notes({ automation, slug }) {
  const { status, pause_reason: reason, paused_by_run: run, waits_for: waits, last_error: trouble, next_run_at: next, description } = automation;
  return html`
    ${description && html`<p class="quiet" dir="auto">${description}</p>`}
    ${status === 'paused' && html`<div class="say wait"><${Icon} name="pause" /><p><b>It is paused, and nothing starts it.</b> <bdi>${reason ?? 'Somebody paused it.'}</bdi></p>
      ${run && html`<div class="acts"><a class="btn" href=${addressOf({ slug, page: 'runs', id: run })}>See run</a></div>`}</div>`}
    ${waits === 'hook' && html`<div class="say wait"><${Icon} name="wait" /><p><b>It waits for a hook.</b> Its service posts the event to a hook, and no hook takes it yet. Make one and connect it at the service.</p></div>`}
    ${trouble && html`<div class="say bad"><${Icon} name="bad" /><p><b>Its source could not be asked.</b> <bdi>${trouble}</bdi></p></div>`}
    ${next && html`<p class="quiet small">Next: ${exact(next)}.</p>`}`;
}

function Newest({ path, api, slug, id }) {
  const { data, error, again } = useLive(path, () => api.read(`${path}/runs`, { limit: 5 }), () => EVERY);
  const runs = data?.items ?? [];
  return html`<section aria-labelledby="h-runs"><div class="titled"><h2 id="h-runs">Newest runs</h2><span class="acts"><a class="small" href=${addressOf({ slug, page: 'runs', query: { automation_id: id } })}>See all</a></span></div>
    ${error && !data && html`<${Failed} what="The runs" error=${error} again=${again} />`}
    ${data && runs.length === 0 && html`<p class="quiet small">It has not run yet.</p>`}
    <ul class="tools">${runs.map((run) => html`<li key=${run.id}><a href=${addressOf({ slug, page: 'runs', id: run.id })}><${Moment} at=${run.created_at} /></a><${Status} of=${run.status} />${run.error && html`<p class="quiet"><bdi>${run.error}</bdi></p>`}</li>`)}</ul>
  </section>`;
}

function Diff({ path, api, from, to }) {
  const { data } = useLive(`${path} ${from} ${to}`, () => api.read(`${path}/diff`, { from, to }));
  if (!data) return null;
  return html`<section aria-labelledby="h-diff"><div class="titled"><h2 id="h-diff">Version ${from} to ${to}</h2><span class="quiet small">${countOf(data.changes)}</span></div>
    <${Differences} of=${data.changes} />${data.truncated && html`<p class="quiet small">There are more than are listed.</p>`}</section>`;
}

function Limits({ quotas }) {
  const { runs_per_hour: runs, effects_per_run: effects, messages_per_day: messages } = quotas;
  return html`<section><h2>Limits</h2><dl class="facts"><div><dt>Runs an hour</dt><dd>${runs}</dd></div><div><dt>Effects a run</dt><dd>${effects}</dd></div><div><dt>Messages a day</dt><dd>${messages}</dd></div></dl></section>`;
}
