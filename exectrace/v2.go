package exectrace

// blocksV2 reads formats 1.22 and later.
func (t *Trace) blocksV2(yield func([]Event) bool) { t.read.fail(errTODO) }
