// Models' Markdown, read into blocks and spans. An unfinished text is read as if it ended there. HTML is text, but for `<br>`.

// No two parts side by side can take the same signs: trying every division of a long line would take the square of its length.
const FENCE = /^ {0,3}(`{3,}|~{3,}(?!~))[^`]*$/;
const HEADING = /^ {0,3}#{1,6}\s+(.*)$/s;
const RULE = /^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/;
const ITEM = /^(\s*)(?:([-*+•])|(\d{1,9})[.)])(?:\s+(.*))?$/s;
const QUOTE = /^ {0,3}> ?(.*)$/;
const DELIMITERS = /^ {0,3}\|?\s*:?-+:?(?:\s*\|\s*:?-+:?)*\s*(?:\|\s*)?$/;
/** Nested quotations and lists; deeper ones are paragraphs. */
const DEEPEST = 8;

/**
 * The blocks of a text:
 *
 * - `{kind: 'paragraph' | 'heading' | 'code', text}`, `{kind: 'rule'}`
 * - `{kind: 'list', ordered, start, items}`; each item is a list of blocks
 * - `{kind: 'quote', blocks}`
 * - `{kind: 'table', head, rows, aligned}`; cells are texts, `aligned` says `start`, `center` or `end` of each column
 */
export function blocks(text) {
  return blocksOf(text.replaceAll('\r\n', '\n').split('\n'), 0);
}

/** `rtl` or `ltr`, by a block's first letter: signs of lists and the order of columns follow it. */
export function directionOf(block) {
  const letter = /\p{L}/u.exec(textOf(block))?.[0] ?? '';
  return /[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Adlam}]/u.test(letter) ? 'rtl' : 'ltr';
}

function textOf(block) {
  if (Array.isArray(block)) return block.map(textOf).join(' ');
  const { text, head, rows, items, blocks: inside } = block;
  return [text ?? '', ...(head ?? []), ...(rows ?? []).flat(), textOf(items ?? []), textOf(inside ?? [])].join(' ');
}

function blocksOf(lines, depth) {
  const found = [];
  for (let at = 0; at < lines.length; ) {
    const { block, next } = (depth < DEEPEST && special(lines, at, depth)) || paragraph(lines, at, depth);
    if (block) found.push(block);
    at = next;
  }
  return found;
}

