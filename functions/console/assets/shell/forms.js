// The common parts of pages with forms: a script that comes with the first such page.

import './attachments.js';
import './collection.js';
import './saving.js';
