package database

import (
	"fmt"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var (
	etcdWarned = pattern.New(`\d [WEC] \| |"level": ?"(?:warn|error|dpanic|panic|fatal)"`)
	etcdFailed = pattern.New(`\d [EC] \| |"level": ?"(?:error|dpanic|panic|fatal)"`)
)

// nothingSlow says what lines are that complain of nothing slow: they may be of what failed.
func (c *complaints) nothingSlow(r *result) attach.State {
	of := attach.Plural(c.lines, "line")
	switch {
	case c.overloaded > 0:
		r.Means = "etcd takes itself for overloaded: a slow disk and a lack of CPU look alike to it."
		return attach.CannotTell
	case c.timeouts+c.unsent > 0:
		r.Means = "Something of etcd's did not get through in time; what was slow, these lines do not say."
		return attach.CannotTell
	case c.failed > 0:
		r.figure(fmt.Sprintf("errors, or worse, by their own level: %d of %s", c.failed, of))
		r.Means += " But something failed: its errors say what."
		return attach.CannotTell
	case c.warned > 0:
		r.figure(fmt.Sprintf("warnings: %d of %s", c.warned, of))
	default:
		r.figure("no complaint in " + of)
	}
	return attach.Healthy
}
