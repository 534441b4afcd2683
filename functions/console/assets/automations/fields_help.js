// The fields of a definition and the parameters of its tools, from the API.

import { html, useState } from '../htm-preact.js';
import { Failed, Skeleton } from '../shell/list.js';
import { useLive } from '../shell/live.js';

/** The function for agents that takes a definition. */
const SAVES = 'deploy_automation';

/** `tools` are the names of the tools in the text. */
export function FieldsHelp({ api, slug, tools }) {
  return html`<section class="stack" aria-labelledby="h-help"><h2 id="h-help">Help</h2>
    <${Opened} word="The fields of a definition" name="fields"><${Definition} api=${api} slug=${slug} /><//>
    ${tools.map((tool) => html`<${Opened} key=${tool} word=${html`The parameters of <code>${tool}</code>`} name=${tool}><${Tool} api=${api} slug=${slug} tool=${tool} /><//>`)}
  </section>`;
}

/** Its content is read when it is opened. */
function Opened({ word, name, children }) {
  const [open, set] = useState(false);
  return html`<details class="same" data-help=${name} onToggle=${({ target }) => set(target.open)}><summary>${word}</summary>${open && children}</details>`;
}

function Definition({ api, slug }) {
  const { data, error, again } = useLive(`${slug} fields`, () => api.read('agent-tools', { format: 'json-schema' }));
  const schema = data?.tools.find(({ name }) => name === SAVES)?.parameters?.properties?.automation;
  if (error) return html`<${Failed} what="The fields" error=${error} again=${again} />`;
  if (!data) return html`<${Skeleton} what="The fields" />`;
  return schema ? html`<p class="small" dir="auto">${schema.description}</p><${Fields} of=${schema} />` : html`<p class="quiet">docs/automations.md describes them.</p>`;
}

function Tool({ api, slug, tool }) {
  const { data, error, again } = useLive(`${slug} ${tool}`, () => api.read('discover/fetch_tool_data', { name: tool }));
  if (error) return html`<${Failed} what="The tool" error=${error} again=${again} />`;
  if (!data) return html`<${Skeleton} what="The tool" />`;
  const [found] = data.tools;
  if (!found) return html`<p class="quiet"><bdi>${data.problems?.[0]?.message ?? 'There is no such tool.'}</bdi></p>`;
  return html`<p class="small" dir="auto">${found.description}</p><${Fields} of=${found.parameters} />`;
}

/** Members of a schema, and the members of those that are objects or lists of objects. */
function Fields({ of, depth = 0 }) {
  const members = Object.entries(of?.properties ?? {});
  if (members.length === 0) return html`<p class="quiet small">There are none.</p>`;
  return html`<dl class="fields">${members.map(([name, schema]) => html`<div key=${name}>
    <dt><code>${name}</code> <span class="quiet tiny">${typeOf(schema)}${of.required?.includes(name) && ', required'}</span></dt>
    <dd dir="auto">${schema.description}${schema.enum && html` <span class="quiet">${schema.enum.map(String).join(', ')}</span>`}
      ${depth === 0 && inner(schema) && html`<${Fields} of=${inner(schema)} depth=${1} />`}</dd></div>`)}</dl>`;
}

function typeOf({ type, anyOf, enum: among }) {
  return [type ?? (anyOf ?? []).map((one) => one.type)].flat().filter(Boolean).join(' or ') || (among ? 'string' : 'any value');
}

function inner(schema) {
  return [schema, schema.items].find((one) => one?.properties) ?? null;
}
