// A call as a picture: lanes for the line, the agent, the caller and each tool on one axis of time.

import { html } from '../htm-preact.js';
import { Icon } from '../shell/icons.js';
import { length } from '../shell/moments.js';
import { wordOf } from '../shell/status.js';
import { axisOf, clock, percent, placeOf, segmentsOf } from '../shell/axis.js';
import { busyIn, failedIn } from './timeline.js';

const HEAD = 34;
const LANE = 36;

export function Picture({ lanes, nameOf, open }) {
  const parts = segmentsOf(lanes.span, busyIn(lanes), { open });
  const at = (time) => percent(placeOf(time, parts));
  const wide = (from, to) => percent(Math.max(placeOf(to, parts) - placeOf(from, parts), 0));
  const height = HEAD + LANE * (3 + lanes.tools.length);
  const lines = Array.from({ length: 4 + lanes.tools.length }, (_, row) => HEAD + row * LANE);
  const middle = (row) => HEAD + row * LANE + LANE / 2;
  return html`<div class="lanes">
      <ol class="names" aria-hidden="true">
        <li class="top">Since it came in</li>
        <li><${Icon} name="call" /><span>Line</span></li><li><${Icon} name="agent" /><span>Agent</span></li><li><${Icon} name="people" /><span>Caller</span></li>
        ${lanes.tools.map((lane) => html`<li class=${failedIn({ tools: [lane] }).length ? 'failed' : ''}><${Icon} name="tool" /><span>${nameOf(lane)}</span></li>`)}
      </ol>
      <div class="scroll" tabindex="0" role="region" aria-label="Picture of the call">
        <svg class="callpic" width="100%" height=${height + 1} role="img" aria-label=${sentence(lanes, parts, nameOf)}>
          ${lines.map((y) => html`<line class="grid" x1="0" x2="100%" y1=${y} y2=${y} />`)}
          ${axisOf(lanes.span, parts).map((time, place) => html`<line class="grid" x1=${at(time)} x2=${at(time)} y1="24" y2=${height} />
            <text x=${at(time)} dx=${place === 0 ? 3 : 0} y="18" text-anchor=${place === 0 ? 'start' : placeOf(time, parts) > 0.96 ? 'end' : 'middle'}>${clock(time)}</text>`)}
          ${parts.filter(({ torn }) => torn).map((part) => html`<${Tear} part=${part} height=${height} />`)}
          ${html`<${Line} lanes=${lanes} parts=${parts} at=${at} wide=${wide} y=${middle(0)} />`}
          ${lanes.points.map(({ who, at: time }) => html`<svg x=${at(time)} y=${middle(who === 'agent' ? 1 : 2)} overflow="visible">
            ${who === 'agent' ? html`<circle class="agentmark" r="5.5" />` : html`<path class="callermark" d="M0-6.500 6.500 0 0 6.500-6.500 0z" />`}
          </svg>`)}
          ${lanes.told.map(({ at: time }) => html`<line class="told" x1=${at(time)} x2=${at(time)} y1=${HEAD + LANE + 8} y2=${height - 8} />
            <svg x=${at(time)} y=${HEAD + LANE + 4} overflow="visible"><path class="toldhead" d="M0-5 4 3h-8z" /></svg>`)}
          ${lanes.tools.flatMap(({ bars }, row) => bars.map((bar) => html`<${Bar} key=${bar.id} bar=${bar} lanes=${lanes} parts=${parts} at=${at} wide=${wide} y=${middle(3 + row)} />`))}
        </svg>
      </div>
    </div>
    <ul class="key">
      <li><svg width="22" height="12" aria-hidden="true"><rect class="queued" x="1" y="1" width="20" height="10" rx="3" /></svg>waits</li>
      <li><svg width="22" height="12" aria-hidden="true"><rect class="ran" x="1" y="1" width="20" height="10" rx="3" /></svg>runs</li>
      <li><svg width="14" height="14" aria-hidden="true"><rect class="crossbox" width="14" height="14" rx="3" /><path class="crossmark" d="m4 4 6 6m0-6-6 6" /></svg>failed</li>
      <li><svg width="12" height="12" aria-hidden="true"><path class="toldhead" d="M6 1l4 8h-8z" /></svg>the model was told</li>
      <li><svg width="12" height="12" aria-hidden="true"><circle class="agentmark" cx="6" cy="6" r="5.5" /></svg>agent spoke</li>
      <li><svg width="14" height="14" aria-hidden="true"><path class="callermark" d="M7 .5 13.500 7 7 13.500.5 7z" /></svg>caller spoke</li>
    </ul>`;
}

