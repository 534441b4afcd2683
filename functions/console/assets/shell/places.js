// The console's places in the navigation's order, each loaded when opened.

export const PLACES = [
  { page: 'home', word: 'Home', icon: 'home', key: 'h', first: true, open: () => import('../home/page.js') },
  { page: 'calls', word: 'Calls', icon: 'call', key: 'c', first: true, open: () => import('../calls/page.js') },
  { page: 'executions', word: 'Executions', icon: 'bolt', key: 'e', first: false, open: () => import('../executions/page.js') },
  { page: 'automations', word: 'Automations', icon: 'flow', key: 'w', first: false, open: () => import('../automations/page.js') },
  { page: 'runs', word: 'Runs', icon: 'runs', key: 'r', first: false, open: () => import('../runs/page.js') },
  { page: 'events', word: 'Events', icon: 'inbox', key: 'v', first: false, open: () => import('../events/page.js') },
  { page: 'approvals', word: 'Approvals', icon: 'hand', key: 'a', first: true, open: () => import('../approvals/page.js') },
  { page: 'chat', word: 'Chat', icon: 'chat', key: 'm', first: true, open: () => sheet('console/console.css').then(() => import('../chat/page.js')) },
  { page: 'tools', word: 'Tools', icon: 'tool', key: 't', first: false, open: () => import('../tools/page.js') },
  { page: 'agents', word: 'Agents', icon: 'agent', key: 'i', first: false, open: () => import('../agents/page.js') },
  { page: 'numbers', word: 'Phone numbers', icon: 'call', key: 'n', first: false, open: () => import('../numbers/page.js') },
  { page: 'knowledge', word: 'Knowledge', icon: 'book', key: 'b', first: false, open: () => import('../knowledge/page.js') },
  { page: 'services', word: 'Services', icon: 'plug', key: 's', first: false, open: () => import('../services/page.js') },
  { page: 'hooks', word: 'Hooks', icon: 'hook', key: 'o', first: false, open: () => import('../hooks/page.js') },
  { page: 'keys', word: 'Service keys', icon: 'key', key: 'y', first: false, open: () => import('../keys/page.js') },
  { page: 'usage', word: 'Usage', icon: 'chart', key: 'u', first: false, open: () => import('../usage/page.js') },
  { page: 'members', word: 'Members', icon: 'people', key: 'p', first: false, open: () => import('../members/page.js') },
  { page: 'audit', word: 'Audit log', icon: 'log', key: 'l', first: false, open: () => import('../audit/page.js') },
  { page: 'erasure', word: 'Erasure', icon: 'erase', key: 'x', first: false, open: () => import('../erasure/page.js') },
];

/** A part of Automations that few visits need. */
export const EDITOR = { word: 'Automations', open: () => sheet('console/editor.css').then(() => import('../automations/definition_editor.js')) };

/** Loads a style sheet that one place needs, once. */
function sheet(href) {
  if (document.querySelector(`link[href="${href}"]`)) return Promise.resolve();
  return new Promise((come, fail) => {
    const link = Object.assign(document.createElement('link'), { rel: 'stylesheet', href, onload: come, onerror: () => fail(new Error(href)) });
    document.head.append(link);
  });
}