/** The block that begins in this line, and the line behind it; nothing for a paragraph. */
function special(lines, at, depth) {
  const line = lines[at];
  if (line.trim() === '') return { next: at + 1 };
  if (FENCE.test(line)) return code(lines, at);
  const heading = HEADING.exec(line);
  if (heading) return { block: { kind: 'heading', text: heading[1].replace(/(?<!#)#+$/, '').trimEnd() }, next: at + 1 };
  if (RULE.test(line)) return { block: { kind: 'rule' }, next: at + 1 };
  if (QUOTE.test(line)) return quote(lines, at, depth);
  if (ITEM.test(line)) return list(lines, at, depth);
  return table(lines, at);
}

function paragraph(lines, at, depth) {
  let next = at + 1;
  while (next < lines.length && lines[next].trim() !== '' && !(depth < DEEPEST && interrupts(lines, next))) next += 1;
  const text = lines.slice(at, next).map((line) => line.trim()).join('\n').trim();
  return { block: text === '' ? null : { kind: 'paragraph', text }, next };
}

/** "1984." in the middle of a sentence is no list. */
function interrupts(lines, at) {
  const line = lines[at];
  const item = ITEM.exec(line);
  if (item) return item[4] !== undefined && (item[3] === undefined || item[3] === '1');
  return FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || table(lines, at) !== null;
}

function code(lines, at) {
  const [, fence] = FENCE.exec(lines[at]);
  const indent = indentOf(lines[at]);
  const ends = (line) => line.trim().startsWith(fence) && line.trim() === fence[0].repeat(line.trim().length);
  let end = at + 1;
  while (end < lines.length && !ends(lines[end])) end += 1;
  const text = lines.slice(at + 1, end).map((line) => line.slice(Math.min(indent, indentOf(line)))).join('\n');
  return { block: { kind: 'code', text }, next: end + 1 };
}

function quote(lines, at, depth) {
  const inside = [];
  let next = at;
  for (let quoted; next < lines.length && (quoted = QUOTE.exec(lines[next])); next += 1) inside.push(quoted[1]);
  return { block: { kind: 'quote', blocks: blocksOf(inside, depth + 1) }, next };
}

/** Lines indented further than an item's sign belong to it; another sign, or a sign further left, ends the list. */
function list(lines, at, depth) {
  const first = ITEM.exec(lines[at]);
  const ordered = first[3] !== undefined;
  const edge = indentOf(lines[at]);
  const items = [];
  let next = at;
  while (next < lines.length) {
    const line = lines[next];
    const item = ITEM.exec(line);
    if (line.trim() === '') {
      // Behind empty lines, if the next one belongs to it.
      let until = next + 1;
      while (lines[until]?.trim() === '') until += 1;
      const after = lines[until];
      const follows = after && (indentOf(after) > edge || (sameList(ITEM.exec(after), ordered) && indentOf(after) === edge));
      if (!follows) break;
      for (; next < until; next += 1) items.at(-1).push('');
      continue;
    } else if (indentOf(line) > edge + 1 && next > at) {
      items.at(-1).push(line);
    } else if (sameList(item, ordered) && !RULE.test(line)) {
      items.push([item[4] ?? '']);
    } else if (item || indentOf(line) <= edge && (lines[next - 1].trim() === '' || interrupts(lines, next))) {
      break;
    } else {
      items.at(-1).push(line);
    }
    next += 1;
  }
  const inside = items.map(([begins, ...rest]) => blocksOf([begins, ...dedented(rest)], depth + 1));
  return { block: { kind: 'list', ordered, start: ordered ? Number(first[3]) : 1, items: inside }, next };
}

const sameList = (item, ordered) => item !== null && (item[3] !== undefined) === ordered;

function indentOf(line) {
  return /^[ \t]*/.exec(line)[0].replaceAll('\t', '    ').length;
}

/** Without their common indent. */
function dedented(lines) {
  const indents = lines.filter((line) => line.trim() !== '').map(indentOf);
  const common = Math.min(...indents);
  return indents.length === 0 ? lines : lines.map((line) => line.replaceAll('\t', '    ').slice(common));
}

function table(lines, at) {
  const [line, below] = [lines[at], lines[at + 1]];
  if (!line.includes('|') || below === undefined || !DELIMITERS.test(below)) return null;
  const head = cells(line);
  const aligned = cells(below).map(alignment);
  if (head.length !== aligned.length || (head.length === 1 && !below.includes('|'))) return null;
  let next = at + 2;
  const rows = [];
  for (; next < lines.length && lines[next].includes('|'); next += 1) {
    const row = cells(lines[next]);
    rows.push(head.map((_, place) => row[place] ?? ''));
  }
  return { block: { kind: 'table', head, rows, aligned }, next };
}

/** A `|` in code or behind a `\` ends no cell. */
function cells(line) {
  const inner = line.trim().replace(/^\|/, '').replace(/(?<!\\)\|$/, '');
  const found = [''];
  for (const [part] of inner.matchAll(/`[^`]*`|\\\||[^|`\\]+|[\s\S]/g)) {
    if (part === '|') found.push('');
    else found.push(found.pop() + (part === '\\|' ? '|' : part));
  }
  return found.map((cell) => cell.trim());
}

function alignment(delimiter) {
  if (delimiter.startsWith(':') && delimiter.endsWith(':')) return 'center';
  return delimiter.endsWith(':') ? 'end' : 'start';
}

// Bounded lengths, so that a senseless text is read in no time.
const SPECIAL = new RegExp(
  [
    /\\(?<escaped>[\\`*_{}[\]()#+\-.!|~<>])/,
    /(?<ticks>`{1,100})(?!`)(?<code>[\s\S]{0,4000}?[^`])\k<ticks>(?!`)/,
    /!?\[(?<label>[^\]\n]{0,1000})\]\(\s*(?!\s)<?(?<target>[^\s()<>]*(?:\([^\s()<>]*\)[^\s()<>]*)*)>?(?:\s+["'][^"'\n]*["'])?\s*\)/,
    /<(?<angled>(?:https?:\/\/|mailto:|tel:)[^\s<>]+)>/,
    /(?<bare>https?:\/\/[^\s<>"'`]*[^\s<>"'`.,;:!?*_~\])}])/,
    /(?<stars>\*{2,3}|~~|(?<!\p{N})\*)(?=[^\s*])(?<starred>[^\n]{0,1000}?[^\s*~])\k<stars>(?!\*)/,
    /(?<![\p{L}\p{N}_])(?<lines>_{1,3})(?=[^\s_])(?<underlined>[^\n]{0,1000}?[^\s_])\k<lines>(?![\p{L}\p{N}_])/,
    /(?<br><br\s*\/?>)/,
  ].map((each) => each.source).join('|'),
  'giu',
);

const MARKS = { 1: ['italic'], 2: ['bold'], 3: ['bold', 'italic'] };

/**
 * The parts of a line: `{kind: 'text' | 'code', text}`, `{kind: 'bold' | 'italic' | 'struck', spans}` and
 * `{kind: 'link', spans, address, host}`; `host` is the destination, if the words do not say so.
 */
export function spans(text) {
  return spansOf(text, { depth: 0 });
}

function spansOf(text, { depth, linked = false }) {
  if (depth > DEEPEST) return [{ kind: 'text', text }];
  const parts = [];
  const add = (part) => {
    if (part.kind === 'text' && parts.at(-1)?.kind === 'text') parts.push({ kind: 'text', text: parts.pop().text + part.text });
    else if (part.text !== '') parts.push(part);
  };
  const within = (inside, also = {}) => spansOf(inside, { depth: depth + 1, linked, ...also });
  let end = 0;
  for (const { 0: all, index, groups } of text.matchAll(SPECIAL)) {
    add({ kind: 'text', text: text.slice(end, index) });
    end = index + all.length;
    const { escaped, code, label, target, angled, bare, stars, starred, lines, underlined } = groups;
    const address = angled ?? bare;
    if (escaped !== undefined) add({ kind: 'text', text: escaped });
    else if (code !== undefined) add({ kind: 'code', text: code.replace(/^ (?!\s*$)(.*) $/, '$1') });
    else if (label !== undefined) add(linked ? { kind: 'text', text: label } : link(label, target, within(label, { linked: true })));
    else if (address !== undefined) add(linked ? { kind: 'text', text: address } : link(address, address));
    else if (stars === '~~') add({ kind: 'struck', spans: within(starred) });
    else if (stars ?? lines) add(marked(MARKS[(stars ?? lines).length], within(starred ?? underlined)));
    else add({ kind: 'text', text: '\n' });
  }
  add({ kind: 'text', text: text.slice(end) });
  return parts;
}

const marked = (kinds, inside) => kinds.reduceRight((spans, kind) => [{ kind, spans }], inside)[0];

/** To the web, an e-mail address or a telephone. Other links become their words and destination. */
function link(words, target, inside = [{ kind: 'text', text: words }]) {
  const address = addressOf(target);
  if (!address) return { kind: 'text', text: [words, words !== target && target && `(${target})`].filter(Boolean).join(' ') };
  const shown = words === '' ? [{ kind: 'text', text: target }] : inside;
  return { kind: 'link', spans: shown, address: address.href, host: saysWhere(words || target, address) ? null : whereTo(address) };
}

export function addressOf(target) {
  // The browser would drop these, and read another address than people.
  if (!/^(?:https?:\/\/|mailto:|tel:)/i.test(target) || /[\u0000-\u0020\u007f-\u009f]/.test(target)) return null;
  try {
    const address = new URL(target);
    // `https://bank.example@elsewhere.example` leads elsewhere, and `mailto:100%` has no readable destination.
    return address.username || address.password || !whereTo(address) ? null : address;
  } catch {
    return null;
  }
}

const whereTo = (address) => address.host || decodeURIComponent(address.pathname);

function saysWhere(words, address) {
  if (!address.host) return words.includes(whereTo(address));
  const told = addressOf(words.trim()) ?? addressOf(`https://${words.trim()}`);
  return told?.host === address.host;
}
