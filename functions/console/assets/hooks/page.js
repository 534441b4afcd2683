// Hooks: addresses for services' events.

import { html, useState } from '../htm-preact.js';
import { useChoices } from '../shell/attachments.js';
import { Collection } from '../shell/collection.js';
import { Icon } from '../shell/icons.js';
import { Nothing } from '../shell/list.js';
import { Main } from '../shell/main.js';
import { exact, Moment } from '../shell/moments.js';
import { whyNot } from '../shell/roles.js';
import { addressOf } from '../shell/route.js';
import { Act, Problem, Sure, useAct } from '../shell/acting.js';
import { SavedForm } from '../shell/saving.js';
import { Status } from '../shell/status.js';
import { Values } from '../shell/values.js';

const WORDS = { labels: { service: 'Service, or a name for a program of your own', secret: 'Signing secret', tenant: 'Whose events (tenant)', service_account: 'Service account (Gmail)', audience: 'Audience (Gmail)' } };
const STATES = { pending: ['pending', 'Waits for its secret'], active: ['active', 'Takes events'], ended: ['cancelled', 'Ended at the service'] };
/** Their requests are proven without a secret. */
const NO_SECRET = ['none', 'google_pubsub'];
/** Of `hmac` only; other hooks have their defaults. */
const SIGNATURE = ['algorithm', 'encoding'];
const COLUMNS = [
  { head: 'Service', cls: 'c-who wrap', cell: ({ label, service }) => html`<bdi>${label || service}</bdi>`, below: ({ label, service }) => label && html`<span class="below quiet">${service}</span>` },
  { head: 'State', cls: 'wrap', cell: (hook) => html`<${State} of=${hook} />` },
  { head: 'Made', cls: 'num c-when', cell: ({ created_at }) => html`<${Moment} at=${created_at} />` },
];

function State({ of: { status } }) {
  const [shape, word] = STATES[status] ?? ['unknown', status];
  return html`<${Status} of=${shape}>${word}<//>`;
}

export function View(told) {
  const refused = whyNot(told.role, 'admin');
  if (refused) return html`<${Main} title="Hooks"><${Nothing} icon="hook" title="Hooks are for admins"><p class="quiet">${refused}</p><//><//>`;
  return html`<${Hooks} ...${told} />`;
}

function Hooks(told) {
  // Shown once, kept only here.
  const [shown, show] = useState(null);
  const services = useChoices(told.api, told.slug, 'services', ({ name }) => name, ({ name }) => name, ({ supports_webhooks: posts }) => posts !== false);
  const make = { schema: 'NewHook', first: ['service', 'label', 'secret'], words: WORDS, suggestions: { service: services }, onMade: show };
  return html`<${Collection} told=${told} page="hooks" title="Hooks" one="a hook" icon="hook" columns=${COLUMNS} make=${make}
    empty="A hook is an address to which a service sends its events, which then start automations."
    detail=${({ item, again, gone, refused }) => html`<${Hook} hook=${item} secret=${shown?.id === item.id ? shown.secret : null} show=${show} api=${told.api} slug=${told.slug} again=${again} gone=${gone} refused=${refused} />`} />`;
}

function Wait({ role = null, children }) {
  return html`<div class="say wait" role=${role}><${Icon} name="wait" /><p>${children}</p></div>`;
}

function Copied({ word, text, id }) {
  const [copied, tell] = useState(false);
  const copy = () => navigator.clipboard?.writeText(text).then(() => tell(true), () => {});
  return html`<div class="made"><label for=${id}>${word}</label><div class="chips"><input id=${id} readonly value=${text} onFocus=${({ target }) => target.select()} /><button type="button" class="btn" onClick=${copy}>Copy<span class="aloud"> ${word}</span></button></div><p class="quiet small" role="status">${copied ? 'Copied.' : ''}</p></div>`;
}

