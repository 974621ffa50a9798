package main

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"

	"github.com/whystall/whystall/lab/settings"
)

// A case is a folder with a program (package main, one binary whose first argument is its role) and this file.
//
//go:embed */case.json
var caseFiles embed.FS

// Case is a trouble that the lab can make.
type Case struct {
	Name     string    `json:"-"` // the folder's: also the cause's
	Title    string    `json:"title"`
	Story    []string  `json:"story"`  // what a person would know before looking, one paragraph a string
	Remedy   string    `json:"remedy"` // what the cured variant does, as one would do it
	Amount   string    `json:"amount"` // what the witness is of variants that have a root: "latency", "lost" or "rss", see accuracy.go; "" there is none
	Variants []Variant `json:"variants"`
}

// Variant is one way to run a case. What whystall should say of it is for the lab's own judging; it
// is never shown to whystall.
type Variant struct {
	Name  string    `json:"name"` // "ill", "cured", "healthy", "like-…" for the same symptom of another cause
	Doc   string    `json:"doc"`
	Start []Process `json:"start"` // in this order

	Settings []Setting `json:"settings"` // of the machine, put back at the end
	Memory   int64     `json:"memory"`   // bytes that it takes, if it is much
	Leave    int64     `json:"leave"`    // bytes of memory that the machine is left with, if it is to be short of it, see scarce.go
	Nodes    int       `json:"nodes"`    // NUMA nodes that it takes, if more than one
	WarmUp   string    `json:"warm_up"`  // until the symptom is there; default 1s
	GrowsTo  int64     `json:"grows_to"` // and until the server's memory has so many bytes

	Cured  string   `json:"cured"`  // the variant to hold it against; default "cured"
	Amount string   `json:"amount"` // if it is not the case's; "none" for none
	Root   string   `json:"root"`   // the cause to be found; "" none
	May    []string `json:"may"`    // causes that may be named besides
	Never  []string `json:"never"`  // causes that must not; "*" all but root and may
}

// cured is the variant without this one's trouble.
func (v *Variant) cured() string { return cmp.Or(v.Cured, "cured") }

// fewer is the variant with at most n clients.
func (v *Variant) fewer(n int) *Variant {
	few := *v
	few.Start = slices.Clone(v.Start)
	for i := range few.Start {
		env := maps.Clone(few.Start[i].Env)
		if env == nil {
			env = map[string]string{}
		}
		env["LAB_CLIENTS"] = strconv.Itoa(n)
		few.Start[i].Env = env
	}
	return &few
}

// Setting is a file of /proc or /sys and its value.
type Setting struct {
	Path  string `json:"path"`
	Value string `json:"value"`
}

// Process is one of a variant's processes. An argument may quote what an earlier one said in its ready
// line: {store.addr} is the addr of the process store, {cpus} the number of CPUs, {NAME.folder} its
// folder. The process "server" is the one diagnosed; "clients" answers marks (package witness) or,
// where there is none, the server does.
type Process struct {
	Name    string            `json:"name"`
	Program string            `json:"program"` // see builder.program
	Nice    int               `json:"nice"`
	CPUs    string            `json:"cpus"` // the ones it may use, as taskset takes them
	Env     map[string]string `json:"env"`
	Cgroup  settings.Limits   `json:"cgroup"`
	Session bool              `json:"session"` // one of its own: the kernel's autogroups then share the CPUs between it and others by process, not by thread
	Folder  bool              `json:"folder"`  // it gets a folder of its own, removed at the end
	Args    []string          `json:"args"`
}

func loadCases() ([]Case, error) {
	files, err := caseFiles.ReadDir(".")
	if err != nil {
		return nil, err
	}
	var cases []Case
	for _, f := range files {
		name := path.Join(f.Name(), "case.json")
		b, err := caseFiles.ReadFile(name)
		if err != nil {
			return nil, err
		}
		c := Case{Name: f.Name()}
		d := json.NewDecoder(bytes.NewReader(b))
		d.DisallowUnknownFields()
		if err := d.Decode(&c); err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		cases = append(cases, c)
	}
	return cases, nil
}
