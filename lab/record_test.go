package main

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// A packed recording holds the same members in the same order, and is smaller.
func TestRepack(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.case")
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	members := []string{"manifest.json", "trace.out"}
	for _, name := range members {
		m, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err == nil {
			_, err = m.Write(bytes.Repeat([]byte(name), 1000))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := repack(file); err != nil {
		t.Fatal(err)
	}
	r, err := zip.OpenReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for i, m := range r.File {
		f, err := m.Open()
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(f)
		if err != nil || m.Name != members[i] || !bytes.Equal(got, bytes.Repeat([]byte(m.Name), 1000)) {
			t.Errorf("member %d: %s, %d bytes, %v", i, m.Name, len(got), err)
		}
	}
	if st, err := os.Stat(file); err != nil || st.Size() >= int64(b.Len()) || len(r.File) != len(members) {
		t.Errorf("%d members, %d bytes of %d, %v", len(r.File), st.Size(), b.Len(), err)
	}
	if left, _ := filepath.Glob(file + "?*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A variant with fewer clients is a copy: the original stays as it is.
func TestFewer(t *testing.T) {
	v := &Variant{Start: []Process{{Name: "server"}, {Name: "clients", Env: map[string]string{"A": "b"}}}}
	few := v.fewer(7)
	if e := few.Start[1].Env; e["LAB_CLIENTS"] != "7" || e["A"] != "b" {
		t.Errorf("env %v", e)
	}
	if len(v.Start[1].Env) != 1 || v.Start[0].Env != nil {
		t.Errorf("the variant itself changed: %+v", v.Start)
	}
}
