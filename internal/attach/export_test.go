package attach

// MeasureNames lists the facts that two readings are compared by.
func MeasureNames() (out []FactName) {
	for _, m := range measures {
		out = append(out, m.name)
	}
	return out
}
