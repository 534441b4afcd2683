// A field for a text in lines: their numbers, marks at mistakes, and keys for indentation.

import { html, useRef } from '../htm-preact.js';
import { useKeys } from '../shell/effects.js';
import { Icon } from '../shell/icons.js';

const INDENT = '  ';
const WORDS = { error: ['bad', 'Error'], warning: ['part', 'Warning'] };

/** Chromium takes seconds for the command with more lines. */
const MOST_LINES = 100;

/** Replaces a part of the text so that the browser can undo it, unless it is long. */
export function replace(area, { start, end, text }) {
  area.focus();
  area.setSelectionRange(start, end);
  if (text.split('\n').length <= MOST_LINES && document.execCommand(text ? 'insertText' : 'delete', false, text)) return;
  area.setRangeText(text, start, end, 'end');
  area.dispatchEvent(new Event('input', { bubbles: true }));
}

/** Moves the caret to a place, and the page to its line. */
export function show(area, { start, end, line }) {
  area.focus({ preventScroll: true });
  area.setSelectionRange(start, end);
  area.parentElement.querySelector(`[data-line="${line}"]`)?.scrollIntoView({ block: 'center' });
}

/** `area` is a ref to the field; `marks` are `{severity, start, end, line}`, the gravest of a line first. */
export function TextField({ id, label, help, value, marks, readOnly, area, onInput }) {
  const leaves = useRef(false);
  const help_id = `${id}-help`;
  const onKeyDown = (event) => {
    const { key, shiftKey, ctrlKey, metaKey, altKey, isComposing } = event;
    if (isComposing || ctrlKey || metaKey || altKey || key === 'Shift') return;
    if (key === 'Tab' && !leaves.current && !readOnly) {
      event.preventDefault();
      indent(area.current, shiftKey);
    }
    if (key === 'Enter' && !readOnly) {
      event.preventDefault();
      newLine(area.current);
    }
    leaves.current = key === 'Escape' || (key === 'Tab' && leaves.current);
  };
  const onPaste = (event) => {
    const text = event.clipboardData.getData('text/plain').replaceAll('\r\n', '\n');
    if (readOnly || text.split('\n').length <= MOST_LINES) return;
    event.preventDefault();
    replace(area.current, { start: area.current.selectionStart, end: area.current.selectionEnd, text });
  };
  return html`<div class="code">
    <label for=${id}>${label}</label><p class="help" id=${help_id}>${help}</p>
    <div class="codebox"><${Lines} text=${value} marks=${marks} />
      <textarea id=${id} ref=${area} value=${value} readonly=${readOnly} spellcheck="false" autocomplete="off" autocapitalize="off" dir="ltr" aria-describedby=${help_id} aria-invalid=${marks.some(({ severity }) => severity === 'error') ? 'true' : null}
        onInput=${({ target }) => onInput(target.value)} onKeyDown=${onKeyDown} onPaste=${onPaste} onBlur=${() => { leaves.current = false; }} onScroll=${({ target }) => { target.scrollTop = 0; }} /></div>
  </div>`;
}

/** Under the field stands the same text, which gives each line its height. */
function Lines({ text, marks }) {
  let start = 0;
  return html`<div class="codelines" aria-hidden="true">${text.split('\n').map((line, place) => {
    const begins = start;
    start += line.length + 1;
    const own = marks.filter((mark) => mark.line === place + 1);
    const [icon, word] = WORDS[own[0]?.severity] ?? [];
    return html`<div key=${place} data-line=${place + 1} class=${own[0]?.severity ?? ''}><span class="no">${icon && html`<${Icon} name=${icon} /><span class="word">${word}</span>`}<b>${place + 1}</b></span>${own.length > 0 ? marked(line, own, begins) : line}${line === '' && '\u200b'}</div>`;
  })}</div>`;
}

function marked(line, [{ start, end }], begins) {
  const [from, to] = [start - begins, Math.min(end - begins, line.length)];
  return html`${line.slice(0, from)}<u>${line.slice(from, to)}</u>${line.slice(to)}`;
}

function indent(area, less) {
  const { selectionStart: start, selectionEnd: end, value } = area;
  if (start === end && !less) return replace(area, { start, end, text: INDENT });
  const first = value.lastIndexOf('\n', start - 1) + 1;
  const lines = value.slice(first, end).split('\n').map((line) => (less ? line.replace(/^ {1,2}/, '') : INDENT + line));
  replace(area, { start: first, end, text: lines.join('\n') });
  return area.setSelectionRange(start === end ? area.selectionEnd : first, area.selectionEnd);
}

/** Begins a line below, as deep as this one, or deeper after an opening bracket. */
function newLine(area) {
  const { selectionStart: start, selectionEnd: end, value } = area;
  const before = value.slice(value.lastIndexOf('\n', start - 1) + 1, start);
  const [blank] = /^[ \t]*/.exec(before);
  const opens = /[{[]\s*$/.test(before);
  const closes = opens && /^\s*[}\]]/.test(value.slice(end).split('\n')[0]);
  replace(area, { start, end, text: `\n${blank}${opens ? INDENT : ''}${closes ? `\n${blank}` : ''}` });
  if (closes) area.setSelectionRange(area.selectionStart - blank.length - 1, area.selectionStart - blank.length - 1);
}

/** `save` on Ctrl+S or Cmd+S, wherever the focus is. */
export function useSaveKey(save) {
  useKeys((event) => {
    if (event.key.toLowerCase() !== 's' || !(event.ctrlKey || event.metaKey) || event.altKey) return;
    event.preventDefault();
    save();
  });
}
