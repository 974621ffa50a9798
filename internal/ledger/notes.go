package ledger

import "github.com/whystall/whystall/internal/timeline"

// anatomy corrects what the trace alone tells of a stop-the-world by the kernel's notes.
func (p *paths) anatomy(t *path, s *timeline.STW) {}

// findBarriers lists the ragged barriers.
func (p *paths) findBarriers() {}
