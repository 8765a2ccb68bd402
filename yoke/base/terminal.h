#pragma once

namespace yoke {

/// Whether lines on this descriptor may be redrawn: it is a terminal, and TERM is neither empty nor
/// "dumb".
bool can_redraw(int descriptor);

/// Whether to write colours to this descriptor. The first that speaks decides: NO_COLOR (not
/// empty): no; CLICOLOR_FORCE or FORCE_COLOR (not empty, not "0"): yes; TERM=dumb: no; a terminal:
/// yes; else no.
bool wants_color(int descriptor);

}  // namespace yoke
