// The common parts of pages with forms: a script that comes with the first such page.

import * as attachments from './attachments.js';
import * as collection from './collection.js';
import * as saving from './saving.js';
