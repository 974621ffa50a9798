package main

import (
	"errors"
	"testing"
)

// TestScarceRefuses: a request which would leave the machine less than it must keep, or more than
// it has, changes nothing. There is no journal here, so a change would be a nil dereference.
func TestScarceRefuses(t *testing.T) {
	free, err := available()
	if err != nil {
		t.Skip(err)
	}
	for _, leave := range []int64{leastFree - 1, free + 64<<30} {
		_, err := scarce(nil, leave)
		var why skip
		if !errors.As(err, &why) {
			t.Errorf("to leave %d MiB of %d: %v", leave>>20, free>>20, err)
		}
	}
}
