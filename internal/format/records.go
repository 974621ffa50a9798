package format

import (
	"bytes"

	"github.com/whystall/whystall/internal/evidence"
)

// KindRecords is the text twin of records, as package evidence writes it.
const KindRecords Kind = "records as text"

var _ = register(&row{
	kind: KindRecords, name: "records", rank: rankText,
	line: func(line string) bool {
		_, err := evidence.ParseRecord(line)
		return err == nil
	},
	mostly: true,
	parse: alone(func(data []byte, _ int64) ([]evidence.Record, error) {
		return evidence.ParseText(bytes.NewReader(data))
	}),
})
