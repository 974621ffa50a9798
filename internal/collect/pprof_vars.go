package collect

import (
	"encoding/json"
	"errors"

	"github.com/whystall/whystall/internal/format"
)

var _ = register(&Collector{
	Name:      "vars",
	Allocates: true,
	Doc:       "memstats of /debug/vars before and after. Filling it stops the world briefly (runtime.ReadMemStats), so it is fetched outside the trace's time. Other variables are not kept: the command line is one of them.",
	Order:     45,
	Fetches: []Fetch{
		{Phase: Before, Path: "debug/vars", Root: true, Member: "vars.begin.json",
			Want: []format.Kind{format.KindVars}, Max: maxProfile, Keep: keepMemstats},
		{Phase: After, Path: "debug/vars", Root: true, Member: "vars.end.json",
			Want: []format.Kind{format.KindVars}, Max: maxProfile, Keep: keepMemstats},
	},
})

// keepMemstats drops what a service may have put beside memstats: that can be anything, including
// secrets.
func keepMemstats(body []byte) ([]byte, error) {
	var vars struct {
		Memstats json.RawMessage `json:"memstats"`
	}
	if err := json.Unmarshal(body, &vars); err != nil {
		return nil, err
	}
	if vars.Memstats == nil {
		return nil, errors.New("holds no memstats")
	}
	return json.Marshal(vars)
}
