// One execution; calls and tools list them.

import { html } from '../htm-preact.js';
import { useLive } from '../shell/live.js';
import { ExecutionView } from './execution_view.js';

export function View({ api, slug, role, at }) {
  const named = useLive(slug, async () => new Map((await api.read('tools', { limit: 200 })).items.map(({ id, label }) => [id, label])), (data) => (data ? null : 3_000));
  return html`<${ExecutionView} key=${at.id} id=${at.id ?? ''} query=${at.query} api=${api} slug=${slug} role=${role} labels=${named.data ?? new Map()} />`;
}
