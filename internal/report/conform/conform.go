// Package conform holds JSON reports to their schema, in tests.
package conform

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Errors validates doc by the part of JSON Schema that the reports' schema uses, and says where it
// does not conform. A keyword it does not know is an error, so that the schema cannot ask for what
// is not checked; so is a field that the schema does not describe.
func Errors(schemaJSON, doc []byte) (errs []string) {
	var schema, value any
	for _, x := range []struct {
		b []byte
		v *any
	}{{schemaJSON, &schema}, {doc, &value}} {
		dec := json.NewDecoder(bytes.NewReader(x.b))
		dec.UseNumber()
		if err := dec.Decode(x.v); err != nil {
			return []string{err.Error()}
		}
	}
	root := schema.(map[string]any)
	var check func(at string, schema map[string]any, value any)
	check = func(at string, schema map[string]any, value any) {
		fail := func(format string, args ...any) { errs = append(errs, at+": "+fmt.Sprintf(format, args...)) }
		for keyword, arg := range schema {
			switch keyword {
			case "$schema", "$id", "$defs", "title", "description", "x-prose", "x-varies":
			case "$ref":
				name := strings.TrimPrefix(arg.(string), "#/$defs/")
				check(at, root["$defs"].(map[string]any)[name].(map[string]any), value)
			case "type":
				types, ok := arg.([]any)
				if !ok {
					types = []any{arg}
				}
				if !slices.ContainsFunc(types, func(x any) bool { return isType(x.(string), value) }) {
					fail("%v is no %v", value, arg)
				}
			case "const":
				if arg != value {
					fail("%v, want %v", value, arg)
				}
			case "enum":
				if !slices.Contains(arg.([]any), value) {
					fail("%v, want one of %v", value, arg)
				}
			case "pattern":
				if s, ok := value.(string); ok && !regexp.MustCompile(arg.(string)).MatchString(s) {
					fail("%q does not match %v", s, arg)
				}
			case "minimum", "maximum":
				n, ok := value.(json.Number)
				if !ok {
					break
				}
				v, _ := n.Float64()
				limit, _ := arg.(json.Number).Float64()
				if keyword == "minimum" && v < limit || keyword == "maximum" && v > limit {
					fail("%v, %s is %v", value, keyword, arg)
				}
			case "items":
				list, _ := value.([]any)
				for i, v := range list {
					check(fmt.Sprintf("%s[%d]", at, i), arg.(map[string]any), v)
				}
			case "required":
				object, is := value.(map[string]any)
				if !is {
					continue // the keyword is about objects; whether it may be null is type's to say
				}
				for _, k := range arg.([]any) {
					if _, ok := object[k.(string)]; !ok {
						fail("lacks %v", k)
					}
				}
			case "properties":
				object, _ := value.(map[string]any)
				for k, v := range object {
					if p, ok := arg.(map[string]any)[k]; ok {
						check(at+"."+k, p.(map[string]any), v)
					} else {
						fail("field %q is not in the schema", k)
					}
				}
			default:
				fail("schema: keyword %q is not known here", keyword)
			}
		}
	}
	check("report", root, value)
	return errs
}

func isType(name string, value any) bool {
	switch v := value.(type) {
	case nil:
		return name == "null"
	case bool:
		return name == "boolean"
	case string:
		return name == "string"
	case []any:
		return name == "array"
	case map[string]any:
		return name == "object"
	case json.Number:
		_, err := v.Int64()
		return name == "number" || name == "integer" && err == nil
	}
	return false
}
