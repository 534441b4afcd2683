// What the pages with forms share: a script of its own, which comes with the first of them.

import * as attachments from './attachments.js';
import * as collection from './collection.js';
import * as saving from './saving.js';
