// A notice for the person, with the next step.

import { html } from '../htm-preact.js';

/** `{text, kind: 'problem' | 'news', action?: {label, act}}`; problems are announced at once. */
export function Notice({ notice, onDismiss }) {
  const problem = notice?.kind === 'problem';
  return html`
    <div class="notices" role=${problem ? 'alert' : null}>
      ${notice &&
      html`<div class="notice say ${problem ? 'bad' : ''} ${notice.kind}">
        <p>${notice.text}</p>
        <div class="actions acts">
          ${notice.action &&
          html`<button type="button" class="btn" data-notice-action onClick=${() => notice.action.act()}>${notice.action.label}</button>`}
          ${onDismiss && html`<button type="button" class="plain" onClick=${onDismiss}>Dismiss</button>`}
        </div>
      </div>`}
    </div>
  `;
}
