package export

import "strconv"

// The shapes of OTLP's JSON: protobuf's, but ids are hexadecimal, and 64-bit numbers are strings.

type otlpData struct {
	ResourceSpans []otlpResourceSpans `json:"resourceSpans"`
}

type otlpResourceSpans struct {
	Resource   otlpResource     `json:"resource"`
	ScopeSpans []otlpScopeSpans `json:"scopeSpans"`
}

type otlpResource struct {
	Attributes []otlpAttribute `json:"attributes"`
}

type otlpScopeSpans struct {
	Scope otlpScope  `json:"scope"`
	Spans []otlpSpan `json:"spans"`
}

type otlpScope struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

type otlpSpan struct {
	TraceID    string          `json:"traceId"`
	SpanID     string          `json:"spanId"`
	ParentID   string          `json:"parentSpanId,omitempty"`
	Name       string          `json:"name"`
	Kind       int             `json:"kind"`
	Start      string          `json:"startTimeUnixNano"`
	End        string          `json:"endTimeUnixNano"`
	Attributes []otlpAttribute `json:"attributes,omitempty"`
	Events     []otlpEvent     `json:"events,omitempty"`
}

type otlpEvent struct {
	Time       string          `json:"timeUnixNano"`
	Name       string          `json:"name"`
	Attributes []otlpAttribute `json:"attributes,omitempty"`
}

type otlpAttribute struct {
	Key   string    `json:"key"`
	Value otlpValue `json:"value"`
}

// otlpValue has one field that is set.
type otlpValue struct {
	String *string    `json:"stringValue,omitempty"`
	Int    string     `json:"intValue,omitempty"`
	Double *float64   `json:"doubleValue,omitempty"`
	Array  *otlpArray `json:"arrayValue,omitempty"`
}

type otlpArray struct {
	Values []otlpValue `json:"values"`
}

// Kinds of spans.
const (
	otlpInternal = 1
	otlpServer   = 2
)

// attributes are put together in their order; what is empty is left out.
type attributes []otlpAttribute

func (a attributes) text(key, value string) attributes {
	if value = text(value); value == "" {
		return a
	}
	return append(a, otlpAttribute{key, otlpValue{String: &value}})
}

func (a attributes) number(key string, value int64) attributes {
	if value == 0 {
		return a
	}
	return append(a, otlpAttribute{key, otlpValue{Int: strconv.FormatInt(value, 10)}})
}

func (a attributes) share(key string, value float64) attributes {
	return append(a, otlpAttribute{key, otlpValue{Double: &value}})
}

func (a attributes) list(key string, values []string) attributes {
	if len(values) == 0 {
		return a
	}
	l := &otlpArray{Values: []otlpValue{}}
	for _, v := range values {
		v = text(v)
		l.Values = append(l.Values, otlpValue{String: &v})
	}
	return append(a, otlpAttribute{key, otlpValue{Array: l}})
}
