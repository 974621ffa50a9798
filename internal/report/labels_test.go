package report

import (
	"slices"
	"testing"
)

func TestApart(t *testing.T) {
	whole := []string{
		"lock at log.(*Logger).output, its holder: on CPU in os.(*File).Write",
		"lock at log.(*Logger).output, its holder: throttled",
		"lock at log.(*Logger).output, its holder main.flush: on CPU",
		"on CPU: the request itself",
	}
	for _, wide := range []int{24, 36, 50, 80} {
		labels := make([]string, len(whole))
		for i, s := range whole {
			labels[i] = cut([]rune(s), min(wide, 20))
		}
		apart(labels, whole, wide)
		for i, s := range labels {
			if width(s) > wide || slices.Index(labels, s) != i {
				t.Errorf("%d columns: %q", wide, labels)
			}
		}
	}
	same := []string{"a label", "a label"}
	apart(same, []string{"a label that is long", "a label that is long"}, 7) // two accounts of one name
	if same[0] != same[1] {
		t.Errorf("%q differ", same)
	}
}
