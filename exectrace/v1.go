package exectrace

import "errors"

// blocksV1 reads formats 1.11 to 1.21.
func (t *Trace) blocksV1(yield func([]Event) bool) {
	t.read.fail(errors.New("exectrace: formats before 1.22 are not written yet"))
}
