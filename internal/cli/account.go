package cli

import (
	"fmt"
	"regexp"
	"time"

	"github.com/whystall/whystall/internal/ledger"
)

// account makes the ledgers of the trace.
func (con *console) account(in *loaded, entry *regexp.Regexp, slowOver time.Duration) (*ledger.Result, error) {
	return nil, fmt.Errorf("explain: the ledger is not part of this build yet")
}
