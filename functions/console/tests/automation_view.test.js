import assert from 'node:assert/strict';
import test from 'node:test';

import { aPage, settled } from './drawn.js';
import { html, render } from '../assets/htm-preact.js';
import { AutomationView } from '../assets/automations/automation_view.js';

const AUTOMATION = { id: 'a', name: 'Report', status: 'active', version: 2, active_version: 2, revision: 7, quotas: {}, description: null };

/** The automation's page, and the changes that it asked for; the first `lost` answers do not come. */
async function shown(context, { automation = AUTOMATION, query = {}, role = 'admin', lost = 0 } = {}) {
  aPage();
  const asked = [];
  const read = async (path) => {
    if (path === 'automations/a') return automation;
    return path === `automations/a/versions/${query.version ?? 2}` ? { version: Number(query.version ?? 2), definition: { actions: [] } } : { items: [], changes: [], next_cursor: null };
  };
  const act = async (...request) => {
    asked.push(request);
    if (asked.length <= lost) throw new Error('The connection broke.');
    return { id: 'r' };
  };
  render(html`<${AutomationView} id="a" query=${query} saved=${null} api=${{ read, act }} slug="acme" role=${role} />`, document.body);
  // A view that stays would go on reading.
  context.after(() => render(null, document.body));
  for (let turn = 0; turn < 3; turn += 1) await settled();
  const fire = async (id, type, target) => (document.body.at(id).fire(type, target), settled());
  return { asked, fire, of: () => document.body.textContent, leave: () => render(null, document.body) };
}

test('presses and lost answers start one run, and other data another', async (context) => {
  const { asked, fire, of } = await shown(context, { query: { run: '1', version: '2' }, role: 'member', lost: 2 });
  document.body.at('start').fire('click');
  await fire('start', 'click');
  assert.match(of(), /The connection broke/);
  await fire('start-trigger_data', 'input', { value: '{"question": ""' });
  assert.match(of(), /The data must be an object in JSON/);
  await fire('start-trigger_data', 'input', { value: '{"question": ""}' });
  await fire('start', 'click');
  await fire('start-trigger_data', 'input', { value: '' });
  await fire('start', 'click');
  const [key, again, other, first] = asked.map(([, , , headers]) => headers['idempotency-key']);
  assert.deepEqual([again === key, first === key, other === key, key.length], [true, true, false, 36]);
  assert.deepEqual(asked.map(([method, path, body]) => [method, path, body]).slice(1, 3), [
    ['POST', 'automations/a/run', { trigger_data: {}, version: 2, dry_run: false }],
    ['POST', 'automations/a/run', { trigger_data: { question: '' }, version: 2, dry_run: false }],
  ]);
  assert.equal(location.hash, '#/acme/runs/r');
});

test('a version that is not active begins as a dry run, and a member has no other', async (context) => {
  for (const [role, offers, automation, query] of [
    ['admin', true, AUTOMATION, { run: '1', version: '1' }],
    ['admin', true, { ...AUTOMATION, status: 'paused' }, { run: '1', version: '2' }],
    ['member', false, AUTOMATION, { run: '1', version: '1' }],
  ]) {
    const { asked, fire, leave } = await shown(context, { automation, query, role });
    assert.equal(document.body.at('start-dry_run') !== null, offers);
    await fire('start', 'click');
    if (offers) {
      await fire('start-dry_run', 'change', { checked: false });
      await fire('start', 'click');
    }
    assert.deepEqual(asked.map(([, , { dry_run }]) => dry_run), offers ? [true, false] : [true]);
    leave();
  }
});

test('a viewer sees why there is no run, and only an admin deletes the version that was read', async (context) => {
  const viewer = await shown(context, { role: 'viewer' });
  assert.match(viewer.of(), /Running and editing need the role member/);
  assert.equal(document.body.at('run').localName, 'button');
  viewer.leave();
  const member = await shown(context, { role: 'member' });
  await member.fire('delete-automation', 'click');
  assert.equal(document.body.at('delete-automation-yes'), null);
  member.leave();
  const { asked, fire } = await shown(context);
  await fire('delete-automation', 'click');
  await fire('delete-automation-yes', 'click');
  assert.deepEqual(asked, [['DELETE', 'automations/a', undefined, { 'if-match': '"7"' }]]);
  assert.equal(location.hash, '#/acme/automations');
});
