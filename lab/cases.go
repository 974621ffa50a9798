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

// caseFiles are the cases. A case is a folder with this file and a program: package main, one
// binary whose first argument is its role.
//
//go:embed */case.json
var caseFiles embed.FS

// Case is a trouble which the lab can make.
type Case struct {
	Name     string    `json:"-"` // of the folder and of the cause
	Title    string    `json:"title"`
	Story    []string  `json:"story"`  // what a person knows before the diagnosis, one paragraph a string
	Remedy   string    `json:"remedy"` // what the cured variant does, in the words of an operator
	Amount   string    `json:"amount"` // the witness of variants with a root, see accuracy.go; "": none
	Variants []Variant `json:"variants"`
}

// Variant is one way to run a case. What whystall should say about it is only for the lab's
// judgement, and is never shown to whystall.
type Variant struct {
	Name  string    `json:"name"` // "ill", "cured", "healthy", "like-…" for the same symptom of another cause
	Doc   string    `json:"doc"`
	Start []Process `json:"start"` // in this order

	Settings []Setting `json:"settings"` // of the machine; put back at the end
	Memory   int64     `json:"memory"`   // bytes which it needs, where that is much
	Leave    int64     `json:"leave"`    // bytes of memory to leave to the machine, see scarce.go; 0: all
	Nodes    int       `json:"nodes"`    // NUMA nodes which it needs, where that is more than one
	WarmUp   string    `json:"warm_up"`  // how long it takes until the symptom shows; default 1s
	GrowsTo  int64     `json:"grows_to"` // and how many bytes the server's memory must reach

	Cured  string   `json:"cured"`  // the variant to compare it with; default "cured"
	Amount string   `json:"amount"` // where it differs from the case's; "none": there is no witness
	Root   string   `json:"root"`   // the cause to be found; "": none
	May    []string `json:"may"`    // causes which may be named as well
	Never  []string `json:"never"`  // causes which must not be named; "*": all but root and may
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

// Setting is a file of /proc or /sys, and its value.
type Setting struct {
	Path  string `json:"path"`
	Value string `json:"value"`
}

// Process is one of a variant's processes. An argument may quote the ready line of an earlier
// process: {store.addr} is the addr of the process store. {cpus} is the number of CPUs,
// {NAME.folder} the folder of the process NAME. The process "server" is the one which is diagnosed.
// The process "clients" answers marks (package witness); where there is none, the server does.
type Process struct {
	Name    string            `json:"name"`
	Program string            `json:"program"` // see builder.program
	Nice    int               `json:"nice"`
	CPUs    string            `json:"cpus"` // which it may use, in the notation of taskset
	Env     map[string]string `json:"env"`
	Cgroup  settings.Limits   `json:"cgroup"`
	Session bool              `json:"session"` // its own: autogroups then share the CPUs by process, not by thread
	Folder  bool              `json:"folder"`  // it gets a folder of its own, which is removed at the end
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
