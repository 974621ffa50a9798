package ledger

import (
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/evidence/kernel"
)

// TestGoEntry: of a sample that says most which is the goroutine's entry, the handler, or the
// runtime's own work.
func TestGoEntry(t *testing.T) {
	for stack, want := range map[string]string{
		"main.compact main.main.gowrap1 runtime.goexit": "main.compact",
		"strconv.Itoa main.list net/http.HandlerFunc.ServeHTTP net/http.(*ServeMux).ServeHTTP net/http.serverHandler.ServeHTTP net/http.(*conn).serve net/http.(*Server).Serve.gowrap3 runtime.goexit": "main.list (net/http)",
		"syscall.read net/http.(*connReader).Read bufio.(*Reader).Peek net/http.(*conn).serve runtime.goexit":                                                                                          "net/http.(*conn).serve",
		"runtime.scanObject runtime.gcDrain runtime.gcBgMarkWorker.func2 runtime.systemstack runtime.gcBgMarkWorker runtime.goexit":                                                                    "garbage collection",
		"runtime.gcAssistAlloc runtime.mallocgc main.build runtime.goexit":                                                                                                                             "garbage collection",
		"runtime.futex runtime.stopm runtime.findRunnable runtime.schedule runtime.park_m runtime.mcall":                                                                                               "Go's scheduler",
		"main.serve main.main runtime.main runtime.goexit":                                                                                                                                             "main.main",
		"sqlite3_step":   "sqlite3_step",
		"":               "not known",
		"runtime.goexit": "not known",
	} {
		var frames []kernel.Frame
		for _, f := range strings.Fields(stack) {
			frames = append(frames, kernel.Frame{Func: f})
		}
		if got := goEntry(frames); got != want {
			t.Errorf("%s: got %q, want %q", stack, got, want)
		}
	}
}
