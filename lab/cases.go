package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"path"
)

// A case is a folder with a program (package main, one binary whose first argument is its role) and this file.
//
//go:embed */case.json
var caseFiles embed.FS

// Case is a trouble that the lab can make.
type Case struct {
	Name     string    `json:"-"` // the folder's: also the cause's
	Title    string    `json:"title"`
	Story    []string  `json:"story"` // what a person would know before looking, one paragraph a string
	Variants []Variant `json:"variants"`
}

// Variant is one way to run a case. What whystall should say of it is for the lab's own judging; it
// is never shown to whystall.
type Variant struct {
	Name  string    `json:"name"` // "ill", "cured", "healthy", "like-…" for the same symptom of another cause
	Doc   string    `json:"doc"`
	Start []Process `json:"start"` // in this order

	Root  string   `json:"root"`  // the cause to be found; "" none
	May   []string `json:"may"`   // causes that may be named besides
	Never []string `json:"never"` // causes that must not
}

// Process is one of a variant's processes. An argument may quote what an earlier one said in its ready
// line: {store.addr} is the addr of the process store. The process "server" is the one diagnosed, and
// says where its pprof is; "clients" answers marks (package witness).
type Process struct {
	Name string   `json:"name"`
	Nice int      `json:"nice"`
	Args []string `json:"args"`
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
