// The little of Markdown that models write, as elements: paragraphs, headings, lists, code, bold, links. Everything else is text, and
// nothing is ever read as HTML.

import { html } from './htm-preact.js';

/** A text as a list of elements. */
export function formatted(text) {
  return blocks(text).map((block, place) => html`<${BLOCKS[block.kind]} key=${place} block=${block} />`);
}

/**
 * The blocks of a text: `{kind: 'code' | 'heading' | 'list' | 'paragraph', text | items, ordered?}`. A block that is still being
 * written counts as if it ended where the text does.
 */
export function blocks(text) {
  const found = [];
  let open = null;
  const begin = (block) => {
    open = block;
    found.push(block);
  };
  for (const line of text.split('\n')) {
    const item = /^\s*(?:[-*•]|(\d{1,3})[.)])\s+(.*)$/.exec(line);
    const heading = /^#{1,6}\s+(.*?)\s*#*$/.exec(line);
    if (/^\s*```/.test(line)) {
      if (open?.kind === 'code') open = null;
      else begin({ kind: 'code', text: '' });
    } else if (open?.kind === 'code') {
      open.text += (open.text === '' ? '' : '\n') + line;
    } else if (line.trim() === '') {
      open = null;
    } else if (heading) {
      begin({ kind: 'heading', text: heading[1] });
      open = null;
    } else if (item) {
      const ordered = item[1] !== undefined;
      if (open?.kind !== 'list' || open.ordered !== ordered) begin({ kind: 'list', ordered, start: Number(item[1] ?? 1), items: [] });
      open.items.push(item[2]);
    } else if (open?.kind === 'list' && /^\s/.test(line)) {
      open.items.push(`${open.items.pop()}\n${line.trim()}`);
    } else if (open?.kind === 'paragraph') {
      open.text += `\n${line}`;
    } else {
      begin({ kind: 'paragraph', text: line });
    }
  }
  return found;
}

/** The parts of a line: `{kind: 'text' | 'code' | 'bold' | 'link', text, address?}`. Links are https only. */
export function spans(text) {
  const parts = [];
  const special = /`([^`\n]+)`|\*\*([^*\n]+)\*\*|\[([^\]\n]+)\]\((https:\/\/[^\s()]+)\)|(https:\/\/[^\s<>()"']*[^\s<>()"'.,;:!?])/g;
  let end = 0;
  for (const match of text.matchAll(special)) {
    if (match.index > end) parts.push({ kind: 'text', text: text.slice(end, match.index) });
    const [all, code, bold, label, target, bare] = match;
    if (code !== undefined) parts.push({ kind: 'code', text: code });
    else if (bold !== undefined) parts.push({ kind: 'bold', text: bold });
    else parts.push({ kind: 'link', text: label ?? bare, address: target ?? bare });
    end = match.index + all.length;
  }
  if (end < text.length) parts.push({ kind: 'text', text: text.slice(end) });
  return parts;
}

const inline = (text) =>
  spans(text).map((span) => {
    if (span.kind === 'code') return html`<code>${span.text}</code>`;
    if (span.kind === 'bold') return html`<strong>${span.text}</strong>`;
    if (span.kind === 'link') return html`<a href=${span.address} rel="noopener noreferrer" target="_blank">${span.text}</a>`;
    return span.text;
  });

const BLOCKS = {
  code: ({ block }) => html`<pre tabindex="0"><code>${block.text}</code></pre>`,
  // The page has headings of its own above it.
  heading: ({ block }) => html`<p class="heading"><strong>${inline(block.text)}</strong></p>`,
  paragraph: ({ block }) => html`<p>${inline(block.text)}</p>`,
  list: ({ block }) => {
    const items = block.items.map((item, place) => html`<li key=${place}>${inline(item)}</li>`);
    return block.ordered ? html`<ol start=${block.start}>${items}</ol>` : html`<ul>${items}</ul>`;
  },
};