/** A call in progress is open at the right. */
function Line({ lanes, parts, at, wide, y }) {
  const { connected, span, ended, lost } = lanes;
  const shown = parts.filter(({ torn }) => !torn);
  const bar = (kind, from, to) => shown.map((part) => {
    const [low, high] = [Math.max(from, part.from), Math.min(to, part.to)];
    return high > low && html`<rect class=${kind} x=${at(low)} y=${y - 7} width=${wide(low, high)} height="14" rx="3" />`;
  });
  return html`${bar('queued', 0, connected ?? span)}${connected !== null && bar('talk', connected, span)}
    ${!ended && html`<text class="lab" x="100%" dx="-4" y=${y - 10} text-anchor="end">${lost ? 'end not known' : 'goes on'}</text>`}`;
}

function Bar({ bar, lanes, parts, at, wide, y }) {
  const { queued, from, to, status } = bar;
  const begun = from ?? queued;
  const known = to !== null;
  const end = to ?? lanes.span;
  const failed = known && !['succeeded', 'replayed'].includes(status);
  const right = placeOf(end, parts) < 0.72;
  const says = known ? `${failed ? `${wordOf(status).toLowerCase()}, ` : ''}${length(to - from)}` : lanes.ended || lanes.lost ? 'no end known' : 'runs';
  return html`
    ${queued !== null && from !== null && from > queued && html`<rect class="queued" x=${at(queued)} y=${y - 7} width=${wide(queued, from)} height="14" rx="3" />`}
    <rect class="ran ${failed ? 'bad' : ''} ${known ? '' : 'open-end'}" x=${at(begun)} y=${y - 7} width=${wide(begun, end)} height="14" rx="3" />
    <rect class="ran ${failed ? 'bad' : ''}" x=${at(begun)} y=${y - 7} width="3" height="14" rx="1.500" />
    <svg x=${right ? at(end) : at(queued ?? begun)} y=${y} overflow="visible">
      ${failed && html`<g transform=${right ? 'translate(8 -7)' : 'translate(-22 -7)'}><rect class="crossbox" width="14" height="14" rx="3" /><path class="crossmark" d="m4 4 6 6m0-6-6 6" /></g>`}
      <text class="lab ${failed ? 'bad' : ''}" x=${(right ? 1 : -1) * (failed ? 28 : 8)} y="4" text-anchor=${right ? 'start' : 'end'}>${says}</text>
    </svg>`;
}

/** Omitted silence, with its length. */
function Tear({ part, height }) {
  const missing = part.to - part.from;
  const zigzag = Array.from({ length: Math.ceil(height / 16) }, () => 'l4 8l-4 8').join('');
  return html`<rect class="gap" x=${percent(part.start)} y="0" width=${percent(part.end - part.start)} height=${height} />
    ${[part.start, part.end].map((edge) => html`<svg x=${percent(edge)} overflow="visible"><path class="tear" d=${`M0 0${zigzag}`} /></svg>`)}
    <text x=${percent((part.start + part.end) / 2)} y="18" text-anchor="middle">${missing < 60_000 ? `${Math.round(missing / 1000)} s` : clock(missing)}</text>`;
}

function sentence(lanes, parts, nameOf) {
  const silence = parts.filter(({ torn }) => torn).reduce((sum, { from, to }) => sum + to - from, 0);
  const failures = failedIn(lanes).map((bar) => `${nameOf(bar)} ${wordOf(bar.status).toLowerCase()} after ${length(bar.to)}`);
  const says = [
    `The call on a time axis of ${length(lanes.span)}${silence ? `, ${length(silence)} of them silence that is left out` : ''}.`,
    `${lanes.tools.length || 'No'} ${lanes.tools.length === 1 ? 'tool' : 'tools'} ran.`,
    failures.length ? `${failures.join('; ')}.` : '',
    'The table below says the same.',
  ];
  return says.filter(Boolean).join(' ');
}
