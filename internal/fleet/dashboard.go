package fleet

import (
	"encoding/json"
	"time"
)

// The parts of Grafana's dashboard JSON (schema version 39, Grafana 10) that are needed here.
type (
	dashboard struct {
		Title         string     `json:"title"`
		UID           string     `json:"uid"`
		Description   string     `json:"description"`
		Tags          []string   `json:"tags"`
		SchemaVersion int        `json:"schemaVersion"`
		Version       int        `json:"version"`
		Editable      bool       `json:"editable"`
		Refresh       string     `json:"refresh"`
		Timezone      string     `json:"timezone"`
		Time          fromTo     `json:"time"`
		Templating    templating `json:"templating"`
		Panels        []panel    `json:"panels"`
	}
	fromTo struct {
		From string `json:"from"`
		To   string `json:"to"`
	}
	templating struct {
		List []variable `json:"list"`
	}
	variable struct {
		Name       string      `json:"name"`
		Label      string      `json:"label"`
		Type       string      `json:"type"`
		Query      string      `json:"query"`
		Datasource *datasource `json:"datasource,omitempty"`
		Multi      bool        `json:"multi,omitempty"`
		IncludeAll bool        `json:"includeAll,omitempty"`
		AllValue   string      `json:"allValue,omitempty"`
		Refresh    int         `json:"refresh,omitempty"`
	}
	datasource struct {
		Type string `json:"type"`
		UID  string `json:"uid"`
	}
	panel struct {
		ID          int          `json:"id"`
		Type        string       `json:"type"`
		Title       string       `json:"title"`
		Description string       `json:"description,omitempty"`
		GridPos     gridPos      `json:"gridPos"`
		Datasource  *datasource  `json:"datasource,omitempty"`
		Targets     []target     `json:"targets,omitempty"`
		FieldConfig *fieldConfig `json:"fieldConfig,omitempty"`
		Collapsed   bool         `json:"collapsed,omitempty"`
		Panels      []panel      `json:"panels,omitempty"`
	}
	gridPos struct {
		H int `json:"h"`
		W int `json:"w"`
		X int `json:"x"`
		Y int `json:"y"`
	}
	target struct {
		RefID        string `json:"refId"`
		Expr         string `json:"expr"`
		LegendFormat string `json:"legendFormat,omitempty"`
		Instant      bool   `json:"instant,omitempty"`
		Format       string `json:"format,omitempty"`
	}
	fieldConfig struct {
		Defaults  fieldDefaults `json:"defaults"`
		Overrides []struct{}    `json:"overrides"` // Grafana's schema wants it; here it is empty
	}
	fieldDefaults struct {
		Unit       string      `json:"unit"`
		Min        *float64    `json:"min,omitempty"`
		Thresholds *thresholds `json:"thresholds,omitempty"`
		Custom     any         `json:"custom,omitempty"`
	}
	thresholds struct {
		Mode  string `json:"mode"`
		Steps []step `json:"steps"`
	}
	step struct {
		Color string   `json:"color"`
		Value *float64 `json:"value"`
	}
)

// grafanaUnits are Grafana's names of the units.
var grafanaUnits = map[Unit]string{
	WallShare: "percentunit", Throttled: "percentunit", CPUShare: "percentunit", Share: "percentunit",
	Tasks: "none", Goroutines: "none", Memory: "bytes", Events: "ops", Ratio: "none", State: "none",
}

// Dashboard makes a dashboard of the table, as Grafana imports it: coverage on top, and a row for
// each cause. cluster is the label that tells clusters apart; "": "cluster".
func Dashboard(cluster string) ([]byte, error) {
	if cluster == "" {
		cluster = "cluster"
	}
	source := &datasource{"prometheus", "${datasource}"}
	d := dashboard{
		Title: "whystall: who loses time to what", UID: "whystall-fleet",
		Tags: []string{"whystall"}, SchemaVersion: 39, Version: 1, Editable: true,
		Description: "Made by whystall fleet dashboard. A line above its threshold is a finding if the other counter agrees: whystall fleet says which do.",
		Refresh:     "1m", Timezone: "utc", Time: fromTo{"now-6h", "now"},
	}
	d.Templating.List = []variable{
		{Name: "datasource", Label: "Data source", Type: "datasource", Query: "prometheus"},
		{Name: "cluster", Label: "Cluster", Type: "query", Query: "label_values(up, " + cluster +
			")", Datasource: source, Multi: true, IncludeAll: true, AllValue: ".*", Refresh: 2},
		{Name: "job", Label: "Job", Type: "query", Query: "label_values(up, job)",
			Datasource: source, Multi: true, IncludeAll: true, AllValue: ".*", Refresh: 2},
	}
	p := &Profile{Cluster: []string{cluster}}
	e := &env{p: p, window: 5 * time.Minute, match: []string{cluster + `=~"$cluster"`, `job=~"$job"`}}
	y, id := 0, 0
	next := func(h int) gridPos { at := gridPos{h, 24, 0, y}; y += h; return at }
	add := func(q panel) { id++; q.ID = id; d.Panels = append(d.Panels, q) }
	add(panel{Type: "row", Title: "What cannot be seen", GridPos: next(1)})
	q := panel{Type: "table", Title: "Targets that lack what causes are known by",
		Description: "The flag that would show it: whystall fleet", GridPos: next(8),
		Datasource: source, FieldConfig: &fieldConfig{Defaults: fieldDefaults{Unit: "none"}, Overrides: []struct{}{}}}
	for i, w := range wants {
		q.Targets = append(q.Targets, target{RefID: string(rune('A' + i)), Expr: "count(" +
			e.unless(w.Key, e.now(w.Key, w.Anchor), e.now(w.Key, w.Metrics[0])) + ")",
			LegendFormat: w.What, Instant: true, Format: "time_series"})
	}
	add(q)
	last := ""
	for _, r := range rules {
		if r.Cause != last {
			add(panel{Type: "row", Title: r.Cause, GridPos: next(1)})
			last = r.Cause
		}
		zero, least := 0.0, r.Least
		add(panel{
			Type: "timeseries", Title: r.Title, Description: string(r.Sure) + ": " + r.Why +
				". The manual: whystall causes " + r.Cause, GridPos: next(8), Datasource: source,
			Targets: []target{{RefID: "A", Expr: topk(10, r.Loss(e))}},
			FieldConfig: &fieldConfig{Overrides: []struct{}{},
				Defaults: fieldDefaults{Unit: grafanaUnits[r.Unit], Min: &zero,
					Thresholds: &thresholds{"absolute", []step{{"green", nil}, {"red", &least}}},
					Custom:     map[string]any{"thresholdsStyle": map[string]string{"mode": "line"}}}},
		})
	}
	return json.MarshalIndent(d, "", "  ")
}
