// Parts of several places: a script that comes with the first place that needs one.

import './absent.js';
import './acting.js';
import './axis.js';
import './bars.js';
import './chart_shapes.js';
import './drafts.js';
import './effects.js';
import './fault.js';
import './filter_form.js';
import './filtered.js';
import './list.js';
import './money.js';
import './pane.js';
import './phone_number.js';
import './request.js';
import './roles.js';
import './status.js';
import './values.js';
