// A list: being loaded, empty, failed, or with rows.

import { html, useEffect, useState } from '../htm-preact.js';
import { Icon } from './icons.js';
import { relative } from './moments.js';

const SKELETON = [1, 2, 3, 4, 5, 6];
/** Before a skeleton is shown. */
const PATIENCE = 300;

/** With a button that tries again. Known data stay, with their age. */
export function Failed({ what, error, at, again }) {
  return html`<div class="say bad" data-failed>
    <${Icon} name="bad" />
    <p><b role="alert">${what} could not be loaded.</b> ${error.message} ${at && `What you see is from ${relative(at)}.`}</p>
    <div class="acts"><button type="button" class="btn" data-try-again onClick=${again}>Try now</button></div>
  </div>`;
}

/** Bars in place of rows, after a pause. */
export function Skeleton({ what }) {
  const [late, come] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => come(true), PATIENCE);
    return () => clearTimeout(timer);
  }, []);
  if (!late) return null;
  return html`<div class="skeleton" data-skeleton>
    <p class="aloud" role="status">${what} are being loaded.</p>
    ${SKELETON.map((row) => html`<svg class="sk" key=${row} aria-hidden="true"><rect width="70%" height="12" y="14" rx="4" /></svg>`)}
  </div>`;
}

/**
 * `rows`: of `useRows`; `columns`: `{head, cls, cell}`, the first one links to the row's address; `groupOf`: the
 * heading of a row.
 */
export function List({ what, name, rows, columns, hrefOf, current, empty, groupOf = null }) {
  const { items, fresh, next, error, at } = rows;
  const failed = error && html`<${Failed} what=${what} error=${error} at=${at} again=${rows.again} />`;
  if (items === null) return failed || html`<${Skeleton} what=${what} />`;
  if (items.length === 0 && !next) return html`${failed}${empty}`;
  const groups = [];
  for (const item of items) {
    const heading = groupOf?.(item) ?? '';
    const group = groups.find((known) => known.heading === heading);
    if (group) group.items.push(item);
    else groups.push({ heading, items: [item] });
  }
  return html`
    ${failed}
    <p class="aloud" role="status">${fresh.length > 0 && 'There are new rows.'}</p>
    ${fresh.length > 0 &&
    html`<div class="fresh"><button type="button" class="btn" data-fresh onClick=${rows.reveal}>Show ${fresh.length} new</button></div>`}
    <div class="sheet">
      <table class="rows full ${name}${failed ? ' stale' : ''}">
        <caption class="aloud">${what}</caption>
        <thead class=${groupOf ? 'aloud' : ''}><tr>${columns.map(({ head, cls }) => html`<th scope="col" class=${cls}>${head}</th>`)}</tr></thead>
        ${groups.map(
          ({ heading, items }) => html`<tbody key=${heading}>
            ${heading && html`<tr class="group"><th colspan=${columns.length} scope="rowgroup">${heading}</th></tr>`}
            ${items.map((item) => html`<${Row} key=${item.id} item=${item} columns=${columns} href=${hrefOf(item)} current=${item.id === current} />`)}
          </tbody>`,
        )}
      </table>
    </div>
    ${next &&
    html`<div class="listend"><span>${items.length} shown</span>
      <button type="button" class="btn" data-more aria-disabled=${rows.older ? 'true' : null} onClick=${() => !rows.older && rows.more()}>Show older ones</button></div>`}
  `;
}

function Row({ item, columns, href, current }) {
  const [first, ...others] = columns;
  return html`<tr>
    <th scope="row" class=${first.cls}><a class="open" data-row=${item.id} href=${href} aria-current=${current ? 'true' : null}>${first.cell(item)}</a>${first.below?.(item)}</th>
    ${others.map(({ cls, cell }) => html`<td class=${cls}>${cell(item)}</td>`)}
  </tr>`;
}

/** One filter of the address: links, so that each can be opened beside. `of`: `[value, word][]`. */
export function Choices({ label, of, to, chosen }) {
  return html`<nav class="seg" aria-label=${label}>
    ${of.map(([value, word]) => html`<a key=${value} href=${to(value)} aria-current=${value === chosen ? 'true' : null}>${word}</a>`)}
  </nav>`;
}

/** An empty list's meaning, and the next step. */
export function Nothing({ icon, title, children }) {
  return html`<div class="nothing" data-empty><${Icon} name=${icon} big /><h2>${title}</h2>${children}</div>`;
}
