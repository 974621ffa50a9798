package format

import (
	"bytes"
	"strings"
)

// What is recognised here and read elsewhere, or nowhere.
const (
	KindEmpty Kind = "empty"
	KindTrace Kind = "a Go execution trace"
	KindGzip  Kind = "gzip"
	KindZip   Kind = "a zip"
	KindHTML  Kind = "a web page"
)

var (
	_ = register(&row{kind: KindEmpty, name: "empty", unused: "it has no bytes",
		looks: func(h head) bool { return len(h.data) == 0 }})

	_ = register(&row{kind: KindTrace, name: "trace", unused: "exectrace reads it", looks: looksTrace})

	// Gather unpacks before it asks for the kind: what is packed twice is not read.
	_ = register(&row{kind: KindGzip, name: "gzip", unused: "packed twice", looks: startsBytes(gzipMagic)})

	_ = register(&row{kind: KindZip, name: "zip", unused: "evidence opens a case, which is a zip",
		looks: startsBytes("PK\x03\x04", "PK\x05\x06")})

	_ = register(&row{kind: KindHTML, name: "html", unused: "a page about the file, or an error, instead of the file",
		looks: looksHTML})
)

// looksTrace reports whether the file starts like "go 1.26 trace". exectrace says what is wrong
// with the rest.
func looksTrace(h head) bool {
	return bytes.HasPrefix(h.data, []byte("go 1.")) && len(h.data) >= 16 &&
		bytes.HasPrefix(bytes.TrimLeft(h.data[5:16], "0123456789"), []byte(" trace"))
}

func looksHTML(h head) bool {
	start := strings.ToLower(h.start[:min(len(h.start), 16)])
	for _, tag := range []string{"<!doctype", "<html", "<?xml", "<head"} {
		if strings.HasPrefix(start, tag) {
			return true
		}
	}
	return false
}
