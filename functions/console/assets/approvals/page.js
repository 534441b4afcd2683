// Approvals with their exact content and recipients, and the decision.

import { mostUrgent, recipientsIn, titleOf, wordsOf } from './asked.js';
import { html, useEffect, useRef, useState } from '../htm-preact.js';
import { Icon } from '../shell/icons.js';
import { useKeys, useLater } from '../shell/effects.js';
import { isField } from '../shell/shortcuts.js';
import { Choices, Failed, List, Nothing, Skeleton } from '../shell/list.js';
import { useLive, useRows } from '../shell/live.js';
import { Main } from '../shell/main.js';
import { exact, left, Moment, relative } from '../shell/moments.js';
import { Refused } from '../shell/problems.js';
import { whyNot } from '../shell/roles.js';
import { addressOf } from '../shell/route.js';
import { Status } from '../shell/status.js';
import { Values } from '../shell/values.js';

const EVERY = 1_500;
/** A request takes no decision before it has been shown for so long: a click or key may be meant for the request before it. */
const READABLE_AFTER = 700;
/** Survives a new sign-in, which leaves the page. */
const DRAFT = 'switchboard.reason.';
const FILTERS = [['', 'All'], ['pending', 'Pending'], ['approved', 'Allowed'], ['refused', 'Refused'], ['expired', 'Expired'], ['cancelled', 'Cancelled']];

export function View({ api, slug, role, at, refresh }) {
  const { status = '' } = at.query;
  const rows = useRows(`${slug} ${status}`, (cursor) => api.read('approvals', { limit: 50, cursor, status: status || null }));
  const hrefOf = ({ id }) => addressOf({ slug, page: 'approvals', id, query: { status } });
  // The first shown request stays, also after its decision.
  const begun = useRef({});
  const place = `${slug} ${status} ${at.id ?? ''}`;
  if (begun.current.place !== place) begun.current = { place, id: at.id };
  const chosen = (begun.current.id ??= mostUrgent(rows.items)?.id ?? null);
  // A list that was read before a decision still says pending.
  const decided = useRef(new Set());
  const following = mostUrgent(rows.items?.filter(({ id }) => !decided.current.has(id)), chosen);
  const onDecided = (approval) => {
    decided.current.add(approval.id);
    rows.put(approval);
    refresh();
  };
  const columns = [
    { head: 'What and to whom', cls: 'wrap', cell: (item) => wordsOf(item.tool), below: (item) => html`<span class="below quiet"><bdi>${recipientsIn(item) || item.reason || item.action_id}</bdi></span>` },
    {
      head: 'Status and time',
      cls: 'num',
      cell: (item) => html`<${Status} of=${item.status} /><span class="below quiet">${item.status === 'pending' ? left(item.expires_at) : html`<${Moment} at=${item.decided_at ?? item.expires_at} />`}</span>`,
    },
  ];
  const empty = html`<${Nothing} icon="hand" title=${status ? 'No approval has this status' : 'Nothing waits for a decision'}>
    <p class="quiet">${status ? 'Choose another status above.' : 'An action of an automation comes here when its automation says that a person must allow it.'}</p>
  <//>`;
  return html`<${Main} title="Approvals" acts=${html`<${Choices} label="Status" of=${FILTERS} to=${(value) => addressOf({ slug, page: 'approvals', query: { status: value } })} chosen=${status} />`}>
    <div class="beside master" data-open=${at.id ? 'true' : null}>
      <div class="listside">
        <${List} what="Approvals" name="asks2" rows=${rows} columns=${columns} hrefOf=${hrefOf} current=${chosen} empty=${empty}
          groupOf=${(item) => (item.status === 'pending' ? 'Wait for a decision' : 'Decided')} />
        <p class="pagenote"><kbd>j</kbd> <kbd>k</kbd> move · <kbd>a</kbd> allow · <kbd>r</kbd> refuse · <kbd>Enter</kbd> confirms</p>
      </div>
      ${chosen ? html`<${Detail} key=${chosen} id=${chosen} api=${api} slug=${slug} role=${role} back=${addressOf({ slug, page: 'approvals', query: { status } })} onDecided=${onDecided} following=${following && html`<a class="btn" data-following href=${hrefOf(following)}>Next: <bdi>${titleOf(following)}</bdi></a>`} />` : html`<div></div>`}
    </div>
  <//>`;
}

