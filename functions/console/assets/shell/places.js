// The console's places in the navigation's order, each loaded when opened.

import { sheet } from './sheet.js';
import { inTime } from './unreachable.js';

export const PLACES = [
  { page: 'home', word: 'Home', icon: 'home', key: 'h', first: true, open: () => import('../home/page.js') },
  { page: 'calls', word: 'Calls', icon: 'call', key: 'c', first: true, open: styled(() => import('../calls/page.js')) },
  { page: 'executions', word: 'Executions', icon: 'bolt', key: 'e', open: styled(() => import('../executions/page.js')) },
  { page: 'automations', word: 'Automations', icon: 'flow', key: 'w', open: styled(() => import('../automations/page.js')) },
  { page: 'runs', word: 'Runs', icon: 'runs', key: 'r', open: styled(() => import('../runs/page.js')) },
  { page: 'events', word: 'Events', icon: 'inbox', key: 'v', open: styled(() => import('../events/page.js')) },
  { page: 'approvals', word: 'Approvals', icon: 'hand', key: 'a', first: true, open: styled(() => import('../approvals/page.js')) },
  { page: 'chat', word: 'Chat', icon: 'chat', key: 'm', first: true, open: styled(() => import('../chat/page.js'), 'console/console.css') },
  { page: 'tools', word: 'Tools', icon: 'tool', key: 't', open: styled(() => import('../tools/page.js')) },
  { page: 'agents', word: 'Agents', icon: 'agent', key: 'i', open: styled(() => import('../agents/page.js')) },
  { page: 'numbers', word: 'Phone numbers', icon: 'call', key: 'n', open: styled(() => import('../numbers/page.js')) },
  { page: 'donotcall', word: 'Do not call', icon: 'stop', key: 'd', open: styled(() => import('../donotcall/page.js')) },
  { page: 'knowledge', word: 'Knowledge', icon: 'book', key: 'b', open: styled(() => import('../knowledge/page.js')) },
  { page: 'services', word: 'Services', icon: 'plug', key: 's', open: styled(() => import('../services/page.js')) },
  { page: 'hooks', word: 'Hooks', icon: 'hook', key: 'o', open: styled(() => import('../hooks/page.js')) },
  { page: 'keys', word: 'Service keys', icon: 'key', key: 'y', open: styled(() => import('../keys/page.js')) },
  { page: 'usage', word: 'Usage', icon: 'chart', key: 'u', open: styled(() => import('../usage/page.js')) },
  { page: 'members', word: 'Members', icon: 'people', key: 'p', open: styled(() => import('../members/page.js')) },
  { page: 'audit', word: 'Audit log', icon: 'log', key: 'l', open: styled(() => import('../audit/page.js')) },
  { page: 'erasure', word: 'Erasure', icon: 'erase', key: 'x', open: styled(() => import('../erasure/page.js')) },
];

/** A part of Automations that few visits need. */
export const EDITOR = { word: 'Automations', open: styled(() => import('../automations/definition_editor.js'), 'console/editor.css') };

/** Opens a place, or a part of one, that needs style sheets beyond the shell's. */
function styled(open, ...sheets) {
  return () => inTime(Promise.all([open(), sheet('console/places.css'), ...sheets.map(sheet)])).then(([opened]) => opened);
}
