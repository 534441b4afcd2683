// An answer's text as elements. None of it is read as HTML, and each block has its script's direction.

import { html } from '../htm-preact.js';
import { blocks, directionOf, spans } from './markdown.js';

export function formatted(text) {
  return drawn(blocks(text));
}

const drawn = (list) => list.map((block, place) => html`<${BLOCKS[block.kind]} key=${place} block=${block} />`);

const inline = (text) => parts(spans(text));

const parts = (list) =>
  list.map((span) => {
    if (span.kind === 'code') return html`<code dir="ltr">${span.text}</code>`;
    if (span.kind === 'bold') return html`<strong>${parts(span.spans)}</strong>`;
    if (span.kind === 'italic') return html`<em>${parts(span.spans)}</em>`;
    if (span.kind === 'struck') return html`<s>${parts(span.spans)}</s>`;
    if (span.kind === 'link') return html`<${Link} link=${span} />`;
    return span.text;
  });

/** The destination follows words that differ from it. */
function Link({ link }) {
  const { spans, address, host } = link;
  return html`<a href=${address} rel="noopener noreferrer" target="_blank">${parts(spans)}</a>${host &&
    html`<span class="quiet host">${' '}(<bdi>${host}</bdi>)</span>`}`;
}

/** An item of one line gets no paragraph. */
function Inside({ list }) {
  const [first, ...rest] = list;
  if (first?.kind !== 'paragraph') return drawn(list);
  return html`${inline(first.text)}${drawn(rest)}`;
}

const BLOCKS = {
  code: ({ block }) => html`<pre tabindex="0" dir="ltr"><code>${block.text}</code></pre>`,
  // The page's headings are above.
  heading: ({ block }) => html`<p class="heading" dir="auto"><strong>${inline(block.text)}</strong></p>`,
  paragraph: ({ block }) => html`<p dir="auto">${inline(block.text)}</p>`,
  rule: () => html`<hr />`,
  quote: ({ block }) => html`<blockquote dir=${directionOf(block)}>${drawn(block.blocks)}</blockquote>`,
  list: ({ block }) => {
    const items = block.items.map((item, place) => html`<li key=${place}><${Inside} list=${item} /></li>`);
    const dir = directionOf(block);
    return block.ordered ? html`<ol dir=${dir} start=${block.start}>${items}</ol>` : html`<ul dir=${dir}>${items}</ul>`;
  },
  table: ({ block, block: { head, rows, aligned } }) => html`
    <div class="wide" tabindex="0" role="group" aria-label="Table">
      <table dir=${directionOf(block)}>
        <thead>
          <tr>
            ${head.map((cell, place) => html`<th key=${place} scope="col" class=${aligned[place]}>${inline(cell)}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${rows.map(
            (row, place) => html`<tr key=${place}>
              ${row.map((cell, column) => html`<td key=${column} class=${aligned[column]}>${inline(cell)}</td>`)}
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
  `,
};