function Detail({ id, api, slug, role, back, onDecided, following }) {
  const live = useLive(id, () => api.read(`approvals/${id}`), (approval) => (approval === null || approval.status === 'pending' ? EVERY : null));
  const { data: approval, error, at } = live;
  const of = useLive(approval?.automation_id ?? null, () => api.read(`automations/${approval.automation_id}`), () => null);
  const heading = useRef(null);
  const ours = useRef(false);
  const decided = (newer) => {
    ours.current = true;
    live.put(newer);
  };
  useEffect(() => {
    // The buttons are gone.
    if (ours.current) heading.current.focus();
    if (approval && approval.status !== 'pending') onDecided(approval);
  }, [approval?.status]);
  const failed = error && html`<${Failed} what="The approval" error=${error} at=${at} again=${live.again} />`;
  const close = html`<a class="back" data-close href=${back}><${Icon} name="left" />All approvals</a>`;
  if (!approval) return html`<article class="decide">${close}${failed || html`<${Skeleton} what="The approval" />`}</article>`;
  const pending = approval.status === 'pending';
  const name = of.data?.name ?? 'An automation';
  return html`<article class="decide" aria-labelledby="h-ask" data-approval=${approval.status}>
    ${close}${failed}
    <header>
      <p><${Status} of=${approval.status}>${pending ? `Waits for a decision, ${left(approval.expires_at)}` : null}<//></p>
      <h2 id="h-ask" tabindex="-1" ref=${heading}><bdi>${titleOf(approval)}</bdi></h2>
      <p class="quiet"><bdi>${name}</bdi> asks${approval.reason ? html`: “<bdi>${approval.reason}</bdi>”` : '.'}</p>
      ${!pending && following && html`<p>${following}</p>`}
    </header>
    <section aria-labelledby="h-ex"><h3 id="h-ex">Exactly this is sent</h3>
      <div class="letter">
        ${approval.recipients.length > 0 && html`<dl class="pairs"><div><dt>To</dt><dd><b><bdi>${approval.recipients.join(', ')}</bdi></b></dd></div></dl>`}
        <div class="given"><${Values} values=${approval.arguments} /></div>
      </div>
      <p class="quiet small">The approval holds for exactly these values, once. Secrets are masked.</p>
    </section>
    <section aria-labelledby="h-then"><h3 id="h-then">${pending ? 'What follows' : 'What followed'}</h3>
      ${pending ? html`<${Follows} approval=${approval} />` : html`<${Followed} approval=${approval} />`}
    </section>
    <section aria-labelledby="h-from"><h3 id="h-from">Where it comes from</h3><dl class="pairs">
      <div><dt>Run</dt><dd><a href=${addressOf({ slug, page: 'runs', id: approval.run_id })}><bdi>${name}</bdi></a>, action <code>${approval.action_id}</code></dd></div>
      <div><dt>Asked</dt><dd>${exact(approval.created_at)}, ${relative(approval.created_at)}</dd></div>
    </dl></section>
    ${pending && html`<${Verdict} approval=${approval} api=${api} role=${role} onDecided=${decided} again=${live.again} />`}
  </article>`;
}

function Follows({ approval }) {
  return html`<dl class="pairs">
    <div><dt>Allowed</dt><dd>It is done at once, and the run goes on.</dd></div>
    <div><dt>Refused</dt><dd>The action counts as failed, with your reason.</dd></div>
    <div><dt>Not decided</dt><dd>It is refused at ${exact(approval.expires_at)}.</dd></div>
  </dl>`;
}

function Followed({ approval }) {
  return html`<dl class="pairs">
    ${approval.decided_at && html`<div><dt>Decided</dt><dd>${exact(approval.decided_at)}${approval.decided_by && html` by <bdi>${approval.decided_by}</bdi>`}</dd></div>`}
    ${approval.decision_reason && html`<div><dt>Reason</dt><dd dir="auto">${approval.decision_reason}</dd></div>`}
    ${approval.status === 'expired' && html`<div><dt>Expired</dt><dd>Nobody decided by ${exact(approval.expires_at)}.</dd></div>`}
    <div><dt>Used</dt><dd>${approval.used_at ? html`The run went on with it at ${exact(approval.used_at)}.` : 'The run has not gone on with it.'}</dd></div>
  </dl>`;
}

/** By a button each, or the keys `a` and `r`, which choose a button, and Enter. */
function Verdict({ approval, api, role, onDecided, again }) {
  const [{ busy, problem }, tell] = useState({});
  const [readable, show] = useState(false);
  const reason = useRef(null);
  const allow = useRef(null);
  const refused = whyNot(role, 'admin');
  useLater(() => show(true), READABLE_AFTER);
  useKeys((event) => {
    // The page takes both letters of `g a`.
    if (event.defaultPrevented || isField(event.target) || event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
    if (event.key === 'a') allow.current.focus();
    if (event.key !== 'r') return;
    event.preventDefault();
    reason.current.focus();
  });
  const off = refused || busy || !readable ? 'true' : null;
  const decide = async (verdict) => {
    if (off) return;
    const said = reason.current.value.trim();
    if (verdict === 'refuse' && said === '') {
      tell({ problem: 'Write why you refuse: the run is told.' });
      return reason.current.focus();
    }
    tell({ busy: true });
    try {
      const decided = await api.act('POST', `approvals/${approval.id}/${verdict}`, said ? { reason: said } : undefined);
      sessionStorage.removeItem(DRAFT + approval.id);
      onDecided(decided);
    } catch (error) {
      tell({ problem: error.message });
      if (error instanceof Refused && error.status === 409) again();
    }
  };
  const entered = (event) => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    decide('refuse');
  };
  return html`<form class="verdict" aria-label="Your decision" onSubmit=${(event) => event.preventDefault()}>
    <label for="why">Reason <span class="quiet">needed to refuse</span></label>
    <textarea id="why" rows="2" maxlength="1000" ref=${reason} disabled=${Boolean(refused)} readonly=${Boolean(busy)} aria-describedby="verdict-problem" onKeyDown=${entered}
      onInput=${({ target }) => sessionStorage.setItem(DRAFT + approval.id, target.value)} defaultValue=${sessionStorage.getItem(DRAFT + approval.id) ?? ''}></textarea>
    <p id="verdict-problem" class="small ${problem ? 'wrong' : 'quiet'}" role=${problem ? 'alert' : null}>${problem ?? refused ?? ''}</p>
    <div class="chips">
      <button type="button" id="allow" class="btn main" ref=${allow} aria-disabled=${off} onClick=${() => decide('approve')}>Allow this <kbd>a</kbd></button>
      <button type="button" id="refuse" class="btn grave" aria-disabled=${off} onClick=${() => decide('refuse')}>Refuse <kbd>r</kbd></button>
    </div>
  </form>`;
}
