// What a person should know now, and what they can do about it.

import { html } from '../htm-preact.js';

/** `{text, kind: 'problem' | 'news', action?: {label, act}}`; what is a problem is said aloud at once. */
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
