// The organization's members, and the rights of each role.

import { html, useState } from '../htm-preact.js';
import { Act, Sure, useAct } from '../shell/acting.js';
import { One } from '../shell/collection.js';
import { List, Nothing } from '../shell/list.js';
import { useRows } from '../shell/live.js';
import { Main } from '../shell/main.js';
import { Moment } from '../shell/moments.js';
import { Pane } from '../shell/pane.js';
import { may, ROLES, whyNot } from '../shell/roles.js';
import { addressOf } from '../shell/route.js';
import { SavedForm } from '../shell/saving.js';
import { changes } from '../shell/schema.js';
import { Status } from '../shell/status.js';
import { RIGHTS } from './rights.js';

const CONTACT = ['name', 'email', 'phone', 'timezone'];
const WORDS = { labels: { email: 'E-mail', timezone: 'Time zone' } };

export function View(told) {
  const { role } = told;
  const refused = whyNot(role, 'admin');
  if (!refused) return html`<${Members} ...${told} />`;
  return html`<${Main} title="Members" acts=${html`<span class="quiet small">${refused}</span>`}><div class="body"><${Rights} role=${role} /></div><//>`;
}

function Members({ api, slug, role, at }) {
  const rowOf = (member) => ({ id: member.user_id, ...member });
  const rows = useRows(slug, async (cursor) => {
    const page = await api.read('members', { limit: 50, cursor });
    return { ...page, items: page.items.map(rowOf) };
  });
  const columns = [
    { head: 'Name', cls: 'c-who wrap', cell: ({ name, user_id }) => html`<bdi>${name ?? user_id}</bdi>`, below: ({ name, user_id, email }) => html`<span class="below quiet"><bdi>${[name && user_id, email].filter(Boolean).join(' · ')}</bdi></span>` },
    { head: 'Role', cls: 'c-st', cell: (member) => member.role },
    { head: 'Since', cls: 'num c-when', cell: (member) => html`<${Moment} at=${member.created_at} />` },
  ];
  const hrefOf = (id) => addressOf({ slug, page: 'members', id });
  const made = (member, here) => {
    rows.add(rowOf(member));
    if (here) location.hash = hrefOf(member.user_id);
  };
  const listed = rows.items?.find(({ id }) => id === at.id);
  const back = addressOf({ slug, page: 'members' });
  const shown = (member, _, put = () => {}) => html`<${Member} key=${member.user_id} member=${member} api=${api} slug=${slug} role=${role} changed=${(newer) => { rows.put(rowOf(newer)); put(newer); }} gone=${() => { rows.drop(at.id); location.hash = back; }} back=${back} />`;
  const empty = html`<${Nothing} icon="people" title="No members"><p class="quiet">Add one by the subject of their sign-in.</p><//>`;
  return html`<${Main} title="Members" acts=${html`<a class="btn main" id="add-member" href=${hrefOf('new')}>Add a member</a>`}>
    <div class="beside">
      <div class="listside">
        <${List} what="Members" name="calls" rows=${rows} columns=${columns} hrefOf=${({ id }) => hrefOf(id)} current=${at.id} empty=${empty} />
        <div class="body"><${Rights} role=${role} /></div>
      </div>
      <${Pane} id=${at.id} label="Member">
        ${at.id === 'new' ? html`<section><h2>Add a member</h2><${SavedForm} of=${`${slug} members`} name="new-member" schema=${schemaOf(role)} first=${['name', 'email']} begin=${() => ({ role: 'member' })} save="Add" send=${(member) => api.act('POST', 'members', member)} onSaved=${made} /></section>`
          : listed ? shown(listed)
          : at.id ? rows.items && html`<${One} key=${at.id} id=${at.id} one="a member" icon="people" path="members" api=${api} slug=${slug} back=${back} detail=${shown} />`
          : html`<section><p class="quiet">Choose a member to change or to remove them.</p></section>`}
      <//>
    </div>
  <//>`;
}

/** By this role. */
const given = (role) => ROLES.filter((one) => one !== 'owner' || role === 'owner');

function Rights({ role }) {
  return html`<section class="stack" aria-labelledby="h-rights"><h2 id="h-rights">What each role may do</h2>
    <div class="sheet"><table><thead><tr><th scope="col">What</th><th scope="col">Who</th><th scope="col">You</th></tr></thead>
      <tbody>${RIGHTS.map(([least, words]) => html`<tr key=${words}><th scope="row" class="wrap">${words}</th><td class="wrap">${ROLES.slice(ROLES.indexOf(least)).join(', ')}</td>
        <td>${may(role, least) ? html`<${Status} of="approved">Yes<//>` : html`<${Status} of="not_run">No<//>`}</td></tr>`)}</tbody></table></div></section>`;
}

function Member({ member, api, slug, role, changed, gone, back }) {
  const [choice, choose] = useState(null);
  const [saved, tell] = useState(false);
  const { busy, problem, act } = useAct();
  const refused = whyNot(role, member.role === 'owner' ? 'owner' : 'admin');
  const path = `members/${encodeURIComponent(member.user_id)}`;
  const chosen = choice ?? member.role;
  const contact = Object.fromEntries(CONTACT.map((name) => [name, member[name]]).filter(([, value]) => value));
  const save = async () => {
    tell(await act(async () => changed(await api.act('PATCH', path, { role: chosen }))));
    // A refused role is not shown as theirs.
    choose(null);
  };
  const onChange = ({ target }) => {
    choose(target.value);
    tell(false);
  };
  const remove = async () => {
    await api.act('DELETE', path);
    gone();
  };
  return html`<section class="panehead"><h2><bdi>${member.name ?? member.user_id}</bdi></h2><div class="acts"><a class="btn bare" data-close href=${back}>Close</a></div></section>
    <section><dl class="pairs"><div><dt>Subject</dt><dd><code>${member.user_id}</code></dd></div></dl></section>
    <section><div class="form"><label>Role <select id="member-role" value=${chosen} disabled=${Boolean(refused)} aria-describedby="member-says" onChange=${onChange}>
      ${(refused ? ROLES : given(role)).map((one) => html`<option value=${one}>${one}</option>`)}</select></label>
      <p id="member-says" class="small ${problem ? 'wrong' : 'quiet'}" role=${problem ? 'alert' : 'status'}>${problem ?? refused ?? (saved ? 'Saved. It holds with their next request.' : 'It holds with their next request.')}</p>
      <div class="chips"><${Act} id="member-save" refused=${refused && ' '} busy=${busy || chosen === member.role} onClick=${save}>Save role<//>
        <${Sure} id="remove-member" word="Remove…" title=${`Remove ${member.name ?? member.user_id}?`} yes="Remove" no="Keep them" refused=${refused && ' '} does=${remove}><p>They lose access with their next request. Their automations, runs and approvals stay.</p><//></div></div></section>
    <section><${SavedForm} of=${`${slug} ${path}`} since=${JSON.stringify(contact)} name="member" schema="MemberChange" begin=${() => contact} first=${CONTACT} hidden=${['role']} words=${WORDS} refused=${refused && ' '} save="Save contact" send=${(value) => api.act('PATCH', path, changes(contact, value))} onSaved=${changed} /></section>`;
}

/** The `sub` of a member's tokens is their id. */
const schemaOf = (role) => ({
  properties: {
    user_id: { type: 'string', title: 'Subject of their sign-in', description: 'The `sub` of their tokens; your issuer shows it. They are in with their next request; nobody is told.' },
    name: { type: 'string' },
    email: { type: 'string', title: 'E-mail' },
    role: { enum: given(role) },
  },
  required: ['user_id', 'role'],
});