function Hook({ hook, secret, show, api, slug, again, gone, refused }) {
  const path = `hooks/${hook.id}`;
  const { busy, problem, act } = useAct();
  const change = (body) => act(async () => {
    show(await api.act('PATCH', path, body));
    again();
  });
  const [oldest, newest] = hook.secrets;
  const settings = Object.entries({ scheme: hook.scheme, ...hook.settings }).filter(([name, value]) => value?.length > 0 && (hook.scheme === 'hmac' || !SIGNATURE.includes(name)));
  const proven = !NO_SECRET.includes(hook.scheme);
  return html`<section class="stack" data-hook=${hook.status}><div class="titled"><h2><bdi>${hook.label || hook.service}</bdi></h2><${State} of=${hook} /></div>
      ${hook.status === 'pending' && html`<${Wait}><b>Events are not taken yet.</b> The service makes the secret: store it below once you have it.<//>`}
      ${hook.warning && html`<${Wait}>${hook.warning}<//>`}
      ${hook.throttled > 0 && html`<${Wait}><b>${hook.throttled} ${hook.throttled === 1 ? 'request was' : 'requests were'} refused,</b> because too many came in a minute; the last one ${exact(hook.throttled_at)}.<//>`}
      <${Copied} id="hook-url" word="Address to enter at the service" text=${hook.url} />
      <h3>How to connect it</h3><p class="preline" dir="auto">${hook.set_up}</p>
      ${hook.hook && html`<p class="small">In the trigger of an automation: <code>${JSON.stringify({ hook: hook.hook })}</code></p>`}
      ${hook.settings && html`<h3>How its requests are proven and read</h3><${Values} values=${Object.fromEntries(settings)} />`}
      ${hook.tenant_key && html`<p class="small quiet">Whose events: <code>${hook.tenant_key}</code></p>`}
      ${hook.automation_id && html`<p class="small">It belongs to <a href=${addressOf({ slug, page: 'automations', id: hook.automation_id })}>an automation</a>, and goes with it.</p>`}</section>
    ${secret && html`<section class="stack" data-secret><${Wait} role="status"><b>Copy the secret now.</b> It is shown only this once.<//><${Copied} id="shown-secret" word="Secret" text=${secret} /></section>`}
    ${proven && html`<section class="stack"><h3>Secrets</h3>${hook.secrets.length === 0 ? html`<p class="quiet">There is none yet.</p>` : html`<ul class="tools">${hook.secrets.map(({ id, created_at }) => html`<li key=${id}>Since ${exact(created_at)}${newest && id === oldest.id && html`<${Act} id="drop-${id}" kind="bare" refused=${refused} busy=${busy} onClick=${() => change({ remove_secret: id })}>Stop accepting it<//>`}</li>`)}</ul>`}
      <div class="chips">${hook.unseen_secret && html`<${Act} id="reveal" refused=${refused} busy=${busy} onClick=${() => change({ reveal: true })}>Show the service’s secret once<//>`}
        ${hook.status === 'active' && !newest && html`<${Act} id="rotate" refused=${refused} busy=${busy} onClick=${() => change({ rotate: true })}>Make a next secret<//>`}</div>
      ${newest && html`<p class="quiet small">Both are accepted. Stop the first one when the service uses the new one.</p>`}<${Problem} of=${problem} /></section>`}
    <section><${SavedForm} of=${`${slug} ${path}`} since=${hook.updated_at} name="hook" schema="HookChange" begin=${() => (hook.label ? { label: hook.label } : {})} words=${WORDS} first=${['label', 'secret']} hidden=${['remove_secret', 'reveal', 'rotate', !proven && 'secret']} refused=${refused} save="Save hook"
      send=${(value) => api.act('PATCH', path, { ...value, label: value.label ?? null })} onSaved=${again} /></section>
    <section><${Sure} id="delete-hook" word="Delete hook…" title="Delete this hook?" yes="Delete" refused=${refused} does=${async () => { await api.act('DELETE', path); gone(); }}>
      <p>Its address takes nothing any more, so automations that wait for events of ${hook.hook ?? hook.service} are not started. Received events are kept.</p><//></section>`;
}
