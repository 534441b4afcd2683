// The items of a conversation: messages, calls of tools, drawings, receipts.

import { Component, html } from '../htm-preact.js';
import { Receipt } from './receipt.js';
import { formatted } from './text.js';
import { Values } from '../shell/values.js';
import { Widget } from './widget.js';

/** An unchanged item is not drawn again, so a long conversation costs a growing answer nothing. */
export class Item extends Component {
  shouldComponentUpdate(next, { broken = false }) {
    return next.item !== this.props.item || broken !== (this.state.broken ?? false);
  }

  /** A tool's widget may have an unknown form. */
  componentDidCatch(error) {
    console.error(error);
    this.setState({ broken: true });
  }

  render({ item }, { broken }) {
    if (broken) return html`<li class="quiet">This cannot be drawn.</li>`;
    if (item.kind === 'call') return html`<${Call} call=${item} />`;
    if (item.kind === 'widget') return html`<li class="drawn"><${Widget} widget=${item.widget} /></li>`;
    if (item.kind === 'receipt') return html`<${Receipt} receipt=${item.receipt} />`;
    if (item.kind === 'note') return html`<li class="quiet middle">${item.text}</li>`;
    return html`<${Message} message=${item} />`;
  }
}

const NOTES = {
  sending: 'Being sent',
  cut: 'Cut off',
  incomplete: 'Not complete',
  failed: 'Not answered',
};

function Message({ message }) {
  const { role, text, state } = message;
  const note = NOTES[state];
  return html`
    <li class="message ${role}" data-message-role=${role} data-state=${state}>
      <p class="aloud">${role === 'user' ? 'You:' : 'Assistant:'}</p>
      <div class="text">${role === 'user' ? html`<p dir="auto">${text}</p>` : formatted(text)}</div>
      ${note && html`<p class="quiet note">${note}</p>`}
    </li>
  `;
}

/** In words, with the kind of its sign. */
const OUTCOMES = {
  succeeded: ['done', 'good'],
  failed: ['failed', 'bad'],
  unconfirmed: ['may have been done', 'bad'],
  not_called: ['not called', 'bad'],
  refused: ['refused by you', 'bad'],
  unknown: ['not known', 'bad'],
};

function Call({ call }) {
  const [words, kind] = call.state === 'over' ? (OUTCOMES[call.outcome] ?? ['over', 'told']) : ['running', 'open'];
  const line = html`
    <span class="sign ${kind}" aria-hidden="true"></span>
    <span class="aloud">Tool</span> <code>${call.name}</code> <span class="quiet outcome">${words}</span>
  `;
  // Older messages have only the call.
  const opens = call.arguments !== null;
  return html`
    <li class="call" data-tool-call=${call.id} data-tool=${call.name} data-outcome=${call.state === 'over' ? (call.outcome ?? '') : 'running'}>
      ${opens
        ? html`<details onToggle=${inSight}>
            <summary>${line}</summary>
            <p class="part">Arguments</p>
            <${Values} values=${read(call.arguments)} />
            ${call.result !== undefined && html`<p class="part">Result</p><${Values} values=${read(call.result)} />`}
          </details>`
        : html`<p class="closed">${line}</p>`}
    </li>
  `;
}

/** At the end of the messages it would unfold behind the field to write in. */
function inSight(event) {
  const details = event.currentTarget;
  if (details.open) requestAnimationFrame(() => details.scrollIntoView({ block: 'nearest' }));
}

/** JSON if possible, else text. */
function read(text) {
  if (text === '') return {};
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
